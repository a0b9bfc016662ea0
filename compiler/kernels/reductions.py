"""Reductions: bodies that join values, exchanges between invocations, and loops over elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ...spirv.binary.declarations import BOOL, U32, Kind
from ...spirv.binary.expression import Id
from ...spirv.binary.grammar import Op
from ..analysis.identities import REPLACED, joined_by
from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, Size, number_of, product
from .contractions import MAX_IN_ORDER, undilated
from .elements import Frame, Structure, scalar_of, shape_of
from .index import Index, split
from .scalars import complex_math
from .scalars.scalars import Scalar, Scalars, as_id, parts_of, select, with_parts
from .scalars.target import Target

Values: TypeAlias = Sequence[Scalar]
Join: TypeAlias = Callable[[Values, Values], Values]

WHOLE_SUBGROUPS: Final = frozenset({"cpu", "nvidia", "amd"})
"""Families whose subgroups are full, of one size, and in the order of invocations."""


def subgroup_of(target: Target) -> int:
    """Returns the number of consecutive invocations that can exchange values; 1 if they cannot."""
    can = "shuffle" in target.subgroup_operations and target.family in WHOLE_SUBGROUPS
    return target.subgroup_size if can else 1


def is_commutative(reduction: Operation) -> bool:
    """Returns whether a body may join elements in any order."""
    return joined_by(reduction.regions[0].block) not in ("", REPLACED)


def join_of(frame: Frame, reduction: Operation) -> Join:
    """Returns the function that joins values of a reduction; sums of floats are not rounded to narrow types."""
    body = reduction.regions[0].block
    type = scalar_of(body.arguments[0])
    if joined_by(body) != "add" or type.kind not in ("float", "complex"):
        return lambda left, right: frame.call(body, [*left, *right])

    return lambda left, right: [complex_math.plus(left[0], right[0])]


def rounded(frame: Frame, reduction: Operation, values: Values) -> list[Scalar]:
    """Rounds the results of a reduction to their types."""
    types = [scalar_of(value) for value in reduction.results]
    return [
        frame.scalars.rounded(type, as_id(value)) if type.kind == "float" else value
        for type, value in zip(types, values, strict=True)
    ]


def join_all(chains: Sequence[Values], join: Join) -> Values:
    """Joins values pair by pair, in order."""
    while len(chains) > 1:
        pairs = [join(left, right) for left, right in zip(chains[::2], chains[1::2], strict=False)]
        chains = [*pairs, *chains[2 * len(pairs) :]]
    return chains[0]


def chosen(condition: Id, then: Values, otherwise: Values) -> list[Scalar]:
    return [select(condition, value, other) for value, other in zip(then, otherwise, strict=True)]


def words_of(scalars: Scalars, values: Values) -> list[Id]:
    """Returns the bits of values in the computation's type, which may be wider than their own."""
    words: list[Id] = []
    for part in (scalar_part for value in values for scalar_part in parts_of(value)):
        if part.kind == BOOL:
            words.append(part.select(scalars.builder.word(1), 0))
        elif part.kind.bits == 64:
            words.extend(scalars.halves(part))
        else:
            words.append(part.bits(U32))
    return words


def of_words(scalars: Scalars, like: Values, words: Sequence[Id]) -> list[Scalar]:
    """Rebuilds values from the words of ``words_of``; ``like`` has their forms."""
    left = list(words)
    parts: list[Id] = []
    for part in (scalar_part for value in like for scalar_part in parts_of(value)):
        word = left.pop(0)
        if part.kind == BOOL:
            parts.append(word.differs(0))
        elif part.kind.bits == 64:
            pair = scalars.builder.emit(Op.CompositeConstruct, Kind("u", 32, 2), word, left.pop(0))
            parts.append(pair.bits(part.kind))
        else:
            parts.append(word.bits(part.kind))
    return with_parts(like, parts)


def _reduce(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    (result,) = reduced_at(frame, operation, [index])
    return result


def reduced_at(frame: Frame, operation: Operation, indices: Sequence[Index]) -> list[Sequence[Scalar]]:
    """Returns the results of a reduction at several indices, in one loop over the reduced elements."""
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    axes = sorted(operation.integers("dimensions"))
    shape = shape_of(values[0])
    lengths = [shape[axis] for axis in axes]
    (block,) = operation.regions[0].blocks

    def elements_at(number: Id) -> Sequence[Scalar]:
        inner = split(frame.builder, number, lengths)
        source_indices = []
        for index in indices:
            parts = list(index.parts)
            for axis, part in zip(axes, inner, strict=True):
                parts.insert(axis, part)
            source_indices.append(frame.index(shape, parts))
        return [frame.at(value, source_index) for source_index in source_indices for value in values]

    begun = [frame.scalar(start) for start in starts] * len(indices)
    results = _accumulated(frame, operation, block, product(lengths), begun, elements_at)
    return [results[first : first + count] for first in range(0, len(results), count)]


def _accumulated(
    frame: Frame,
    operation: Operation,
    block: Block,
    count: Dim,
    starts: Sequence[Scalar],
    elements: Callable[[Id], Sequence[Scalar]],
) -> Sequence[Scalar]:
    """Accumulates elements with a body, in order; long sums of floats are split into runs, in f32 or f64.

    Initial values and elements may belong to several reductions, one after another.
    """
    type = block.arguments[0].tensor.scalar
    is_long = isinstance(count, Size) or count > MAX_IN_ORDER
    if not is_long or joined_by(block) != "add" or type.kind not in ("float", "complex"):
        size = len(block.arguments) // 2

        def step(number: Id, results: Sequence[Scalar]) -> Sequence[Scalar]:
            values = elements(number)
            firsts = range(0, len(results), size)
            return [x for at in firsts for x in frame.call(block, [*results[at : at + size], *values[at : at + size]])]

        return frame.fold(operation, count, starts, step)

    def plus(left: Sequence[Scalar], right: Sequence[Scalar]) -> Sequence[Scalar]:
        return [complex_math.plus(value, other) for value, other in zip(left, right, strict=True)]

    def added(number: Id, results: Sequence[Scalar]) -> Sequence[Scalar]:
        return plus(results, elements(number))

    zeros = [frame.scalars.constant(type, 0)] * len(starts)

    def run(number: Id, results: Sequence[Scalar]) -> Sequence[Scalar]:
        first = number * MAX_IN_ORDER
        part = frame.fold(operation, MAX_IN_ORDER, zeros, lambda offset, part: added(first + offset, part))
        return plus(results, part)

    def run_or_next(number: Id, results: Sequence[Scalar]) -> Sequence[Scalar]:
        """Does the same in one loop, over the sums of finished runs and of the current run."""
        totals, parts = results[: len(zeros)], added(number, results[len(zeros) :])
        ends = (number % MAX_IN_ORDER).equals(MAX_IN_ORDER - 1)
        return frame.conditional(ends, lambda: [*plus(totals, parts), *zeros], lambda: [*totals, *parts])

    if isinstance(count, Size):
        results = frame.fold(operation, count, [*starts, *zeros], run_or_next)
        results = list(plus(results[: len(zeros)], results[len(zeros) :]))
    else:
        runs, rest = divmod(count, MAX_IN_ORDER)
        results = frame.fold(operation, runs, starts, run)
        results = frame.fold(operation, rest, results, lambda number, part: added(number + runs * MAX_IN_ORDER, part))
    return results if type.kind == "complex" else [frame.scalars.rounded(type, as_id(result)) for result in results]


class Window:
    """The windows of an operation over its operand.

    Args:
        operation: an operation with window attributes.
        value: the operand.
    """

    def __init__(self, operation: Operation, value: Value) -> None:
        self.shape: tuple[Dim, ...] = shape_of(value)
        rank = len(self.shape)
        ones = [1] * rank
        self.sizes: tuple[Dim, ...] = operation.sizes("window_dimensions", ones)
        self.strides: tuple[int, ...] = operation.integers("window_strides", ones)
        self.dilations: tuple[int, ...] = operation.integers("window_dilations", ones)
        self.base: tuple[int, ...] = operation.integers("base_dilations", ones)
        self.padding: tuple[Dim, ...] = operation.sizes("padding", [0] * (2 * rank))[::2]

    @property
    def count(self) -> Dim:
        """The number of positions of a window."""
        return product(self.sizes)

    def element_index(self, frame: Frame, window: Sequence[Id], number: Id) -> tuple[Id, Index]:
        """Returns whether a window position falls on an element of the operand, and the element's index."""
        inside = frame.builder.boolean(True)
        parts = []
        offsets = split(frame.builder, number, self.sizes)
        for axis, (at, offset) in enumerate(zip(window, offsets, strict=True)):
            position = at * self.strides[axis] + offset * self.dilations[axis] - frame.word(self.padding[axis])
            inside, position = undilated(frame, position, self.base[axis], self.shape[axis], inside)
            parts.append(position)
        return inside, frame.index(self.shape, parts)


def _reduce_window(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    window = Window(operation, values[0])
    (block,) = operation.regions[0].blocks
    initial = [frame.scalar(start) for start in starts]

    def elements_at(number: Id) -> Sequence[Scalar]:
        inside, source_index = window.element_index(frame, index.parts, number)
        return frame.conditional(inside, lambda: [frame.at(value, source_index) for value in values], lambda: initial)

    return _accumulated(frame, operation, block, window.count, initial, elements_at)


def _select_and_scatter(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    """Sums the scattered values of all windows that select the element."""
    value, source, start = operation.operands
    window = Window(operation, value)
    counts = shape_of(source)
    selection, scatter = (region.block for region in operation.regions)
    # The windows that may contain the element: a range in each dimension, or all.
    most = (-(-number_of(size) // stride) for size, stride in zip(window.sizes, window.strides, strict=True))
    runs = [min(few, count) if isinstance(count, int) else few for few, count in zip(most, counts, strict=True)]
    here = index.linear

    def chosen(window_parts: Sequence[Id]) -> Id:
        """Returns the number of the element that a window selects."""

        def step(number: Id, selected: Sequence[Scalar]) -> Sequence[Scalar]:
            best, at, is_any = selected[0], as_id(selected[1]), as_id(selected[2])
            inside, source_index = window.element_index(frame, window_parts, number)

            def compared() -> Sequence[Scalar]:
                item = frame.at(value, source_index)
                (keeps,) = frame.call(selection, [best, item])
                moves = ~is_any | ~as_id(keeps)
                found_any = frame.builder.boolean(True)
                return [select(moves, item, best), moves.select(source_index.linear, at), found_any]

            return frame.conditional(inside, compared, lambda: selected)

        first = [frame.scalar(start), frame.word(0), frame.builder.boolean(False)]
        selected = frame.fold(operation, window.count, first, step)
        return as_id(selected[2]).select(as_id(selected[1]), 0xFFFFFFFF)

    def step(number: Id, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        parts = []
        holds = frame.builder.boolean(True)
        for axis, offset in enumerate(split(frame.builder, number, runs)):
            if runs[axis] == counts[axis]:
                parts.append(offset)
                continue
            # The last window that may contain the element, and the windows before it.
            last = (index.parts[axis] + frame.word(window.padding[axis])) // window.strides[axis]
            part = last - frame.word(runs[axis] - 1) + offset
            holds = holds & (part < frame.word(counts[axis]))
            parts.append(part)

        def added() -> Sequence[Scalar]:
            elements = frame.at(source, frame.index(counts, parts))
            return frame.conditional(
                chosen(parts).equals(here), lambda: frame.call(scatter, [sums[0], elements]), lambda: sums
            )

        return frame.conditional(holds, added, lambda: sums)

    return frame.fold(operation, product(runs), [frame.scalar(start)], step)


def _map(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    return frame.call(operation.regions[0].block, [frame.at(value, index) for value in operation.operands])


STRUCTURES: Final[Mapping[str, Structure]] = {
    "map": _map,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "select_and_scatter": _select_and_scatter,
}
