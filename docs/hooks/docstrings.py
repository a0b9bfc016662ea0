"""Docstrings as Markdown for readers of the reference."""

from __future__ import annotations

import re
from pathlib import Path

import griffe

DOCS = Path(__file__).parents[1]


class Docstrings(griffe.Extension):
    """What docstrings leave to readers of sources is written out, and what is for them alone is left out."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            text = re.sub(r"^ *>>> .*(?:\n *\S.*)*", "```pycon\n\\g<0>\n```", obj.docstring.value, flags=re.M)
            text = re.sub(r"\bdocs/([\w/-]+)\.md\b", _link, text)
            text = re.sub(r"^( +)(\*{0,2}\w+(?:, \*{0,2}\w+)+)(:.*(?:\n\1 .*)*)", _one_each, text, flags=re.M)
            obj.docstring.value = (
                re.sub(r"\s*^(Imports|Read): .*", "", text, flags=re.M | re.S) if obj.is_module else text
            )

    def on_class_members(self, *, cls: griffe.Class, **_: object) -> None:
        """Names the members of enumerations."""
        if cls.docstring is not None and any(re.search(r"(Enum|Flag)$", str(base)) for base in cls.bases):
            names = [f"``{name}``" for name, member in cls.members.items() if member.is_attribute and name.isupper()]
            summary, *rest = cls.docstring.value.split("\n\n", 1)
            cls.docstring.value = "\n\n".join([summary, f"Members: {', '.join(names)}.", *rest])


def _link(match: re.Match[str]) -> str:
    """A page as a link."""
    return f"[{match[0]}](../{match[1]}.md)" if (DOCS / f"{match[1]}.md").exists() else match[0]


def _one_each(match: re.Match[str]) -> str:
    """An entry for each of the parameters that one describes."""
    return "\n".join(f"{match[1]}{name}{match[3]}" for name in match[2].split(", "))
