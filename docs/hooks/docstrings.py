"""Docstrings as Markdown for readers of the reference."""

from __future__ import annotations

import re

import griffe


class Docstrings(griffe.Extension):
    """Sessions of the interpreter as blocks of code; packages without what they say to readers of the sources."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            text = re.sub(r"^ *>>> .*(?:\n *\S.*)*", "```pycon\n\\g<0>\n```", obj.docstring.value, flags=re.M)
            obj.docstring.value = (
                re.sub(r"\s*^(Imports|Read): .*", "", text, flags=re.M | re.S) if obj.is_module else text
            )
