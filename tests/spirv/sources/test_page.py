"""Every Python block of docs/sources.md runs, one after another, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from pumice.spirv.sources.find import find_compiler
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sources.md"


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for language in (Language.GLSL, Language.SLANG, Language.HLSL):
            find_compiler(language)
    except UnavailableError as error:
        pytest.skip(error.message)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, str(PAGE), "exec"), names)
        assert printed.getvalue().splitlines() == re.findall(r"print\(.*\)  # (.*)$", block, re.MULTILINE)
    names["device"].close()  # type: ignore[attr-defined]
