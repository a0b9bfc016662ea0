"""docs/hal-code.md does what it says: its commands and its Python, in order."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.hal_vulkan.device import Device
from pumice.tools.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "hal-code.md"


@pytest.mark.vulkan
def test_the_page(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command in re.findall(r"^\$ pumice (.*)$", text, re.MULTILINE):
        done = CliRunner().invoke(main, shlex.split(command))
        assert done.exit_code == 0, done.output
    monkeypatch.syspath_prepend(str(tmp_path))
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {"given": device}
    try:
        for block in blocks:
            exec(compile(block.replace("device = Device()", "device = given"), str(PAGE), "exec"), names)
    finally:
        sys.modules.pop("layer_program", None)
        if "layer" in names:
            names["layer"].close()
    assert capsys.readouterr().out.split() == ["[[4.", "4.", "4.]", "[4.", "4.", "4.]]"]
