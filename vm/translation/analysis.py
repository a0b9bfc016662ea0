"""Analysis of one function: blocks, operands, liveness, and the register type of each slot.

Sets of registers are bit masks: slot ``n`` of the value bank is bit ``n``, reference register ``n`` is bit ``ref_shift
+ n``. One slot may hold variables of different types at different places. A function that reads a slot as another type
than was written has no variables (``register_types`` is ``None``) and is translated to work on the slots' bits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Final, cast

from ..bytecode.calling_convention import CallingConvention
from ..bytecode.decoder import BranchOperands, Instruction
from ..bytecode.isa import CALLS, IMPORT_BIT, MOVE_BIT, REF_BIT, REF_MASK, Access, FieldKind, Move
from ..bytecode.verifier import VerifiedFunction
from .basic_block import Block, Edge, Operands, Variable, argument_variables, registers_of
from .register_types import edge_is_whole, edge_types, merge_types, read_type, write_type

_TYPE_OF_BANK: Final = {"i32": "i", "i64": "I", "f32": "f", "f64": "F", "ref": "r"}


class FunctionAnalysis:
    """Analyses one verified function.

    Attributes:
        function: the function.
        instructions: its instructions.
        operands: one an instruction.
        blocks: its basic blocks, in the order of the code.
        arguments: the variables that its arguments arrive in.
        written: for each block a mask of the registers that it and its edges write.
        register_types: for each block the types of the slots at its start (missing: never written, so zero), or
            ``None`` if some slot is read as another type than it was written.
    """

    def __init__(self, function: VerifiedFunction, conventions: Mapping[int, CallingConvention]) -> None:
        """Analyses a function.

        Args:
            function: the function.
            conventions: calling convention of each function ordinal that it calls, imports with their bit.
        """
        self.function = function
        self.instructions: tuple[Instruction, ...] = function.instructions
        self.ref_shift = function.i32_count + 2
        self._conventions = conventions
        self.operands = [self._operands_of(instruction) for instruction in self.instructions]
        self.block_at: dict[int, int] = {}
        self.blocks = self._find_blocks()
        self.arguments = argument_variables(function.signature)
        self._compute_liveness()
        self._live_block: Block | None = None
        self._live_table: list[int] = []
        self.register_types = self._compute_types()
        self._starts = [block.start for block in self.blocks]
        self._types_at: tuple[int, dict[int, str]] = (-1, {})

    # -- instructions --------------------------------------------------------------------------------

    def callee(self, instruction: Instruction) -> CallingConvention:
        """The calling convention of the function that a call instruction calls."""
        ordinal = instruction.values[0]
        assert isinstance(ordinal, int)
        return self._conventions[ordinal]

    def _operands_of(self, instruction: Instruction) -> Operands:
        operation = instruction.operation
        if operation.mnemonic in CALLS:
            return self._call_operands(instruction)
        reads: list[Variable] = []
        writes: list[Variable] = []
        moves: list[int] = []
        for field, value in zip(operation.fields, instruction.values, strict=True):
            if field.kind is FieldKind.REGISTER:
                assert isinstance(value, int) and field.bank is not None
                kind = _TYPE_OF_BANK[field.bank]
                variable = (kind, value & REF_MASK if kind == "r" else value)
                if field.access is Access.WRITE:
                    writes.append(variable)
                else:
                    reads.append(variable)
                    if kind == "r" and value & MOVE_BIT and field.move is Move.ALLOW:
                        moves.append(variable[1])
            elif field.kind is FieldKind.OPERANDS:
                self._list_operands(operation.mnemonic, field.bank, value, reads, moves)
        return Operands(tuple(reads), tuple(writes), tuple(moves))

    def _list_operands(
        self, mnemonic: str, bank: str | None, value: object, reads: list[Variable], moves: list[int]
    ) -> None:
        assert isinstance(value, tuple)
        results = self.function.signature.results if mnemonic == "return" else None
        for position, register in enumerate(value):
            if register & REF_BIT:
                reads.append(("r", register & REF_MASK))
                # A list that discards releases its registers whatever their MOVE bits say.
                if register & MOVE_BIT or mnemonic in ("discard.refs", "trace", "print"):
                    moves.append(register & REF_MASK)
            elif results is not None:
                reads.append((results[position], register))
            else:
                reads.append((_TYPE_OF_BANK[bank] if bank else "i", register))

    def _call_operands(self, instruction: Instruction) -> Operands:
        convention = self.callee(instruction)
        registers = iter(registers_of(instruction, FieldKind.OPERANDS))
        sizes = registers_of(instruction, FieldKind.SEGMENT_SIZES)
        kinds: list[str] = []
        for position, element in enumerate(convention.arguments):
            kinds += element if isinstance(element, str) else element.elements * sizes[position]
        reads: list[Variable] = []
        moves: list[int] = []
        for kind, register in zip(kinds, registers, strict=True):
            reads.append((kind, register & REF_MASK if kind == "r" else register))
            if kind == "r" and register & MOVE_BIT:
                moves.append(register & REF_MASK)
        writes = tuple(
            (kind, register & REF_MASK if kind == "r" else register)
            for kind, register in zip(convention.results, registers_of(instruction, FieldKind.RESULTS), strict=True)
        )
        return Operands(tuple(reads), writes, tuple(moves))

    # -- masks ---------------------------------------------------------------------------------------

    def mask(self, variables: Iterable[Variable]) -> int:
        """The registers that variables take, as a bit mask."""
        mask = 0
        for kind, number in variables:
            if kind == "r":
                mask |= 1 << (self.ref_shift + number)
            elif kind in "IF":
                mask |= 3 << number
            else:
                mask |= 1 << number
        return mask

    def ref_bit(self, number: int) -> int:
        """The bit of a reference register."""
        return 1 << (self.ref_shift + number)

    # -- blocks --------------------------------------------------------------------------------------

    def _find_blocks(self) -> list[Block]:
        blocks: list[Block] = []
        start = 0
        for index, instruction in enumerate(self.instructions):
            if instruction.operation.mnemonic == "block":
                self.block_at[instruction.pc] = len(blocks)
                start = index
            if instruction.operation.is_terminator:
                blocks.append(Block(len(blocks), start, index + 1))
        for block in blocks:
            terminator = self.instructions[block.end - 1]
            target: int | None = None
            for field, value in zip(terminator.operation.fields, terminator.values, strict=True):
                if field.kind is FieldKind.BRANCH_TARGET:
                    if target is not None:
                        block.edges.append(Edge(target, ()))
                    assert isinstance(value, int)
                    target = self.block_at[value]
                elif field.kind is FieldKind.BRANCH_OPERANDS:
                    assert target is not None and isinstance(value, tuple)
                    block.edges.append(Edge(target, cast("BranchOperands", value)))
                    target = None
                elif field.kind is FieldKind.BRANCH_TABLE:
                    for case_target, operands in cast("tuple[tuple[int, BranchOperands], ...]", value):
                        block.edges.append(Edge(self.block_at[case_target], operands))
            if target is not None:
                block.edges.append(Edge(target, ()))
            if terminator.operation.mnemonic == "fail" and block.index + 1 < len(blocks):
                block.edges.append(Edge(block.index + 1, ()))
        return blocks

    # -- liveness ------------------------------------------------------------------------------------

    def _compute_liveness(self) -> None:
        self._read_masks = [self.mask(operands.reads) for operands in self.operands]
        self._write_masks = [
            self.mask(operands.writes) | self.mask(("r", number) for number in operands.moves)
            for operands in self.operands
        ]
        self.written: list[int] = []
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
        """Registers live after each instruction of the block."""
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
        """The block that an instruction is in."""
        return self.blocks[bisect_right(self._starts, index) - 1]

    def types_before(self, block: Block, index: int) -> dict[int, str]:
        """The types of the slots before an instruction of a block; the caller may change the dict."""
        assert self.register_types is not None
        at, state = block.start, dict(self.register_types[block.index])
        # Variants are asked for in the order of the code.
        if block.start <= self._types_at[0] <= index:
            at, state = self._types_at
        for earlier in range(at, index):
            for variable in self.operands[earlier].writes:
                write_type(state, variable)
        self._types_at = (index, state)
        return dict(state)


def is_import(ordinal: int) -> bool:
    """Whether a function ordinal names an import."""
    return bool(ordinal & IMPORT_BIT)
