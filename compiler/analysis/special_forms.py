"""Facts about scatters, radix sorts, Fourier transforms and contractions on which passes and strategies agree.

In a direct scatter an invocation writes an update to its target; in other scatters, each target searches for its
updates. A direct scatter needs a result that already holds the operand, and updates whose order does not matter: either
no two updates have the same target, or an atomic integer instruction joins them. If updates are long rows, an
invocation may write an element of each update, one after another; the attribute ``in_order`` marks this.

A pass of a radix sort is a sort with two more operands. A kernel computes short Fourier transforms row by row.
"""

from __future__ import annotations

from typing import Final

from ..ir.attributes import StructAttr
from ..ir.operation import Operation, Value
from ..ir.sizes import Dim, number_of, product
from .identities import joined_by
from .weights import HEAVY, MOVES

IN_ORDER: Final = "in_order"
"""The attribute of scatters whose updates are applied one after another."""

MAX_LOOKS: Final = 1 << 14
"""The most elements times updates at which each target searches for its updates: the scatter can join a larger region.
"""

ATOMIC: Final = frozenset({"add", "and", "maximum", "minimum", "or", "xor"})
ATOMIC_IN_HALVES: Final = frozenset({"add", "and", "or", "xor"})
"""Bodies on 64-bit integers that work in halves: a sum adds the low words, then the high words with the carry."""


class ScatterAxes:
    """The correspondence between the dimensions of a scatter's inputs, indices and updates.

    Attributes:
        shape: the shape of the updates.
        target: the shape of the inputs.
        scatter: the dimensions of the updates that select an index vector; the others are window dimensions.
        window: the window dimensions of the updates, one for each of ``kept``.
        kept: the dimensions of the inputs that windows have.
        mapped: the dimension of the inputs for each component of an index vector.
        batches: the dimensions of the updates, by the batch dimensions of the inputs.
        vector: the dimension of the indices that holds the components.
    """

    def __init__(self, operation: Operation) -> None:
        numbers = operation.attributes["scatter_dimension_numbers"]
        assert isinstance(numbers, StructAttr)
        self.shape: tuple[Dim, ...]
        self.target: tuple[Dim, ...]
        self.shape, self.target = operation.operands[-1].tensor.lengths, operation.operands[0].tensor.lengths
        self.window: tuple[int, ...]
        self.window, inserted = numbers.ints("update_window_dims"), numbers.ints("inserted_window_dims")
        self.mapped: tuple[int, ...] = numbers.ints("scatter_dims_to_operand_dims")
        self.vector: int = numbers.int("index_vector_dim")
        self.scatter: list[int] = [axis for axis in range(len(self.shape)) if axis not in self.window]
        inputs, indices = numbers.ints("input_batching_dims"), numbers.ints("scatter_indices_batching_dims")
        self.batches: dict[int, int] = {
            axis: self.scatter[source - (source > self.vector)] for axis, source in zip(inputs, indices, strict=True)
        }
        self.kept: list[int] = [axis for axis in range(len(self.target)) if axis not in inserted and axis not in inputs]


def is_direct(operation: Operation) -> bool:
    """Returns whether a scatter can be computed by its updates: each goes straight to its element."""
    if operation.name != "stablehlo.scatter" or len(operation.results) != 1:
        return False
    value = operation.operands[0]
    types = [operand.tensor for operand in (*operation.operands, operation.results[0])]
    if not all(type.is_static and type.count for type in types) or value in operation.operands[1:]:
        return False
    element = value.tensor.scalar
    if element.bits < 32 or number_of(_looks(operation)) <= MAX_LOOKS:
        return False
    if operation.flag("unique_indices") or (operation.flag(IN_ORDER) and _are_rows(operation)):
        return True
    joined = joined_by(operation.regions[0].block)
    return element.kind in ("int", "uint") and joined in (ATOMIC if element.bits == 32 else ATOMIC_IN_HALVES)


def _are_rows(operation: Operation) -> bool:
    """Returns whether the updates of an index vector are apart in memory: kept scattered dimensions have length 1."""
    axes = ScatterAxes(operation)
    pairs = zip(axes.kept, axes.window, strict=True)
    return all(axes.shape[update] == 1 for axis, update in pairs if axis in axes.mapped)


def _looks(operation: Operation) -> Dim:
    """Returns the number of elements times the number of updates."""
    axes = ScatterAxes(operation)
    return product(axes.target) * product(axes.shape[axis] for axis in axes.scatter)


GIVEN: Final = "given"
"""The attribute of a pass: the number of trailing operands that are not sorted, the digits and the chunks' starts."""

RUN: Final = 4
"""Elements of a chunk that are loaded together."""


def chunk_of(length: int, chunks: int) -> int:
    """Returns the elements of a chunk: a multiple of four runs, so that words of every type fill 256 bits."""
    chunk = -(-length // chunks)
    return -(-chunk // (4 * RUN)) * 4 * RUN


MAX_RADIX: Final = 16
"""The most elements of a row."""


def follows_element_by_element(operation: Operation, value: Value) -> bool:
    """Returns whether each element of an operand contributes to exactly one element of an operation's result."""
    name = operation.name.removeprefix("stablehlo.")
    if name in ("reshape", "transpose"):
        return True
    alone = len(operation.results) == 1 and not operation.regions and name not in HEAVY | MOVES
    return alone and all(
        operand.tensor.shape == value.tensor.shape for operand in (*operation.operands, *operation.results)
    )


def products_per_element(operation: Operation) -> Dim:
    """Returns the number of products that are summed for each element of a contraction or a convolution."""
    return product(depth_of(operation))


def depth_of(operation: Operation) -> list[Dim]:
    """Returns the lengths that are summed over, at least one: contracted dimensions, or the window's dimensions and the
    input features. An outer product sums over a length of 1.
    """
    left, right = (value.tensor.lengths for value in operation.operands[:2])
    if operation.name == "stablehlo.dot_general":
        return [left[axis] for axis in numbers_of(operation).ints("lhs_contracting_dimensions")] or [1]
    numbers = numbers_of(operation)
    taps = [right[axis] for axis in numbers.ints("kernel_spatial_dimensions")]
    return [*taps, right[numbers.int("kernel_input_feature_dimension")]]


def numbers_of(operation: Operation) -> StructAttr:
    """Returns the dimension numbers of a contraction or a convolution."""
    numbers = operation.attributes.get("dot_dimension_numbers", operation.attributes.get("dimension_numbers"))
    assert isinstance(numbers, StructAttr)
    return numbers
