"""README.md names every environment variable that the package reads."""

from __future__ import annotations

import re
from pathlib import Path

from support.import_graph import source_files

from pumice.base.switches import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_variable_is_in_the_settings_table() -> None:
    """Every environment variable that the package reads, by its name in the code."""
    table = README.partition("\n## Settings\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"PUMICE_[A-Z_]+", "".join(re.findall(r"^\|([^|]*)\|", table, re.MULTILINE))))
    read = set()
    for path in source_files(ROOT):
        if path != ROOT / "switches.py":
            read |= set(re.findall(r'"(PUMICE_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    assert listed == read == SETTINGS
