"""Analysis of one function: blocks, operands, liveness, and the register type of each slot.

Sets of registers are bit masks: slot ``n`` of the value bank is bit ``n``, reference register ``n`` is bit ``ref_shift
+ n``. A slot may hold variables of different types at different positions. A function that reads a slot as a type other
than was written has no variables (``register_types`` is ``None``) and is translated to work on the slots' bits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cache
from typing import cast

from ...base.lazy_dataclass import dataclass
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.decoder import BranchOperands, Instruction
from ..bytecode.isa import CALLS, IMPORT_BIT, LETTERS, MOVE_BIT, REF_BIT, REF_MASK, FieldKind, Move, Operation
from ..bytecode.verifier import VerifiedFunction
from .basic_block import (
    Block,
    Edge,
    Variable,
    edge_is_whole,
    edge_types,
    has_types,
    merge_types,
    write_types,
)
from .expressions import Expression, constant_of
from .module_analysis import ModuleAnalysis


@dataclass(slots=True)
class Operands:
    """The variables that an instruction reads and writes.

    ``passed`` are the operands of a call or a return: ``None`` for a reference that an earlier operand moved.
    """

    reads: tuple[Variable, ...]  # in the order of the fields
    writes: tuple[Variable, ...]
    moves: tuple[int, ...]  # reference registers that are null afterwards
    passed: tuple[Variable | None, ...] = ()


class FunctionAnalysis:
    """Analyses a verified function; ``non_suspending`` are the imports that never return a ``Wait``."""

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
        # The variables of the arguments.
        letters = map(str, function.signature.arguments)
        self.arguments: list[Variable] = list(map(variable_of, letters, function.argument_registers))
        self.written: list[int] = []  # for each block a mask of the registers written by it and its edges
        self._compute_liveness()
        self._live_block: Block | None = None
        self._live_table: list[int] = []
        # For each block the types of the slots at its start (missing means never written, so zero).
        self.register_types: list[dict[int, str]] | None = self._compute_types()
        self._types_at: tuple[int, Mapping[int, str]] = (-1, {})
        self.constants: dict[Variable, Expression] = {} if self.register_types is None else self._single_constants()

    # -- instructions --------------------------------------------------------------------------------

    def callee(self, instruction: Instruction) -> CallingConvention:
        """Returns the calling convention of the callee of a call instruction."""
        return self.module.conventions[cast(int, instruction.values[0])]

    def suspends(self, instruction: Instruction) -> bool:
        """Whether an instruction always returns to the interpreter: a call of a bytecode function other than a leaf."""
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
        is_return = operation.mnemonic == "return"
        passed = passed_operands(reads, cast("tuple[int, ...]", instruction.values[0])) if is_return else ()
        return Operands(tuple(reads), tuple(writes), tuple(moves), passed)

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
        fields = zip(instruction.operation.fields, instruction.values, strict=True)
        lists = {field.kind: value for field, value in fields if isinstance(value, tuple)}
        registers = cast("tuple[int, ...]", lists[FieldKind.OPERANDS])
        sizes = cast("tuple[int, ...]", lists.get(FieldKind.SEGMENT_SIZES, ()))
        kinds: list[str] = []
        for position, element in enumerate(convention.arguments):
            kinds += element if isinstance(element, str) else element.elements * sizes[position]
        reads = tuple(map(variable_of, kinds, registers))
        return Operands(
            reads,
            tuple(map(variable_of, convention.results, cast("tuple[int, ...]", lists[FieldKind.RESULTS]))),
            tuple(register & REF_MASK for register in registers if register & REF_BIT and register & MOVE_BIT),
            passed_operands(reads, registers),
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
            if not operands:  # the block of a yieldable call
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

    def live_in_frame(self, index: int) -> int:
        """Returns the registers held in a frame that continues after an instruction.

        These are the live registers except the results that the call will write and the references that it moved.
        """
        block = self.block_of(index)
        live = self.live_after(block)[index - block.start]
        return live & ~self._write_masks[index] if self.instructions[index].operation.mnemonic in CALLS else live

    # -- register types ------------------------------------------------------------------------------

    def _compute_types(self) -> list[dict[int, str]] | None:
        entries: list[dict[int, str] | None] = [None] * len(self.blocks)
        first: dict[int, str] = {}
        write_types(first, self.arguments)
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
                if not has_types(state, operands.reads):
                    return None
                write_types(state, operands.writes)
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

    def types_before(self, block: Block, index: int) -> Mapping[int, str]:
        """Returns the types of the slots before an instruction of a block, or after its last instruction."""
        assert self.register_types is not None
        at, known = self._types_at  # variants are requested in the order of the code
        if not block.start <= at <= index:
            at, known = block.start, self.register_types[block.index]
        state = dict(known)
        for earlier in range(at, index):
            write_types(state, self.operands[earlier].writes)
        if index < block.end:  # the types at the start of the next block are different
            self._types_at = (index, state)
        return state

    def names_at(self, entry: int) -> tuple[str, ...]:
        """Returns the registers in a frame that continues at an entry, in the order of ``Frame.registers``."""
        live = self.live_in_frame(entry - 1)
        types: Mapping[int, str] | None = None
        if self.register_types is not None:
            is_call = self.instructions[entry - 1].operation.mnemonic in CALLS
            types = self.types_before(self.block_of(entry - 1), entry - 1 if is_call else entry)
        names: list[str] = []
        while live:
            register = (live & -live).bit_length() - 1
            live ^= 1 << register
            if register >= self.ref_shift:
                names.append(f"r{register - self.ref_shift}")
            elif types is None:
                names.append(f"s{register}")
            else:
                kind = types.get(register, "?")  # zero, or the upper half of a pair, if the type is in "JG?"
                if kind not in "JG?" and (kind, register) not in self.constants:
                    names.append(f"{kind}{register}")
        return tuple(names)

    # -- constants -----------------------------------------------------------------------------------

    def _single_constants(self) -> dict[Variable, Expression]:
        """Returns the constants of the entry block whose slots are not written elsewhere."""
        masks = [*self._write_masks, self.mask(self.arguments)]
        for block in self.blocks:
            for edge in block.edges:
                masks += [1 << slot for slot in edge.values]
        once = again = 0
        for mask in masks:
            again |= once & mask
            once |= mask
        entry = self.blocks[0]
        constants: dict[Variable, Expression] = {}
        for index in range(entry.start, entry.end):
            mnemonic = self.instructions[index].operation.mnemonic
            is_constant = mnemonic.startswith("const.") and "ref" not in mnemonic
            if is_constant and not self._write_masks[index] & (again | entry.live_in):
                constants[self.operands[index].writes[0]] = constant_of(self.instructions[index])
        return constants


@cache
def _register_fields(operation: Operation) -> tuple[tuple[int, str, bool, bool, int], ...]:
    """Returns for each register field: index, type, whether it is a list, whether it is written, and its MOVE bit."""
    fields = []
    for index, field in enumerate(operation.fields):
        if field.kind in (FieldKind.REGISTER, FieldKind.OPERANDS):
            kind = LETTERS[field.bank or "i32"]
            moved = MOVE_BIT if kind == "r" and field.move is Move.ALLOW else 0
            fields.append((index, kind, field.kind is FieldKind.OPERANDS, field.is_written, moved))
    return tuple(fields)


def variable_of(kind: str, register: int) -> Variable:
    """Returns the variable of a register operand with a type."""
    return kind, register & REF_MASK if kind == "r" else register


def passed_operands(reads: Iterable[Variable], registers: Iterable[int]) -> tuple[Variable | None, ...]:
    """Returns a list of operands, with ``None`` for a reference that an earlier operand moved."""
    moved: set[Variable] = set()
    passed: list[Variable | None] = []
    for variable, register in zip(reads, registers, strict=True):
        passed.append(None if variable in moved else variable)
        if variable[0] == "r" and register & MOVE_BIT:
            moved.add(variable)
    return tuple(passed)
