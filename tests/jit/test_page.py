"""Every Python block of docs/jit.md runs, one after another, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="needs jax: pip install -e '.[dev]'")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "jit.md"

pytestmark = pytest.mark.vulkan


def test_the_page(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 10
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^print\(.*\) +# (.*)$", "\n".join(blocks), re.MULTILINE)
    assert len(shown) > 8
    printed = iter(done.stdout.splitlines())
    for expected in shown:
        pattern = ".*".join(map(re.escape, expected.split("…")))
        assert any(re.fullmatch(pattern, line) for line in printed), f"{expected!r} is not in:\n{done.stdout}"
