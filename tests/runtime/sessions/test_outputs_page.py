"""Every Python block of docs/out-parameters.md runs, one after another, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "out-parameters.md"

pytestmark = pytest.mark.vulkan


@pytest.mark.parametrize("device", ["lavapipe", "reference"])
def test_the_page(tmp_path: Path, device: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (source,) = re.findall(r"```mlir\n(.*?)```", text, re.DOTALL)
    (tmp_path / "step.mlir").write_text(source, encoding="utf-8")
    script = tmp_path / "page.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PUMICE_DEVICE": device},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^ *print\(.*\) +# (.*)$|^```\n((?:.+\n)+)```$", text, re.MULTILINE)
    lines = [line for one, block in shown for line in ([one] if one else block.splitlines())]
    expected = [line for line in lines if not line.startswith("read before")]
    assert len(expected) > 10
    printed = iter(done.stdout.splitlines())
    for line in expected:
        assert line in printed, f"{line!r} is not in:\n{done.stdout}"
