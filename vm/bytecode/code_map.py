"""The origin of instructions: function names, mnemonics, lines of the source program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .module_def import ModuleDef

if TYPE_CHECKING:
    from .decoder import Instruction


class CodeMap:
    """Names the functions and instructions of a module; ``instructions`` are those of a function, by ordinal."""

    def __init__(self, definition: ModuleDef, instructions: Callable[[int], Sequence[Instruction]]) -> None:
        self._definition = definition
        self._instructions = instructions
        self.module_name: str = definition.name
        self.exports: dict[str, int] = {}  # ordinals by name; the first of equal names counts
        for export in definition.exports:
            self.exports.setdefault(export.name, export.ordinal)
        self._names = {ordinal: name for name, ordinal in reversed(self.exports.items())}

    def function_name(self, ordinal: int) -> str:
        """Returns the name of an export, or a number for an internal function."""
        return self._names.get(ordinal, f"@{ordinal}")

    def full_name(self, ordinal: int) -> str:
        """``module.function``."""
        return f"{self.module_name}.{self.function_name(ordinal)}"

    def instruction_at(self, ordinal: int, pc: int) -> Instruction | None:
        """Returns the instruction at a pc; ``None`` where none begins."""
        return next((instruction for instruction in self._instructions(ordinal) if instruction.pc == pc), None)

    def import_at(self, ordinal: int, pc: int) -> int | None:
        """Returns the ordinal of the import that the instruction at a pc calls; ``None`` if it calls none."""
        from .isa import CALLS, IMPORT_BIT  # here: only messages ask

        instruction = self.instruction_at(ordinal, pc)
        if instruction is None or instruction.operation.mnemonic not in CALLS:
            return None
        callee = int(instruction.values[0])  # type: ignore[arg-type]
        return callee & ~IMPORT_BIT if callee & IMPORT_BIT else None

    def import_name(self, number: int) -> str:
        """Returns the full name of an import."""
        return self._definition.imports[number].name

    def source_location(self, ordinal: int, pc: int) -> str | None:
        """Returns the place in the source program, if the module has debug information for it."""
        debug = self._definition.debug
        if debug is None:
            return None
        name = self._names.get(ordinal)
        found = debug.location_of(name, pc) if name is not None else None
        return found or debug.location_of(ordinal, pc)

    def place(self, ordinal: int, pc: int) -> str:
        """``module.function pc 120 (file.mlir:3:5)``; the name alone for a negative pc."""
        name = self.full_name(ordinal)
        if pc < 0:
            return name
        source = self.source_location(ordinal, pc)
        return f"{name} pc {pc}{f' ({source})' if source else ''}"
