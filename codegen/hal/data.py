"""The constants of a program: in its module, or in a file beside it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from ...vm.translation.expressions import Expression, Item, Literal, Name

_WIDTH: Final = 116
_ALIGNMENT: Final = 64


class DataTable:
    """The constants that the generated code uses.

    Args:
        rodata: all constants of the program.
        file: the name of the data file beside the module; ``None`` to put constants into the module.
    """

    def __init__(self, rodata: Sequence[memoryview], file: str | None) -> None:
        self._rodata = rodata
        self.file = file
        self._used: set[int] = set()

    def item(self, ordinal: int) -> Expression:
        """Returns the bytes of a constant, a ``memoryview``."""
        self._used.add(ordinal)
        return Item(Name("_DATA"), Literal(ordinal))

    def lines(self) -> list[str]:
        """Returns the definition of ``_DATA``; no lines if no constant is used."""
        if not self._used:
            return []
        if self.file is not None:
            lines = [f'_FILE: Final = memoryview(Path(__file__).with_name("{self.file}").read_bytes())']
            lines.append("_DATA: Final = {")
            for ordinal, start in self._places().items():
                lines.append(f"    {ordinal}: _FILE[{start}:{start + len(self._rodata[ordinal])}],")
            return [*lines, "}"]
        lines = ["_DATA: Final = {"]
        for ordinal in sorted(self._used):
            text = base64.b64encode(self._rodata[ordinal]).decode("ascii")
            if len(text) < _WIDTH - 40:
                lines.append(f'    {ordinal}: memoryview(b64decode("{text}")),')
                continue
            lines += [f"    {ordinal}: memoryview(", '        b64decode("""']
            lines += [text[at : at + _WIDTH] for at in range(0, len(text), _WIDTH)]
            lines += ['""")', "    ),"]
        return [*lines, "}"]

    def content(self) -> bytes:
        """Returns the content of the data file."""
        data = bytearray()
        for ordinal, start in self._places().items():
            data += bytes(start - len(data))
            data += self._rodata[ordinal]
        return bytes(data)

    def _places(self) -> dict[int, int]:
        places = {}
        end = 0
        for ordinal in sorted(self._used):
            places[ordinal] = start = -(-end // _ALIGNMENT) * _ALIGNMENT
            end = start + len(self._rodata[ordinal])
        return places
