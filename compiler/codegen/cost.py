"""How many iterations of loops an invocation of a region runs, from the operations alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from ..ir.attributes import StructAttr
from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, estimated, product
from .elements import scalar_of, shape_of
from .scalars import storage_bits

_REMAINDER: Final = {32: 38, 64: 196}


def iterations(block: Block) -> int:
    """About how many iterations of loops an invocation runs, all loops together, none of them unrolled.

    What is used several times counts once, as if it were at the same index each time. The generator counts what it
    writes: where that is too much it raises ``NeedsSplitError``.
    """
    counts: dict[Operation, int] = {}
    for operation in _ordered(block):
        counts[operation] = _own(operation, counts)
    groups: dict[tuple[Dim, ...], list[Value]] = {}
    for value in block.terminator.operands:
        groups.setdefault(shape_of(value), []).append(value)
    return sum(
        max(max(32 // storage_bits(scalar_of(value)), 1) for value in values) * _of_all(values, counts)
        for values in groups.values()
    )


def _ordered(block: Block) -> Iterator[Operation]:
    """Operations after those of their bodies."""
    for operation in block.operations:
        for region in operation.regions:
            yield from _ordered(region.block)
        yield operation


def _own(operation: Operation, counts: dict[Operation, int]) -> int:
    """Iterations of an operation's loop, with what is computed in it; zero for those that do not loop."""
    name = operation.name.removeprefix("stablehlo.")
    if name in ("power", "remainder"):
        type = scalar_of(operation.result)
        if type.kind == "float":
            return _REMAINDER[64 if type.bits == 64 else 32] if name == "remainder" else 0
        return type.bits if name == "power" and type.is_integer else 0
    trips = trip_count(operation)
    if trips <= 1:
        return 0
    inside = list(operation.operands)
    for region in operation.regions:
        inside.extend(region.block.terminator.operands)
    return trips * (1 + _of_all(inside, counts))


def trip_count(operation: Operation) -> int:
    """Iterations of an operation's own loop for one element of its result; one for those that do not loop."""
    name = operation.name.removeprefix("stablehlo.")
    attributes = operation.attributes
    if name == "dot_general":
        numbers, shape = attributes["dot_dimension_numbers"], shape_of(operation.operands[0])
        assert isinstance(numbers, StructAttr)
        return estimated(product(shape[axis] for axis in numbers.ints("lhs_contracting_dimensions")))
    if name == "convolution":
        numbers, shape = attributes["dimension_numbers"], shape_of(operation.operands[1])
        assert isinstance(numbers, StructAttr)
        features = numbers.int("kernel_output_feature_dimension")
        return estimated(product(length for axis, length in enumerate(shape) if axis != features))
    if name == "reduce":
        shape = shape_of(operation.operands[0])
        return estimated(product(shape[axis] for axis in operation.integers("dimensions")))
    if name == "reduce_window":
        return estimated(product(operation.sizes("window_dimensions")))
    if name == "select_and_scatter":
        sizes = operation.integers("window_dimensions")
        strides = operation.integers("window_strides", [1] * len(sizes))
        windows = math.prod(-(-size // stride) for size, stride in zip(sizes, strides, strict=True))
        return windows * (1 + math.prod(sizes))
    if name == "scatter":
        numbers, shape = attributes["scatter_dimension_numbers"], shape_of(operation.operands[-1])
        assert isinstance(numbers, StructAttr)
        tried = [axis for axis in range(len(shape)) if axis not in numbers.ints("update_window_dims")]
        batch = product(shape_of(operation.operands[0])[axis] for axis in numbers.ints("input_batching_dims"))
        return estimated(product(shape[axis] for axis in tried)) // max(estimated(batch), 1)
    return 1


def _of_all(values: Iterable[Value], counts: dict[Operation, int]) -> int:
    """Iterations that computing values takes; what a loop computes counts with the loop."""
    total = 0
    seen: set[Operation] = set()
    pending = list(values)
    while pending:
        operation = pending.pop().owner
        if isinstance(operation, Block) or operation in seen or operation not in counts:
            continue
        seen.add(operation)
        total += counts[operation]
        if trip_count(operation) <= 1:
            pending.extend(operation.operands)
    return total
