"""Every Python block of these pages runs, one after another, and prints what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES: dict[str, list[Language]] = {
    "dispatch-timing.md": [],
    "elementwise.md": [Language.GLSL],
    "images.md": [Language.GLSL],
    "kernels.md": [Language.GLSL],
    "view.md": [Language.GLSL],
    "sources.md": [Language.GLSL, Language.HLSL, Language.SLANG],
}


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, tmp_path: Path) -> None:
    try:
        for language in PAGES[name]:
            find_compiler(language)
    except UnavailableError as error:
        pytest.skip(error.message)
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
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
    expected = re.findall(r"^ *print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    assert len(expected) >= 3
    assert done.stdout.splitlines() == expected
