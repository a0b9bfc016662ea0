"""Which module-scope variables an entry point uses, and whether it can read or write through them.

Two passes over the call graph that an entry point reaches, neither recursive. The first collects the ids of
module-scope variables among instruction operands: the "static use" of the Vulkan specification (chapter "Shaders",
section "Static Use"). The second spreads two bits, read and write, from the instructions that access memory back along
the pointers they got there by: access chains, copies, selections, phis, function arguments and results. An instruction
of unknown effect reads and writes whatever it names, so an unknown can only make a binding look more used.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Final

from ..status import InvalidArgumentError, ResourceExhaustedError
from .module import Function, Module

__all__ = ["Access", "AccessAnalysis", "EntryAccess"]

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
    """One function: variables named, functions called, pointers (derived, base), bits set at ids, and its cost."""

    variables: set[int] = dataclasses.field(default_factory=set)
    callees: set[int] = dataclasses.field(default_factory=set)
    edges: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    seeds: dict[int, int] = dataclasses.field(default_factory=dict)
    work: int = 0


# Opcode -> (index of result, index of base): instructions whose result is the same memory or image as an operand.
_DERIVES: Final[dict[int, tuple[int, int]]] = {
    60: (2, 3),  # OpImageTexelPointer
    65: (2, 3),  # OpAccessChain
    66: (2, 3),  # OpInBoundsAccessChain
    67: (2, 3),  # OpPtrAccessChain
    70: (2, 3),  # OpInBoundsPtrAccessChain
    83: (2, 3),  # OpCopyObject
    100: (2, 3),  # OpImage
    400: (2, 3),  # OpCopyLogical
    4419: (2, 4),  # OpUntypedAccessChainKHR
    4420: (2, 4),  # OpUntypedInBoundsAccessChainKHR
    4423: (2, 4),  # OpUntypedPtrAccessChainKHR
    4424: (2, 4),  # OpUntypedInBoundsPtrAccessChainKHR
    5398: (2, 3),  # OpRawAccessChainNV
}
# Opcode -> {index of pointer or image: bits}; every other operand of these is a value or a literal.
_ACCESSES: Final[dict[int, dict[int, int]]] = {
    62: {1: _WRITE, 2: _BOTH},  # OpStore: a pointer that is stored escapes
    63: {1: _WRITE, 2: _READ},  # OpCopyMemory
    64: {1: _WRITE, 2: _READ},  # OpCopyMemorySized
    68: {3: _NONE},  # OpArrayLength
    4425: {4: _NONE},  # OpUntypedArrayLengthKHR
    99: {1: _WRITE},  # OpImageWrite
    227: {3: _READ},  # OpAtomicLoad
    228: {1: _WRITE},  # OpAtomicStore
    318: {3: _BOTH},  # OpAtomicFlagTestAndSet
    319: {1: _WRITE},  # OpAtomicFlagClear
    401: {3: _NONE, 4: _NONE},  # OpPtrEqual
    402: {3: _NONE, 4: _NONE},  # OpPtrNotEqual
    403: {3: _NONE, 4: _NONE},  # OpPtrDiff
    4457: {3: _READ},  # OpCooperativeMatrixLoadKHR
    4458: {1: _WRITE},  # OpCooperativeMatrixStoreKHR
    5359: {3: _READ},  # OpCooperativeMatrixLoadNV
    5360: {1: _WRITE},  # OpCooperativeMatrixStoreNV
    # OpAtomicExchange … OpAtomicXor, OpAtomicFMinEXT, OpAtomicFMaxEXT, OpAtomicFAddEXT
    **{opcode: {3: _BOTH} for opcode in (*range(229, 243), 5614, 5615, 6035)},
    # OpImageSample…, OpImageFetch, OpImageGather, OpImageDrefGather, OpImageRead and their sparse forms
    **{opcode: {3: _READ} for opcode in (*range(87, 99), *range(305, 316), 320)},
    # OpImageQuery…
    **{opcode: {3: _NONE} for opcode in range(101, 108)},
}
# Instructions that name no pointer or image to memory. Many carry literals, which must not be taken for ids.
_INERT: Final = frozenset(
    (
        0,  # OpNop
        1,  # OpUndef
        8,  # OpLine
        317,  # OpNoLine
        77,  # OpVectorExtractDynamic
        78,  # OpVectorInsertDynamic
        79,  # OpVectorShuffle
        84,  # OpTranspose
        *range(109, 117),  # OpConvertFToU … OpQuantizeToF16
        118,  # OpSatConvertSToU
        119,  # OpSatConvertUToS
        *range(126, 153),  # arithmetic
        *range(154, 169),  # OpAny … OpLogicalNot
        *range(170, 192),  # comparisons
        *range(194, 206),  # bits
        *range(207, 216),  # derivatives
        224,  # OpControlBarrier
        225,  # OpMemoryBarrier
        246,  # OpLoopMerge
        247,  # OpSelectionMerge
        248,  # OpLabel
        249,  # OpBranch
        250,  # OpBranchConditional
        251,  # OpSwitch
        253,  # OpReturn
        *range(333, 367),  # OpGroupNonUniform…
        *range(4450, 4456),  # integer dot products
        4459,  # OpCooperativeMatrixMulAddKHR
        4460,  # OpCooperativeMatrixLengthKHR
    )
)
_EXT_INST, _FUNCTION_CALL, _VARIABLE, _LOAD = 12, 57, 59, 61
_COMPOSITE_EXTRACT, _COMPOSITE_INSERT, _SAMPLED_IMAGE = 81, 82, 86
_SELECT, _PHI, _RETURN_VALUE = 169, 245, 254


class AccessAnalysis:
    """Static use and access for the entry points of one module; functions are looked through once."""

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
            if derives is not None:
                result, base = derives
                self._derive(summary, self._operand(start, end, result), self._operand(start, end, base))
            elif accesses is not None:
                for index, bits in accesses.items():
                    self._touch(summary, self._operand(start, end, index), bits)
            elif opcode == _LOAD:
                self._load(summary, start, end)
            elif opcode in (_SELECT, _PHI, _COMPOSITE_EXTRACT, _COMPOSITE_INSERT, _SAMPLED_IMAGE):
                self._combine(summary, opcode, start, end)
            elif opcode == _FUNCTION_CALL:
                self._call(summary, start, end)
            elif opcode == _RETURN_VALUE:
                self._derive(summary, function.id, self._operand(start, end, 1))
            elif opcode == _EXT_INST:
                self._extended(summary, start, end)
            elif opcode == _VARIABLE:
                if end - start > 4:
                    self._touch(summary, words[start + 4], _BOTH)
            elif opcode not in _INERT:
                for word in words[start + 1 : end]:
                    self._touch(summary, word, _BOTH)
        summary.work += len(summary.edges) + len(summary.seeds)
        return summary

    def _operand(self, start: int, end: int, index: int) -> int:
        self._module.check_length(start, end, index + 1, "the SPIR-V instruction")
        return self._module.check_id(self._module.words[start + index])

    def _touch(self, summary: _Summary, operand: int, bits: int) -> None:
        if operand in self._module.variables:
            summary.variables.add(operand)
        summary.seeds[operand] = summary.seeds.get(operand, 0) | bits

    def _derive(self, summary: _Summary, result: int, base: int) -> None:
        if base in self._module.variables:
            summary.variables.add(base)
        summary.edges.append((result, base))

    def _combine(self, summary: _Summary, opcode: int, start: int, end: int) -> None:
        """A result that may be one of several operands, be they pointers, images or plain data."""
        result = self._operand(start, end, 2)
        first, step = 3, 1
        if opcode == _SELECT:
            first = 4  # after the condition
        elif opcode == _PHI:
            step = 2  # each operand is followed by the block it comes from
        elif opcode == _COMPOSITE_EXTRACT:
            end = min(end, start + 4)  # literal indices follow
        elif opcode == _COMPOSITE_INSERT:
            end = min(end, start + 5)  # literal indices follow
        for index in range(start + first, end, step):
            self._derive(summary, result, self._module.words[index])

    def _load(self, summary: _Summary, start: int, end: int) -> None:
        """A load of data reads memory; a load of an image only fetches the descriptor that names the memory."""
        loaded = self._module.type(self._operand(start, end, 1))
        result, pointer = self._operand(start, end, 2), self._operand(start, end, 3)
        if loaded.is_opaque:
            self._derive(summary, result, pointer)
        else:
            self._touch(summary, pointer, _READ)

    def _call(self, summary: _Summary, start: int, end: int) -> None:
        result, callee = self._operand(start, end, 2), self._operand(start, end, 3)
        summary.callees.add(callee)
        # The callee's own id stands for all values that it returns.
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
        instruction_set = self._module.instruction_sets.get(self._operand(start, end, 3), "")
        if instruction_set.startswith(("NonSemantic.", "OpenCL.DebugInfo")):
            return
        for word in self._module.words[start + 5 : end]:
            self._touch(summary, word, _BOTH)
