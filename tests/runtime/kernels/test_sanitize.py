"""Sanitised kernels: wrong accesses fail the call with all that is known, and the device stays usable."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.devices.host_buffers import HOST
from support.devices.shader_tools import needs_compiler

import pumice
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import DataLossError, InvalidArgumentError, OutOfRangeError, PumiceError

pytestmark = [pytest.mark.vulkan, needs_compiler]

HEAD = """#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 64) in;
uint g = gl_GlobalInvocationID.x;
"""
SHIFTED = f"""{HEAD}
layout(binding = 0) readonly buffer In {{ float x[]; }};
layout(binding = 1) writeonly buffer Out {{ float y[]; }};
layout(push_constant) uniform Push {{ uint by; }};
void main() {{
    if (g < y.length())
        y[g] = x[g + by];
}}
"""
POINTER = f"""{HEAD}
layout(buffer_reference, buffer_reference_align = 4) buffer P {{ float v[]; }};
layout(binding = 0) writeonly buffer Out {{ float y[]; }};
layout(push_constant) uniform Push {{ P values; }};
void main() {{
    y[g] = values.v[g] + 1;
}}
"""
SHARED = f"""{HEAD}
layout(constant_id = 3) const uint COUNT = 8;
layout(binding = 0) writeonly buffer Out {{ uint y[]; }};
shared uint s[COUNT];
void main() {{
    if (g < COUNT - 1) s[g] = g;
    barrier();
    if (g < COUNT) y[g] = s[g];
}}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


def test_an_index_past_the_end_fails_the_call_and_no_other(device: pumice.Device) -> None:
    x = np.arange(128, dtype=np.float32)
    with device.load_kernel(SHIFTED, sanitize=True) as kernel, device.load_kernel(SHIFTED) as plain:
        for by in (3, 0):
            with pytest.raises(OutOfRangeError) as caught:
                kernel(x, pumice.empty(128), by=by + 2)
            message = caught.value.message
            for part in ("kernel", "In.x[] (set 0, binding 0)", "which has 128", "invocation ("):
                assert part in message
            assert caught.value.location == "source.comp:12"
            np.testing.assert_array_equal(kernel(x, pumice.empty(100), by=by), plain(x, pumice.empty(100), by=by))


def test_arrays_on_the_device_fail_where_they_are_read(device: pumice.Device) -> None:
    x = device.asarray(np.arange(64, dtype=np.float32))
    y = device.empty(64)
    with device.load_kernel(SHIFTED, sanitize=True) as kernel:
        kernel(x, y, by=1)
        with pytest.raises(OutOfRangeError, match=r"element 64 of In\.x"):
            y.numpy()
        kernel(x, y, by=0)
        np.testing.assert_array_equal(y.numpy(), x.numpy())


def test_an_index_below_zero_is_told_as_such(device: pumice.Device) -> None:
    source = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Out { float y[]; };
void main() { y[gl_GlobalInvocationID.x - 1] = 1; }
"""
    with (
        device.load_kernel(source, sanitize=True) as kernel,
        pytest.raises(OutOfRangeError, match=r"element 4294967295 \(-1 as a signed integer\) of Out\.y"),
    ):
        kernel(pumice.empty(32))


def test_device_addresses(device: pumice.Device) -> None:
    if not device.vulkan.device_addresses:
        pytest.skip("no device addresses")
    values = device.asarray(np.arange(64, dtype=np.float32))
    few = device.asarray(np.arange(63, dtype=np.float32))
    with device.load_kernel(POINTER, sanitize=True) as kernel:
        result = kernel(pumice.empty(64), groups=1, values=values)
        np.testing.assert_array_equal(result, np.arange(1, 65))
        with pytest.raises(OutOfRangeError, match=r"null device address.* P\.v\[\]"):
            kernel(pumice.empty(64), groups=1, push=bytes(8))
        with pytest.raises(OutOfRangeError, match="no buffer has"):
            kernel(pumice.empty(64), groups=1, values=few)
        with pytest.raises(OutOfRangeError, match="no multiple of 4"):
            kernel(pumice.empty(64), groups=1, push=(values.device_address + 2).to_bytes(8, "little"))
        np.testing.assert_array_equal(kernel(pumice.empty(64), groups=1, values=values), np.arange(1, 65))


def test_a_null_address_ends_the_process_without_it() -> None:
    """The reason for the pass; a driver that survives a null address needs no such test."""
    script = (
        "import sys, numpy, pumice\n"
        "with pumice.open_device('vulkan') as device:\n"
        "    kernel = device.load_kernel(sys.stdin.read(), sanitize=sys.argv[1] == '1')\n"
        "    try:\n        kernel(pumice.empty(64), groups=1, push=bytes(8))\n"
        "    except pumice.OutOfRangeError:\n        print('reported')\n"
    )
    ended = [
        subprocess.run(
            [sys.executable, "-c", script, flag],
            input=POINTER,
            capture_output=True,
            text=True,
            check=False,
        )
        for flag in "10"
    ]
    if "lavapipe" in ended[0].stderr:
        pytest.skip("lavapipe is not installed")
    assert (ended[0].returncode, ended[0].stdout) == (0, "reported\n")
    assert ended[1].returncode < 0 or "reported" not in ended[1].stdout


def test_workgroup_memory_of_a_specialised_size(device: pumice.Device) -> None:
    for count in (8, 64):
        with (
            device.load_kernel(SHARED, specialization={3: count}, sanitize=True) as kernel,
            pytest.raises(DataLossError, match=rf"element {count - 1} of s\[\] in workgroup memory"),
        ):
            kernel(pumice.empty(64, np.uint32), groups=1)


def test_the_device_the_environment_and_the_kernel_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(8, np.float32)

    def reports(device: pumice.Device, **options: bool) -> bool:
        with device.load_kernel(SHIFTED, **options) as kernel:
            try:
                kernel(x, pumice.empty(8), by=1)
            except OutOfRangeError:
                return True
            return False

    with pumice.open_device(sanitize=True) as device:
        assert reports(device)
        assert not reports(device, sanitize=False)
    monkeypatch.setenv("PUMICE_SANITIZE", "1")
    with pumice.open_device() as device:
        assert reports(device)
    with pumice.open_device(sanitize=False) as device:
        assert not reports(device)
        assert reports(device, sanitize=True)
        with pytest.raises(InvalidArgumentError, match="opened with sanitize=False"):
            pumice.Session(device, sanitize=True)


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", sorted(Path("shaders/examples").glob("*.spv")), ids=lambda path: path.stem)
def test_example_shaders_give_the_same_bits(device: pumice.Device, path: Path) -> None:
    """Any sizes and values will do, unless an access is out of range: sanitising skips it, and results may differ."""
    rng = np.random.default_rng(7)
    results = []
    with device.load_kernel(path) as plain, device.load_kernel(path, sanitize=True) as kernel:
        given = []
        for parameter in plain.parameters:
            element = parameter.binding.element
            assert element is not None
            assert element.dtype is not None
            given.append(rng.integers(0, 250, 4096).astype(element.dtype))
        block = plain.pipeline.entry.push_constants
        push = b"" if block is None else np.full(block.size // 4, 16, np.uint32).tobytes()
        for one in (plain, kernel):
            arrays = [device.asarray(array) for array in given]
            one(*arrays, groups=(1, 1, 1), push=push or None)
            results.append([array.numpy() for array in arrays])
    for ours, theirs in zip(*results, strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_what_is_not_checked_is_said(device: pumice.Device, caplog: pytest.LogCaptureFixture) -> None:
    words = device.profile.limits.max_compute_shared_memory_size // 4
    source = SHARED.replace("shared uint s[COUNT];", f"shared uint s[{words}];")
    with device.load_kernel(source, sanitize=True) as kernel:
        assert np.asarray(kernel(pumice.empty(8, np.uint32), groups=1))[:7].tolist() == list(range(7))
    assert "sanitize does not check reads of workgroup memory s, for want of room" in caplog.text


BYTES = """#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Block { int8_t a; int8_t b[ROOM]; };
void main() { b[4] = a; }
"""


def test_blocks_of_bytes_are_compared_to_the_byte(device: pumice.Device) -> None:
    if "uniformAndStorageBuffer8BitAccess" not in device.vulkan.plan.features:
        pytest.skip("the device has no 8-bit storage")
    with device.load_kernel(BYTES, defines={"ROOM": "5"}, sanitize=True) as kernel:
        assert np.asarray(kernel(np.array([3, 0, 0, 0, 0, 0], np.int8).view(np.uint8), groups=1))[5] == 3
    with (
        device.vulkan.create_executable(compile_glsl(BYTES, defines={"ROOM": "9"}), sanitize=True) as executable,
        device.vulkan.create_buffer(5, memory_type=HOST) as buffer,
    ):
        pipeline = executable.pipeline()
        with device.vulkan.create_command_buffer(one_shot=True) as commands:
            commands.begin().dispatch(pipeline, [buffer], (1, 1, 1))
            device.vulkan.compute_queue.execute(commands.end())
            device.vulkan.wait_idle(20)
            assert pipeline.report is not None
            verdict = pipeline.report.verdict
            device.vulkan.collect_reports()
            assert verdict.failure is not None
            assert "byte 5 of Block.b[] (set 0, binding 0), of which 5 bytes are bound" in str(verdict.failure)


FIRST = f"""{HEAD}
layout(binding = 0) buffer X {{ uint n; uint x[]; }};
layout(binding = 1) buffer Y {{ uint y[]; }};
shared uint s[64];
void late(uint at) {{ y[at] = 1; /* late */ }}
uint early(uint at) {{ return x[at]; /* early */ }}
void main() {{
    BODY
}}
"""
CAUSES = {
    # What fails first, and how many others do.
    "an invocation's own order": ("uint a = early(n);\nlate(n);", "early", 0),
    "whatever the order of functions": ("if (g == 9) early(n);\nif (g != 9) late(n);", "early", 1),
    "of another invocation": (
        "if (g == 40) s[g + n] = 1; /* here */\nelse s[g] = g;\nbarrier();\ny[g] = s[63 - g];",
        "here",
        1,
    ),
    "the first of a loop": (
        "for (uint i = 0; i < 99; i++) { if (g < 60) late(i + 1); y[i] = x[i]; /* here */ }",
        "late",
        1,
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_failure_in_the_program_is_reported(name: str) -> None:
    """Not that of the invocation that ended first: reads of what another one did not write come later."""
    body, mark, others = CAUSES[name]
    source = FIRST.replace("BODY", body)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if f"/* {mark} */" in text)
    beside = {0: "", 1: ", and another place fails"}[others]
    with pumice.open_device(sanitize=True) as sanitized:
        x = np.zeros(65, np.uint32)
        x[0] = 64
        for _ in range(2):  # the places of the first call are cleared
            with pytest.raises(PumiceError, match=f"It comes first in the program{beside}: what fails later") as caught:
                sanitized.load_kernel(source)(x, np.zeros(64, np.uint32), groups=1)
            assert caught.value.location == f"source.comp:{line}"
