"""Writes the exits of a block: calls, suspensions, and the copies of edges.

A suspension stores the pc, the entry to continue at and the live registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ..bytecode.calling_convention import CallingConvention, Repeated
from ..bytecode.decoder import Instruction, registers_of
from ..bytecode.isa import IMPORT_BIT, FieldKind
from .basic_block import Edge, Variable
from .expressions import NONE, Call, Display, Expression, Name, renamed
from .operation_writer import OperationWriter
from .values import PendingValue


class CallWriter(OperationWriter):
    """Writes calls, suspensions and the copies of edges."""

    def _arguments(self, index: int, instruction: Instruction, convention: CallingConvention) -> Iterator[Expression]:
        """Yields the arguments of a call; a repeated argument is a tuple of rows."""
        values = iter(self.passed(index))
        for position, element in enumerate(convention.arguments):
            if isinstance(element, Repeated):
                count = registers_of(instruction, FieldKind.SEGMENT_SIZES)[position]
                rows = [tuple(next(values) for _ in element.elements) for _ in range(count)]
                yield Display(tuple(row[0] if len(row) == 1 else Display(row) for row in rows))
            else:
                yield next(values)

    def passed(self, index: int) -> list[Expression]:
        """Returns the values of a call's or a return's operands."""
        passed = self.analysis.operands[index].passed
        return [NONE if variable is None else self.operand(variable) for variable in passed]

    def call(self, index: int) -> None:
        """Writes a call. Nothing may be written after a call that always suspends."""
        instruction = self.analysis.instructions[index]
        self.pc: int = instruction.pc
        ordinal = cast(int, instruction.values[0])
        operands = self.analysis.operands[index]
        arguments = tuple(self._arguments(index, instruction, self.analysis.callee(instruction)))
        writes = operands.writes
        self.flush()
        if self.analysis.suspends(instruction):
            self.line(f"frame.callee = {self.bound(f'fn{ordinal}').python()}")
            self.line(f"frame.arguments = {Display(arguments).python()}")
            self.suspend(index, "CALL")
            return
        # References moved into a call are dropped before its results arrive.
        moves = [number for number in operands.moves if ("r", number) not in writes]
        if not ordinal & IMPORT_BIT:
            self.results(Call(self.bound(f"lf{ordinal}"), (NONE, Display(arguments))), writes)
        else:
            self._import(index, Call(self.bound(f"im{ordinal & ~IMPORT_BIT}"), arguments))
        self.null(moves)

    def _import(self, index: int, call: Call) -> None:
        """Writes a call of an import, which suspends if the import returns a ``Wait``."""
        instruction = self.analysis.instructions[index]
        writes = self.analysis.operands[index].writes
        if cast(int, instruction.values[0]) & ~IMPORT_BIT in self.analysis.non_suspending:
            self.results(call, writes)
            return
        is_direct = len(writes) == 1 and not (self.raw and writes[0][0] != "r")
        name = f"{writes[0][0]}{writes[0][1]}" if is_direct else "t"
        if is_direct:
            self.before_write(name)
        self.line(f"{name} = {call.python()}")
        with self.suite(f"if type({name}) is Wait:" if writes else f"if {name} is not None:"):
            self.suspend(index, name)
        if not is_direct:
            self.results(Name("t"), writes)

    def results(self, source: Expression, writes: tuple[Variable, ...]) -> None:
        """Assigns a call's results to variables."""
        if not writes:
            if not isinstance(source, Name):
                self.line(source.python())
            return
        spare = [source.name] if isinstance(source, Name) else []
        if self.raw:
            names = [f"t{position}" for position in range(len(writes))]
            spare = names + spare
            self.line(f"{', '.join(names)} = {source.python()}")
            for name, variable in zip(names, writes, strict=True):
                self.assign(variable, Name(name))
        else:
            names = [f"{kind}{number}" for kind, number in writes]
            for name in names:
                self.before_write(name)
            for position, name in enumerate(names):
                if name in names[position + 1 :]:  # a later result replaces it
                    names[position] = f"t{position}"
                    spare.insert(position, names[position])
            self.line(f"{', '.join(names)} = {source.python()}")
        if spare and any(kind == "r" for kind, _ in writes):
            # References are kept only in locals that are registers.
            self.line(f"{' = '.join(spare)} = None")

    # -- suspending ----------------------------------------------------------------------------------

    def suspend(self, index: int, answer: str) -> None:
        """Stores the state for the variant after instruction ``index``, and returns to the interpreter."""
        values = Display(tuple(self.held_values(index).values()))
        self.line(f"frame.pc = {self.pc}")
        self.line(f"frame.entry = {index + 1}")
        self.line(f"frame.registers = {values.python()}")
        self.line(f"return {answer}")

    def held_values(self, index: int) -> dict[str, Expression]:
        """Returns the values held in a frame that continues after an instruction, by register name."""
        names = self.analysis.names_at(index + 1)
        self.read_names.update(name for name in names if name not in self.local_constants)
        return {name: self.local_constants.get(name) or Name(name) for name in names}

    # -- edges ---------------------------------------------------------------------------------------

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge whose targets are live after it."""
        if not edge.operands:
            return
        live = self.analysis.blocks[edge.target].live_in
        moves: dict[str, PendingValue] = {}
        for number, origin in edge.refs.items():
            if origin is None or not live & self.analysis.ref_bit(number):
                moves[f"r{number}"] = PendingValue(NONE)
            else:
                moves[f"r{number}"] = self.read(("r", origin))
        for slot, source in edge.values.items():
            if not live >> slot & 1:
                continue
            if self.raw:
                self.read_names.add(f"s{source}")
                moves[f"s{slot}"] = PendingValue(Name(f"s{source}"), frozenset((f"s{source}",)))
                continue
            kind = self.state[source]
            if kind not in "JG":
                name = f"{kind}{source}"
                value = self.pending.get(name)
                if value is not None:
                    self._forget(name)
                else:
                    value = self.read((kind, source))
                moves[f"{kind}{slot}"] = value
        self._parallel(moves)

    def _parallel(self, moves: dict[str, PendingValue]) -> None:
        """Writes a parallel copy as single assignments; cycles are broken with a temporary."""
        readers: dict[str, int] = {}  # the number of moves that still read a name
        for target, value in moves.items():
            for name in value.reads:
                if name in moves and name != target:
                    readers[name] = readers.get(name, 0) + 1
        ready = [name for name in moves if not readers.get(name)]
        while moves:
            if not ready:
                # Each remaining name is read by another move.
                name = next(iter(moves))
                self.line(f"t = {name}")
                for value in moves.values():
                    if name in value.reads:
                        value.tree = renamed(value.tree, name, "t")
                        value.reads = (value.reads - {name}) | {"t"}
                ready.append(name)
                continue
            name = ready.pop()
            value = moves.pop(name)
            self.put(name, value)
            for read in value.reads:
                if read in moves and read != name:
                    readers[read] -= 1
                    if not readers[read]:
                        ready.append(read)
