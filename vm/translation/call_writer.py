"""Writes calls and suspensions, which store the pc, the entry to continue at and the live registers."""

from __future__ import annotations

from typing import cast

from ..bytecode.calling_convention import CallingConvention, Repeated
from ..bytecode.decoder import Instruction
from ..bytecode.isa import IMPORT_BIT, MOVE_BIT, FieldKind
from .analysis import FunctionAnalysis
from .basic_block import Block, Variable, registers_of
from .operation_writer import OperationWriter, packed


class CallWriter(OperationWriter):
    """Writes calls and suspensions."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        super().__init__(analysis)
        # For each entry that this source suspends to, the names whose values are in the frame's registers.
        self.spilled: dict[int, tuple[str, ...]] = {}

    def _arguments(self, index: int, instruction: Instruction, convention: CallingConvention) -> list[str]:
        """The arguments of a call, each as Python text."""
        texts = iter(self.listed(index, instruction))
        sizes = registers_of(instruction, FieldKind.SEGMENT_SIZES)
        parts: list[str] = []
        for position, element in enumerate(convention.arguments):
            if isinstance(element, Repeated):
                rows = []
                for _ in range(sizes[position]):
                    row = [next(texts) for _ in element.elements]
                    rows.append(row[0] if len(row) == 1 else f"({', '.join(row)})")
                parts.append(packed(rows))
            else:
                parts.append(next(texts))
        return parts

    def listed(self, index: int, instruction: Instruction) -> list[str]:
        """The values of a list of operands; a reference that is moved is null for later operands."""
        registers = registers_of(instruction, FieldKind.OPERANDS)
        gone: set[int] = set()
        values: list[str] = []
        for variable, register in zip(self.analysis.operands[index].reads, registers, strict=True):
            if variable[0] == "r" and variable[1] in gone:
                values.append("None")
                continue
            values.append(self.value(variable))
            if variable[0] == "r" and register & MOVE_BIT:
                gone.add(variable[1])
        return values

    def call(self, block: Block, index: int) -> None:
        """Writes a call. Nothing may be written behind one that always suspends."""
        instruction = self.analysis.instructions[index]
        self.pc = instruction.pc
        ordinal = cast(int, instruction.values[0])
        operands = self.analysis.operands[index]
        arguments = self._arguments(index, instruction, self.analysis.callee(instruction))
        writes = operands.writes
        self.flush()
        if self.analysis.suspends(instruction):
            self.line(f"frame.callee = {self.bound(f'fn{ordinal}')}")
            self.line(f"frame.arguments = {packed(arguments)}")
            self.suspend(block, index, "CALL")
            return
        # References moved into a call are dropped before its results arrive.
        moves = [number for number in operands.moves if ("r", number) not in writes]
        if not ordinal & IMPORT_BIT:
            self.results(f"{self.bound(f'lf{ordinal}')}(None, {packed(arguments)})", writes)
            self.null(moves)
            self.note_writes(writes)
            return
        ordinal &= ~IMPORT_BIT
        call = f"{self.bound(f'im{ordinal}')}({', '.join(arguments)})"
        if ordinal in self.analysis.non_suspending:
            self.results(call, writes)
        elif not writes:
            self.line(f"t = {call}")
            with self.suite("if t is not None:"):
                self.suspend(block, index, "t")
        elif len(writes) == 1 and not (self.raw and writes[0][0] != "r"):
            name = f"{writes[0][0]}{writes[0][1]}"
            self.before_write(name)
            self.line(f"{name} = {call}")
            with self.suite(f"if type({name}) is Wait:"):
                self.suspend(block, index, name)
        else:
            self.line(f"t = {call}")
            with self.suite("if type(t) is Wait:"):
                self.suspend(block, index, "t")
            self.results("t", writes)
        self.null(moves)
        self.note_writes(writes)

    def results(self, text: str, writes: tuple[Variable, ...]) -> None:
        """Assigns a call's results to variables."""
        if not writes:
            if text not in ("t", "a"):
                self.line(text)
            return
        spare: list[str] = []
        if self.raw:
            spare = [f"t{position}" for position in range(len(writes))]
            self.line(f"{', '.join(spare)} = {text}")
            for name, variable in zip(spare, writes, strict=True):
                self.assign(variable, name)
        else:
            names = [f"{kind}{number}" for kind, number in writes]
            for name in names:
                self.before_write(name)
            for at, name in enumerate(names):
                if name in names[at + 1 :]:  # a later result replaces it
                    names[at] = f"t{at}"
                    spare.append(names[at])
            self.line(f"{', '.join(names)} = {text}")
        if any(kind == "r" for kind, _ in writes):
            # No reference stays in a local that is no register.
            held = [name for name in (*spare, text) if name in ("t", "a") or name in spare]
            if held:
                self.line(f"{' = '.join(held)} = None")

    # -- suspending ----------------------------------------------------------------------------------

    def suspend(self, block: Block, index: int, answer: str, *, live: int | None = None) -> None:
        """Stores the state for the variant behind instruction ``index``, and returns to the interpreter."""
        entry = index + 1
        if live is None:
            live = self._live_behind(block, index)
        names, texts = self.live_values(live)
        self.spilled[entry] = tuple(names)
        self.line(f"frame.pc = {self.pc}")
        self.line(f"frame.entry = {entry}")
        self.line(f"frame.registers = {packed(texts)}")
        self.line(f"return {answer}")

    def _live_behind(self, block: Block, index: int) -> int:
        """The registers that a frame holds while it is suspended in an instruction.

        They are live behind it, except its results and references that it moved away.
        """
        operands = self.analysis.operands[index]
        gone = self.analysis.mask(operands.writes) | self.analysis.mask([("r", number) for number in operands.moves])
        return self.analysis.live_after(block)[index - block.start] & ~gone

    def live_values(self, live: int) -> tuple[list[str], list[str]]:
        """The names of live registers, and the texts of their values."""
        names: list[str] = []
        texts: list[str] = []
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
            texts.append(name if constant is None else constant)
            if constant is None:
                self.read_names.add(name)
        return names, texts
