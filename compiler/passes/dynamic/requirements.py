"""Requirements on call-dependent lengths, and the function attributes that hold them.

``requires`` lists pairs of a size that must be at least 0 and the error message otherwise; ``values`` lists pairs of an
argument and the size that its value must equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...dialects.rules.requirements import OperationError
from ...ir.attributes import Attribute, DenseArray
from ...ir.operation import Operation
from ...ir.sizes import Dim, Size
from ...ir.types import ShapedType, TensorType, Type

REQUIRES: Final = "requires"
VALUES: Final = "values"


def can_be_length(type: Type) -> bool:
    """Whether an argument's value may be a length: a byte-sized or wider integer of rank 0."""
    return isinstance(type, ShapedType) and type.rank == 0 and type.scalar.is_integer and type.scalar.bits >= 8


def values_of(attributes: Mapping[str, Attribute], types: Sequence[Type]) -> dict[int, Dim]:
    """Reads which arguments' values are lengths; returns the required sizes by argument.

    Raises:
        OperationError: the attribute has another form.
    """
    values: dict[int, Dim] = {}
    listed = attributes.get(VALUES, ())
    for pair in listed if isinstance(listed, tuple) else (listed,):
        number, size = pair.values if isinstance(pair, DenseArray) and len(pair.values) == 2 else (-1, 0)
        is_argument = isinstance(number, int) and 0 <= number < len(types) and can_be_length(types[number])
        if not isinstance(number, int) or not is_argument or not isinstance(size, int | Size):
            raise OperationError(
                f"pairs of an argument, which is an integer without dimensions, and a size in {VALUES}; got {pair}"
            )
        values[number] = size
    return values


def shape_requirements(operation: Operation) -> Iterator[tuple[Dim, str]]:
    """Yields sizes that must be at least 0 for results to have shapes, with the expectation in words."""
    for value in operation.results:
        if isinstance(value.type, TensorType):
            for axis, length in enumerate(value.type.lengths):
                yield length, f"a result with 0 or more elements along dimension {axis}, got {length}"
    if operation.name == "stablehlo.reshape":
        before, after = (value.tensor for value in (*operation.operands, *operation.results))
        for difference in (before.count - after.count, after.count - before.count):
            yield difference, f"as many elements in the result as in {before}, got {after}"


def requirements(operation: Operation) -> Iterator[tuple[Dim, str]]:
    """Yields sizes that must be at least 0 for an operation to be defined, with the expectation in words."""
    yield from shape_requirements(operation)
    name = operation.name.removeprefix("stablehlo.")
    if not operation.operands or not isinstance(operation.operands[0].type, TensorType):
        return
    lengths = operation.operands[0].tensor.lengths
    if name == "slice":
        for axis, (start, limit) in enumerate(
            zip(operation.sizes("start_indices"), operation.sizes("limit_indices"), strict=True)
        ):
            yield start, f"a slice that starts at 0 or later, got {start}"
            yield limit - start, f"a slice that ends no earlier than it starts, got {start}:{limit}"
            yield lengths[axis] - limit, f"a slice that ends within {lengths[axis]} elements, got {limit}"
    elif name in ("gather", "dynamic_slice"):
        for length, size in zip(lengths, operation.sizes("slice_sizes"), strict=True):
            yield length - size, f"slices within {length} elements, got {size}"
    elif name == "dynamic_update_slice":
        for length, size in zip(lengths, operation.operands[1].tensor.lengths, strict=True):
            yield length - size, f"an update within {length} elements, got {size}"
    elif name == "pad":
        for length, between in zip(lengths, operation.sizes("interior_padding"), strict=True):
            yield between, f"interior padding of 0 or more, got {between}"
            if between:
                yield length - 1, f"an element at least to pad in between, got {length}"
    elif name == "reduce_window":
        for size in operation.sizes("window_dimensions"):
            yield size - 1, f"windows of an element at least, got {size}"
