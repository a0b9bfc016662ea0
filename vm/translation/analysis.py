"""Analysis of one function: blocks, operands, liveness, and the register type of each slot.

Sets of registers are bit masks: slot ``n`` of the value bank is bit ``n``, reference register ``n`` is bit ``ref_shift
+ n``. One slot may hold variables of different types at different places. A function that reads a slot as another type
than was written has no variables (``register_types`` is ``None``) and is translated to work on the slots' bits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from typing import cast

from ..bytecode.calling_convention import CallingConvention
from ..bytecode.decoder import BranchOperands, Instruction
from ..bytecode.isa import CALLS, IMPORT_BIT, LETTERS, MOVE_BIT, REF_BIT, REF_MASK, FieldKind, Move, Operation
from ..bytecode.verifier import VerifiedFunction
from ..types.numerics import bitcast_f64_i64
from .basic_block import (
    Block,
    Edge,
    Operands,
    Variable,
    edge_is_whole,
    edge_types,
    merge_types,
    read_type,
    registers_of,
    variable_of,
    write_type,
)
from .expressions import ZERO, Expression, Literal, Name, Unary, call
from .module_analysis import ModuleAnalysis


class FunctionAnalysis:
    """Analyses one verified function, of which ``non_suspending`` are the imports that never return a ``Wait``."""

    def __init__(
        self, function: VerifiedFunction, module: ModuleAnalysis, non_suspending: frozenset[int] = frozenset()
    ) -> None:
        self.function = function
        self.module = module
        self.non_suspending = non_suspending
        self.instructions: tuple[Instruction, ...] = function.instructions
        self.ref_shift: int = function.i32_count + 2
        self.operands: list[Operands] = [self._operands_of(instruction) for instruction in self.instructions]
        self.blocks: list[Block] = self._find_blocks()
        self._starts = [block.start for block in self.blocks]
        # The variables that the arguments arrive in.
        letters = map(str, function.signature.arguments)
        self.arguments: list[Variable] = list(map(variable_of, letters, function.argument_registers))
        self.written: list[int] = []  # for each block a mask of the registers that it and its edges write
        self._compute_liveness()
        self._live_block: Block | None = None
        self._live_table: list[int] = []
        # For each block the types of the slots at its start (missing: never written, so zero).
        self.register_types: list[dict[int, str]] | None = self._compute_types()
        self._types_at: tuple[int, dict[int, str]] = (-1, {})
        self.constants: dict[Variable, Expression] = {} if self.register_types is None else self._single_constants()

    # -- instructions --------------------------------------------------------------------------------

    def callee(self, instruction: Instruction) -> CallingConvention:
        """Returns the calling convention of the function that a call instruction calls."""
        return self.module.conventions[cast(int, instruction.values[0])]

    def suspends(self, instruction: Instruction) -> bool:
        """Whether an instruction always returns to the interpreter: a call of a bytecode function that is no leaf."""
        if instruction.operation.mnemonic not in CALLS:
            return False
        ordinal = cast(int, instruction.values[0])
        return not ordinal & IMPORT_BIT and ordinal not in self.module.leaves

    def _operands_of(self, instruction: Instruction) -> Operands:
        operation = instruction.operation
        if operation.mnemonic in CALLS:
            return self._call_operands(instruction)
        reads: list[Variable] = []
        writes: list[Variable] = []
        moves: list[int] = []
        for index, kind, is_list, is_write, moved in _register_fields(operation):
            value = instruction.values[index]
            if is_list:
                self._list_operands(operation.mnemonic, kind, value, reads, moves)
                continue
            register = cast(int, value)
            variable = (kind, register & REF_MASK if kind == "r" else register)
            if is_write:
                writes.append(variable)
            else:
                reads.append(variable)
                if register & moved:
                    moves.append(variable[1])
        return Operands(tuple(reads), tuple(writes), tuple(moves))

    def _list_operands(self, mnemonic: str, kind: str, value: object, reads: list[Variable], moves: list[int]) -> None:
        assert isinstance(value, tuple)
        results = self.function.signature.results if mnemonic == "return" else None
        for position, register in enumerate(value):
            if register & REF_BIT:
                reads.append(("r", register & REF_MASK))
                # A discarding list releases its registers regardless of their MOVE bits.
                if register & MOVE_BIT or mnemonic in ("discard.refs", "trace", "print"):
                    moves.append(register & REF_MASK)
            else:
                reads.append((kind if results is None else results[position], register))

    def _call_operands(self, instruction: Instruction) -> Operands:
        convention = self.callee(instruction)
        registers = registers_of(instruction, FieldKind.OPERANDS)
        sizes = registers_of(instruction, FieldKind.SEGMENT_SIZES)
        kinds: list[str] = []
        for position, element in enumerate(convention.arguments):
            kinds += element if isinstance(element, str) else element.elements * sizes[position]
        return Operands(
            tuple(map(variable_of, kinds, registers)),
            tuple(map(variable_of, convention.results, registers_of(instruction, FieldKind.RESULTS))),
            tuple(one & REF_MASK for one in registers if one & REF_BIT and one & MOVE_BIT),
        )

    # -- masks ---------------------------------------------------------------------------------------

    def mask(self, variables: Iterable[Variable]) -> int:
        """Returns the registers of variables, as a bit mask."""
        mask = 0
        for kind, number in variables:
            if kind == "r":
                mask |= 1 << (self.ref_shift + number)
            elif kind in "IF":
                mask |= 3 << number
            else:
                mask |= 1 << number
        return mask

    def _refs_mask(self, numbers: Iterable[int]) -> int:
        return self.mask(("r", number) for number in numbers)

    def ref_bit(self, number: int) -> int:
        """Returns the bit of a reference register."""
        return 1 << (self.ref_shift + number)

    # -- blocks --------------------------------------------------------------------------------------

    def _find_blocks(self) -> list[Block]:
        blocks: list[Block] = []
        block_at: dict[int, int] = {}
        start = 0
        for index, instruction in enumerate(self.instructions):
            if instruction.operation.mnemonic == "block":
                block_at[instruction.pc] = len(blocks)
                start = index
            if instruction.operation.is_terminator:
                blocks.append(Block(len(blocks), start, index + 1))
        for block in blocks:
            terminator = self.instructions[block.end - 1]
            targets: list[int] = []
            operands: list[BranchOperands] = []
            for field, value in zip(terminator.operation.fields, terminator.values, strict=True):
                if field.kind is FieldKind.BRANCH_TARGET:
                    targets.append(cast(int, value))
                elif field.kind is FieldKind.BRANCH_OPERANDS:
                    operands.append(cast("BranchOperands", value))
                elif field.kind is FieldKind.BRANCH_TABLE:
                    for target, copies in cast("tuple[tuple[int, BranchOperands], ...]", value):
                        targets.append(target)
                        operands.append(copies)
            if not operands:  # of a yieldable call
                operands = [()] * len(targets)
            block.edges = [Edge(block_at[target], copies) for target, copies in zip(targets, operands, strict=True)]
            if terminator.operation.mnemonic == "fail" and block.index + 1 < len(blocks):
                block.edges.append(Edge(block.index + 1))
        return blocks

    # -- liveness ------------------------------------------------------------------------------------

    def _compute_liveness(self) -> None:
        self._read_masks = [self.mask(operands.reads) for operands in self.operands]
        self._write_masks = [
            self.mask(operands.writes) | (self._refs_mask(operands.moves) if operands.moves else 0)
            for operands in self.operands
        ]
        block_reads: list[int] = []
        block_writes: list[int] = []
        for block in self.blocks:
            reads = writes = 0
            for index in range(block.start, block.end):
                reads |= self._read_masks[index] & ~writes
                writes |= self._write_masks[index]
            block_reads.append(reads)
            block_writes.append(writes)
            for edge in block.edges:
                for slot in edge.values:
                    writes |= 1 << slot
            self.written.append(writes)
        predecessors: list[list[int]] = [[] for _ in self.blocks]
        for block in self.blocks:
            for edge in block.edges:
                predecessors[edge.target].append(block.index)
        pending = list(range(len(self.blocks)))
        queued = [True] * len(self.blocks)
        while pending:
            index = pending.pop()
            queued[index] = False
            block = self.blocks[index]
            live = 0
            for edge in block.edges:
                live |= self._before_edge(edge, self.blocks[edge.target].live_in)
            block.live_out = live
            before = block_reads[index] | (live & ~block_writes[index])
            if before != block.live_in:
                block.live_in = before
                for other in predecessors[index]:
                    if not queued[other]:
                        queued[other] = True
                        pending.append(other)

    def _before_edge(self, edge: Edge, live: int) -> int:
        if not edge.operands:
            return live
        needed = written = 0
        for target, source in edge.values.items():
            written |= 1 << target
            if live >> target & 1:
                needed |= 1 << source
        for target, origin in edge.refs.items():
            bit = self.ref_bit(target)
            written |= bit
            if origin is not None and live & bit:
                needed |= self.ref_bit(origin)
        return (live & ~written) | needed

    def live_after(self, block: Block) -> list[int]:
        """Returns the registers live after each instruction of the block."""
        if self._live_block is not block:
            live = block.live_out
            table = [0] * (block.end - block.start)
            for index in range(block.end - 1, block.start - 1, -1):
                table[index - block.start] = live
                live = (live & ~self._write_masks[index]) | self._read_masks[index]
            self._live_block, self._live_table = block, table
        return self._live_table

    # -- register types ------------------------------------------------------------------------------

    def _compute_types(self) -> list[dict[int, str]] | None:
        entries: list[dict[int, str] | None] = [None] * len(self.blocks)
        first: dict[int, str] = {}
        for variable in self.arguments:
            write_type(first, variable)
        entries[0] = first
        pending = [0]
        while pending:
            index = pending.pop()
            block = self.blocks[index]
            entry = entries[index]
            assert entry is not None
            state = dict(entry)
            for at in range(block.start, block.end):
                operands = self.operands[at]
                for variable in operands.reads:
                    if not read_type(state, variable):
                        return None
                for variable in operands.writes:
                    write_type(state, variable)
            for edge in block.edges:
                live = self.blocks[edge.target].live_in
                if not edge_is_whole(state, edge, live):
                    return None
                after = edge_types(state, edge) if edge.values else state
                known = entries[edge.target]
                if known is None:
                    # Only live slots: in a large function they are a small part of all slots ever written.
                    entries[edge.target] = {slot: kind for slot, kind in after.items() if live >> slot & 1}
                    pending.append(edge.target)
                elif merge_types(known, after, live):
                    pending.append(edge.target)
        return [entry if entry is not None else {} for entry in entries]

    def block_of(self, index: int) -> Block:
        """Returns the block of an instruction."""
        return self.blocks[bisect_right(self._starts, index) - 1]

    def types_before(self, block: Block, index: int) -> dict[int, str]:
        """Returns the types of the slots before an instruction of a block; the caller may change the dict."""
        assert self.register_types is not None
        at, state = block.start, dict(self.register_types[block.index])
        # Variants are requested in the order of the code.
        if block.start <= self._types_at[0] <= index:
            at, state = self._types_at
        for earlier in range(at, index):
            for variable in self.operands[earlier].writes:
                write_type(state, variable)
        if index < block.end:  # where the next block starts, other types hold
            self._types_at = (index, state)
        return dict(state)

    # -- constants -----------------------------------------------------------------------------------

    def _single_constants(self) -> dict[Variable, Expression]:
        """Returns constants of the entry block whose slots are written nowhere else."""
        masks = [*self._write_masks, self.mask(self.arguments)]
        for block in self.blocks:
            for edge in block.edges:
                masks += [1 << slot for slot in edge.values]
        once = again = 0
        for mask in masks:
            again |= once & mask
            once |= mask
        entry = self.blocks[0]
        found: dict[Variable, Expression] = {}
        for index in range(entry.start, entry.end):
            mnemonic = self.instructions[index].operation.mnemonic
            is_constant = mnemonic.startswith("const.") and "ref" not in mnemonic
            if is_constant and not self._write_masks[index] & (again | entry.live_in):
                found[self.operands[index].writes[0]] = constant_of(self.instructions[index])
        return found


@cache
def _register_fields(operation: Operation) -> tuple[tuple[int, str, bool, bool, int], ...]:
    """Returns for each register field: index, type, whether it is a list, whether it is written, the
    bit that moves it.
    """
    fields = []
    for index, field in enumerate(operation.fields):
        if field.kind in (FieldKind.REGISTER, FieldKind.OPERANDS):
            kind = LETTERS[field.bank or "i32"]
            moved = MOVE_BIT if kind == "r" and field.move is Move.ALLOW else 0
            fields.append((index, kind, field.kind is FieldKind.OPERANDS, field.is_written, moved))
    return tuple(fields)


def constant_of(instruction: Instruction) -> Expression:
    """Returns the value of a constant operation."""
    mnemonic = instruction.operation.mnemonic
    if mnemonic.endswith(".zero"):
        return Literal(0.0) if ".f" in mnemonic else ZERO
    value = cast("int | float", instruction.values[0])
    if math.isnan(value):
        return call("bitcast_i64_f64", Literal(bitcast_f64_i64(value)))
    if math.isinf(value):
        return Name("inf") if value > 0 else Unary("-", Name("inf"))
    return Literal(value)
