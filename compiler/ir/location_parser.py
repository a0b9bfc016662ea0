"""Aliases, and locations after operations."""

from __future__ import annotations

import re
from typing import Final

from .attribute_parser import AttributeParser
from .operation import DebugLocation
from .scanner import unescaped
from .source import SourceText
from .type_parser import MAX_DEPTH

_PLACE: Final = re.compile(r'"((?:[^"\\\n]|\\[^\n])*)":([0-9]{1,9}):([0-9]{1,9})')
_ALIAS_USE: Final = re.compile(r"#([A-Za-z_][A-Za-z0-9_$]*)", re.ASCII)
_MAX_LOCATION: Final = 10_000


class LocationParser(AttributeParser):
    """Reads definitions of aliases, and locations."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self._locations: dict[str, DebugLocation] = {}
        self._location_aliases: dict[str, str] = {}

    def alias_definition(self) -> None:
        """Skips ``#name = …``, which is read at its use; locations need not be read at all."""
        self.expect("#")
        name = self.word("an alias's name")
        self.expect("=")
        if self.accept_word("loc"):
            self.expect("(")
            self.balanced(")")
        elif "." not in name:
            self.attribute()
        else:
            self.error("an alias's name has no dot")

    def type_alias(self) -> None:
        self.expect("!")
        name = self.word("an alias's name")
        self.expect("=")
        self.accept_word("type")
        self.type_aliases[name] = self.type()

    def trailing_location(self) -> DebugLocation | None:
        """Reads ``loc(…)`` after an operation or an argument, if present."""
        if not self.text.startswith("loc", self.here()) or not self.accept_word("loc"):
            return None
        self.expect("(")
        start = self.here()
        text = self.balanced(")")
        if not text.strip():
            self.error("expected a location, got nothing", start)
        alias = _ALIAS_USE.match(text)
        if alias is not None and alias[1] not in self._alias_offsets:
            self.error(f"the location alias #{alias[1]} is not defined", start)
        return self.debug_location(text)

    def debug_location(self, text: str) -> DebugLocation:
        """Parses the text in the parentheses of ``loc(…)``."""
        known = self._locations.get(text)
        if known is None:
            whole = self._resolved(text)
            name = re.match(r'"((?:[^"\\\n]|\\[^\n])*)"(?!:)', whole)
            innermost = _PLACE.search(whole)
            known = DebugLocation(
                whole,
                unescaped(name[1]) if name else "",
                unescaped(innermost[1]) if innermost else "",
                int(innermost[2]) if innermost else 0,
                int(innermost[3]) if innermost else 0,
            )
            self._locations[text] = known
        return known

    def _resolved(self, text: str, depth: int = 0) -> str:
        """Replaces the aliases in a location, up to a maximum length."""

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name not in self._location_aliases:
                self._location_aliases[name] = "unknown"
                offset = self._alias_offsets.get(name)
                if offset is not None and depth < MAX_DEPTH:
                    back, self.position = self.position, offset
                    if self.accept_word("loc"):
                        self.expect("(")
                        self._location_aliases[name] = self._resolved(self.balanced(")"), depth + 1)
                    self.position = back
            return self._location_aliases[name]

        resolved = _ALIAS_USE.sub(replaced, text) if "#" in text else text
        return resolved if len(resolved) <= _MAX_LOCATION else "unknown"
