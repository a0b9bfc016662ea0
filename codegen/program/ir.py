"""Programs: functions of blocks of instructions over typed variables.

A variable is a *web*: all definitions of a register that reach a common use, and their uses. So most variables have one
definition; variables of loops have several. Constants are operands without a definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...vm.bytecode.declaration import FunctionDeclaration


@dataclass(eq=False, slots=True)
class Variable:
    """A typed variable of a function.

    Attributes:
        kind: ``i`` (i32), ``I`` (i64), ``f`` (f32), ``F`` (f64) or ``r`` (a reference).
        type: the type of a reference, such as ``hal.buffer`` or ``vm.list<i32>``; ``None`` if no definition determines
            it.
        name: an identifier, unique within its function.
        definitions: the number of instructions, edge copies and arguments that define it.
        uses: the number of operands that read it.
    """

    kind: str
    type: str | None = None
    name: str = ""
    definitions: int = 0
    uses: int = 0

    def __repr__(self) -> str:
        return self.name or f"<{self.kind}>"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number; for kind ``r`` the null reference, with number 0."""

    kind: str
    number: int | float = 0


@dataclass(frozen=True, slots=True)
class Rodata:
    """A read-only ``!vm.buffer`` of constants: ``Program.rodata[ordinal]``."""

    ordinal: int


Value: TypeAlias = Variable | Constant | Rodata
Operand: TypeAlias = "Value | tuple[Value | tuple[Value, ...], ...]"
"""A value, or the rows of a repeated argument; a row is a value, or a tuple of values."""

NULL = Constant("r")


@dataclass(eq=False, slots=True)
class Instruction:
    """One operation.

    Attributes:
        operation: the mnemonic of the VM's operation, or ``call``, or ``assign``, which copies its operand. Terminators
            are ``br``, ``cond_br``, ``br_table``, ``return`` and ``fail``.
        callee: the called function: the name of an import, ``hal.fence.create``, or the ordinal of a function.
        operands: the registers, in the order of the operation's fields.
        results: the variables that it defines.
        ordinal: the ordinal of the operation's global; the byte offset of a primitive one.
        type: the type of the reference that the operation reads or creates, such as ``hal.buffer``, if specified.
        text: the message of ``fail``.
        location: the location in the program's source, such as ``model.mlir:3:7``.
    """

    operation: str
    operands: tuple[Operand, ...] = ()
    results: tuple[Variable, ...] = ()
    callee: str | int | None = None
    ordinal: int = 0
    type: str | None = None
    text: str = ""
    location: str | None = None

    def values(self) -> Iterator[Value]:
        """Yields all values among the operands, including those in rows."""
        for operand in self.operands:
            if isinstance(operand, tuple):
                for row in operand:
                    if isinstance(row, tuple):
                        yield from row
                    else:
                        yield row
            else:
                yield operand

    def substitute(self, replaced: Mapping[Variable, Value]) -> None:
        """Replaces variables by values."""

        def one(value: Value) -> Value:
            return replaced.get(value, value) if isinstance(value, Variable) else value

        self.operands = tuple(
            tuple(tuple(one(v) for v in row) if isinstance(row, tuple) else one(row) for row in operand)
            if isinstance(operand, tuple)
            else one(operand)
            for operand in self.operands
        )


@dataclass(eq=False, slots=True)
class Edge:
    """A branch to a block; ``copies`` are parallel: all are read before any is written."""

    target: int
    copies: list[tuple[Variable, Value]] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Block:
    """Instructions; the last one is the terminator.

    ``edges``: ``br`` has one; ``cond_br`` has one for true and one for false; ``br_table`` the default and then the
    cases from 0 on; ``return`` and ``fail`` have none.
    """

    instructions: list[Instruction]
    edges: list[Edge]

    @property
    def terminator(self) -> Instruction:
        return self.instructions[-1]


@dataclass(eq=False, slots=True)
class Function:
    """A function. It starts at block 0.

    Attributes:
        ordinal: the function's number in calls.
        name: the name of the first export, or a descriptive name; an identifier, unique in the program.
        exported: whether a user may call the function.
        declaration: the types of the source program, if the export has them.
        results: the kinds of its results.
        result_types: for each result, its type if it is a reference.
    """

    ordinal: int
    name: str
    exported: bool
    declaration: FunctionDeclaration | None
    arguments: list[Variable]
    results: tuple[str, ...]
    blocks: list[Block]
    result_types: list[str | None] = field(default_factory=list)

    def instructions(self) -> Iterator[Instruction]:
        """Yields all instructions, in the order of the blocks."""
        for block in self.blocks:
            yield from block.instructions

    def reached(self, skipped: Edge | None = None) -> set[int]:
        """Returns the blocks that are reachable from the start without using an edge."""
        reached, pending = {0}, [0]
        while pending:
            for edge in self.blocks[pending.pop()].edges:
                if edge is not skipped and edge.target not in reached:
                    reached.add(edge.target)
                    pending.append(edge.target)
        return reached


@dataclass(eq=False, slots=True)
class Program:
    """A module.

    Attributes:
        name: the module's name.
        functions: the reachable functions by ordinal, in the order of the module.
        exports: the functions by the name that users call; initializers are excluded.
        initializers: the ordinals of functions to call once, in order, before other functions.
        rodata: the constants.
        global_bytes: the total size in bytes of the primitive globals. They start as zero and have 4 or 8 bytes at
            their byte offset.
        global_types: the type of each reference global by ordinal; all start as null.
        formats: the formats of the program's executables, by the names in its device queries.
    """

    name: str
    functions: dict[int, Function]
    exports: dict[str, Function]
    initializers: list[int]
    rodata: tuple[memoryview, ...]
    global_bytes: int
    global_types: dict[int, str | None]
    formats: tuple[str, ...]

    def reached(self, ordinals: Iterable[int]) -> set[int]:
        """Returns functions and the functions that they call."""
        reached = set(ordinals)
        pending = list(reached)
        while pending:
            for instruction in self.functions[pending.pop()].instructions():
                if isinstance(instruction.callee, int) and instruction.callee not in reached:
                    reached.add(instruction.callee)
                    pending.append(instruction.callee)
        return reached

    def text(self, rodata: Rodata) -> str:
        """Returns the text in a constant."""
        return bytes(self.rodata[rodata.ordinal]).decode("utf-8", "replace")
