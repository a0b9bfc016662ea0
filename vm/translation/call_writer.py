"""Writes calls and suspensions, which store the pc, the entry to continue at and the live registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ..bytecode.calling_convention import CallingConvention, Repeated
from ..bytecode.decoder import Instruction
from ..bytecode.isa import IMPORT_BIT, MOVE_BIT, FieldKind
from .analysis import FunctionAnalysis
from .basic_block import Block, Edge, Variable, registers_of
from .expressions import NONE, Call, Display, Expression, Name, renamed
from .operation_writer import OperationWriter
from .values import PendingValue


class CallWriter(OperationWriter):
    """Writes calls and suspensions."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        super().__init__(analysis)
        # For each entry that this source suspends to, the names whose values are in the frame's registers.
        self.spilled: dict[int, tuple[str, ...]] = {}

    def _arguments(self, index: int, instruction: Instruction, convention: CallingConvention) -> Iterator[Expression]:
        """Yields the arguments of a call; a repeated one is a tuple of rows."""
        values = iter(self.listed(index, instruction))
        sizes = registers_of(instruction, FieldKind.SEGMENT_SIZES)
        for position, element in enumerate(convention.arguments):
            if isinstance(element, Repeated):
                rows = [tuple(next(values) for _ in element.elements) for _ in range(sizes[position])]
                yield Display(tuple(row[0] if len(row) == 1 else Display(row) for row in rows))
            else:
                yield next(values)

    def listed(self, index: int, instruction: Instruction) -> list[Expression]:
        """Returns the values of a list of operands; a reference that is moved is null for later operands."""
        registers = registers_of(instruction, FieldKind.OPERANDS)
        gone: set[int] = set()
        values: list[Expression] = []
        for variable, register in zip(self.analysis.operands[index].reads, registers, strict=True):
            if variable[0] == "r" and variable[1] in gone:
                values.append(NONE)
                continue
            values.append(self.operand(variable))
            if variable[0] == "r" and register & MOVE_BIT:
                gone.add(variable[1])
        return values

    def call(self, block: Block, index: int) -> None:
        """Writes a call. Nothing may be written behind one that always suspends."""
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
            self.suspend(block, index, "CALL")
            return
        # References moved into a call are dropped before its results arrive.
        moves = [number for number in operands.moves if ("r", number) not in writes]
        if not ordinal & IMPORT_BIT:
            self.results(Call(self.bound(f"lf{ordinal}"), (NONE, Display(arguments))), writes)
        else:
            self._import(block, index, Call(self.bound(f"im{ordinal & ~IMPORT_BIT}"), arguments))
        self.null(moves)
        self.note_writes(writes)

    def _import(self, block: Block, index: int, call: Call) -> None:
        """Writes a call of an import, which suspends where that returns a ``Wait``."""
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
            self.suspend(block, index, name)
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
            # References stay only in locals that are registers.
            self.line(f"{' = '.join(spare)} = None")

    # -- suspending ----------------------------------------------------------------------------------

    def suspend(self, block: Block, index: int, answer: str, *, live: int | None = None) -> None:
        """Stores the state for the variant behind instruction ``index``, and returns to the interpreter."""
        entry = index + 1
        if live is None:
            live = self._live_behind(block, index)
        names, values = self.live_values(live)
        self.spilled[entry] = tuple(names)
        self.line(f"frame.pc = {self.pc}")
        self.line(f"frame.entry = {entry}")
        self.line(f"frame.registers = {Display(tuple(values)).python()}")
        self.line(f"return {answer}")

    def _live_behind(self, block: Block, index: int) -> int:
        """Returns the registers that a frame holds while it is suspended in an instruction.

        They are live behind it, except its results and references that it moved away.
        """
        operands = self.analysis.operands[index]
        gone = self.analysis.mask(operands.writes) | self.analysis.mask([("r", number) for number in operands.moves])
        return self.analysis.live_after(block)[index - block.start] & ~gone

    def live_values(self, live: int) -> tuple[list[str], list[Expression]]:
        """Returns the names of live registers, and their values."""
        names: list[str] = []
        values: list[Expression] = []
        shift = self.analysis.ref_shift
        while live:
            bit = live & -live
            live ^= bit
            register = bit.bit_length() - 1
            if register >= shift:
                name = f"r{register - shift}"
            elif self.raw:
                name = f"s{register}"
            else:
                kind = self.state.get(register)
                if kind is None or kind in "JG?":
                    continue  # zero, or the upper half of a pair
                if (kind, register) in self.constants:
                    continue
                name = f"{kind}{register}"
            names.append(name)
            constant = self.local_constants.get(name)
            values.append(constant or Name(name))
            if constant is None:
                self.read_names.add(name)
        return names, values


class CopyWriter(CallWriter):
    """Writes the copies of edges."""

    def copy(self, edge: Edge) -> None:
        """Writes the copies of an edge whose targets are live behind it."""
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
        """Writes a parallel copy: one assignment after another; cycles are broken with a temporary."""
        readers: dict[str, int] = {}  # how many others still read a name
        for target, value in moves.items():
            for name in value.reads:
                if name in moves and name != target:
                    readers[name] = readers.get(name, 0) + 1
        ready = [name for name in moves if not readers.get(name)]
        while moves:
            if not ready:
                # Each of these is read by another one.
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
