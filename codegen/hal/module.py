"""State that the writers of a program's functions share."""

from __future__ import annotations

import enum

from ...vm.translation.expressions import Name
from ..program.ir import Constant, Program, Value
from .data import DataTable
from .names import Attributes, flags_name


class Module:
    """State that the writers of a program's functions share.

    Attributes:
        flags: constants of flags by name.
    """

    def __init__(self, program: Program, data: DataTable) -> None:
        self.program = program
        self.data = data
        self.attributes: Attributes = Attributes(program)
        self.flags: dict[str, tuple[int, type[enum.IntFlag]]] = {}

    def flag(self, value: Value, kind: type[enum.IntFlag]) -> Name | None:
        """Returns the constant of known flags."""
        if not isinstance(value, Constant):
            return None
        name = flags_name(int(value.number), kind)
        self.flags[name] = (int(value.number), kind)
        return Name(name)
