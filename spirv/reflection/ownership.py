"""The variables that an entry point reads and writes at places that follow from the invocation's number.

Where an output is written at such places, as in a copy, a grid of one invocation for each of its elements is the one
that the shader was written for. The size of other outputs, the sum of a reduction or the bins of a histogram, says
nothing about the grid; that of an input which is read at such places does.

Values are followed forward from the built-in inputs, whatever the order of the instructions, but not through memory
that invocations share. Control flow does not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ..binary.grammar import LAYOUTS, BuiltIn, Decoration, Op, StorageClass, opcodes_of
from .module import Module

# The parts of an invocation's number: the whole, its workgroup's, and its number within that.
_GLOBAL, _GROUP, _LOCAL = 1, 2, 4
_PARTS: Final = {
    BuiltIn.GlobalInvocationId: _GLOBAL,
    BuiltIn.WorkgroupId: _GROUP,
    BuiltIn.LocalInvocationId: _LOCAL,
    BuiltIn.LocalInvocationIndex: _LOCAL,
    BuiltIn.SubgroupId: _LOCAL,
    BuiltIn.SubgroupLocalInvocationId: _LOCAL,
}
_OWN_MEMORY: Final = (StorageClass.Input, StorageClass.Function, StorageClass.Private)
_CHAINS: Final = Op.numbers("AccessChain InBoundsAccessChain PtrAccessChain InBoundsPtrAccessChain")
_COPIES: Final = Op.numbers("CopyObject Image ImageTexelPointer")
_ATOMICS: Final = frozenset(opcodes_of("Atomic"))
_WITH_RESULT: Final = frozenset(
    opcode for opcode, layout in LAYOUTS.items() if layout.operands[:2] == ("IdResultType", "IdResult")
)
_FETCHES: Final = frozenset({*range(Op.ImageSampleImplicitLod, Op.ImageRead + 1), Op.ImageSparseRead})
# Results that are of memory which invocations share, and of nothing else.
_SHARED: Final = _ATOMICS | _FETCHES
# The words of values, where others are literals.
_VALUES: Final = {
    Op.CompositeExtract: slice(3, 4),
    Op.CompositeInsert: slice(3, 5),
    Op.VectorShuffle: slice(3, 5),
    Op.ExtInst: slice(5, None),
    Op.ArrayLength: slice(0, 0),
}
_ALL: Final = slice(3, None)
_DIVISIONS: Final = Op.numbers("UDiv SDiv ShiftRightLogical ShiftRightArithmetic")
_REMAINDERS: Final = Op.numbers("UMod SMod SRem")
# Instructions of a module, counted for each entry point that reaches them.
_MAX_WORK: Final = 1 << 19


class Ownership(NamedTuple):
    """The spread of module-scope variables over the invocations of an entry point.

    Attributes:
        shared_outputs: the variables that it writes, but nowhere at a place that follows from the invocation's number;
            none if a write cannot be followed to its variable.
        spread_inputs: the variables that it reads at places that follow from the invocation's number or its
            workgroup's.
    """

    shared_outputs: frozenset[int]
    spread_inputs: frozenset[int]


class OwnershipAnalysis:
    """The ownership of the variables of one module's entry points."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._work = 0

    def entry(self, functions: Collection[int], *, is_alone: bool) -> Ownership:
        """Returns the ownership of an entry point; nothing where the module's entry points have too much code.

        Args:
            functions: the functions that the entry point reaches.
            is_alone: whether a workgroup has one invocation, so that its number is the invocation's.
        """
        module = self._module
        self._work += len(functions)
        flow = _Flow(module)
        for number in functions:
            if self._work > _MAX_WORK:
                return Ownership(frozenset(), frozenset())
            function = module.functions[number]
            self._work += len(function.body)
            for opcode, start, end in function.body:
                flow.add(number, opcode, module.words[start:end])
        return flow.ownership(_GLOBAL | _GROUP if is_alone else _GLOBAL)


class _Flow:
    """The values and the accesses of functions. Calling sequence: ``add`` each instruction → ``ownership``."""

    def __init__(self, module: Module) -> None:
        self._module = module
        # From a value to what is computed of it; from a pointer or image to what is derived from it, with indices.
        self._targets: defaultdict[int, list[int]] = defaultdict(list)
        # Quotients and remainders, which only together tell an invocation from all others.
        self._quotients: set[int] = set()
        self._remainders: set[int] = set()
        self._derived: defaultdict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        self._loads: list[tuple[int, int]] = []
        self._stores: list[tuple[int, int]] = []
        self._texels: list[tuple[int, int]] = []
        self._fetches: list[tuple[int, int]] = []
        self._atomics: list[int] = []
        self._own = {v.id for v in module.variables.values() if v.storage_class in _OWN_MEMORY}

    def add(self, function: int, opcode: int, words: tuple[int, ...]) -> None:
        """Takes note of an instruction of a function."""
        targets = self._targets
        if opcode in _ATOMICS and opcode != Op.AtomicLoad:
            self._atomics.append(words[1 if opcode in (Op.AtomicStore, Op.AtomicFlagClear) else 3])
        if opcode in _FETCHES:
            self._fetches.append((words[3], words[4]))
        if opcode in _SHARED:
            return
        match opcode:
            case Op.Variable:
                self._own.add(words[2])
                for initial in words[4:5]:
                    targets[initial].append(words[2])
            case Op.Load:
                self._loads.append((words[2], words[3]))
            case Op.Store:
                self._stores.append((words[1], words[2]))
            case Op.CopyMemory:
                self._stores.append((words[1], words[2]))
            case Op.ImageWrite:
                self._texels.append((words[1], words[2]))
            case Op.ReturnValue:
                targets[words[1]].append(function)
            case Op.FunctionCall:
                targets[words[3]].append(words[2])
                callee = self._module.functions.get(words[3])
                for parameter, argument in zip(callee.parameters if callee else (), words[4:], strict=False):
                    self._derived[argument].append((parameter, ()))
                    targets[argument].append(parameter)
            case _ if opcode in _CHAINS:
                self._derived[words[3]].append((words[2], words[4:]))
            case _ if opcode in _COPIES:
                self._derived[words[3]].append((words[2], ()))
                targets[words[3]].append(words[2])
            case _ if opcode in _WITH_RESULT:
                if opcode in _DIVISIONS:
                    self._quotients.add(words[2])
                elif opcode in _REMAINDERS:
                    self._remainders.add(words[2])
                for operand in words[_VALUES.get(opcode, _ALL)]:
                    targets[operand].append(words[2])

    def ownership(self, whole: int) -> Ownership:
        """Returns the ownership; ``whole`` are the parts of an invocation's number that tell it from all others."""
        bases = self._bases()
        reads, writes = list(self._fetches), list(self._texels)
        for result, pointer in self._loads:
            if pointer in self._own:
                self._targets[pointer].append(result)
            else:
                bases.setdefault(result, []).append((pointer, ()))  # an image, or a pointer in memory
                reads.append((pointer, 0))
        for pointer, value in self._stores:
            if pointer in self._own:
                self._targets[value].append(pointer)
            else:
                writes.append((pointer, 0))
        parts = self._parts()
        spread: set[int] = set()
        for pointer, at in reads:
            root, reached = self._followed(pointer, at, bases, parts)
            if reached & (_GLOBAL | _GROUP):
                spread.add(root)
        own: set[int] = set()
        shared: set[int] = set()
        for pointer, at in writes:
            root, reached = self._followed(pointer, at, bases, parts)
            is_own = reached & whole or (reached & _GROUP and reached & _LOCAL)
            (own if is_own else shared).add(root)
        shared |= {self._followed(pointer, 0, bases, parts)[0] for pointer in self._atomics}
        return Ownership(frozenset() if 0 in shared | own else frozenset(shared - own), frozenset(spread - {0}))

    def _followed(
        self, pointer: int, at: int, bases: Mapping[int, list[tuple[int, tuple[int, ...]]]], parts: Mapping[int, int]
    ) -> tuple[int, int]:
        """Returns the variable of an access, 0 if it is not known, and the parts that its place follows from."""
        root, reached, seen = pointer, parts.get(at, 0), {pointer}
        while root in bases:
            ((root, indices), *others) = bases[root]
            if others or root in seen:
                return 0, 0
            seen.add(root)
            for index in indices:
                reached |= parts.get(index, 0)
        return (root, reached) if root in self._module.variables else (0, 0)

    def _bases(self) -> dict[int, list[tuple[int, tuple[int, ...]]]]:
        """Returns the bases of pointers to shared memory; makes those to an invocation's own one value with theirs."""
        pending = list(self._own)
        while pending:
            base = pending.pop()
            for derived, _ in self._derived.get(base, ()):
                self._targets[base].append(derived)
                self._targets[derived].append(base)
                if derived not in self._own:
                    self._own.add(derived)
                    pending.append(derived)
        bases: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
        for base, several in self._derived.items():
            if base not in self._own:
                for derived, indices in several:
                    bases.setdefault(derived, []).append((base, indices))
        return bases

    def _parts(self) -> dict[int, int]:
        """Returns the parts of the invocation's number that each value follows from."""
        parts: dict[int, int] = {}
        for variable in self._module.variables:
            part = _PARTS.get(self._module.decoration(variable, Decoration.BuiltIn) or 0)
            if part is not None and self._module.decoration(variable, Decoration.BuiltIn) is not None:
                parts[variable] = part
        changed = list(parts)
        while changed:
            source = changed.pop()
            for target in self._targets.get(source, ()):
                value, added = parts.get(target, 0), parts[source]
                if added & _GLOBAL and target in self._quotients:
                    added = added & ~_GLOBAL | _GROUP
                elif added & _GLOBAL and target in self._remainders:
                    added = added & ~_GLOBAL | _LOCAL
                if added & ~value:
                    parts[target] = value | added
                    changed.append(target)
        return parts
