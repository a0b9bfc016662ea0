"""State shared by the writers of a program's functions, and its constants, in the module or in a separate file."""

from __future__ import annotations

import base64
import enum
from collections.abc import Sequence
from typing import Final

from ...vm.translation.expressions import Expression, Item, Literal, Name
from ..program.ir import Constant, Program, Value
from .names import Attributes, flags_name

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


class Module:
    """State that the writers of a program's functions share.

    Attributes:
        flags: the value and class of each flags constant, by its name in the module.
    """

    def __init__(self, program: Program, data: DataTable) -> None:
        self.program = program
        self.data = data
        self.attributes: Attributes = Attributes(program)
        self.flags: dict[str, tuple[int, type[enum.IntFlag]]] = {}

    def flag(self, value: Value, kind: type[enum.IntFlag]) -> Name | None:
        """Returns the constant of named flags."""
        if not isinstance(value, Constant):
            return None
        name = flags_name(int(value.number), kind)
        self.flags[name] = (int(value.number), kind)
        return Name(name)
