"""The tables of settings at the end of ``docs/reference/study.md``, from those of the product.

    python tests/support/study/reference.py

writes them again. What is above them in the page is written by hand, and ``test_study_file`` compares its lists with
the product's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from pumice.study.definition.settings import Sampling
from pumice.study.definition.target_settings import KINDS, Setting

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "study.md"
FIRST = f"### `{next(iter(KINDS))}`\n"
"""The line that the tables begin with."""


def reference_tables() -> str:
    """The tables, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for kind in KINDS.values():
        yield from (f"### `{kind.name}`", "")
        yield f"{kind.doc} Headline: `{kind.measure}`; {'may' if kind.baseline else 'cannot'} have a baseline."
        yield from ("", "| setting | value | default | meaning |", "| -- | -- | -- | -- |")
        for setting in kind.settings:
            yield f"| `{setting.name}` | {_type(setting)} | {_default(setting)} | {setting.doc} |"
        yield ""
    yield from ("## Sampling", "", "| field | default | meaning |", "| -- | -- | -- |")
    for field in fields(Sampling):
        default = "" if field.default is None else f"`{json.dumps(field.default)}`"
        yield f"| `{field.name}` | {default} | {field.metadata['doc']} |"


def _type(setting: Setting) -> str:
    return ", ".join(f"`{one}`" for one in setting.type.choices) or setting.type.text


def _default(setting: Setting) -> str:
    if setting.required:
        return "required"
    return "" if setting.default is None else f"`{json.dumps(setting.default)}`"


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(FIRST)[0] + reference_tables(), encoding="utf-8")
