"""``pumice run-checks``: exit statuses, what is printed where, and the JUnit file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from pumice.hal_vulkan.instance.driver import Driver
from pumice.tools.cli import main
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module

HEADER = """
vm.module @checked version 0
vm.import optional @check.expect_true cconv "0i_v"
"""
FUNCTION = """
vm.export @{name}
vm.func @{name}({argument}) -> () {{
^bb0:
  %i0 = vm.const.i32 {value}
  vm.call @check.expect_true(%i0)
  {last}
}}
"""


def function(name: str, value: int = 1, *, last: str = "vm.return", argument: str = "") -> str:
    return FUNCTION.format(name=name, value=value, last=last, argument=argument)


GOOD = function("first") + function("second")
BAD = function("good") + function("bad", 0) + function("worse", last='vm.fail %i0, "on purpose"')
ONLY_ARGUMENTS = function("given", argument="%i0: i32")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "good": GOOD,
        "bad": BAD,
        "given": ONLY_ARGUMENTS,
        "none": "vm.func @inner() -> () {\n^bb0:\n  vm.return\n}\n",
    }.items():
        (tmp_path / f"{name}.vmfb").write_bytes(write_module(assemble(HEADER + text)))
    return tmp_path


def run_checks(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["run-checks", *map(str, arguments)])


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_all_passed(folder: Path) -> None:
    result = run_checks(folder / "good.vmfb")
    assert result.exit_code == 0
    assert result.stderr.startswith("running on ")
    progress, last = result.stdout.splitlines()
    assert progress == f"{folder / 'good.vmfb'} .."
    assert re.search(r"= 2 passed, 2 expectations in \d+\.\d\d s =", last)


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_failures_are_printed_and_stored(folder: Path) -> None:
    report = folder / "report.xml"
    paths = [folder / "bad.vmfb", folder / "good.vmfb", folder / "absent.vmfb"]
    result = run_checks(*paths, "--junit-xml", report)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:3] == [f"{paths[0]} .FE", f"{paths[1]} ..", f"{paths[2]} E"]
    assert "expect_true: expected a number other than 0, got 0" in lines
    assert f"FAILED {paths[0]}::bad - expect_true: expected a number other than 0, got 0" in lines
    assert any(line.startswith(f"ERROR {paths[0]}::worse - ") and "on purpose" in line for line in lines)
    assert "1 failed, 3 passed, 2 errors, 5 expectations in" in lines[-1]
    cases = {case.attrib["name"]: case for case in ET.parse(report).iter("testcase")}
    assert {name: [one.tag for one in case] for name, case in cases.items()} == {
        "good": [],
        "bad": ["failure"],
        "worse": ["error"],
        "first": [],
        "second": [],
        "(load)": ["error"],
    }


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_line_a_function(folder: Path) -> None:
    path = folder / "bad.vmfb"
    result = run_checks(path, "--verbose", "-k", "good", "-k", "checked.b*")
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()[:2]
    assert re.fullmatch(re.escape(f"{path}::good") + r" PASSED \(\d+\.\d\d s\)", first)
    assert re.fullmatch(re.escape(f"{path}::bad") + r" FAILED \(\d+\.\d\d s\)", second)
    assert "1 failed, 1 passed, 1 deselected" in result.stdout


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("good", ["--filter", "third"], "no function matches --filter"),
        ("given", [], "no exported function without arguments"),
        ("none", [], "no exported function without arguments"),
    ],
)
def test_nothing_to_run_is_no_success(
    folder: Path, driver: Driver, file: str, options: list[str], message: str
) -> None:
    result = run_checks(folder / f"{file}.vmfb", *options)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["x.vmfb", "--timeout", "0"], "seconds above 0, got '0'"),
        (["x.vmfb", "--timeout", "nan"], "seconds above 0, got 'nan'"),
        (["x.vmfb", "--timeout", "soon"], "seconds above 0, got 'soon'"),
        (["x.vmfb", "--junit-xml", "/no/such/folder/x.xml"], "no such folder: "),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    result = run_checks(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_device_that_is_not_there(folder: Path) -> None:
    result = run_checks(folder / "good.vmfb", "--device", "vulkan://no such device")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert run_checks(folder / "good.vmfb", "--device", "cuda").exit_code == 2


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_report_that_cannot_be_written(folder: Path) -> None:
    result = run_checks(folder / "good.vmfb", "--junit-xml", folder)
    assert result.exit_code == 1
    assert "2 passed" in result.stdout
    assert f"--junit-xml: {folder} cannot be written: " in result.stderr


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_time_limit(folder: Path) -> None:
    endless = "vm.export @spins\nvm.func @spins() -> () {\n^bb0:\n  %i0 = vm.const.i32 1\n  vm.br ^bb1()\n^bb1:\n"
    endless += "  vm.call @check.expect_true(%i0)\n  vm.br ^bb1()\n}\n"
    path = folder / "endless.vmfb"
    path.write_bytes(write_module(assemble(HEADER + endless)))
    result = run_checks(path, "--timeout", "0.2")
    assert result.exit_code == 1
    assert "within its timeout of 0.2 s" in result.stdout


PARAMETERS = """
util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<3xf32>
func.func @checks() {
  %w = util.global.load @w : tensor<3xf32>
  check.expect_eq_const(%w, dense<[1.0, 2.0, 3.0]> : tensor<3xf32>) : tensor<3xf32>
  return
}
"""


@pytest.mark.vulkan
@pytest.mark.peer
@pytest.mark.usefixtures("driver")
def test_parameters(tmp_path: Path) -> None:
    compiler = pytest.importorskip("iree.compiler")
    flags = ["--iree-hal-target-backends=vulkan-spirv"]
    (tmp_path / "checks.vmfb").write_bytes(compiler.compile_str(PARAMETERS, extra_args=flags))
    np.savez(tmp_path / "good.npz", w=np.float32([1, 2, 3]))
    np.savez(tmp_path / "bad.npz", w=np.float32([1, 2, 4]))
    good = run_checks(tmp_path / "checks.vmfb", "--parameters", f"model={tmp_path / 'good.npz'}")
    assert good.exit_code == 0, good.output
    bad = run_checks(tmp_path / "checks.vmfb", "--parameters", f"model={tmp_path / 'bad.npz'}")
    assert bad.exit_code == 1
    assert "4" in bad.stdout
    none = run_checks(tmp_path / "checks.vmfb")
    assert none.exit_code == 1
    assert "io_parameters" in none.stdout
    assert run_checks(tmp_path / "checks.vmfb", "--parameters", tmp_path / "missing.npz").exit_code == 1
