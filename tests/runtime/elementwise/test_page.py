"""Every Python block of docs/elementwise.md runs, one after another, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from support.generated import needs_glsl

from pumice.runtime.elementwise import arguments

PAGE = Path(__file__).resolve().parents[3] / "docs" / "elementwise.md"


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@needs_glsl
def test_the_page() -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, str(PAGE), "exec"), names)
        assert printed.getvalue().splitlines() == re.findall(r"print\(.*\)  # (.*)$", block, re.MULTILINE)
    names["device"].close()  # type: ignore[attr-defined]
    arguments.shared_device().close()
