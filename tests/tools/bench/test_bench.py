"""``pumice bench``: every option and every kind of wrong input; results are read from the folder or printed JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from support.devices.shader_tools import needs_compiler
from support.study.commands import FAST, bench, study
from support.study.commands import wrong_bench as wrong

from pumice import shaders
from pumice.hal_vulkan import reflect
from pumice.runtime.device import Device
from pumice.runtime.kernels.parameters.push import pack_push
from pumice.runtime.kernels.shader_source import load_shader
from pumice.study.results.results import Results
from pumice.study.runs import runner
from pumice.study.workloads.peaks import Peaks
from pumice.study.workloads.workload import DevicePool
from pumice.tools.run.kernel_arguments import push_bytes

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

MUL = shaders.path("mul")
SAXPY = shaders.path("examples/saxpy")
COPY = shaders.path("timing/copy")
BY_ADDRESS = shaders.path("timing/mul_address")
DIGITS = Path(__file__).parents[3] / "examples" / "digits"
MODULE = DIGITS / "digits.vmfb"
SEVEN = f"@{DIGITS / 'seven.npy'}"
ALONE = [*FAST, "--no-baseline", "--quiet"]

PUSHES = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) writeonly buffer Out { float y[]; };
layout(push_constant) uniform Push {
    uint n; float scale; vec4 v; mat2x3 m; layout(row_major) mat3x2 r; int list[2]; bool flag;
} push;
void main() {
    y[0] = push.n + push.scale + push.v.x + push.m[0].x + push.r[0].x + push.list[0] + (push.flag ? 1.0 : 0.0);
}
"""


def measured(*arguments: object) -> dict[str, Any]:
    """Runs a command that succeeds; returns its JSON."""
    result = bench(*arguments, "--json", *ALONE)
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def settings(data: dict[str, Any], index: int = 0) -> dict[str, Any]:
    """Returns the settings of a point."""
    values: dict[str, Any] = data["points"][index]["settings"]
    return values


# -- kernels -----------------------------------------------------------------------------------------


def test_a_kernel_with_and_without_timestamps_and_the_empty_kernel_beside(tmp_path: Path) -> None:
    result = bench(MUL, "--size", 64, "--out", tmp_path / "r", "--json", *FAST)
    assert result.exit_code == 0, result.stderr
    with Results.open(tmp_path / "r") as results:
        points = [result.point for result in results.points]
        assert [point.target for point in points] == ["mul", "mul without timestamps", "empty kernel", "empty kernel"]
        assert [point.measure for point in points] == ["execute", "device", "execute", "device"]
        assert [result.count for result in results.points] == [4, 4, 4, 4]
        bindings = points[0].settings["bindings"]
    assert bindings == [{"shape": [64], "dtype": "f32", "init": init} for init in ("random", "random", "zeros")]
    assert re.search(r"4 points done, 0 too noisy, 0 failed, 0 skipped; 16 samples", result.stderr)
    assert f"{tmp_path / 'r'}: 4 points" in result.stderr
    assert len(re.findall(r"^\[[1-4]/4\] done ", result.stderr, re.MULTILINE)) == 4


def test_a_folder_that_goes_again_is_not_named() -> None:
    result = bench(MUL, "--size", 4, "--no-baseline", "--json", *FAST)
    assert result.exit_code == 0
    assert "2 points done" in result.stderr and "pumice-bench" not in result.stderr


@needs_compiler
def test_glsl_with_a_macro(tmp_path: Path) -> None:
    path = tmp_path / "my kernel.comp"
    path.write_text(
        "#version 450\nlayout(local_size_x = SIZE) in;\nlayout(binding = 0) buffer B { float x[]; };\n"
        "void main() { x[gl_GlobalInvocationID.x] = ADDED; }\n",
        encoding="utf-8",
    )
    data = measured(path, "--size", 32, "-D", "SIZE=8", "--define", "ADDED=1.0", "--groups", "4,1")
    assert settings(data)["defines"] == {"SIZE": "8", "ADDED": "1.0"}
    assert settings(data)["groups"] == [4, 1]
    assert data["study"]["title"] == "my kernel.comp"


@needs_compiler
def test_what_a_kernel_prints_is_not_timed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "loud.comp"
    path.write_text(
        "#version 450\n#extension GL_EXT_debug_printf : enable\nlayout(local_size_x = 1) in;\n"
        'layout(binding = 0) buffer B { float x[]; };\nvoid main() { debugPrintfEXT("loud"); x[0] = 1; }\n',
        encoding="utf-8",
    )
    result = bench(path, "--size", 1, *ALONE)
    assert (result.exit_code, "loud (" in result.stdout + caplog.text) == (0, False), result.stderr
    assert "what the kernel prints is left out" in result.stderr


SWEPT = """#version 450
layout(local_size_x = TX, local_size_y = TY) in;
#if !FLAG
#error
#endif
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) buffer B { TYPE b[]; };
void main() { b[gl_GlobalInvocationID.x] = TYPE(a[gl_GlobalInvocationID.x] * FACTOR); }
"""


@needs_compiler
def test_macros_over_the_axes(tmp_path: Path) -> None:
    """The kernel cannot be compiled without the macros, so its bindings are reflected with their first values."""
    path = tmp_path / "tile.comp"
    path.write_text(SWEPT, encoding="utf-8")
    words = ["-D", "TX=$tx", "-D", "TY=$ty", "-D", "TYPE=$type", "-D", "FACTOR=$flag + 0.5", "-D", "FLAG=$flag"]
    axes = ["--axis", "tx,ty=8:8,16:4", "--axis", "type=int,uint", "--axis", "flag=true"]
    data = measured(path, *words, *axes, "-b", '0=$"%dxf32" % (64 * ty)', "--size", 32, "--timestamps", "span")
    points = [settings(data, index) for index in range(4)]
    assert [point["defines"] for point in points] == [
        {"TX": tx, "TY": ty, "TYPE": kind, "FACTOR": 1.5, "FLAG": True}
        for tx, ty in ((8, 8), (16, 4))
        for kind in ("int", "uint")
    ]
    assert [point["bindings"][0] for point in points] == ["512xf32", "512xf32", "256xf32", "256xf32"]
    assert [point["status"] for point in data["points"][:4]] == ["done"] * 4

    assert "--define: 'twice': nothing is named 'twice'; known are tx" in wrong(path, "-D", "TX=$twice", *axes[:2])
    message = wrong(
        path, "-D", "TX=8", "-D", "TY=8", "-D", "TYPE=int", "-D", "FACTOR=2", "-D", "FLAG=1", "--axis", "local=8,16"
    )
    assert 'no expression uses it, such as "$local" for a setting' in message and "did you mean" not in message


def test_entry_points_and_inputs_over_the_axes() -> None:
    data = measured(MUL, "--entry", "$entry", "--axis", "entry=main", "--size", 4)
    assert settings(data)["entry_point"] == "main"
    data = measured(MODULE, "--function", "classify", "--input", '$"@" + image', "--axis", f"image={SEVEN[1:]}")
    assert settings(data)["inputs"] == [SEVEN]


def test_bindings_by_number_and_name(tmp_path: Path) -> None:
    np.save(tmp_path / "b.npy", np.ones(8, np.float32))
    data = measured(MUL, "-b", "0=8xf32=3", "--binding", f"B=@{tmp_path}/b.npy", "--size", 8)
    bindings = settings(data)["bindings"]
    assert bindings[:2] == ["8xf32=3", f"@{tmp_path}/b.npy"]
    assert bindings[2] == {"shape": [8], "dtype": "f32", "init": "zeros"}


def test_sizes_and_batches_are_swept() -> None:
    data = measured(MUL, "--axis", "size=pow2:4:16", "--axis", "batch=1,3")
    points = [point for point in data["points"] if point["target"] == "mul"]
    assert [(point["size"], point["batch"]) for point in points] == [(n, b) for n in (4, 8, 16) for b in (1, 3)]
    assert [point["settings"]["bindings"][0]["shape"] for point in points] == [[n] for n in (4, 4, 8, 8, 16, 16)]


def test_expressions_over_the_axes() -> None:
    arguments = ("--axis", "n=8,16", "--spec", "0=$n", "--groups", "$64 // n", "--size", 64)
    data = measured(COPY, *arguments)
    assert [settings(data, index)["specialization"] for index in (0, 1)] == [{"0": 8}, {"0": 16}]
    assert [settings(data, index)["groups"] for index in (0, 1)] == [8, 4]
    data = measured(COPY, *arguments[:4], "--groups", "1, $cdiv(64, n),$n", "--size", 64)
    assert [settings(data, index)["groups"] for index in (0, 1)] == [[1, 8, 8], [1, 4, 16]]
    assert '["$n", "$n"]' in wrong(COPY, *arguments[:4], "--groups", "$[n, n]", "--size", 64)
    data = measured(SAXPY, "--push", "a=$batch / 2", "--axis", "batch=1,2", "--size", 4)
    assert [settings(data, index)["push"] for index in (0, 1)] == [{"a": 0.5}, {"a": 1}]


def test_specialization_by_name_and_entry_point() -> None:
    assert settings(measured(COPY, "--spec", "local_size=32", "--size", 64))["specialization"] == {"0": 32}
    assert settings(measured(MUL, "--entry", "main", "--size", 4))["entry_point"] == "main"


@pytest.mark.parametrize("push", ["f32=3", "a=3", "a=f32=3"])
def test_push_constants_in_order_and_by_name(push: str) -> None:
    assert settings(measured(SAXPY, "--push", push, "--size", 4))["push"] == {"a": 3.0}


@needs_compiler
def test_push_constants_of_every_shape(tmp_path: Path) -> None:
    path = tmp_path / "pushes.comp"
    path.write_text(PUSHES, encoding="utf-8")
    pushes = ["n=7", "scale=0.1", "v=1,2,3,4", "m=[1 2][3 4][5 6]", "r=[1 2 3][4 5 6]", "list=-1,2", "flag=1"]
    data = measured(path, *(word for push in pushes for word in ("--push", push)), "--size", 1, "--groups", 1)
    push = settings(data)["push"]
    assert push == {
        "n": 7,
        "scale": float(np.float32(0.1)),
        "v": [1, 2, 3, 4],
        "m": [[1, 2], [3, 4], [5, 6]],
        "r": [[1, 2, 3], [4, 5, 6]],
        "list": [-1, 2],
        "flag": 1,
    }
    # The same bytes as from pumice run.
    block = reflect(load_shader(path)[0]).entry_point(None).push_constants
    assert pack_push(block, push, {}, "pushes") == push_bytes(pushes, block, "pushes")


def test_push_constants_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "push.bin").write_bytes(np.float32(2.5).tobytes())
    assert settings(measured(SAXPY, "--push", f"@{tmp_path}/push.bin", "--size", 4))["push"] == {"a": 2.5}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--batch", "3"], {"batch": 3}),
        (["--command-buffers", "2"], {"command_buffers": 2}),
        (["--in-flight", "2"], {"in_flight": 2}),
        (["--queues", "1"], {"queues": 1}),
        (["--record", "each"], {"record": "each"}),
        (["--indirect"], {"indirect": True}),
        (["--descriptors", "sets"], {"descriptors": "sets"}),
        (["--wait", "poll", "--read", "--update"], {"wait": "poll", "read": True, "update": True}),
        (["--timestamps", "each"], {"timestamps": "each"}),
        (["--calls", "hal", "--robust"], {"calls": "hal", "robust": True}),
        (["--cold", "--set", "flush_bytes=65536"], {"cache": "cold"}),
        (["--measure", "submit"], {}),
        (["--validation"], {}),
    ],
)
def test_settings(words: list[str], expected: dict[str, object]) -> None:
    result = bench(MUL, "--size", 16, "--json", *ALONE, *words)
    if "is not installed" in result.stderr:
        pytest.skip(result.stderr)
    assert result.exit_code == 0, result.stderr
    data = json.loads(result.stdout)
    assert expected.items() <= settings(data).items()
    if "--measure" in words:
        assert [point["measure"] for point in data["points"]] == ["submit"]


def test_dispatches_that_may_overlap_are_flagged(tmp_path: Path) -> None:
    for barrier in ("none", "between"):
        assert bench(
            MUL, "--size", 16, "--batch", 4, "--barrier", barrier, "--out", tmp_path / barrier, *ALONE, "--json"
        )
        with Results.open(tmp_path / barrier) as results:
            assert results.points[0].point.settings["barrier"] == barrier
        exported = study("export", tmp_path / barrier, "--json", "-", "--raw")
        assert {sample["barrier"] for sample in json.loads(exported.stdout)["samples"]} == {barrier}


@pytest.mark.parametrize("words", [["--timestamps", "none"], ["--calls", "kernel"], ["--axis", "timestamps=span,none"]])
def test_without_timestamps_the_headline_is_the_certain_bound(words: list[str]) -> None:
    data = measured(MUL, "--size", 16, *words)
    assert {point["measure"] for point in data["points"]} == {"device"}
    assert all(point["status"] == "done" and point["median_ns"] > 0 for point in data["points"])


def test_buffers_by_address() -> None:
    result = bench(
        BY_ADDRESS,
        *("--descriptors", "address", "-b", "0=64xf32", "-b", "1=64xf32=2", "-b", "2=64xf32"),
        *("--push", "count=64", "--push", "reserved=0", "--groups", 1, "--json", *ALONE),
    )
    if "bufferDeviceAddress" in result.stderr:
        pytest.skip(result.stderr)
    assert result.exit_code == 0, result.stderr
    assert settings(json.loads(result.stdout))["push"] == [64, 0]
    assert "give --groups" in wrong(BY_ADDRESS, "--descriptors", "address")
    assert "count" in wrong(BY_ADDRESS, "--descriptors", "address", "--groups", 1, "-b", "0=4xf32")
    assert "mul declares bindings" in wrong(MUL, "--descriptors", "address", "--groups", 1)


# -- programs ----------------------------------------------------------------------------------------


def test_a_function() -> None:
    data = measured(MODULE, "--input", SEVEN, "--function", "classify")
    (point,) = data["points"]
    assert (point["target"], point["measure"], point["status"]) == ("digits", "total", "done")
    assert point["median_ns"] > 0
    for path in ("direct", "async"):
        assert settings(measured(MODULE, "--input", SEVEN, "--path", path))["path"] == path


def test_calls_in_flight_are_asynchronous() -> None:
    data = measured(MODULE, "--input", SEVEN, "--in-flight", 2)
    assert (settings(data)["in_flight"], settings(data)["path"]) == (2, "async")
    assert "--path async" in wrong(MODULE, "--input", SEVEN, "--in-flight", 2, "--path", "session")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "takes 1 argument, got 0"),
        (["--input", "4xf32"], "1x28x28x1"),
        (["--input", "4xf32=1,2"], "--input: expected 4 elements"),
        (["--input", SEVEN, "--function", "nosuch"], "no function 'nosuch'"),
        (["--size", "4"], "--size is of kernels"),
        (["--push", "a=1"], "--push is of kernels"),
        (["--batch", "4"], "--batch is of kernels"),
        (["--cold"], "--cold is of kernels"),
        (["--subtract-baseline"], "--subtract-baseline is of kernels"),
        (["--input", SEVEN, "--measure", "read", "--axis", "read=false"], "has no 'read'"),
        (["--axis", "batch=1,2"], "unknown axis 'batch'"),
    ],
)
def test_what_a_program_does_not_take(words: list[str], message: str) -> None:
    assert message in wrong(MODULE, *words, *FAST)


# -- wrong inputs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "0"], "--size"),
        (["--batch", "0"], "--batch"),
        (["--define", "A=1"], "--define is for shader sources"),
        (["--function", "x"], "--function is of modules"),
        (["--input", "x"], "--input is of modules"),
        (["--path", "async"], "--path is of modules"),
        (["--no-baseline", "--subtract-baseline"], "needs the baseline"),
        (["-b", "0"], "expected BINDING=VALUE"),
        (["-b", "9=4xf32"], "no such binding; main has: 0 (A), 1 (B), 2 (Product)"),
        (["-b", "0=4xf32", "-b", "A=4xf32"], "given twice"),
        (["-b", "0=4xq32"], "q32"),
        (["-b", "0=4xf32=1,2,3"], "expected 4 elements"),
        (["-b", "0=4xi8", "--no-baseline"], "the shader declares any number of float32"),
        (["--push", "a=3"], "no such push constant"),
        (["--push", "f32=3"], "no push constants"),
        (["--push", "a=$size"], "by name, and mul has: none"),
        (["--spec", "0"], "expected ID=VALUE"),
        (["--spec", "size=3"], "has no specialization constant"),
        (["--groups", "0"], "at least 1"),
        (["--groups", "1,2,3,4"], "--groups"),
        (["--groups", "$nosuch"], "'nosuch'"),
        (["--groups", "$2 +"], "expected an expression"),
        (["--entry", "nosuch"], "no entry point 'nosuch'"),
        (["--measure", "foo"], "expected to measure one of create, "),
        (["--measure", "read", "--no-baseline"], "which it has with read = true"),
        (["--axis", "batc=1,2"], "did you mean 'batch'"),
        (["--axis", "batch="], "expected an axis such as"),
        (["--axis", "batch=a,b"], "expected an int from 1 to 65536, got 'a'"),
        (["--axis", "batch=1", "--axis", "batch=2"], "two axes are named 'batch'"),
        (["--axis", "batch=1,2", "--batch", "3"], "has no effect"),
        (["--axis", "size=1,2", *(f"-b{i}=4xf32" for i in range(3))], "unknown axis 'size'"),
        (["--set", "foo=1"], "expected NAME=VALUE with one of warmup_count"),
        (["--set", "time_limi=1"], "did you mean 'time_limit'"),
        (["--set", "time_limit"], "expected NAME=VALUE"),
        (["--set", "time_limit=abc"], "time_limit is a number, got 'abc'"),
        (["--set", "time_limit=nan"], "expected a finite number"),
        (["--set", "max_samples=1"], "less than min_samples"),
        (["--set", "cache=warm"], "cache is one of hot, cold"),
    ],
)
def test_wrong_usage(words: list[str], message: str) -> None:
    assert message in wrong(MUL, "--size", 4, *(FAST if "--set" not in words else []), *words)


def test_push_constants_that_are_missing() -> None:
    message = wrong(SAXPY)
    assert "float a" in message and "--push NAME=VALUE" in message
    assert "saxpy has: float a" in wrong(SAXPY, "--push", "b=$size")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{tmp}/nosuch.comp"], "no such file"),
        (["{tmp}"], "Is a directory"),
        (["{tmp}/text.comp.txt"], "expected SPIR-V"),
        ([MUL, "-b", "0=@{tmp}/nosuch.npy"], "no such file"),
        ([MUL, "--device", "vulkan://99"], "no device is 'vulkan://99'"),
        ([MUL, "--device", "gpu"], "write vulkan (the best device)"),
        ([MODULE, "--input", "@{tmp}/nosuch.npy"], "no such file"),
    ],
)
def test_what_is_not_there(words: list[object], message: str, tmp_path: Path) -> None:
    (tmp_path / "text.comp.txt").write_text("no kernel", encoding="utf-8")
    result = bench(*(str(word).format(tmp=tmp_path) for word in words), *FAST)
    assert result.exit_code in (1, 2) and result.stdout == ""
    assert result.stderr.startswith("error: ") and message in result.stderr


def test_a_point_that_fails_leaves_the_others() -> None:
    result = bench(MUL, "--axis", "groups=1,99999999", "--size", 4, "--json", *ALONE)
    assert result.exit_code == 1
    points = json.loads(result.stdout)["points"]
    assert [point["status"] for point in points] == ["done", "failed"] * 2
    assert "RESOURCE_EXHAUSTED: mul: (99999999, 1, 1) workgroups are more than" in points[1]["reason"]
    assert len(re.findall(r"^\[\d/4\] failed  mul", result.stderr, re.MULTILINE)) == 2


def test_a_point_that_the_host_has_no_memory_for_leaves_the_others() -> None:
    result = bench(MUL, "--axis", "size=4,1000000000000000", "--timestamps", "span", "--json", *ALONE)
    assert result.exit_code == 1
    points = json.loads(result.stdout)["points"]
    assert [point["status"] for point in points] == ["done", "failed"]
    assert points[1]["reason"].startswith("RESOURCE_EXHAUSTED: ")


def test_more_queues_than_the_device_has_are_skipped() -> None:
    result = bench(MUL, "--axis", "queues=1,99", "--size", 4, "--json", *ALONE)
    assert result.exit_code == 0, result.stderr
    reasons = {point["queues"]: point["reason"] for point in json.loads(result.stdout)["points"]}
    assert re.search(r"has \d+ compute queue\(s\), 99 were asked for", reasons[99])
    assert bench(MUL, "--queues", 99, "--size", 4, "--json", *ALONE).exit_code == 1


def test_too_noisy_says_so() -> None:
    result = bench(MUL, "--size", 4, "--json", "--no-baseline", "--quiet", *FAST, "--set", "noise_limit=0")
    assert result.exit_code == 3
    assert re.search(r"^\[1/2\] noisy   mul", result.stderr, re.MULTILINE)
    assert {point["status"] for point in json.loads(result.stdout)["points"]} == {"noisy"}


# -- devices without timestamps ----------------------------------------------------------------------


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes all devices have queues without timestamps."""
    before: dict[int, tuple[object, int]] = {}
    opened = DevicePool.open_new

    def open_new(pool: DevicePool, *arguments: Any, **named: Any) -> Device:
        device = opened(pool, *arguments, **named)
        for family in device.profile.queue_families:
            before.setdefault(id(family), (family, family.timestamp_valid_bits))
            object.__setattr__(family, "timestamp_valid_bits", 0)
        return device

    monkeypatch.setattr(DevicePool, "open_new", open_new)
    yield
    for family, bits in before.values():
        object.__setattr__(family, "timestamp_valid_bits", bits)


def test_a_device_without_timestamps(untimed: None) -> None:
    result = bench(MUL, "--size", 4, "--json", *ALONE)
    assert result.exit_code == 0, result.stderr
    timed, plain = json.loads(result.stdout)["points"]
    assert (timed["status"], plain["status"], plain["measure"]) == ("skipped", "done", "device")
    assert "timestampValidBits 0" in timed["reason"] and 'set measure = "device"' in timed["reason"]
    assert plain["median_ns"] > 0 and plain.get("execute_median_ns") is None
    asked = bench(MUL, "--size", 4, "--json", *ALONE, "--measure", "device")
    assert (asked.exit_code, len(json.loads(asked.stdout)["points"])) == (0, 1)
    refused = bench(MUL, "--size", 4, "--json", *ALONE, "--measure", "execute", "--timestamps", "span")
    assert refused.exit_code == 1 and "an upper bound" in refused.stderr
    assert math.isfinite(json.loads(asked.stdout)["points"][0]["median_ns"])


# -- what is printed ---------------------------------------------------------------------------------


def test_the_summary() -> None:
    result = bench(MUL, "--size", 16, "--batch", 4, "--quiet", *FAST)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.output
    for text in ("mul", "submit", "execute", "wake", "total", "empty kernel", "mul without timestamps"):
        assert text in result.stdout
    assert "less the empty kernel" not in result.stdout and "overlap at" not in result.stdout


def test_the_summary_flags_overlap_and_subtracts() -> None:
    result = bench(MUL, "--size", 16, "--batch", 4, "--barrier", "none", "--subtract-baseline", "--quiet", *FAST)
    assert result.exit_code == 0, result.stderr
    assert "may overlap" in result.stdout and "not its duration" in result.stdout
    assert "less the empty kernel's median" in result.stdout


def test_the_summary_of_a_program() -> None:
    result = bench(MODULE, "--input", SEVEN, "--quiet", *FAST)
    assert result.exit_code == 0, result.stderr
    assert "digits" in result.stdout and "total" in result.stdout


def test_a_report(tmp_path: Path) -> None:
    path = tmp_path / "a <b>.html"
    result = bench(MUL, "--size", 16, "--html", path, "--json", *ALONE)
    assert result.exit_code == 0, result.stderr
    assert f"report: {path}" in result.stderr
    text = path.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>") and "mul.spv" in text
    nowhere = bench(MUL, "--size", 16, "--html", tmp_path / "nosuch" / "x.html", "--json", *ALONE)
    assert nowhere.exit_code == 2 and "there is no folder" in nowhere.stderr


# -- results -----------------------------------------------------------------------------------------


def test_a_folder_is_gone_on_with_and_no_other_bench_goes_there(tmp_path: Path) -> None:
    words = [MUL, "--size", 4, "--out", tmp_path / "a b", *FAST, "--no-baseline", "--json"]
    first, second = bench(*words), bench(*words)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "2 of 2 points are done already; nothing is left to measure" in second.stderr
    assert json.loads(first.stdout)["points"] == json.loads(second.stdout)["points"]
    other = bench(*words, "--batch", 2)
    assert (other.exit_code, other.stdout) == (1, "")
    assert "results of another study" in other.stderr


@pytest.mark.parametrize("name", ["x'y\".spv", "-.spv", "日本.spv", "a\nb.spv", "{x}$y.spv"])
def test_hostile_file_names(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(MUL.read_bytes())
    result = bench(path, "--size", 4, *FAST, "--no-baseline", "--json")
    assert result.exit_code == 0, result.stderr
    assert settings(json.loads(result.stdout))["source"] == str(path)
    assert "\x1b" not in result.stdout + result.stderr


def test_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    data = measured(
        MUL, "--size", 100, "--figure", "bytes=12*size", "--figure", "flops = size", "--figure", "us=time*1e6"
    )
    point = data["points"][0]
    assert point["bytes"] == 1200 and point["flops"] == 100
    assert point["us"] == pytest.approx(point["median_ns"] / 1e3)
    assert point["GB/s"] == pytest.approx(1200 / point["median_ns"])
    swept = measured(MUL, "--axis", "size=64,128", "--figure", "bytes=12*size")
    assert [entry["bytes"] for entry in swept["points"][:2]] == [768, 1536]
    assert "expected NAME=EXPRESSION" in wrong(MUL, "--figure", "bytes")
    assert "nothing is named 'foo'" in wrong(MUL, "--figure", "bytes=foo")
    peaks = Peaks({"GB/s": 2.0, "GFLOP/s": 4.0}, {})
    monkeypatch.setattr(runner, "measure_peaks", lambda device: peaks)
    shares = measured(MUL, "--size", 100, "--figure", "bytes=12*size", "--peaks")["points"][0]
    assert shares["% of peak GB/s"] == pytest.approx(50 * shares["GB/s"])


def test_a_program_s_dispatches_are_profiled_in_calls_of_their_own(tmp_path: Path) -> None:
    arguments = (MODULE, "--function", "classify", "--input", SEVEN, *FAST, "--quiet")
    result = bench(*arguments, "--profile", "--trace", tmp_path / "trace")
    assert result.exit_code == 0, result.stderr
    summary, heading, tables = result.stdout.partition("20 samples more, with every dispatch timed")
    assert "total" in summary and heading
    assert re.search(r"classify_dispatch_1\S*\s+20 ", tables) and "hal.fence.await" in tables
    assert heading not in bench(*arguments).stdout
    # In the trace too, each with an arrow from its submission.
    events = [packet.track_event for packet in Trace.FromString((tmp_path / "trace").read_bytes()).packet]
    begun = [flow for event in events for flow in event.flow_ids]
    assert len(begun) >= 20 and begun == list(dict.fromkeys(begun))
    assert sorted(begun) == sorted(flow for event in events for flow in event.terminating_flow_ids)
    assert "--profile is of modules" in wrong(MUL, "--profile")
