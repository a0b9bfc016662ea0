"""The value of a tensor at an index, as expressions: the basis of fusion.

There are three kinds of operations. The value of an index map is its operand's value at another index. The value of an
element-wise operation is computed from its operands' values at the same index. Any other operation, such as a loop, is
a structure. Long chains of the first two kinds need no recursion here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from ...spirv.binary.expression import Id
from ...spirv.binary.offsets import quotient
from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, Size, is_at_least
from ..ir.types import ScalarType
from .index import Index
from .scalars.scalars import Scalar, Scalars, storage_bits
from .scalars.target import NeedsSplitError, compile_error

if TYPE_CHECKING:
    from .scalars.lengths import KernelBuilder

MAX_WORDS: Final = 1 << 18
"""The upper bound of the words of a kernel's instructions."""

_ALONE: Final = "compute it in a region of its own"
_MAX_DEPTH: Final = 50
_MAX_UNROLLED: Final = 8
_MAX_UNROLLED_WORDS: Final = 2_000


def shape_of(value: Value) -> tuple[Dim, ...]:
    return value.tensor.lengths


def scalar_of(value: Value) -> ScalarType:
    """Returns the element type of a tensor."""
    return value.tensor.scalar


IndexMap: TypeAlias = Callable[[Operation, Index], Index]
ElementWise: TypeAlias = Callable[[Scalars, Operation, Sequence[Scalar]], Scalar]
Structure: TypeAlias = "Callable[[Frame, Operation, Index], Sequence[Scalar]]"
_Subject: TypeAlias = tuple[int, Operation | Block | Value]
_Key: TypeAlias = tuple[_Subject, Hashable]
"""A value or a structure with the number of its frame, and an index's key."""
_Entry: TypeAlias = tuple[Value, Index, _Key]


def _scalar_of_value(scalars: Sequence[Scalar], value: Value, key: _Key) -> Scalar:
    """Picks the scalar of a value from the scalars kept under a key."""
    return scalars[0] if key[0][1] is value else scalars[value.index]


@dataclass(frozen=True, slots=True)
class Definitions:
    """The code generators of operations, by name without the dialect.

    Attributes:
        maps: the functions from an index of the result to an index of the operand.
        element_wise: the functions from operands to the result; scalar operands are the same at every index.
        structures: the functions from an index of the results to all results there.
    """

    maps: Mapping[str, IndexMap]
    element_wise: Mapping[str, ElementWise]
    structures: Mapping[str, Structure]


class Work:
    """The state of code generation for a kernel.

    Attributes:
        definitions: the code generators of operations.
        scalars: the scalars of the kernel.
        frames: the number of frames so far.
        depth: the current nesting depth of structures.
    """

    def __init__(self, definitions: Definitions, scalars: Scalars) -> None:
        self.definitions = definitions
        self.scalars = scalars
        self.frames = 0
        self.depth = 0


class Frame:
    """The values of a block, whose arguments are buffers or scalars.

    Args:
        work: the state of the kernel.
        block: the block.
        parent: the frame of the block around a body.
        arguments: the numbers of buffers, or scalars.
    """

    def __init__(self, work: Work, block: Block, parent: Frame | None, arguments: Sequence[int | Scalar]) -> None:
        self._work = work
        self._block = block
        self._parent = parent
        self._arguments = dict(zip(block.arguments, arguments, strict=True))
        self._number = work.frames
        self._subjects: dict[Value, _Subject] = {}
        work.frames += 1
        self.scalars: Scalars = work.scalars
        self.builder: KernelBuilder = work.scalars.builder

    # -- values ----------------------------------------------------------------------------------------

    def index(self, shape: Sequence[Dim], parts: Sequence[Id]) -> Index:
        """Returns an index from one part per dimension."""
        return Index(self.builder, shape, parts)

    def word(self, value: Dim) -> Id:
        """Returns a word with a length; call-dependent lengths are computed."""
        return self.builder.word(value)

    def at(self, value: Value, index: Index) -> Scalar:
        """Returns the scalar of a value at an index."""
        known = self.builder.known
        key = self._key(value, index)
        scalars = known(key)
        if scalars is None:
            pending: list[tuple[_Entry, list[_Entry] | None]] = [((value, index, key), None)]
            while pending:
                entry, needs = pending.pop()
                if needs is None:
                    if known(entry[2]) is not None:
                        continue
                    needs = [(*need, self._key(*need)) for need in self._needs(entry[0], entry[1])]
                    missing = [need for need in needs if known(need[2]) is None]
                    if missing:
                        pending.append((entry, needs))
                        pending.extend((need, None) for need in reversed(missing))
                        continue
                self._compute(entry, needs)
            scalars = known(key)
        assert scalars is not None
        return _scalar_of_value(scalars, value, key)

    def keep(self, value: Value, index: Index, scalars: Sequence[Scalar]) -> None:
        """Stores an operation's results at an index: a scalar for each result of a structure, else a single one."""
        self.builder.keep(self._key(value, index), list(scalars))

    def scalar(self, value: Value) -> Scalar:
        """Returns the scalar of a value of rank 0, or of the first element."""
        shape = shape_of(value)
        return self.at(value, self.index(shape, [self.word(0)] * len(shape)))

    def call(self, block: Block, arguments: Sequence[Scalar]) -> list[Scalar]:
        """Emits a body for scalar arguments and returns its results."""
        inner = Frame(self._work, block, self, arguments)
        return [inner.scalar(value) for value in block.terminator.operands]

    def _owner(self, value: Value) -> Frame:
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        frame = self
        while frame._block is not block:
            assert frame._parent is not None, f"a value of type {value.type} is not defined in the region"
            frame = frame._parent
        return frame

    def _key(self, value: Value, index: Index) -> _Key:
        subject = self._subjects.get(value)
        if subject is None:
            owner = value.owner
            is_structure = (
                isinstance(owner, Operation)
                and owner.name.removeprefix("stablehlo.") in self._work.definitions.structures
            )
            # All results of a structure are computed together.
            subject = self._subjects[value] = self._owner(value)._number, owner if is_structure else value
        return subject, index.key

    def _needs(self, value: Value, index: Index) -> list[tuple[Value, Index]]:
        """Returns the operands of an element-wise operation or an index map, with their indices."""
        operation = value.owner
        if isinstance(operation, Block):
            return []
        name = operation.name.removeprefix("stablehlo.")
        if name in self._work.definitions.element_wise:
            scalar = Index(self.builder, (), ())
            return [(operand, index if operand.tensor.rank else scalar) for operand in operation.operands]
        if name == "optimization_barrier":
            return [(operation.operands[value.index], index)]
        index_map = self._work.definitions.maps.get(name)
        return [] if index_map is None else [(operation.operands[0], index_map(operation, index))]

    def _compute(self, entry: _Entry, needs: Sequence[_Entry]) -> None:
        value, index, key = entry
        operation = value.owner
        if isinstance(operation, Block):
            self.builder.keep(key, [self._argument(value, index)])
            return
        if self.builder.size > MAX_WORDS:
            raise NeedsSplitError(operation, f"the kernel has more than {MAX_WORDS} words; {_ALONE}")
        name = operation.name.removeprefix("stablehlo.")
        definitions = self._work.definitions
        if needs or name in definitions.element_wise:
            operands = [_scalar_of_value(self.builder.known(need[2]), need[0], need[2]) for need in needs]
            if name in definitions.element_wise:
                operands = [definitions.element_wise[name](self.scalars, operation, operands)]
            self.builder.keep(key, operands)
            return
        structure = definitions.structures.get(name)
        if structure is None:
            raise compile_error(operation, "no code is generated for it; an earlier stage replaces it")
        if self._work.depth >= _MAX_DEPTH:
            raise NeedsSplitError(operation, f"nested more than {_MAX_DEPTH} levels deep; {_ALONE}")
        self._work.depth += 1
        self.builder.keep(key, list(structure(self._owner(value), operation, index)))
        self._work.depth -= 1

    def _argument(self, value: Value, index: Index) -> Scalar:
        argument = self._owner(value)._arguments[value]
        return self.load(argument, scalar_of(value), index.linear) if isinstance(argument, int) else argument

    def load_ahead(self, value: Value, indices: Sequence[Index], widest: int = 4) -> None:
        """Loads the words that a value needs at some indices, up to ``widest`` neighbouring words at once."""
        builder = self.builder
        pending = [(value, index) for index in indices]
        loads: dict[tuple[int, int], dict[int, Id]] = {}
        while pending:
            of, at = pending.pop()
            if builder.known(self._key(of, at)) is not None:
                continue
            frame = self._owner(of)
            if not isinstance(of.owner, Block):
                pending.extend(frame._needs(of, at))
                continue
            buffer = frame._arguments[of]
            if not isinstance(buffer, int):
                continue
            bits, number = storage_bits(scalar_of(of)), at.linear
            words = max(bits // 32, 1)
            first = number * words if bits >= 32 else quotient(number, 32 // bits)
            for position in range(words):
                word = first + position
                if word.value is None:
                    loads.setdefault((buffer, word.start.number), {})[word.distance] = word
        for (buffer, _), words_there in loads.items():
            for width in (size for size in (8, 4, 2) if size <= widest):
                for offset, word in list(words_there.items()):
                    neighbours = range(offset, offset + width)
                    if word.multiple % width == 0 and all(neighbour in words_there for neighbour in neighbours):
                        builder.load_ahead(buffer, word, width)
                        for neighbour in neighbours:
                            del words_there[neighbour]

    def load(self, buffer: int, type: ScalarType, number: Id) -> Scalar:
        """Loads an element of a buffer."""
        return self.unpacked(type, number, lambda word: self.builder.load(buffer, word))

    def unpacked(self, type: ScalarType, number: Id, word: Callable[[Id], Id]) -> Scalar:
        """Extracts an element from densely packed words."""
        bits = storage_bits(type)
        if bits >= 32:
            count = bits // 32
            first = number * count
            return self.scalars.from_words(type, [word(first + index) for index in range(count)])
        lanes = 32 // bits
        shift = (number % lanes) * bits
        whole = word(quotient(number, lanes))
        element = self.scalars.from_words(type, [(whole >> shift) & ((1 << bits) - 1)])
        if bits == 8 and shift.value is not None:
            self.scalars.keep_byte(element, whole, shift.value // 8)
        return element

    # -- control flow ----------------------------------------------------------------------------------

    def conditional(
        self, condition: Id, then: Callable[[], Sequence[Scalar]], otherwise: Callable[[], Sequence[Scalar]]
    ) -> list[Scalar]:
        """Runs one of two functions and returns its results."""
        return self.scalars.conditional(condition, then, otherwise)

    def fold(
        self,
        operation: Operation,
        count: Dim,
        starts: Sequence[Scalar],
        step: Callable[[Id, Sequence[Scalar]], Sequence[Scalar]],
        unrolled: int | None = None,
    ) -> list[Scalar]:
        """Returns the accumulators after ``step(number, accumulators)`` for each number below a count.

        Args:
            operation: the computed operation, for errors.
            count: the number of steps.
            starts: the initial accumulators.
            step: a function that emits one step.
            unrolled: the largest number of steps in an iteration; None to choose it by code size.
        """
        values = list(starts)
        if isinstance(count, Size):
            return self.counted(self.word(count), count, values, step)
        most = _MAX_UNROLLED if unrolled is None else unrolled
        if count > most:
            return self._looped(operation, 0, count, values, step, most)
        before, iterations = self.builder.size, self.scalars.iterations
        for number in range(count):
            values = list(step(self.word(number), values))
            is_large = (self.builder.size - before) // (number + 1) * count > _MAX_UNROLLED_WORDS
            if number + 1 < count and (is_large or self.scalars.iterations != iterations):
                return self._looped(operation, number + 1, count, values, step, most)
        return values

    def counted(
        self, limit: Id, most: Dim, starts: Sequence[Scalar], step: Callable[[Id, Sequence[Scalar]], Sequence[Scalar]]
    ) -> list[Scalar]:
        """Emits a loop with a computed count. The caller checks the kernel's iterations against the target's limit.

        Args:
            limit: the count.
            most: an upper bound of the count.
            starts: the initial accumulators.
            step: a function that emits one step, as for ``fold``.
        """
        work = self.scalars
        around = work.repeats
        work.repeats = around * most
        work.iterations = work.iterations + work.repeats

        def run(state: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            number, *values = state
            assert isinstance(number, Id)
            after = number + 1
            return [after, *step(number, values)], after < limit

        def looped() -> Sequence[Scalar]:
            return work.loop([self.word(0), *starts], run)[1:]

        results = self.conditional(limit.equals(0), lambda: starts, looped)
        work.repeats = around
        return results

    def _looped(
        self,
        operation: Operation,
        start: int,
        count: int,
        starts: Sequence[Scalar],
        step: Callable[[Id, Sequence[Scalar]], Sequence[Scalar]],
        most: int,
    ) -> list[Scalar]:
        work = self.scalars
        unrolled = 1
        around = work.repeats
        work.repeats = around * (count - start)

        def run(state: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
            nonlocal unrolled
            number, *values = state
            assert isinstance(number, Id)
            before, iterations = self.builder.size, work.iterations
            values = list(step(number, values))
            if work.iterations == iterations:
                size = max(self.builder.size - before, 1)
                unrolled = max(1, min(most, _MAX_UNROLLED_WORDS // size, count - start))
            for lane in range(1, unrolled):
                values = list(step(number + lane, values))
            after = number + unrolled
            limit = count - (count - start) % unrolled
            return [after, *values], after < limit

        _, *results = work.loop([self.word(start), *starts], run)
        work.repeats = around
        work.iterations = work.iterations + around * ((count - start) // unrolled)
        if is_at_least(work.iterations, work.target.max_loop_iterations + 1):
            raise NeedsSplitError(
                operation,
                f"an invocation would run {work.iterations} iterations of loops, at most "
                f"{work.target.max_loop_iterations} are allowed; split it",
            )
        for number in range(count - (count - start) % unrolled, count):
            results = list(step(self.word(number), results))
        return results
