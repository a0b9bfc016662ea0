"""Lines that shaders print reach Python, all values in order, with kernel and invocation; lost ones are counted."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from support.devices.features import require_features
from support.devices.shader_tools import needs_compiler

import pumice
from pumice.hal_vulkan.pipelines import prints as host
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.instrument import prints as in_shader
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.glsl import compile_glsl
from pumice.spirv.sources.language import Language
from pumice.status import OutOfRangeError, UnavailableError

pytestmark = [pytest.mark.vulkan, needs_compiler]

HEAD = """#version 460
#extension GL_EXT_debug_printf : require
#extension GL_EXT_shader_explicit_arithmetic_types : enable
layout(local_size_x = 4) in;
layout(binding = 0) buffer V { uint v[]; };
uint g = gl_GlobalInvocationID.x;
"""
VALUES = r"""
    uvec3 id = gl_GlobalInvocationID;
    if (g == 2) {
        debugPrintfEXT("%v3u of %d\n", id, int(v[g]) - 9);
        debugPrintfEXT("%f %1.1v2f %x %s", 0.5 * g, vec2(1, g), v[g] + 250, g == 2);
        debugPrintfEXT("nothing");
    }
    v[g] = 0;"""
WIDE = {
    ("shaderInt64",): ('"%lu %v2ld", uint64_t(v[g]) << 40, i64vec2(-1, g)', f"{3 << 40} -1, 0"),
    ("shaderFloat64",): ('"%f %v2f", double(v[g]) / 3, dvec2(1, 0.25)', "1.000000 1.000000, 0.250000"),
    ("shaderInt8", "shaderInt16"): ('"%d %u %v2d", int8_t(-7), uint16_t(65535), i16vec2(-2, 3)', "-7 65535 -2, 3"),
    ("shaderFloat16",): ('"%f %.1v2f", float16_t(0.5), f16vec2(1, 2)', "0.500000 1.0, 2.0"),
}
COUNTED = 'for (uint i = 0; i < v[0]; i++) debugPrintfEXT("%u.%u", g, i);'

Lines = list[pumice.PrintedLine]


def main(body: str) -> str:
    return f"{HEAD} void main() {{ {body} }}"


@pytest.fixture
def lines() -> Lines:
    return []


@pytest.mark.parametrize("options", [{}, {"staging": True}, {"sanitize": True}, {"loop_guard": True}], ids=str)
def test_values(lines: Lines, options: dict[str, bool], tmp_path: Path) -> None:
    (tmp_path / "show.comp").write_text(main(VALUES))
    with pumice.open_device(print=lines.append, **options) as device:  # type: ignore[arg-type]
        show = device.load_kernel(tmp_path / "show.comp", debug=True)
        np.testing.assert_array_equal(show(np.arange(4, dtype=np.uint32)), np.zeros(4))
    assert [line.text for line in lines] == ["2, 0, 0 of -7", "1.000000 1.0, 2.0 fc true", "nothing"]
    assert {(line.kernel, line.invocation) for line in lines} == {("show", (2, 0, 0))}
    first = (tmp_path / "show.comp").read_text().splitlines().index(next(filter(None, VALUES.splitlines()))) + 3
    assert [(Path(line.file).name, line.line) for line in lines] == [("show.comp", first + n) for n in range(3)]
    assert str(lines[2]) == "show (2, 0, 0): nothing"


@pytest.mark.parametrize("features", WIDE)
def test_wide_and_narrow_values(lines: Lines, features: tuple[str, ...]) -> None:
    arguments, expected = WIDE[features]
    with pumice.open_device(print=lines.append) as device:
        require_features(device.vulkan, *features)
        device.load_kernel(main(f"if (g == 0) debugPrintfEXT({arguments}); v[g] = 0;"))(np.full(4, 3, np.uint32))
    assert [line.text for line in lines] == [expected]


def test_the_changed_module_is_valid() -> None:
    body = VALUES + "".join(f"debugPrintfEXT({arguments});" for arguments, _ in WIDE.values())
    for target in ("vulkan1.1", "vulkan1.3"):
        code = compile_glsl(main(body), target_env=target)
        found = instrument(code, prints=True)
        assert found is not None and len(found.prints) == 3 + len(WIDE)
        spirv_tools.validate(found.code, target_env=target)
        assert instrument(code, guard=False) is None


def test_lines_come_in_the_order_of_the_work(lines: Lines) -> None:
    with pumice.open_device(print=lines.append) as device:
        first = device.load_kernel(main('if (g == 0) debugPrintfEXT("first %u", v[0]++);'))
        second = device.load_kernel(main('if (g == 0) debugPrintfEXT("second %u", v[0]++);'))
        array = device.zeros(4, np.uint32)
        for _ in range(3):
            first(array)
            second(array)
        assert array.numpy()[0] == 6
        assert [line.text for line in lines] == [f"{'second' if n % 2 else 'first'} {n}" for n in range(6)]


def test_each_invocation_prints_in_its_own_order(lines: Lines) -> None:
    with pumice.open_device(print=lines.append) as device:
        device.load_kernel(main(COUNTED))(np.full(4096, 5, np.uint32))
    texts: dict[int, list[str]] = {}
    for line in lines:
        texts.setdefault(line.invocation[0], []).append(line.text)
    assert texts == {g: [f"{g}.{i}" for i in range(5)] for g in range(4096)}


def test_without_a_function_lines_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with pumice.open_device() as device:
        kernel = device.load_kernel(main('debugPrintfEXT("seen"); v[g] = 1;'))
        kernel(pumice.empty(4, np.uint32))
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("pumice.print", f"kernel ({n}, 0, 0): seen") for n in range(4)
    ]


def test_prints_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with pumice.open_device(print=False, loop_guard=False) as device:
        kernel = device.load_kernel(main('debugPrintfEXT("seen"); v[g] = 1;'))
        assert kernel.pipeline.report is None
        np.testing.assert_array_equal(kernel(pumice.empty(4, np.uint32)), np.ones(4))
    assert not caplog.records
    with pytest.raises(pumice.InvalidArgumentError, match="print: expected a function of a line, False or None, got 5"):
        pumice.open_device(print=5)  # type: ignore[arg-type]


@pytest.fixture
def small_ring(monkeypatch: pytest.MonkeyPatch) -> int:
    """A ring of 1,024 words, which 146 lines of 7 words fit into."""
    for module in (host, in_shader):
        monkeypatch.setattr(module, "RING_WORDS", 1024)
    monkeypatch.setattr(host, "_BYTES", 4 * 1028)
    monkeypatch.setenv("PUMICE_CACHE", "0")  # other rings
    return 1024 // 7


def test_lost_lines_are_counted(lines: Lines, small_ring: int, caplog: pytest.LogCaptureFixture) -> None:
    with pumice.open_device(print=lines.append) as device:
        kernel = device.load_kernel(main(COUNTED))
        for _ in range(3):  # the ring is free again each time
            lines.clear()
            caplog.clear()
            kernel(np.full(64, 5, np.uint32))
            assert len(lines) == small_ring
            assert [record.getMessage() for record in caplog.records if "lost" in record.getMessage()] == [
                f"{320 - small_ring} lines that shaders printed are lost: expected at most 0 MiB of them between two "
                "waits. Print from fewer invocations, or wait more often"
            ]


def test_the_ring_is_used_again(lines: Lines, small_ring: int) -> None:
    """Many calls of which each fits: every word of the ring is the start of some record."""
    with pumice.open_device(print=lines.append) as device:
        kernel = device.load_kernel(main(COUNTED))
        for count in range(60):
            array = np.zeros(4, np.uint32)
            array[0] = count % 30
            kernel(array)
    assert len(lines) == sum(4 * (count % 30) for count in range(60))


def test_a_function_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(line: pumice.PrintedLine) -> None:
        raise ValueError("no more lines")

    with pumice.open_device(print=fail) as device:
        kernel = device.load_kernel(main('if (g == 1) debugPrintfEXT("seen"); v[g] = 1;'))
        result = kernel(pumice.empty(4, np.uint32))
        np.testing.assert_array_equal(result, np.ones(4))
    (record,) = caplog.records
    assert "does not get this line: kernel (1, 0, 0): seen" in record.getMessage()
    assert "no more lines" in str(record.exc_info)


def test_a_function_may_use_the_device(lines: Lines) -> None:
    def again(line: pumice.PrintedLine) -> None:
        lines.append(line)
        if len(lines) < 5:
            kernel(np.array([len(lines), 0, 0, 0], np.uint32))

    with pumice.open_device(print=again) as device:
        kernel = device.load_kernel(main('if (g == 0) debugPrintfEXT("%u", v[0]);'))
        kernel(np.zeros(4, np.uint32))
    assert [line.text for line in lines] == ["0", "1", "2", "3", "4"]


def test_threads_print_at_once(lines: Lines) -> None:
    with pumice.open_device(print=lines.append) as device:
        kernels = [device.load_kernel(main(COUNTED.replace("%u.%u", f"{n}: %u.%u"))) for n in range(3)]

        def call(kernel: pumice.Kernel) -> None:
            for _ in range(20):
                kernel(np.full(8, 3, np.uint32))

        threads = [threading.Thread(target=call, args=(kernel,)) for kernel in kernels]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(lines) == 3 * 20 * 24
    assert len({line.text for line in lines}) == 3 * 24


def test_closing_brings_what_nobody_waited_for(lines: Lines) -> None:
    with pumice.open_device(print=lines.append) as device:
        kernel = device.load_kernel(main('debugPrintfEXT("%u", g); v[g] = 1;'))
        kernel(device.zeros(4, np.uint32))
        kernel.close()
    assert [line.text for line in lines] == ["0", "1", "2", "3"]


def test_commands_of_the_hal_print(lines: Lines) -> None:
    with pumice.open_device(print=lines.append) as device:
        kernel = device.load_kernel(main('if (g == 3) debugPrintfEXT("%u", v[g]++);'))
        dispatch = kernel.prepare(device.zeros(4, np.uint32), groups=1)
        with device.hal.create_command_buffer(name="twice") as commands:
            commands.begin()
            for _ in range(2):
                commands.dispatch(dispatch.pipeline, dispatch.buffers, dispatch.groups, dispatch.push)
                commands.execution_barrier()
            commands.end()
            device.vulkan.compute_queue.submit((commands,))
            device.vulkan.wait_idle()
            assert [line.text for line in lines] == ["0", "1"]


def test_a_wait_for_the_device_brings_lines(lines: Lines) -> None:
    with pumice.open_device(print=lines.append) as device:
        kernel = device.load_kernel(main('if (g == 3) debugPrintfEXT("%u", v[g]++);'))
        array = device.zeros(4, np.uint32)
        with device.record() as step:
            kernel(array)
            kernel(array)
        step.run(times=2)
        device.wait()
        assert [line.text for line in lines] == ["0", "1", "2", "3"]


def test_a_failure_and_what_was_printed_before(lines: Lines) -> None:
    with pumice.open_device(print=lines.append, sanitize=True) as device:
        kernel = device.load_kernel(main('if (g == 3) debugPrintfEXT("at %u", g + 97); v[g + 97] = 1;'))
        with pytest.raises(OutOfRangeError, match=r"element 100 of V\.v\[\] .*which has 100"):
            kernel(np.zeros(100, np.uint32), groups=1)
    assert [line.text for line in lines] == ["at 100"]


@pytest.mark.parametrize(("language", "entry"), [(Language.SLANG, "main"), (Language.HLSL, "second")])
def test_printf_of_other_languages(lines: Lines, language: Language, entry: str) -> None:
    """Each entry point has a variable of its own for its invocation."""
    try:
        find_compiler(language)
    except UnavailableError as error:
        pytest.skip(error.message)
    stage = '[shader("compute")] ' if language is Language.SLANG else ""
    source = "RWStructuredBuffer<uint> o : register(u0);\n" + "".join(
        f"{stage}[numthreads(2, 1, 1)] void {name}(uint3 t : SV_DispatchThreadID)\n"
        f'{{ printf("{name} %u %f\\n", t.x, 0.5 * t.x); o[t.x] = t.x; }}\n'
        for name in ("main", "second")
    )
    with pumice.open_device(print=lines.append) as device:
        kernel = device.load_kernel(source, language=language.value, entry_point=entry)
        np.testing.assert_array_equal(kernel(pumice.empty(2, np.uint32)), [0, 1])
    assert [(line.invocation, line.text) for line in lines] == [
        ((n, 0, 0), f"{entry} {n} {0.5 * n:f}") for n in range(2)
    ]
