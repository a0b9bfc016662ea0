"""The table of docs/calling-conventions.md has the types that the conventions make."""

from __future__ import annotations

import re
from pathlib import Path

from pumice.compiler.abi.calling_convention import named_convention
from pumice.compiler.abi.type_converter import parse_type

PAGE = Path(__file__).parents[2] / "docs" / "calling-conventions.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_table_of_types() -> None:
    (before,) = re.findall(r"\| name \| `([^`]*)` becomes", TEXT)
    rows = re.findall(r"^\| `([a-z,]+)` \| `([^`]*)` +\|$", TEXT, re.MULTILINE)
    assert len(rows) == 5
    for names, after in rows:
        assert str(named_convention(names)(parse_type(before))) == after  # type: ignore[arg-type]
