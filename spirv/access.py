"""Which module-scope variables an entry point uses, and whether it can read or write through them.

Two passes over the call graph that an entry point reaches, neither recursive. The first collects the ids of
module-scope variables among instruction operands: the "static use" of the Vulkan specification (chapter "Shaders",
section "Static Use"). The second spreads two bits, read and write, from the instructions that access memory back along
the pointers they got there by: access chains, copies, selections, phis, function arguments and results. An instruction
of unknown effect counts as reading and writing every id that it takes, so an unknown one only adds access.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

from ..status import InvalidArgumentError, ResourceExhaustedError
from .grammar import LAYOUTS, Op, opcodes_of
from .module import Function, Module

# The work is entry points times the instructions each reaches; real modules stay far below.
_MAX_WORK: Final = 1 << 22


class Access(enum.IntFlag):
    """What can be done through a pointer."""

    NONE = 0
    READ = 1
    WRITE = 2


_NONE, _READ, _WRITE, _BOTH = 0, 1, 2, 3


@dataclasses.dataclass(frozen=True, slots=True)
class EntryAccess:
    """What the call graph of one entry point does.

    Attributes:
        variables: ids of the module-scope variables that it statically uses, ascending.
        access: by id of variable, what it can do with each.
    """

    variables: tuple[int, ...]
    access: dict[int, Access]


@dataclasses.dataclass(slots=True)
class _Summary:
    """One function: variables used, functions called, pointers (derived, base), access bits by id, and its cost."""

    variables: set[int] = dataclasses.field(default_factory=set)
    callees: set[int] = dataclasses.field(default_factory=set)
    edges: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    seeds: dict[int, int] = dataclasses.field(default_factory=dict)
    work: int = 0


# Opcode -> index of the base: instructions whose result (word 2) is the same memory or image as an operand.
_DERIVES: Final[dict[int, int]] = {
    Op.ImageTexelPointer: 3,
    Op.AccessChain: 3,
    Op.InBoundsAccessChain: 3,
    Op.PtrAccessChain: 3,
    Op.InBoundsPtrAccessChain: 3,
    Op.CopyObject: 3,
    Op.Image: 3,
    Op.CopyLogical: 3,
    Op.UntypedAccessChainKHR: 4,
    Op.UntypedInBoundsAccessChainKHR: 4,
    Op.UntypedPtrAccessChainKHR: 4,
    Op.UntypedInBoundsPtrAccessChainKHR: 4,
    Op.RawAccessChainNV: 3,
}


def _image_access(opcode: int) -> dict[int, int]:
    return {3: _NONE if LAYOUTS[opcode].name.startswith("ImageQuery") else _READ}


# Opcode -> {index of pointer or image: bits}; every other operand of these is a value or a literal.
_ACCESSES: Final[dict[int, dict[int, int]]] = {
    **{
        opcode: _image_access(opcode)
        for opcode in (
            *range(Op.ImageSampleImplicitLod, Op.ImageRead + 1),
            *range(Op.ImageQueryFormat, Op.ImageQuerySamples + 1),
            *range(Op.ImageSparseSampleImplicitLod, Op.ImageSparseDrefGather + 1),
            Op.ImageSparseRead,
        )
    },
    **{key: {3: _BOTH} for key in opcodes_of("Atomic")},
    Op.AtomicLoad: {3: _READ},
    Op.AtomicStore: {1: _WRITE},
    Op.AtomicFlagClear: {1: _WRITE},
    Op.Store: {1: _WRITE, 2: _BOTH},  # a pointer that is stored escapes
    Op.CopyMemory: {1: _WRITE, 2: _READ},
    Op.CopyMemorySized: {1: _WRITE, 2: _READ},
    Op.ArrayLength: {3: _NONE},
    Op.UntypedArrayLengthKHR: {4: _NONE},
    Op.ImageWrite: {1: _WRITE},
    Op.PtrEqual: {3: _NONE, 4: _NONE},
    Op.PtrNotEqual: {3: _NONE, 4: _NONE},
    Op.PtrDiff: {3: _NONE, 4: _NONE},
    Op.CooperativeMatrixLoadKHR: {3: _READ},
    Op.CooperativeMatrixStoreKHR: {1: _WRITE},
    Op.CooperativeMatrixLoadNV: {3: _READ},
    Op.CooperativeMatrixStoreNV: {1: _WRITE},
}
# Instructions that name no pointer or image to memory.
_INERT: Final = frozenset(
    {
        *opcodes_of("Arithmetic", "Bit", "Debug", "Derivative", "Non-Uniform", "Relational_and_Logical"),
        *range(Op.ConvertFToU, Op.QuantizeToF16 + 1),
        Op.SatConvertSToU,
        Op.SatConvertUToS,
        Op.Nop,
        Op.Undef,
        Op.VectorExtractDynamic,
        Op.VectorInsertDynamic,
        Op.VectorShuffle,
        Op.Transpose,
        Op.ControlBarrier,
        Op.MemoryBarrier,
        Op.LoopMerge,
        Op.SelectionMerge,
        Op.Label,
        Op.Branch,
        Op.BranchConditional,
        Op.Switch,
        Op.Return,
        Op.CooperativeMatrixLengthKHR,
    }
) - {Op.Select}
_COMBINES: Final = frozenset({Op.Select, Op.Phi, Op.CompositeExtract, Op.CompositeInsert, Op.SampledImage})


class AccessAnalysis:
    """Static use and access for the entry points of one module; each function is scanned once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._summaries: dict[int, _Summary] = {}
        self._entries: dict[int, EntryAccess] = {}
        self._work = 0

    def entry(self, function: int) -> EntryAccess:
        """What the call graph from a function does.

        Raises:
            InvalidArgumentError: a function that is called does not exist, or an instruction is damaged.
            ResourceExhaustedError: the module's entry points together reach too many instructions.
        """
        found = self._entries.get(function)
        if found is None:
            found = self._entries[function] = self._analyse(function)
        self.spend(len(found.variables) + 1)
        return found

    def spend(self, work: int) -> None:
        """Counts work against the module's limit, which keeps a forged module from taking quadratic time."""
        self._work += work
        if self._work > _MAX_WORK:
            raise ResourceExhaustedError(
                f"the SPIR-V module's entry points reach over {_MAX_WORK} instructions in all; split the module"
            )

    def _analyse(self, entry: int) -> EntryAccess:
        reached = {entry}
        pending = [entry]
        bits: dict[int, int] = {}
        bases: dict[int, list[int]] = {}
        variables: set[int] = set()
        while pending:
            summary = self._summary(pending.pop())
            self.spend(summary.work)
            variables |= summary.variables
            for derived, base in summary.edges:
                bases.setdefault(derived, []).append(base)
            for target, seed in summary.seeds.items():
                bits[target] = bits.get(target, 0) | seed
            for callee in summary.callees - reached:
                reached.add(callee)
                pending.append(callee)
        # An id's two bits are passed on when they change, so this takes at most two steps an edge.
        changed = [target for target, value in bits.items() if value]
        while changed:
            derived = changed.pop()
            value = bits[derived]
            for base in bases.get(derived, ()):
                old = bits.get(base, 0)
                if value & ~old:
                    bits[base] = old | value
                    changed.append(base)
        ordered = tuple(sorted(variables))
        return EntryAccess(ordered, {variable: Access(bits.get(variable, 0)) for variable in ordered})

    def _summary(self, function_id: int) -> _Summary:
        found = self._summaries.get(function_id)
        if found is None:
            function = self._module.functions.get(function_id)
            if function is None:
                raise InvalidArgumentError(
                    f"SPIR-V id {function_id} is called or is an entry point, but no function is defined under it"
                )
            found = self._summaries[function_id] = self._scan(function)
        return found

    def _scan(self, function: Function) -> _Summary:
        words = self._module.words
        summary = _Summary(work=len(function.body) + 1)
        for opcode, start, end in function.body:
            derives = _DERIVES.get(opcode)
            accesses = _ACCESSES.get(opcode)
            if opcode in _INERT:
                continue
            if derives is not None:
                self._derive(summary, self._id(start + 2), self._id(start + derives))
            elif accesses is not None:
                for index, bits in accesses.items():
                    self._touch(summary, self._id(start + index), bits)
            elif opcode == Op.Load:
                self._load(summary, start)
            elif opcode in _COMBINES:
                self._combine(summary, opcode, start, end)
            elif opcode == Op.FunctionCall:
                self._call(summary, start, end)
            elif opcode == Op.ReturnValue:
                self._derive(summary, function.id, self._id(start + 1))
            elif opcode == Op.ExtInst:
                self._extended(summary, start, end)
            elif opcode == Op.Variable:
                if end - start > 4:
                    self._touch(summary, words[start + 4], _BOTH)
            else:
                for used in self._module.used_ids(start, end):
                    self._touch(summary, used, _BOTH)
        summary.work += len(summary.edges) + len(summary.seeds)
        return summary

    def _id(self, index: int) -> int:
        return self._module.check_id(self._module.words[index])

    def _touch(self, summary: _Summary, operand: int, bits: int) -> None:
        if operand in self._module.variables:
            summary.variables.add(operand)
        summary.seeds[operand] = summary.seeds.get(operand, 0) | bits

    def _derive(self, summary: _Summary, result: int, base: int) -> None:
        if base in self._module.variables:
            summary.variables.add(base)
        summary.edges.append((result, base))

    def _combine(self, summary: _Summary, opcode: int, start: int, end: int) -> None:
        """A result that may be one of several operands: pointers, images or plain data."""
        result = self._id(start + 2)
        first, step = 3, 1
        if opcode == Op.Select:
            first = 4  # after the condition
        elif opcode == Op.Phi:
            step = 2  # each operand is followed by the block it comes from
        elif opcode == Op.CompositeExtract:
            end = min(end, start + 4)  # literal indices follow
        elif opcode == Op.CompositeInsert:
            end = min(end, start + 5)  # literal indices follow
        for index in range(start + first, end, step):
            self._derive(summary, result, self._module.words[index])

    def _load(self, summary: _Summary, start: int) -> None:
        """A load of data reads memory; a load of an image only fetches the descriptor that names the memory."""
        loaded = self._module.type(self._id(start + 1))
        result, pointer = self._id(start + 2), self._id(start + 3)
        if loaded.is_opaque:
            self._derive(summary, result, pointer)
        else:
            self._touch(summary, pointer, _READ)

    def _call(self, summary: _Summary, start: int, end: int) -> None:
        result, callee = self._id(start + 2), self._id(start + 3)
        summary.callees.add(callee)
        # The callee's own id represents all values that it returns.
        self._derive(summary, result, callee)
        function = self._module.functions.get(callee)
        arguments = self._module.words[start + 4 : end]
        if function is None or len(function.parameters) != len(arguments):
            raise InvalidArgumentError(
                f"OpFunctionCall at word {start} passes {len(arguments)} arguments to id {callee}, which is "
                f"{'no function' if function is None else f'a function of {len(function.parameters)} parameters'}"
            )
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            self._derive(summary, parameter, argument)

    def _extended(self, summary: _Summary, start: int, end: int) -> None:
        instruction_set = self._module.instruction_sets.get(self._id(start + 3), "")
        if instruction_set.startswith(("NonSemantic.", "OpenCL.DebugInfo")):
            return
        for word in self._module.words[start + 5 : end]:
            self._touch(summary, word, _BOTH)
