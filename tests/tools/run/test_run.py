"""``pumice run`` with kernels on a device: every flag, and every kind of wrong input. NumPy gives what is expected."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from pumice import shaders
from pumice.runtime.values.format import format_value
from pumice.runtime.values.parse import parse_value
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.sources.glsl import find_compiler
from pumice.status import UnavailableError
from pumice.tools.cli import main

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

MUL = shaders.path("mul")
SAXPY = shaders.path("examples/saxpy")
MATMUL = shaders.path("examples/matmul")
HISTOGRAM = shaders.path("examples/histogram")

EVERYTHING = """
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const float factor = 1.0;
layout(constant_id = 2) const bool negate = false;
layout(set = 0, binding = 3) readonly buffer In { uint x[]; } ins[2];
layout(set = 1, binding = 2) buffer Out { uint y[]; };
layout(push_constant) uniform Push { int add; uint times; float scale; vec4 v; bool flag; int list[2]; } push;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= y.length()) return;
    int value = int(ins[0].x[i] + 10u * ins[1].x[i]) * int(push.times) + push.add + push.list[0] + 100 * push.list[1]
        + int(push.v.w * push.scale * factor);
    y[i] += EXTRA + uint(negate != push.flag ? -value : value);
}
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["run", *map(str, arguments)])


def good(*arguments: object) -> str:
    """What it printed, having gone well."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"^ran on .+ \((discrete|integrated|virtual|cpu|other), .+\)$", result.stderr, re.MULTILINE)
    return result.stdout


@pytest.fixture
def compiler() -> None:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)


@pytest.fixture
def everything(tmp_path: Path, compiler: None) -> Path:
    path = tmp_path / "everything.comp"
    path.write_text(EVERYTHING, encoding="utf-8")
    return path


# -- bindings ----------------------------------------------------------------------------------------


def test_product() -> None:
    printed = good(MUL, "--binding", "0=4xf32=1,2,3,4", "--binding", "1=4xf32=2 3 4 5", "--binding", "2=4xf32")
    assert printed == "binding[2]: 4xf32=2 6 12 20\n"


def test_glsl_source(compiler: None) -> None:
    assert good(shaders.source_path("mul"), "-b", "0=2xf32=1,2", "-b", "1=2xf32=3", "-b", "2=2xf32") == (
        "binding[2]: 2xf32=3 6\n"
    )


def test_spirv_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    path.write_bytes(MUL.read_bytes())
    assert good(path, "-b", "0=f32=3", "-b", "1=f32=2", "-b", "2=f32") == "binding[2]: f32=6\n"


def test_names_and_any_order() -> None:
    assert good(MUL, "-b", "Product=2x2xf32", "-b", "B=2x2xf32=[1 2][3 4]", "-b", "0.0=2x2xf32=2") == (
        "binding[2]: 2x2xf32=[2 4][6 8]\n"
    )


def test_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 7, 11), np.float32)
    np.save(tmp_path / "a.npy", a)
    b.tofile(tmp_path / "b.bin")
    printed = good(
        MUL,
        *("-b", f"0=@{tmp_path}/a.npy", "-b", f"1=7x11xf32=@{tmp_path}/b.bin", "-b", "2=7x11xf32"),
        *("--output", f"2=@{tmp_path}/c.npy", "--output", f"2=@{tmp_path}/c.bin"),
    )
    assert printed == ""
    c = np.load(tmp_path / "c.npy")
    np.testing.assert_array_equal(c, a * b)
    assert c.dtype == np.float32
    assert (tmp_path / "c.bin").read_bytes() == (a * b).tobytes()


def test_one_file_in_turn(tmp_path: Path) -> None:
    np.arange(6, dtype=np.float32).tofile(tmp_path / "ab.bin")
    path = tmp_path / "ab.bin"
    assert good(MUL, "-b", f"0=3xf32=@{path}", "-b", f"1=3xf32=+{path}", "-b", "2=3xf32") == (
        "binding[2]: 3xf32=0 4 10\n"
    )


def test_dash_prints_beside_a_file(tmp_path: Path) -> None:
    arguments = (MUL, "-b", "0=f32=2", "-b", "1=f32=3", "-b", "2=f32")
    assert good(*arguments, "-o", f"2=@{tmp_path}/c.bin", "-o", "2=-") == "binding[2]: f32=6\n"
    assert (tmp_path / "c.bin").read_bytes() == np.float32(6).tobytes()


def test_a_binding_that_is_read_and_written_starts_at_zero_or_at_its_data() -> None:
    assert good(SAXPY, "-b", "0=3xf32=1,2,3", "-b", "1=3xf32", "--push", "f32=2") == "binding[1]: 3xf32=2 4 6\n"
    assert good(SAXPY, "-b", "0=3xf32=1,2,3", "-b", "1=3xf32=10", "--push", "f32=2") == "binding[1]: 3xf32=12 14 16\n"


@pytest.mark.parametrize("kind", ["i32", "ui32"])
def test_integers_print_as_they_were_written(kind: str) -> None:
    text = b"pumice is a volcanic rock, full of gas"
    words = np.frombuffer(text + bytes(-len(text) % 4), np.uint32)
    printed = good(
        HISTOGRAM,
        *("-b", f"0={len(words)}x{kind}=" + ",".join(str(int(w)) for w in words), "-b", f"1=256x{kind}"),
        *("--push", f"{kind}={len(text)}", "--groups", "3"),
    )
    bins = np.bincount(np.frombuffer(text, np.uint8), minlength=256).astype(np.int32 if kind == "i32" else np.uint32)
    assert printed == f"binding[1]: {format_value(bins)}\n"


@pytest.mark.parametrize("kind", ["i8", "ui8", "*8", "*32", "i4"])
def test_bytes_for_words(tmp_path: Path, kind: str) -> None:
    text = b"raw bytes are taken for anything" * 3
    (tmp_path / "text").write_bytes(text)
    count = len(text) * 8 // int(kind.strip("ui*"))
    printed = good(
        HISTOGRAM, "-b", f"0={count}x{kind}=@{tmp_path}/text", "-b", "1=256xi32", "--push", f"count={len(text)}"
    )
    bins = np.bincount(np.frombuffer(text, np.uint8), minlength=256).astype(np.int32)
    assert printed == f"binding[1]: {format_value(bins)}\n"


def test_results_of_types_that_travel_as_bytes() -> None:
    arguments = (MUL, "-b", "0=2xf32=1,2", "-b", "1=2xf32=1.5")
    words = np.float32([1.5, 3])
    printed = good(*arguments, "-b", "2=2x*32", "--expect", "2=2x*32=" + words.tobytes().hex(" ", 4))
    assert printed == f"binding[2]: 2x*32={words.tobytes().hex(' ', 4).upper()}\n"
    nibbles = [int(digit, 16) for byte in words.tobytes() for digit in f"{byte:02x}"[::-1]]
    assert good(*arguments, "-b", "2=16xui4") == f"binding[2]: 16xui4={' '.join(map(str, nibbles))}\n"


def test_long_results_are_cut_short_on_stdout_only(tmp_path: Path) -> None:
    arguments = (MUL, "-b", "0=5000xf32=2", "-b", "1=5000xf32=3", "-b", "2=5000xf32")
    assert good(*arguments) == f"binding[2]: {format_value(np.full(5000, 6, np.float32))}\n"
    good(*arguments, "-o", f"2=@{tmp_path}/c.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.full(5000, 6, np.float32))


def test_nothing_at_all() -> None:
    result = run(MUL, "-b", "0=0xf32", "-b", "1=0xf32=", "-b", "2=0xf32", "--time")
    assert (result.exit_code, result.stdout) == (0, "binding[2]: 0xf32=\n")
    assert "not measured: all bindings are empty" in result.stderr
    assert good(shaders.path("builtin/empty"), "--groups", "1") == ""


# -- push and specialization constants, sets, arrays of descriptors -------------------------------------


def arguments_for_everything() -> tuple[str, ...]:
    return ("-D", "EXTRA=5u", "-b", "3[0]=4xi32=1,2,3,4", "-b", "3[1]=4xui32=4,3,2,1", "-b", "1.2=4xi32=100")


def everything_with(
    add: int, times: int, scale: float, w: float, flag: bool, values: tuple[int, int], factor: float, negate: bool
) -> str:
    x0, x1 = np.arange(1, 5), np.arange(4, 0, -1)
    value = (x0 + 10 * x1) * times + add + values[0] + 100 * values[1] + int(w * scale * factor)
    y = 100 + 5 + (-value if negate != flag else value)
    return f"binding[1.2]: {format_value(y.astype(np.int32))}\n"


def test_everything_in_order(everything: Path) -> None:
    pushes = ("si32=-5", "i32=3", "f32=2", "4xf32=1,2,3,4", "i1=1", "2xi32=7,-8")
    printed = good(everything, *arguments_for_everything(), *(a for p in pushes for a in ("--push", p)))
    assert printed == everything_with(-5, 3, 2, 4, True, (7, -8), 1.0, False)


def test_everything_by_name(everything: Path) -> None:
    pushes = ("list=7", "add=-5", "times=0x3", "scale=2.5", "v=4xf32=1,2,3,40", "flag=0")
    specs = ("factor=0.5", "2=true", "0=16")
    printed = good(
        everything,
        *arguments_for_everything(),
        *(a for p in pushes for a in ("--push", p)),
        *(a for s in specs for a in ("--spec", s)),
        *("--entry", "main", "--groups", "1,1,1"),
    )
    assert printed == everything_with(-5, 3, 2.5, 40, False, (7, 7), 0.5, True)


def test_push_constants_as_a_file(everything: Path, tmp_path: Path) -> None:
    block = np.zeros(11, np.int32)
    block[[0, 1, 9, 10]] = 1, 2, 3, 4
    block[[2, 7]] = np.array([2, 3], np.float32).view(np.int32)
    (tmp_path / "push.bin").write_bytes(block.tobytes())
    printed = good(everything, *arguments_for_everything(), "--push", f"@{tmp_path}/push.bin")
    assert printed == everything_with(1, 2, 2, 3, False, (3, 4), 1.0, False)


def test_groups_of_two_dimensions() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 9, (9, 4)).astype(np.float32), rng.integers(-9, 9, (4, 17)).astype(np.float32)
    arguments = (MATMUL, "-b", f"0={format_value(a)}", "-b", f"1={format_value(b)}", "-b", "2=9x17xf32")
    pushes = ("--push", "i32=9", "--push", "i32=17", "--push", "ui32=4")
    assert good(*arguments, *pushes) == f"binding[2]: {format_value(a @ b)}\n"
    assert good(*arguments, *pushes, "--groups", "3,2") == f"binding[2]: {format_value(a @ b)}\n"


def test_entry_points_and_subgroup_size(tmp_path: Path) -> None:
    arguments = ("-b", "0=f32=2", "-b", "1=f32=3", "-b", "2=f32")
    renamed = MUL.read_bytes().replace(b"main\0\0\0\0", b"work\0\0\0\0", 1)
    (tmp_path / "work.spv").write_bytes(renamed)
    assert good(tmp_path / "work.spv", *arguments, "--entry", "work") == "binding[2]: f32=6\n"
    assert good(tmp_path / "work.spv", *arguments) == "binding[2]: f32=6\n"
    result = run(tmp_path / "work.spv", *arguments, "--entry", "main")
    assert result.exit_code == 2 and "'work'" in result.stderr
    import pumice

    with pumice.open_device() as device:
        size = device.profile.subgroup.size
    assert good(MUL, *arguments, "--subgroup-size", size) == "binding[2]: f32=6\n"
    result = run(MUL, *arguments, "--subgroup-size", 4096)
    assert result.exit_code == 1 and "subgroup size 4096" in result.stderr


def test_devices_by_uri() -> None:
    import pumice

    arguments = (MUL, "-b", "0=f32=2", "-b", "1=f32=3", "-b", "2=f32")
    with pumice.open_device() as device:
        uri, name = device.uri, device.name
    result = run(*arguments, "--device", uri)
    assert result.exit_code == 0 and f"ran on {name} (" in result.stderr


# -- times and expectations --------------------------------------------------------------------------


def test_times_go_to_stderr() -> None:
    result = run(MUL, "-b", "0=4xf32=2", "-b", "1=4xf32=3", "-b", "2=4xf32", "--time")
    assert (result.exit_code, result.stdout) == (0, "binding[2]: 4xf32=6 6 6 6\n")
    for line in (
        r"load: +[\d.e+]+ (s|ms|us) host: .*",
        r"first call: +[\d.e+]+ (s|ms|us) host: .*",
        r"warm call: +[\d.e+]+ (s|ms|us) host: .* median of 20",
        r"dispatch: +[\d.e+]+ (s|ms|us|ns) device: .*median of 20, least .*; "
        r"(CPU|GPU) timestamps, device type \w+ \(.*\)",
    ):
        assert re.search(f"^{line}$", result.stderr, re.MULTILINE), result.stderr


def test_repeated_calls_start_from_the_same_arguments() -> None:
    assert good(SAXPY, "-b", "0=f32=1", "-b", "1=f32=10", "--push", "f32=2", "--time") == "binding[1]: f32=12\n"


def test_expectations_that_hold(tmp_path: Path) -> None:
    np.save(tmp_path / "c.npy", np.array([2, 6, 12, 20], np.float32))
    arguments = (MUL, "-b", "0=4xf32=1,2,3,4", "-b", "1=4xf32=2,3,4,5", "-b", "2=4xf32")
    for expected in ("2=4xf32=2,6,12,20", f"Product=@{tmp_path}/c.npy", "2=4xf32=2.00005,6,12,20"):
        assert good(*arguments, "--expect", expected) == "binding[2]: 4xf32=2 6 12 20\n"
    assert good(*arguments, "--expect", "2=4xf32=3,6,12,20", "--atol", "1") != ""
    assert good(*arguments, "--expect", "2=4xf32=2.1,6,12,20", "--rtol", "0.1") != ""
    assert good(MUL, "-b", "0=2xf32=nan,inf", "-b", "1=2xf32=1", "-b", "2=2xf32", "--expect", "2=2xf32=nan,inf") != ""


def test_expectations_that_do_not_hold(tmp_path: Path) -> None:
    arguments = (MUL, "-b", "0=4xf32=1,2,3,4", "-b", "1=4xf32=2,3,4,5", "-b", "2=4xf32")
    result = run(*arguments, "--expect", "2=4xf32=2,7,12,21", "--output", f"2=@{tmp_path}/c.npy", "--output", "2=-")
    assert result.exit_code == 1
    # Results come out all the same.
    assert result.stdout == "binding[2]: 4xf32=2 6 12 20\n"
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.float32([2, 6, 12, 20]))
    assert "error: binding[2]: 2 of 4 element(s) differ" in result.stderr
    assert "\n  [1]: expected 7.0, got 6.0\n  [3]: expected 21.0, got 20.0\n" in result.stderr
    assert "--help" not in result.stderr and "Traceback" not in result.stderr
    exact = run(*arguments, "--expect", "2=4xf32=2.00005,6,12,20", "--atol", "0", "--rtol", "0")
    assert exact.exit_code == 1 and "1 of 4" in exact.stderr
    shape = run(*arguments, "--expect", "2=2x2xf32=0")
    assert shape.exit_code == 1 and "expected 2x2xf32, got 4xf32" in shape.stderr
    both = run(*arguments, "--expect", "2=4xf32=0", "--expect", "2=4xf64=0")
    assert "4 of 4" in both.stderr and "expected 4xf64, got 4xf32" in both.stderr


# -- wrong inputs ------------------------------------------------------------------------------------


def _id(value: tuple[str, ...] | str) -> str:
    return " ".join(value)[-60:] if isinstance(value, tuple) else "said"


A, B, C = ("-b", "0=4xf32=1,2,3,4"), ("-b", "1=4xf32=2"), ("-b", "2=4xf32")
WRONG_USAGE: list[tuple[tuple[str, ...], str]] = [
    ((*A, *C), r"missing: binding\[1\] \(B\)"),
    ((), r"missing: binding\[0\] \(A\), binding\[1\] \(B\), binding\[2\] \(Product\)"),
    ((*A, *B, *C, "-b", "3=f32"), r"--binding 3: no such binding; main has: 0 \(A\), 1 \(B\), 2 \(Product\)"),
    ((*A, *B, *C, "-b", "1.0=f32"), r"--binding 1\.0: no such binding"),
    ((*A, *B, *C, "-b", "D=f32"), r"--binding D: no such binding"),
    ((*A, *B, *C, "-b", "2[1]=f32"), r"--binding 2\[1\]: the binding has 1 descriptor"),
    ((*A, *B, *C, "-b", "A=4xf32"), r"--binding A: binding\[0\] is given twice"),
    ((*A, *B, "-b", "2"), r"--binding '2': expected BINDING=VALUE"),
    ((*A, *B, "-b", "=4xf32"), r"expected BINDING=VALUE"),
    ((*A, *B, "-b", "2.3.4=4xf32"), r"expected BINDING=VALUE"),
    ((*A, *B, "-b", "99999999999=4xf32"), r"expected BINDING=VALUE"),
    ((*A, *B, "-b", "2="), r"--binding 2: expected a number, or a shape and type"),
    ((*A, *B, "-b", "2=4xq32"), r"--binding 2: expected an element type"),
    ((*A, *B, "-b", "2=(null)"), r"--binding 2: expected a buffer"),
    ((*A, *B, "-b", "2=-1xf32"), r"--binding 2: "),
    ((*A, *B, "-b", "2=*x.npy"), r"--binding 2: a binding takes one array"),
    ((*A, *C, "-b", "1=5"), r"--binding 1: expected a buffer, got 5; with its type it is one: f32=5"),
    ((*A, *C, "-b", "1=4xf32=1,2,3"), r"--binding 1: expected 4 elements for 4xf32 \(or 1 for all\), got 3"),
    ((*A, *C, "-b", "1=4xf32=1,2,3,x"), r"--binding 1: element 3 of 4xf32: expected a number"),
    (
        (*A, *C, "-b", "1=4xf64=1"),
        r"--binding 1: expected elements of f32, as the kernel declares, got f64; write 1=4xf32=",
    ),
    ((*A, *C, "-b", "1=0xf32"), r"binding 1 \(B\) got an empty array"),
    ((*A, *B, *C, "--push", "i32=4"), r"mul has no push constants"),
    ((*A, *B, *C, "--push", "n=4"), r"--push n: mul has no such push constant; it has: none"),
    ((*A, *B, *C, "--spec", "size=4"), r"--spec size: the shader has no specialization constant 'size'; it has: none"),
    ((*A, *B, *C, "--spec", "4"), r"--spec '4': expected ID=VALUE"),
    ((*A, *B, *C, "--groups", "1,2,3,4"), r"--groups: expected X"),
    ((*A, *B, *C, "--groups", "-1"), r"--groups: expected X"),
    ((*A, *B, *C, "--groups", ""), r"--groups: expected X"),
    ((*A, *B, *C, "--groups", "9999999999"), r"--groups: expected counts up to"),
    ((*A, *B, *C, "--entry", "nope"), r"--entry: the SPIR-V module has no entry point 'nope'; it has: 'main'"),
    ((*A, *B, *C, "--define", "N=4"), r"--define is for shader sources"),
    ((*A, *B, *C, "--device", "cuda"), r"--device: device URI 'cuda'"),
    ((*A, *B, *C, "--output", "2=c.npy"), r"--output 2: expected @PATH"),
    ((*A, *B, *C, "--output", "2=@"), r"--output 2: expected @PATH"),
    ((*A, *B, *C, "--output", "0=-"), r"--output 0: the kernel only reads binding\[0\]"),
    ((*A, *B, *C, "--output", "7=-"), r"--output 7: no such binding"),
    ((*A, *B, *C, "--expect", "0=4xf32=1"), r"--expect 0: the kernel only reads binding\[0\]"),
    ((*A, *B, *C, "--expect", "2=4xf32"), r"--expect 2: expected values too"),
    ((*A, *B, *C, "--expect", "2=4xf32=1,2"), r"--expect 2: expected 4 elements"),
    ((*A, *B, *C, "--atol", "-1"), r"'--atol': expected a finite number of 0 or more, got '-1'"),
    ((*A, *B, *C, "--atol", "nan"), r"'--atol': expected a finite number of 0 or more, got 'nan'"),
    ((*A, *B, *C, "--rtol", "NaN"), r"'--rtol': expected a finite number of 0 or more, got 'NaN'"),
    ((*A, *B, *C, "--rtol", "inf"), r"'--rtol': expected a finite number of 0 or more, got 'inf'"),
    ((*A, *B, *C, "--atol", "x"), r"'--atol': expected a finite number of 0 or more, got 'x'"),
    ((*A, *B, *C, "--time=yes"), r"--time"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG_USAGE, ids=_id)
def test_wrong_usage(arguments: tuple[str, ...], message: str) -> None:
    result = run(MUL, *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert re.search(f"^error: .*{message}", result.stderr, re.MULTILINE), result.stderr
    # click does not say which command an option without a value belongs to.
    command = "pumice" if "does not take a value" in result.stderr else "pumice run"
    assert result.stderr.endswith(f"see `{command} --help`\n")


FAILURES: list[tuple[tuple[str, ...], str]] = [
    ((*A, *C, "-b", "1=@/nonexistent/b.npy"), r"/nonexistent/b\.npy"),
    ((*A, *C, "-b", "1=4xf32=@/nonexistent/b.bin"), r"/nonexistent/b\.bin"),
    ((*A, *B, *C, "--device", "vulkan://4096"), r"no device is 'vulkan://4096'"),
    ((*A, *B, *C, "--groups", "4294967295"), r"workgroups are more than"),
    ((*A, *B, "-b", "2=1000000000000000xf32"), r"memory|at most"),
    ((*A, *C, "-b", "1=1000000000000000xf32"), r"memory|at most"),
    (
        (*A, *B, *C, "--output", "2=@/nonexistent/c.npy"),
        r"--output 2: /nonexistent/c\.npy cannot be written: there is no folder",
    ),
    (
        (*A, *B, *C, "--output", "2=@/nonexistent/c.bin"),
        r"--output 2: /nonexistent/c\.bin cannot be written: there is no folder",
    ),
    ((*A, *B, *C, "--output", "2=@/"), r"--output 2: / cannot be written: "),
    ((*A, *B, *C, "--push", "@/nonexistent/push"), r"no such file: /nonexistent/push"),
]


@pytest.mark.parametrize(("arguments", "message"), FAILURES, ids=_id)
def test_failures(arguments: tuple[str, ...], message: str) -> None:
    result = run(MUL, *arguments)
    assert (result.exit_code, result.stdout) == (1, ""), result.stderr
    assert re.search(f"^error: .*{message}", result.stderr, re.MULTILINE), result.stderr
    assert "--help" not in result.stderr and "internal" not in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a file that is always full is Linux's")
@pytest.mark.parametrize("count", [4, 1 << 16])
def test_a_result_that_cannot_be_stored_keeps_no_other_back(tmp_path: Path, count: int) -> None:
    # A NumPy file by name, a full one by content.
    (tmp_path / "full.npy").symlink_to("/dev/full")
    arguments = (MUL, "-b", f"0={count}xf32=2", "-b", f"1={count}xf32=3", "-b", f"2={count}xf32")
    outputs = ("-o", f"2=@{tmp_path}/full.npy", "-o", "2=@/dev/full", "-o", f"2=@{tmp_path}/c.npy", "-o", "2=-")
    result = run(*arguments, *outputs)
    assert result.exit_code == 1
    assert result.stdout == f"binding[2]: {format_value(np.full(count, 6, np.float32))}\n"
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), np.full(count, 6, np.float32))
    assert f"error: --output 2: {tmp_path}/full.npy cannot be written: " in result.stderr
    assert "error: --output 2: /dev/full cannot be written: No space left" in result.stderr


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (MUL, "-b", "0=f32=2", "-b", "1=f32=3", "-b", "2=f32")
    monkeypatch.setenv("PUMICE_DEVICE", "")
    assert good(*arguments) == "binding[2]: f32=6\n"
    for device, status in (("cuda", 2), ("vulkan://4096", 1)):
        monkeypatch.setenv("PUMICE_DEVICE", device)
        result = run(*arguments)
        assert (result.exit_code, result.stdout) == (status, "")
        assert "PUMICE_DEVICE" in result.stderr and device in result.stderr and "--device" not in result.stderr
        assert good(*arguments, "--device", "vulkan") == "binding[2]: f32=6\n"
    monkeypatch.delenv("PUMICE_DEVICE")
    monkeypatch.setenv("PUMICE_VALIDATION", "banana")
    for command in (["run", *arguments], ["run", *arguments, "--device", "vulkan"], ["devices"]):
        result = CliRunner().invoke(main, list(map(str, command)))
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("error: the environment variable PUMICE_VALIDATION is 'banana'")
    assert good(*arguments, "--no-validation") == "binding[2]: f32=6\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), r"push constant\(s\) float a not given"),
        (("--push", "i32=2"), r"--push i32=2: a is float32, got i32"),
        (("--push", "f64=2"), r"a is float32, got f64"),
        (("--push", "2xf32=2"), r"a takes float, shape scalar; got shape \(2,\)"),
        (("--push", "f32=x"), r"--push f32=x: element 0 of f32"),
        (("--push", "f32=1", "--push", "f32=2"), r"saxpy has 1 push constant\(s\) \(float a\), got 2"),
        (("--push", "f32=1", "--push", "a=2"), r"in order \(i32=4\) or by name \(n=4\), not both"),
        (("--push", "a=1", "--push", "a=2"), r"--push a is given twice"),
        (("--push", "b=1"), r"--push b: saxpy has no such push constant; it has: float a"),
        (("--push", "a="), r"--push a: expected a value of float32"),
        (("--push", "a=1,2"), r"--push a: expected 1 elements"),
        (("--push", "a=i32=2"), r"--push a is float32, got i32"),
        (("--push", "2"), r"--push '2': expected TYPE=VALUE"),
        (("--push", f"@{MUL}"), r"saxpy takes 4 bytes of push constants"),
        (("--push", f"@{MUL}", "--push", "f32=1"), r"is the whole block"),
    ],
)
def test_wrong_push_constants(arguments: tuple[str, ...], message: str) -> None:
    result = run(SAXPY, "-b", "0=4xf32=1", "-b", "1=4xf32=1", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert re.search(f"^error: .*{message}", result.stderr, re.MULTILINE), result.stderr


def test_wrong_specialization_constants(everything: Path) -> None:
    pushes = ("add=1", "times=1", "scale=1", "v=1", "flag=0", "list=1")
    arguments = (everything, *arguments_for_everything(), *(a for p in pushes for a in ("--push", p)))
    for spec, message in (
        ("5=1", "--spec 5: the shader has no specialization constant 5; it has: 0 (unnamed), 1 (factor), 2 (negate)"),
        ("rows=1", "--spec rows: the shader has no specialization constant 'rows'"),
        ("0=-1", "--spec 0: "),
        ("0=x", "--spec 0: "),
        ("2=yes", "--spec 2: expected true or false"),
        ("factor=", "--spec factor: "),
    ):
        result = run(*arguments, "--spec", spec)
        assert (result.exit_code, result.stdout) == (2, ""), spec
        assert message in result.stderr
    twice = run(*arguments, "--spec", "1=1", "--spec", "factor=2")
    assert twice.exit_code == 2 and "given twice" in twice.stderr
    # What the device refuses is no matter of how the command was written.
    big = run(*arguments, "--spec", "0=100000")
    assert big.exit_code == 1 and "workgroup size" in big.stderr
    zero = run(*arguments, "--spec", "0=0")
    assert zero.exit_code == 1 and "workgroup size" in zero.stderr


def test_unreadable_and_damaged_kernels(tmp_path: Path, compiler: None) -> None:
    spirv = MUL.read_bytes()
    files = {
        "cut.spv": spirv[: len(spirv) // 2 // 4 * 4],
        "odd.spv": spirv[:-1],
        "head.spv": spirv[:16],
        "empty.spv": b"",
        "text.spv": b"#version 450\n" * 4,
        "bad.comp": b"#version 450\nvoid main() { nonsense }\n",
        "empty.comp": b"",
        "text.txt": b"hello",
        "executable.bin": b"VKE1" + bytes(60),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in [*files, "missing.spv", "missing.comp", "."]:
        result = run(tmp_path / name, *A, *B, *C)
        assert (result.exit_code, result.stdout) == (1, ""), name
        assert result.stderr.startswith("error: ") or "\nerror: " in result.stderr
        assert "internal" not in result.stderr, result.stderr
    assert "bad.comp:2" in run(tmp_path / "bad.comp").stderr


def test_results_parse_back() -> None:
    printed = good(MUL, "-b", "0=3xf32=1,nan,-inf", "-b", "1=3xf32=0.1", "-b", "2=3xf32")
    value = parse_value(printed.partition(": ")[2])
    assert isinstance(value, np.ndarray)
    np.testing.assert_allclose(value, np.float32([0.1, np.nan, -np.inf]), rtol=1e-5)


@pytest.mark.skipif(sys.platform == "win32", reason="makes an executable out of a shell script")
def test_a_validator_that_never_ends_is_stopped_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validator = tmp_path / "spirv-val"
    validator.write_text("#!/bin/sh\nsleep 60\n")
    validator.chmod(0o755)
    monkeypatch.setenv("PUMICE_SPIRV_TOOLS", str(tmp_path))
    monkeypatch.setenv("PUMICE_CACHE", "0")
    monkeypatch.setattr("pumice.spirv.checks.validation._passed", {})
    assert spirv_tools._CHECK_SECONDS <= 10
    monkeypatch.setattr(spirv_tools, "_CHECK_SECONDS", 0.3)
    started = time.monotonic()
    result = run(MUL, "--binding", "0=4xf32=1", "--binding", "1=4xf32=2", "--binding", "2=4xf32", "--groups", 1)
    assert time.monotonic() - started < 20
    assert result.exit_code == 1
    assert "spirv-val did not end within 0.3 s" in result.stderr


def test_sanitize_reports_an_access_past_the_end(tmp_path: Path, compiler: None) -> None:
    path = tmp_path / "shift.comp"
    path.write_text(
        "#version 450\nlayout(local_size_x = 4) in;\nlayout(binding = 0) buffer In { uint x[]; };\n"
        "layout(binding = 1) writeonly buffer Out { uint y[]; };\n"
        "void main() {\n    uint i = gl_GlobalInvocationID.x;\n    y[i] = x[i + 1];\n}\n",
        encoding="utf-8",
    )
    result = run(path, "--sanitize", "-b", "0=4xi32=1,2,3,4", "-b", "1=4xi32")
    assert result.exit_code == 1
    assert result.stdout == ""
    for part in ("shift.comp:7", "element 4 of In.x[] (set 0, binding 0), which has 4", "invocation (3, 0, 0)"):
        assert part in result.stderr
    assert good(path, "--sanitize", "-b", "0=5xi32=1,2,3,4,5", "-b", "1=4xi32") == "binding[1]: 4xi32=2 3 4 5\n"
