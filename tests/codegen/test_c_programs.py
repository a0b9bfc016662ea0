"""C programs: what they build with, what they give, what they refuse, and that they leak nothing."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.codegen.c_programs import CANNOT_BUILD, COMPILER, SANITIZED, WARNINGS, build, c_files, run, try_run
from support.codegen.module_cases import NEWTON
from support.peer import compile_module

import pumice
from pumice.base.install_hints import install_hint
from pumice.codegen.c import types, write_c
from pumice.codegen.c.executables import Executables
from pumice.codegen.c.expressions import string_literal
from pumice.codegen.c.statements import comment_text
from pumice.formats.vke1_reader import parse_executable
from pumice.status import PumiceError
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.reader import read_module

pytestmark = [pytest.mark.vulkan, pytest.mark.skipif(bool(CANNOT_BUILD), reason=CANNOT_BUILD), pytest.mark.sample(25)]

SOURCE = """
func.func @mul(%left: tensor<4xf32>, %right: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %left, %right : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @reversed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @twice(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
""" + NEWTON.replace("@main", "@root")
_LEFT, _RIGHT = np.arange(4, dtype=np.float32), np.full(4, 2.5, np.float32)


@pytest.fixture(scope="module")
def module() -> bytes:
    return pumice.compile(SOURCE)


@pytest.fixture(scope="module")
def program(module: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with sanitizers, which see more of what wrong files and arguments do."""
    return build(tmp_path_factory.mktemp("program"), module, flags=("-O1", *SANITIZED))


@pytest.fixture(scope="module")
def application(module: bytes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An application that tests the program in C; built with optimisation, which sees more to warn of."""
    folder = tmp_path_factory.mktemp("application")
    shutil.copy(Path(__file__).parent / "application.c", folder)
    return build(folder, module, flags=("-O2", "-g"), sources=("application.c",))


def _started(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment}
    )


def _ran(command: list[str], folder: Path, **environment: str) -> str:
    done = _started(command, folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("mode", ["host", "device"])
def test_an_application_finds_what_the_header_says(application: Path, mode: str) -> None:
    arguments = ["device"] if mode == "device" else []
    assert _ran([f"./{application.name}", *arguments], application.parent) == "as the header says\n"


def _layer() -> dict[str, str]:
    """The environment with the validation layer, where it is installed."""
    roots = ("/usr/share", "/usr/local/share", "/etc")
    is_there = any(Path(root, "vulkan/explicit_layer.d/VkLayer_khronos_validation.json").exists() for root in roots)
    return {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"} if is_there else {}


@pytest.mark.parametrize("mode", ["host", "device"])
def test_the_validation_layer_has_nothing_to_say(application: Path, mode: str) -> None:
    if not _layer():
        pytest.skip(f"needs the validation layer: {install_hint('validation')}")
    arguments = ["device"] if mode == "device" else []
    assert _ran([f"./{application.name}", *arguments], application.parent, **_layer()) == "as the header says\n"


def test_memory_that_the_host_does_not_see(module: bytes, tmp_path: Path) -> None:
    """Simulates a GPU with memory of its own, and caches that host and device do not share."""
    shutil.copy(Path(__file__).parent / "application.c", tmp_path)
    changes = (
        (b"if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) {", b"if (made->is_host && flags) {"),
        (b"made->is_coherent = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;", b"made->is_coherent = !flags;"),
    )
    built = build(tmp_path, module, sources=("application.c",), changes=changes)
    assert _ran([f"./{built.name}"], tmp_path, **_layer()) == "as the header says\n"


@pytest.mark.sample(2)  # always
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["host", "device"])
def test_behaviour_is_defined(mode: str, module: bytes, tmp_path: Path) -> None:
    """Runs with the compiler's sanitizers."""
    shutil.copy(Path(__file__).parent / "application.c", tmp_path)
    built = build(tmp_path, module, flags=("-O1", *SANITIZED), sources=("application.c",))
    arguments = ["device"] if mode == "device" else []
    assert _ran([f"./{built.name}", *arguments], tmp_path) == "as the header says\n"


@pytest.mark.sample(0)
@pytest.mark.slow
def test_nothing_leaks(application: Path) -> None:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip(f"needs valgrind: {install_hint('valgrind')}")
    # One thread of the driver; what the driver or the loader leaks has no function of the program below it.
    report = application.parent / "valgrind.txt"
    kinds = ("--leak-check=full", "--show-leak-kinds=definite,indirect,possible", "--undef-value-errors=no")
    _ran(
        [valgrind, *kinds, f"--log-file={report}", f"./{application.name}", "small"],
        application.parent,
        LP_NUM_THREADS="0",
    )
    losses = [each for each in re.split(r"==\d+== \n", report.read_text()) if "bytes in" in each and "lost" in each]
    mine = [each for each in losses if _first_frame(each).startswith(("program.c", "application.c"))]
    assert not mine, "\n".join(mine)
    wrong = [each for each in re.split(r"==\d+== \n", report.read_text()) if "Invalid" in each and "program.c" in each]
    assert not wrong, "\n".join(wrong)


def _first_frame(loss: str) -> str:
    """The file of the first frame that is not the allocator's."""
    frames = re.findall(r"(?:at|by) 0x\w+: .* \((?:in )?([^)]*)\)", loss)
    return next((frame for frame in frames if "vgpreload" not in frame), "")


def test_cmake_builds_it(module: bytes, tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip(f"needs CMake: {install_hint('cmake')}")
    for name, content in c_files(module, "my program", main=True, cmake=True, data=True).items():
        (tmp_path / name).write_bytes(content)
    flags = " ".join(WARNINGS)
    _ran([cmake, "-S", ".", "-B", "built", f"-DCMAKE_C_FLAGS={flags}", "-DCMAKE_BUILD_TYPE=Debug"], tmp_path)
    _ran([cmake, "--build", "built"], tmp_path)
    (result,) = run(tmp_path / "built" / "my_program", [_LEFT, _RIGHT], "mul")
    np.testing.assert_array_equal(result, _LEFT * _RIGHT)


def test_data_may_lie_beside_the_program(module: bytes, tmp_path: Path) -> None:
    program = build(tmp_path, module, data=True)
    (result,) = run(program, [_LEFT, _RIGHT], "mul")
    np.testing.assert_array_equal(result, _LEFT * _RIGHT)
    damaged = bytearray((tmp_path / "program.data").read_bytes())
    (tmp_path / "other.data").write_bytes(damaged[:20] + b"?" + damaged[21:])
    failed = try_run(program, [_LEFT, _RIGHT], "mul", "--data", "other.data")
    assert failed.returncode == 1
    assert "expected the data that was written with this program" in failed.stderr
    (tmp_path / "other.data").write_bytes(damaged[:-9] + bytes([damaged[-9] ^ 1]) + damaged[-8:])
    assert "the data is damaged" in try_run(program, [_LEFT, _RIGHT], "mul", "--data", "other.data").stderr
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("left", "right"):
        np.save(folder / f"{name}.npy", _LEFT)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    _ran(["sh", "-c", "program -f mul left.npy right.npy -o out.npy"], folder, PATH=path)
    (tmp_path / "program.data").unlink()
    assert "cannot be read; say where" in try_run(program, [_LEFT, _RIGHT], "mul").stderr


def test_functions_and_their_help(program: Path) -> None:
    (result,) = run(program, [_LEFT], "twice")
    np.testing.assert_array_equal(result, 2 * _LEFT)
    root, rounds = run(program, [np.array(2, np.float32)], "root")
    assert abs(root**2 - 2) < 1e-4
    assert rounds.dtype == np.int32
    shown = _ran([f"./{program.name}", "-h"], program.parent)
    assert "mul(left: 4xf32, right: 4xf32) -> (output0: 4xf32)" in re.sub(
        r"input0", "left", shown.replace("input1", "right")
    )
    assert "twice" in shown


def test_calls_are_timed(program: Path) -> None:
    done = try_run(program, [_LEFT, _RIGHT], "mul", "--repeat", "20")
    assert re.search(r"mul: [\d.]+ us a call \(median of 20", done.stdout)
    (program.parent / "out.npy").unlink()


_WRONG = {
    "shape": ([_LEFT, np.ones(5, np.float32)], "expected the shape of"),
    "rank": ([_LEFT, np.ones((2, 2), np.float32)], "expected the shape of"),
    "dtype": ([_LEFT, np.ones(4, np.float64)], "expected elements of the dtype 'f4'"),
    "byte order": ([_LEFT, np.ones(4, ">f4")], "expected elements of the dtype 'f4'"),
    "too few": ([_LEFT], "takes 2 files, got 1"),
    "too many": ([_LEFT, _RIGHT, _LEFT], "takes 2 files, got 3"),
}


@pytest.mark.parametrize("name", _WRONG)
def test_wrong_arrays_are_refused(program: Path, name: str) -> None:
    arrays, message = _WRONG[name]
    failed = try_run(program, arrays, "mul")
    assert failed.returncode in (1, 2)
    assert message in failed.stderr
    assert not list(program.parent.glob("out*"))


_HEADER = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
_FILES = {
    "nothing": b"",
    "text": b"not a NumPy file at all",
    "cut header": _HEADER[:20],
    "cut data": _HEADER + b" " * (127 - len(_HEADER)) + b"\n" + bytes(15),
    "too long": _HEADER + b" " * (127 - len(_HEADER)) + b"\n" + bytes(17),
    "no shape": _HEADER.replace(b"'shape': (4,)", b"'shape': 'a' ") + b" " * (127 - len(_HEADER)) + b"\n" + bytes(16),
    "negative": _HEADER.replace(b"(4,)", b"(-4)") + b" " * (127 - len(_HEADER)) + b"\n" + bytes(16),
    "huge": _HEADER.replace(b"(4,), }", b"(99999999999999999999,), }"),
    "columns first": _HEADER.replace(b"False", b"True ") + b" " * (127 - len(_HEADER)) + b"\n" + bytes(16),
}


@pytest.mark.parametrize("name", _FILES)
def test_wrong_files_are_refused(program: Path, name: str) -> None:
    np.save(program.parent / "good.npy", _LEFT)
    (program.parent / "bad.npy").write_bytes(_FILES[name])
    failed = _started(["./program", "-f", "mul", "good.npy", "bad.npy", "-o", "out.npy"], program.parent)
    assert failed.returncode == 1
    assert failed.stderr.startswith("./program: bad.npy: ")
    assert not list(program.parent.glob("out*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.npy", "missing.npy", "-o", "o.npy"], "missing.npy: No such file"),
        (["-f", "none"], "no function none"),
        (["--wrong", "1"], "no such option"),
        (["--wrong"], "no such option"),
        (["--wrong=1"], "--wrong: there is no such option"),
        (["-o"], "expected a value"),
        (["good.npy", "good.npy"], "expected -o OUT.npy"),
        (["--repeat", "many"], "expected a number of calls"),
    ],
)
def test_wrong_command_lines_are_refused(program: Path, arguments: list[str], message: str) -> None:
    failed = _started(["./program", *([] if "none" in arguments else ["-f", "mul"]), *arguments], program.parent)
    assert failed.returncode in (1, 2)
    assert message in failed.stderr


def test_what_others_put_beside_a_result_stays(program: Path) -> None:
    """The name under which a result is written first can be known."""
    np.save(program.parent / "x.npy", _LEFT)
    precious = program.parent / "precious"
    precious.write_text("hello", encoding="utf-8")
    planted = [program.parent / f"o.npy{ending}" for ending in (".part", ".0.part", ".1.part")]
    for path in planted:
        path.symlink_to(precious)
    _ran([f"./{program.name}", "-f", "reversed", "x.npy", "-o", "o.npy"], program.parent)
    assert precious.read_text(encoding="utf-8") == "hello" and all(path.is_symlink() for path in planted)
    np.testing.assert_array_equal(np.load(program.parent / "o.npy"), _LEFT[::-1])
    assert {*program.parent.glob("o.npy.*")} == {*planted}
    for path in planted:
        path.unlink()


def test_what_is_no_file_is_written_directly(program: Path) -> None:
    """A device or a link that a result is written to stays one."""
    np.save(program.parent / "x.npy", _LEFT)
    link, target = program.parent / "link", program.parent / "target.npy"
    link.symlink_to(target)
    _ran([f"./{program.name}", "-f", "reversed", "x.npy", f"--output={link}"], program.parent)
    assert link.is_symlink()
    np.testing.assert_array_equal(np.load(target), _LEFT[::-1])
    link.unlink()
    os.mkfifo(link)
    with subprocess.Popen(
        [f"./{program.name}", "-f", "reversed", "x.npy", "-o", str(link)], cwd=program.parent
    ) as done:
        np.testing.assert_array_equal(np.load(io.BytesIO(link.read_bytes())), _LEFT[::-1])
        assert done.wait(60) == 0
    assert link.is_fifo()


def test_what_has_no_form_in_c_is_refused_by_name() -> None:
    text = """
func.func @main(%x: tensor<4xf32>) {
  stablehlo.custom_call @check.expect_eq(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}
"""
    with pytest.raises(PumiceError, match=r"calls check\.expect_\w+: C programs have only the hal module"):
        c_files(pumice.compile(text))


def test_modules_for_other_devices_are_refused() -> None:
    with pytest.raises(PumiceError, match="C programs are for Vulkan"):
        c_files(pumice.compile(SOURCE, targets=("reference",)))


def test_names_are_the_files(module: bytes) -> None:
    files = c_files(module, "2-layer net")
    assert sorted(files) == ["2-layer net.c", "2-layer net.h"]
    assert b"int p2_layer_net_mul(p2_layer_net_program *" in files["2-layer net.h"]
    assert b"NAME" not in re.sub(rb"PNAME|_NAME_|DEVICE_NAME", b"", files["2-layer net.h"])


_NO_FEATURE = ((b"return value != VK_FALSE;", b"return value > VK_TRUE;"),)
_WIDE = """
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %0 = stablehlo.multiply %x, %x : tensor<4xi64>
  return %0 : tensor<4xi64>
}
"""


@pytest.mark.features("shaderFloat64")
def test_features_are_enabled_and_missing_ones_named(tmp_path: Path) -> None:
    module = pumice.compile(_WIDE.replace("i64", "f64"))
    wide = np.array([1.5, -2, 1e100, 3])
    (result,) = run(build(tmp_path, module), [wide])
    np.testing.assert_array_equal(result, wide * wide)
    failed = try_run(build(tmp_path, module, changes=_NO_FEATURE), [wide])
    assert failed.returncode == 1
    assert "shaderFloat64" in failed.stderr


@pytest.mark.parametrize("changes", [(), _NO_FEATURE], ids=["with", "without"])
def test_programs_choose_between_executables(tmp_path: Path, changes: tuple[tuple[bytes, bytes], ...]) -> None:
    module = pumice.compile(_WIDE, targets=("vulkan:shaderInt64", "vulkan"))
    values = np.array([3, -(1 << 30), 1 << 31, 0], np.int64)
    (result,) = run(build(tmp_path, module, changes=changes), [values])
    np.testing.assert_array_equal(result, values * values)


@pytest.mark.peer
def test_doubles_are_rounded_right_on_every_driver(tmp_path: Path) -> None:
    source = """func.func @round(%x: tensor<32xf64>) -> (tensor<32xf64>, tensor<32xf64>) {
      %0 = math.roundeven %x : tensor<32xf64>
      %1 = math.trunc %x : tensor<32xf64>
      return %0, %1 : tensor<32xf64>, tensor<32xf64>
    }"""
    flags = ("--iree-vulkan-target=rdna3", "--iree-input-demote-f64-to-f32=false")
    program = build(tmp_path, compile_module(source, *flags, name="round").read_bytes())
    x = np.concatenate([np.arange(-8, 8) / 2, 2.0 ** np.arange(20, 52, 2) + 0.75])
    even, whole = run(program, [x])
    assert np.array_equal(even, np.rint(x)) and np.array_equal(whole, np.trunc(x))


def test_the_header_is_one_of_cpp_too(module: bytes, tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler, such as g++")
    (tmp_path / "program.h").write_bytes(c_files(module)["program.h"])
    (tmp_path / "use.cpp").write_text('#include "program.h"\nint main() { return program_create(nullptr, nullptr); }\n')
    _ran([compiler, *WARNINGS, "-c", "use.cpp"], tmp_path)


def test_functions_may_have_any_name(tmp_path: Path) -> None:
    names = ("buffer", "buffer_write", "create", "call_create", "x_async", "x", "divide", "main", "status")
    text = "".join(
        f"func.func @{name}(%for: tensor<4xf32>) -> tensor<4xf32> {{\n"
        f"  %c = stablehlo.constant dense<{number}.0> : tensor<4xf32>\n"
        "  %0 = stablehlo.add %for, %c : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
        for number, name in enumerate(names)
    )
    program = build(tmp_path, pumice.compile(text), "int")
    for number, name in enumerate(names):
        np.testing.assert_array_equal(run(program, [_LEFT], name)[0], _LEFT + number)


_ENDS = ("*/", "*\\\n/", "*??/\n/", "*%0A/", "??/", "\\", '"); /*', "\u202e*\u2028/", "é", "NAME_STEM")


@pytest.mark.parametrize("text", _ENDS)
def test_texts_of_a_module_stay_in_their_comments_and_strings(text: str, tmp_path: Path) -> None:
    """Places in the source, names of files, of functions, of arguments, of kernels, and messages."""
    shown = comment_text(f"{text} system(0);")
    assert shown.isascii() and shown.isprintable() and not {"*", "\\"} & set(shown) and "??" not in shown
    placeholder = "s" * 60
    module = pumice.compile(SOURCE, file_name=placeholder)
    payload = f"{text} system(0); {text}".encode()
    evil = module.replace(placeholder.encode(), payload + b"s" * (60 - len(payload)))
    assert evil != module and len(payload) <= 60
    with ModuleArchive.from_bytes(evil, "x.vmfb") as archive:
        files = write_c(read_module(archive), "program", f"{text}.vmfb", main=True)
    assert b"system(0);" in files["program.c"]
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name in files:
        code = subprocess.run(
            [str(COMPILER), "-std=c11", "-Wall", "-Wextra", "-Werror", "-E", "-P", name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "system(0)" not in code
    literal = string_literal(f"{text} system(0);")
    (tmp_path / "x.c").write_text(f"#include <stdio.h>\nint main(void) {{ fputs({literal}, stdout); }}\n")
    assert not {"NAME", "STEM", "??"} & {literal[at : at + size] for at in range(len(literal)) for size in (2, 4)}
    _ran([str(COMPILER), "-std=c11", *WARNINGS, "x.c", "-o", "x"], tmp_path)
    done = subprocess.run([str(tmp_path / "x")], capture_output=True, check=True)
    assert done.stdout.decode() == f"{text} system(0);"


def test_names_of_kernels_are_strings(module: bytes) -> None:
    with ModuleArchive.from_bytes(module, "x.vmfb") as archive:
        definition = read_module(archive)
        source = parse_executable(next(data for data in definition.rodata if bytes(data[:4]) == b"VKE1"))
        executables = Executables()
        executables.sources[0] = dataclasses.replace(
            source,
            pipelines=[dataclasses.replace(source.pipelines[0], entry_point='x"}, {system(0)')],
        )
        with pytest.raises(PumiceError):  # no such function in the shader
            executables.tables()
        assert string_literal('x"}') == '"x\\"}"'


def test_shaders_that_a_session_refuses_are_refused(module: bytes) -> None:
    at = module.index(struct.pack("<I", 0x07230203)) + 20
    word = struct.pack("<I", 0x0002_0011)  # OpCapability
    first = module.index(word, at)
    damaged = module[: first + 4] + struct.pack("<I", 9) + module[first + 8 :]  # another capability than is used
    with pumice.Session() as session, pytest.raises(PumiceError, match="spirv-val"):
        session.load(damaged)
    with pytest.raises(PumiceError, match="spirv-val"):
        c_files(damaged)


def test_a_name_with_a_percent_sign(module: bytes, tmp_path: Path) -> None:
    program = build(tmp_path, module, "half%stime", data=True)
    np.testing.assert_array_equal(run(program, (_LEFT, _RIGHT), "mul")[0], _LEFT * _RIGHT)
    said = subprocess.run([str(program), "-h"], capture_output=True, text=True, check=True).stdout
    assert "--data FILE        half%stime.data;" in said


def test_constants_have_the_digits_of_their_type() -> None:
    """A decimal that is no double is one only after rounding, which x87 leaves out."""
    expected = {
        ("F", 2.5): "2.5",
        ("F", 0.1): "0x1.999999999999ap-4",
        ("f", -0.5): "-0.5f",
        ("F", 1e300): (1e300).hex(),
    }
    assert {key: types.number(*key).python() for key in expected} == expected


def test_programs_compile_for_32_bits(module: bytes, tmp_path: Path) -> None:
    source = b"#include <stdlib.h>\n#include <vulkan/vulkan.h>\nint main(void) { return 0; }\n"
    command = [str(COMPILER), "-m32", "-std=c11", "-x", "c", "-c", "-o", "/dev/null", "-"]
    if subprocess.run(command, input=source, capture_output=True, check=False).returncode:
        pytest.skip("needs a C compiler for 32 bits, as gcc-multilib has, and Vulkan's headers")
    for name, content in c_files(module, main=True).items():
        (tmp_path / name).write_bytes(content)
    for name in ("program.c", "program_main.c"):
        command = [str(COMPILER), "-m32", "-std=c11", *WARNINGS, "-O2", "-c", name, "-o", "out.o"]
        done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not done.stderr, done.stderr
