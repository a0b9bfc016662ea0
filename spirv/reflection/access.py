"""The module-scope variables that an entry point uses, and whether it can read or write through them.

Two passes over the call graph that an entry point reaches, neither recursive. The first collects the ids of
module-scope variables among instruction operands: the "static use" of the Vulkan specification (chapter "Shaders",
section "Static Use"). The second propagates two bits, read and write, from the instructions that access memory back
along their pointers: access chains, copies, selections, phis, function arguments and results. An instruction of unknown
effect counts as reading and writing every id among its operands, so it can only add access.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, ResourceExhaustedError
from ..binary.grammar import LAYOUTS, Op, opcodes_of
from .module import Function, Module

# The work is the sum, over entry points, of the instructions each reaches; real modules stay far below this.
_MAX_WORK: Final = 1 << 22

NONE, READ, WRITE, BOTH = 0, 1, 2, 3
"""The access through a pointer, as bits."""


@dataclass(slots=True)
class _Summary:
    """One function: functions called, pointers (derived, base), access bits by id, and its cost."""

    callees: set[int] = dataclasses.field(default_factory=set)
    edges: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    seeds: defaultdict[int, int] = dataclasses.field(default_factory=lambda: defaultdict(int))
    work: int = 0


# Opcode -> index of the base: instructions whose result (word 2) refers to the same memory or image as an operand.
_DERIVES: Final[dict[int, int]] = {
    **dict.fromkeys(
        Op.numbers(
            "ImageTexelPointer AccessChain InBoundsAccessChain PtrAccessChain InBoundsPtrAccessChain CopyObject Image "
            "CopyLogical RawAccessChainNV"
        ),
        3,
    ),
    **dict.fromkeys(
        Op.numbers(
            "UntypedAccessChainKHR UntypedInBoundsAccessChainKHR UntypedPtrAccessChainKHR "
            "UntypedInBoundsPtrAccessChainKHR"
        ),
        4,
    ),
}
# Opcode -> {index of pointer or image: bits}; every other operand of them is a value or a literal.
_ACCESSES: Final[dict[int, dict[int, int]]] = {
    **{
        opcode: {3: NONE if LAYOUTS[opcode].name.startswith("ImageQuery") else READ}
        for opcode in (
            *range(Op.ImageSampleImplicitLod, Op.ImageRead + 1),
            *range(Op.ImageQueryFormat, Op.ImageQuerySamples + 1),
            *range(Op.ImageSparseSampleImplicitLod, Op.ImageSparseDrefGather + 1),
            Op.ImageSparseRead,
        )
    },
    **{key: {3: BOTH} for key in opcodes_of("Atomic")},
    Op.AtomicLoad: {3: READ},
    Op.AtomicStore: {1: WRITE},
    Op.AtomicFlagClear: {1: WRITE},
    Op.Store: {1: WRITE, 2: BOTH},  # a pointer that is stored escapes
    Op.CopyMemory: {1: WRITE, 2: READ},
    Op.CopyMemorySized: {1: WRITE, 2: READ},
    Op.ArrayLength: {3: NONE},
    Op.UntypedArrayLengthKHR: {4: NONE},
    Op.ImageWrite: {1: WRITE},
    Op.PtrEqual: {3: NONE, 4: NONE},
    Op.PtrNotEqual: {3: NONE, 4: NONE},
    Op.PtrDiff: {3: NONE, 4: NONE},
    Op.CooperativeMatrixLoadKHR: {3: READ},
    Op.CooperativeMatrixStoreKHR: {1: WRITE},
    Op.CooperativeMatrixLoadNV: {3: READ},
    Op.CooperativeMatrixStoreNV: {1: WRITE},
}
# Instructions without operands that refer to memory.
_INERT: Final = {
    *opcodes_of("Arithmetic", "Bit", "Debug", "Derivative", "Non-Uniform", "Relational_and_Logical"),
    *range(Op.ConvertFToU, Op.QuantizeToF16 + 1),
    *Op.numbers(
        "SatConvertSToU SatConvertUToS Nop Undef VectorExtractDynamic VectorInsertDynamic VectorShuffle Transpose "
        "ControlBarrier MemoryBarrier LoopMerge SelectionMerge Label Branch BranchConditional Switch Return "
        "CooperativeMatrixLengthKHR"
    ),
} - {Op.Select}
# Instructions whose result may be any of several operands (pointers, images or plain data), and the words of these.
_COMBINES: Final = {
    Op.Select: slice(4, None),
    Op.Phi: slice(3, None, 2),  # each value is followed by its parent block
    Op.CompositeExtract: slice(3, 4),
    Op.CompositeInsert: slice(3, 5),
    Op.SampledImage: slice(3, None),
}


class AccessAnalysis:
    """Static use and access for the entry points of one module; each function is scanned once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._summaries: dict[int, _Summary] = {}
        self._entries: dict[int, dict[int, int]] = {}
        self._last: tuple[int, set[int]] = (0, set())
        self._work = 0

    def entry(self, function: int) -> dict[int, int]:
        """Returns the variables that a function statically uses, with the access to each, by ascending id.

        Raises:
            InvalidArgumentError: a called function does not exist, or an instruction is damaged.
            ResourceExhaustedError: the module's entry points together reach too many instructions.
        """
        usage = self._entries.get(function)
        if usage is None:
            usage = self._entries[function] = self._analyse(function)
        self.spend(len(usage) + 1)
        return usage

    def reached(self, function: int) -> set[int]:
        """Returns the functions that the call graph from a function has, itself included, if ``entry`` was called for
        it last; else none.
        """
        last, reached = self._last
        return reached if last == function else set()

    def spend(self, work: int) -> None:
        """Counts work against the module's limit, which protects from quadratic time in forged modules."""
        self._work += work
        if self._work > _MAX_WORK:
            raise ResourceExhaustedError(
                f"the SPIR-V module's entry points reach over {_MAX_WORK} instructions in all; split the module"
            )

    def _analyse(self, entry: int) -> dict[int, int]:
        reached = {entry}
        pending = [entry]
        bits: defaultdict[int, int] = defaultdict(int)
        bases: defaultdict[int, list[int]] = defaultdict(list)
        used: set[int] = set()
        while pending:
            summary = self._summary(pending.pop())
            self.spend(summary.work)
            used |= summary.seeds.keys()
            for derived, base in summary.edges:
                used.add(base)
                bases[derived].append(base)
            for target, seed in summary.seeds.items():
                bits[target] |= seed
            for callee in summary.callees - reached:
                reached.add(callee)
                pending.append(callee)
        self._last = entry, reached
        # An id's two bits are propagated when they change, so this takes at most two steps per edge.
        changed = [target for target, value in bits.items() if value]
        while changed:
            derived = changed.pop()
            value = bits[derived]
            for base in bases.get(derived, ()):
                if value & ~bits[base]:
                    bits[base] |= value
                    changed.append(base)
        return {variable: bits[variable] for variable in sorted(self._module.variables.keys() & used)}

    def _summary(self, function_id: int) -> _Summary:
        summary = self._summaries.get(function_id)
        if summary is None:
            function = self._module.functions.get(function_id)
            if function is None:
                raise InvalidArgumentError(
                    f"SPIR-V id {function_id} is called or is an entry point, but no function is defined under it"
                )
            summary = self._summaries[function_id] = self._scan(function)
        return summary

    def _scan(self, function: Function) -> _Summary:
        words = self._module.words
        summary = _Summary(work=len(function.body) + 1)
        for opcode, start, end in function.body:
            derives = _DERIVES.get(opcode)
            accesses = _ACCESSES.get(opcode)
            if opcode in _INERT:
                continue
            if derives is not None:
                summary.edges.append((self._id(start + 2), self._id(start + derives)))
            elif accesses is not None:
                for index, bits in accesses.items():
                    summary.seeds[self._id(start + index)] |= bits
            elif opcode == Op.Load:
                type_id, result, pointer = map(self._id, range(start + 1, start + 4))
                # A load of an image only fetches the descriptor, not texels.
                if self._module.type(type_id).is_opaque:
                    summary.edges.append((result, pointer))
                else:
                    summary.seeds[pointer] |= READ
            elif opcode in _COMBINES:
                result = self._id(start + 2)
                summary.edges += [(result, operand) for operand in words[start:end][_COMBINES[opcode]]]
            elif opcode == Op.FunctionCall:
                self._call(summary, start, end)
            elif opcode == Op.ReturnValue:
                summary.edges.append((function.id, self._id(start + 1)))
            elif opcode == Op.ExtInst:
                name = self._module.instruction_sets.get(self._id(start + 3), "")
                if not name.startswith(("NonSemantic.", "OpenCL.DebugInfo")):
                    for word in words[start + 5 : end]:
                        summary.seeds[word] |= BOTH
            elif opcode == Op.Variable:
                if end - start > 4:
                    summary.seeds[words[start + 4]] |= BOTH
            else:
                for used in self._module.binary.used_ids(start, end):
                    summary.seeds[used] |= BOTH
        summary.work += len(summary.edges) + len(summary.seeds)
        return summary

    def _id(self, index: int) -> int:
        return self._module.check_id(self._module.words[index])

    def _call(self, summary: _Summary, start: int, end: int) -> None:
        result, callee = self._id(start + 2), self._id(start + 3)
        summary.callees.add(callee)
        # The callee's own id represents all values that it returns.
        summary.edges.append((result, callee))
        function = self._module.functions.get(callee)
        arguments = self._module.words[start + 4 : end]
        if function is None or len(function.parameters) != len(arguments):
            raise InvalidArgumentError(
                f"OpFunctionCall at word {start} passes {len(arguments)} arguments to id {callee}, which is "
                f"{'no function' if function is None else f'a function of {len(function.parameters)} parameters'}"
            )
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            summary.edges.append((parameter, argument))
