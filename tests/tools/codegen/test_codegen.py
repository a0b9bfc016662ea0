"""``pumice codegen``: what it writes, and what it refuses without writing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.codegen.hal_code import class_of

from pumice.tools.cli import main
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module

PROGRAM = """
func.func @double(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
CUSTOM = """
vm.module @custom version 0
vm.import @other.double cconv "0i_i"
vm.export @run
vm.func @run(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.call @other.double(%i0)
  vm.return %i1
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def codegen(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["codegen", *map(str, arguments)])


def test_a_program_becomes_a_class(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "written.py"
    assert codegen("--hal", program, "-o", out).exit_code == 0
    found = class_of(out.read_text(encoding="utf-8"))
    assert found.__name__ == "Program"
    assert {"double", "double_async", "square", "square_async"} <= set(vars(found))


def test_one_function_alone(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "written.py"
    assert codegen("--hal", program, "-o", out, "--function", "square").exit_code == 0
    source = out.read_text(encoding="utf-8")
    assert {"square", "square_async"} <= set(vars(class_of(source)))
    assert "double" not in source


def test_constants_beside_it(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "written.py"
    assert codegen("--hal", program, "-o", out, "--data").exit_code == 0
    assert b"VKE1" in (tmp_path / "written.data").read_bytes()
    assert "b64decode" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["module", "stdin"])
def test_modules_are_taken_as_they_are(form: str, program: Path, tmp_path: Path) -> None:
    module = tmp_path / "program.vmfb"
    assert CliRunner().invoke(main, ["compile", str(program), "-o", str(module)]).exit_code == 0
    expected, out = tmp_path / "program.py", tmp_path / "other.py"
    assert codegen("--hal", module, "-o", expected).exit_code == 0
    data = module.read_bytes()
    arguments = ["codegen", "--hal", str(module) if form == "module" else "-", "-o", str(out)]
    assert CliRunner().invoke(main, arguments, input=data).exit_code == 0
    written = out.read_text(encoding="utf-8")
    if form == "module":
        assert written == expected.read_text(encoding="utf-8")
    assert "def double_async" in written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '-o' / '--output'"),
        (("--hal",), "Missing option '-o' / '--output'"),
        (("-o", "a.py"), "expected one of --hal and --c"),
        (("--hal", "--c", "-o", "a.py"), "expected one of --hal and --c"),
        (("--hal", "--main", "-o", "a.py"), "--main goes with --c"),
        (("--hal", "--cmake", "-o", "a.py"), "--cmake goes with --c"),
        (("--hal", "-o", "a.c"), "ends in .py, got a.c"),
        (("--c", "-o", "a.py"), "ends in .c, got a.py"),
        (("--c", "-o", 'b"c.c'), "expected a name without"),
        (("--c", "-o", "b\\c.c"), "expected a name without"),
        (("--c", "-o", "b\nc.c"), "expected a name without"),
        (("--c", "-o", "b;c.c"), "expected a name without"),
        (("--hal", "-o", "a.py", "--function", "triple"), "exports no function 'triple'; exported are: double"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], said: str, program: Path, tmp_path: Path) -> None:
    given = [str(tmp_path / one) if one.startswith("a.") else one for one in arguments]
    before = set(tmp_path.iterdir())
    done = codegen(program, *given)
    assert done.exit_code == 2 and said.replace("a.", f"{tmp_path}/a.") in done.output.replace("\n", "")
    assert set(tmp_path.iterdir()) == before


def test_what_is_refused_leaves_no_file(tmp_path: Path) -> None:
    module = tmp_path / "custom.vmfb"
    module.write_bytes(write_module(assemble(CUSTOM)))
    done = codegen("--hal", module, "-o", tmp_path / "written.py")
    assert done.exit_code == 1 and "calls other.double" in done.output
    assert list(tmp_path.iterdir()) == [module]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "got an empty file; compile it again"),
        (b"no module", "it is cut short, or no module"),
        (None, "there is none; check the path"),
    ],
)
def test_files_that_are_no_modules(data: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "program.vmfb"
    if data is not None:
        path.write_bytes(data)
    before = list(tmp_path.iterdir())
    for way, out in (("--hal", "written.py"), ("--c", "written.c")):
        done = codegen(way, path, "-o", tmp_path / out)
        assert done.exit_code == 1 and "program.vmfb: expected a module file, " in done.stderr and said in done.stderr
    assert list(tmp_path.iterdir()) == before


def test_a_module_that_is_cut_short(program: Path, tmp_path: Path) -> None:
    module = tmp_path / "program.vmfb"
    assert CliRunner().invoke(main, ["compile", str(program), "-o", str(module)]).exit_code == 0
    data = module.read_bytes()
    before = sorted(tmp_path.iterdir())
    for length in range(16, len(data), len(data) // 7):
        module.write_bytes(data[:length])
        for way, out in (("--hal", "written.py"), ("--c", "written.c")):
            done = codegen(way, module, "-o", tmp_path / out)
            assert done.exit_code == 1 and "program.vmfb" in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_a_module_for_the_reference_device_has_no_c_program(program: Path, tmp_path: Path) -> None:
    module = tmp_path / "program.vmfb"
    command = ["compile", str(program), "--target", "reference", "-o", str(module)]
    assert CliRunner().invoke(main, command).exit_code == 0
    before = sorted(tmp_path.iterdir())
    done = codegen("--c", module, "-o", tmp_path / "written.c")
    assert done.exit_code == 1 and "C programs are for Vulkan" in done.stderr
    assert sorted(tmp_path.iterdir()) == before
    assert codegen("--hal", module, "-o", tmp_path / "written.py").exit_code == 0


@pytest.mark.parametrize("taken", ["a.c", "a.h", "a.data", "CMakeLists.txt"])
def test_where_one_file_cannot_be_written_none_is(taken: str, program: Path, tmp_path: Path) -> None:
    (tmp_path / taken).mkdir()
    (tmp_path / "a_main.c").write_bytes(b"old")
    before = sorted(tmp_path.iterdir())
    done = codegen("--c", program, "-o", tmp_path / "a.c", "--main", "--cmake", "--data")
    assert done.exit_code == 1 and f"{taken} cannot be written: Is a directory" in done.stderr
    assert sorted(tmp_path.iterdir()) == before and (tmp_path / "a_main.c").read_bytes() == b"old"


def test_the_build_of_others_is_left_alone(program: Path, tmp_path: Path) -> None:
    out, cmake = tmp_path / "a.c", tmp_path / "CMakeLists.txt"
    for _ in range(2):  # its own is written again
        assert codegen("--c", program, "-o", out, "--cmake").exit_code == 0
    out.unlink()
    cmake.write_text("project(application C)\n", encoding="utf-8")
    done = codegen("--c", program, "-o", out, "--cmake")
    assert done.exit_code == 2 and "not of pumice" in done.stderr.replace("\n", " ")
    assert cmake.read_text(encoding="utf-8") == "project(application C)\n" and not out.exists()


def test_a_folder_that_is_not_there(program: Path, tmp_path: Path) -> None:
    done = codegen("--hal", program, "-o", tmp_path / "none" / "a.py")
    assert done.exit_code == 1 and "a.py cannot be written: there is no folder" in done.stderr
    assert list(tmp_path.iterdir()) == [program]
