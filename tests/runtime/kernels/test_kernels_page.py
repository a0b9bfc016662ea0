"""Every Python block of docs/kernels.md runs, one after another, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "kernels.md"

pytestmark = pytest.mark.vulkan


def test_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    script = tmp_path / "page.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PUMICE_DEVICE": "lavapipe"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert len(expected) > 18
    assert done.stdout.splitlines() == expected
