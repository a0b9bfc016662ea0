"""Basic blocks: what instructions read and write, and where control goes after them.

Registers are untyped. A *variable* is a register with its type at some place: ``("i", 3)``, ``("I", 4)`` (slots 4 and
5), ``("r", 0)``. Each variable becomes a Python local.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from ..bytecode.calling_convention import CallingConvention
from ..bytecode.decoder import BranchOperands, Instruction
from ..bytecode.isa import MOVE_BIT, REF_BIT, REF_MASK, FieldKind

Variable: TypeAlias = tuple[str, int]


class Edge:
    """A branch from one block to another.

    Attributes:
        target: index of the block.
        operands: pairs of source and destination register, raw; they are copied one after another.
        values: the same copies of value slots as one parallel copy: source by destination.
        refs: the same for reference registers; ``None`` is null.
    """

    __slots__ = ("operands", "refs", "target", "values")

    def __init__(self, target: int, operands: BranchOperands) -> None:
        self.target = target
        self.operands = operands
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


class Operands:
    """What one instruction reads and writes.

    Attributes:
        reads: variables, in the order of the fields.
        writes: variables.
        moves: reference registers that are null afterwards.
    """

    __slots__ = ("moves", "reads", "writes")

    def __init__(self, reads: tuple[Variable, ...], writes: tuple[Variable, ...], moves: tuple[int, ...]) -> None:
        self.reads = reads
        self.writes = writes
        self.moves = moves


class Block:
    """Instructions between a marker and a terminator.

    Attributes:
        index: number of the block, in the order of the code.
        start, end: indices of its first instruction (the marker) and one past its terminator.
        edges: branches of the terminator.
        live_in, live_out: masks of registers.
    """

    __slots__ = ("edges", "end", "index", "live_in", "live_out", "start")

    def __init__(self, index: int, start: int, end: int) -> None:
        self.index = index
        self.start = start
        self.end = end
        self.edges: list[Edge] = []
        self.live_in = 0
        self.live_out = 0


def registers_of(instruction: Instruction, kind: FieldKind) -> tuple[int, ...]:
    """The registers, or the sizes, that an instruction's first field of a kind lists; none if it has no such field."""
    for field, value in zip(instruction.operation.fields, instruction.values, strict=True):
        if field.kind is kind:
            return cast("tuple[int, ...]", value)
    return ()


def argument_variables(signature: CallingConvention) -> tuple[Variable, ...]:
    """The variables that a function's arguments arrive in: each bank is filled from 0, wide values at even slots."""
    variables: list[Variable] = []
    slot = reference = 0
    for element in signature.arguments:
        assert isinstance(element, str)
        if element == "r":
            variables.append(("r", reference))
            reference += 1
        elif element in "IF":
            slot += slot & 1
            variables.append((element, slot))
            slot += 2
        else:
            variables.append((element, slot))
            slot += 1
    return tuple(variables)
