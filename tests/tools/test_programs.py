"""Commands that take a compiled program take one in StableHLO, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.tools.cli import main

PROGRAM = """
module @doubled {
  func.func @doubles() {
    %0 = util.unfoldable_constant dense<[1.0, 2.0]> : tensor<2xf32>
    %1 = arith.addf %0, %0 : tensor<2xf32>
    check.expect_eq_const(%1, dense<[2.0, 4.0]> : tensor<2xf32>) : tensor<2xf32>
    check.expect_close %1, %1, max_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
    return
  }
  func.func @counts() {
    %0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi4>
    check.expect_eq_const %0, dense<[1, 2, %LAST%]> : tensor<3xi4>
    return
  }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "doubled.mlir"
    path.write_text(PROGRAM.replace("%LAST%", "3"))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.vulkan
def test_checks_run(program: Path) -> None:
    done = run("run-checks", program, "--device", "vulkan")
    assert done.exit_code == 0 and "2 passed, 3 expectations" in done.stdout, done.output


@pytest.mark.parametrize("device", ["reference", pytest.param("vulkan", marks=pytest.mark.vulkan)])
def test_a_failed_check_is_reported(program: Path, device: str) -> None:
    program.write_text(PROGRAM.replace("%LAST%", "4"))
    done = run("run-checks", program, "--device", device)
    assert done.exit_code == 1 and "1 failed, 1 passed" in done.stdout, done.output
    assert "[2]: 3 and 4" in done.stdout


@pytest.mark.vulkan
def test_a_wrong_program_is_reported(program: Path) -> None:
    program.write_text("func.func @main() {\n  %0 = nonsense.op : tensor<f32>\n  return\n}")
    done = run("run-checks", program, "--device", "vulkan")
    assert done.exit_code == 1 and "unknown operation nonsense.op" in done.output


@pytest.mark.parametrize("command", ["info", "dump"])
def test_what_it_holds_is_shown(program: Path, command: str) -> None:
    shown = json.loads(run(command, program, "--json").stdout)
    names = [each["name"] for each in shown["exports"]]
    assert shown["name"] == "doubled" and names[:4] == ["doubles$async", "doubles", "counts$async", "counts"]
    assert {each["name"] for each in shown["imports"]} >= {"check.expect_eq", "check.expect_almost_eq"}
    assert "doubles" in run(command, program).stdout


@pytest.mark.vulkan
@pytest.mark.slow
def test_a_function_is_timed(tmp_path: Path) -> None:
    path = tmp_path / "sum.mlir"
    path.write_text(
        "func.func @sum(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = stablehlo.add %x, %x : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}"
    )
    settings = ("--set", "time_limit=0.1", "--set", "noise_limit=9", "--json", "--quiet")
    done = run("bench", path, "--device", "vulkan", "--input=4xf32=1", *settings)
    assert done.exit_code == 0, done.output
    assert "total" in done.stdout
