"""Docstrings as Markdown for readers of the reference."""

from __future__ import annotations

import re
from pathlib import Path

import griffe

DOCS = Path(__file__).parents[1]


class Docstrings(griffe.Extension):
    """Sessions of the interpreter as blocks, pages as links; packages without what they say to readers of sources."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            text = re.sub(r"^ *>>> .*(?:\n *\S.*)*", "```pycon\n\\g<0>\n```", obj.docstring.value, flags=re.M)
            text = re.sub(r"\bdocs/([\w/-]+)\.md\b", _link, text)
            obj.docstring.value = (
                re.sub(r"\s*^(Imports|Read): .*", "", text, flags=re.M | re.S) if obj.is_module else text
            )


def _link(match: re.Match[str]) -> str:
    return f"[{match[0]}](../{match[1]}.md)" if (DOCS / f"{match[1]}.md").exists() else match[0]
