"""Exit statuses and wrong usage of Amber scripts are those that docs/amber.md says."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.devices.shader_tools import needs_compiler

from pumice.tools.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "amber.md").read_text(encoding="utf-8")

pytestmark = [pytest.mark.vulkan, needs_compiler, pytest.mark.usefixtures("driver")]


def pumice(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="pumice")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shaders").symlink_to(ROOT / "shaders")
    (script,) = re.findall(r"^```amber title=\"add.amber\"\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "add.amber").write_text(script)
    return tmp_path


def test_exit_statuses(folder: Path) -> None:
    passing = (folder / "add.amber").read_text()
    texts = {
        "pass": passing,
        "fail": passing.replace("EQ 2 12", "EQ 3 12"),
        "skip": passing.replace("#!amber", "#!amber\nDEVICE_FEATURE none"),
        "wrong": passing.replace("RUN", "RNU"),
        "graphics": passing + "PIPELINE graphics g\nEND\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.amber").write_text(text)

    def status(*names: str) -> int:
        return pumice("run", *(str(folder / f"{name}.amber") for name in names)).exit_code

    assert [status(name) for name in texts] == [0, 1, 77, 2, 3]
    assert [status("pass", "skip"), status("skip", "graphics"), status("wrong", "graphics"), status(*texts)] == [
        0,
        3,
        2,
        1,
    ]
    result = pumice("run", *(str(folder / f"{name}.amber") for name in texts))
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed, 1 skipped, 1 unsupported, 1 error"
    assert f"{folder}/fail.amber:18: values: value 0: got 2, expected == 3\n" in result.stdout
    assert f"{folder}/skip.amber: skipped: the device lacks the feature none\n" in result.stdout
    assert "RNU plus_two 2 1 1\n  ^" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add.amber", "--groups", "1"], "--groups is not for Amber scripts"),
        (["add.amber", "--device", "a", "--device", "b"], "runs on one device"),
        (["add.amber", "shaders/mul.comp"], "only Amber scripts run several at a time"),
        (["shaders/mul.comp", "shaders/mul.comp"], "only Amber scripts run several at a time"),
        (["add.amber", "--device", "vulkan://none"], "no device is 'vulkan://none'"),
    ],
)
def test_wrong_usage(folder: Path, arguments: list[str], message: str) -> None:
    with contextlib.chdir(folder):
        result = pumice("run", *arguments)
    assert result.exit_code != 0 and message in result.stderr
