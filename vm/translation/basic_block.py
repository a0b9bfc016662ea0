"""Basic blocks: the operands of their instructions, and the edges between them.

Registers are untyped. A *variable* is a register with its type at some place: ``("i", 3)``, ``("I", 4)`` (slots 4 and
5), ``("r", 0)``. Each variable becomes a Python local.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias, cast

from ...base.lazy_dataclass import dataclass
from ..bytecode.decoder import BranchOperands, Instruction
from ..bytecode.isa import MOVE_BIT, REF_BIT, REF_MASK, FieldKind

Variable: TypeAlias = tuple[str, int]


def variable_of(kind: str, register: int) -> Variable:
    """Returns the variable of a register operand of a type."""
    return kind, register & REF_MASK if kind == "r" else register


class Edge:
    """A branch from one block to another."""

    __slots__ = ("operands", "refs", "target", "values")

    def __init__(self, target: int, operands: BranchOperands = ()) -> None:
        self.target: int = target  # index of the block
        self.operands: BranchOperands = (
            operands  # pairs of source and destination register, raw, copied one after another
        )
        # The same as one parallel copy: source by destination, of value slots and of references (``None``: null).
        self.values: dict[int, int] = {}
        self.refs: dict[int, int | None] = {}
        for source, destination in operands:
            if source & REF_BIT:
                name, to = source & REF_MASK, destination & REF_MASK
                if name != to:
                    self.refs[to] = self.refs.get(name, name)
                    if source & MOVE_BIT:
                        self.refs[name] = None
            else:
                self.values[destination] = self.values.get(source, source)
        if operands:
            self.values = {to: source for to, source in self.values.items() if to != source}
            self.refs = {to: source for to, source in self.refs.items() if to != source}


@dataclass(slots=True)
class Operands:
    """The variables that an instruction reads and writes."""

    reads: tuple[Variable, ...]  # in the order of the fields
    writes: tuple[Variable, ...]
    moves: tuple[int, ...]  # reference registers that are null afterwards


@dataclass(slots=True, eq=False)
class Block:
    """Instructions between a marker and a terminator."""

    index: int  # in the order of the code
    start: int  # index of the marker
    end: int  # behind the terminator
    edges: list[Edge] = field(default_factory=list)
    live_in: int = 0  # masks of registers
    live_out: int = 0


def registers_of(instruction: Instruction, kind: FieldKind) -> tuple[int, ...]:
    """Returns the registers, or the sizes, in an instruction's first field of a kind; none if it has no such field."""
    return cast("tuple[int, ...]", field_value(instruction, kind) or ())


def field_value(instruction: Instruction, kind: FieldKind) -> object:
    """Returns the value of an instruction's first field of a kind; ``None`` if it has no such field."""
    for each, value in zip(instruction.operation.fields, instruction.values, strict=True):
        if each.kind is kind:
            return value
    return None
