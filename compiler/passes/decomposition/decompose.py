"""Operations that no kernel computes alone, in terms of those that one does.

Sorts are bitonic networks, which are here; the others have files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.sizes import Dim, Size, number_of
from ...ir.types import I32, I64, TensorType
from ..rewrite import rewrite_named
from .factorizations import cholesky, triangular_solve
from .random_bits import rng, rng_bit_generator
from .sort_loop import in_order, out_of_order, sorted_in_loop
from .transforms import fft

Values = Sequence[Value]


def decompose(block: Block) -> None:
    """Replaces these operations in a block and the regions inside."""
    rewrite_named(block, _RULES)


def _shape(value: Value) -> tuple[Dim, ...]:
    return tensor_of(value).lengths


# -- sorts -----------------------------------------------------------------------------------------------


MAX_UNROLLED: Final = 512
"""Longer dimensions are sorted in a loop: programs do not grow with them."""


def _sort(builder: Builder, operation: Operation) -> Values:
    """A bitonic network over the sorted dimension, padded to a power of two; ties go by position: it is stable."""
    shape = _shape(operation.operands[0])
    axis = operation.integer("dimension", -1) % len(shape)
    length = shape[axis]
    if isinstance(length, Size) or length > MAX_UNROLLED:
        return sorted_in_loop(builder, operation, axis)
    if length <= 1 or 0 in shape:
        return operation.operands
    size = 1 << (length - 1).bit_length()
    values = [_padded(builder, value, axis, size) for value in operation.operands]
    whole = (*shape[:axis], size, *shape[axis + 1 :])
    place = builder.iota(TensorType(whole, I32), axis)
    values.append(place)
    body = operation.regions[0].block
    block = 2
    while block <= size:
        step = block // 2
        while step:
            values = _exchanged(builder, body, values, place, axis, length, block, step)
            step //= 2
        block *= 2
    return [builder.piece(value, axis, 0, length) for value in values[:-1]]


def _padded(builder: Builder, value: Value, axis: int, size: int) -> Value:
    shape = _shape(value)
    if shape[axis] == size:
        return value
    first = builder.piece(value, axis, 0, 1)
    filled = (*shape[:axis], size - shape[axis], *shape[axis + 1 :])
    return builder.concatenate([value, builder.broadcast(first, filled, range(len(shape)))], axis)


def _exchanged(
    builder: Builder, body: Block, values: Values, place: Value, axis: int, length: int, block: int, step: int
) -> list[Value]:
    """One stage: elements at a distance are exchanged where they are out of order. The last value is the position."""
    partners = [_swapped_halves(builder, value, axis, step) for value in values]
    is_lower = builder.compare("EQ", builder.elementwise("and", place, step), 0)
    firsts, seconds = in_order(builder, is_lower, values, partners)
    swap, later = out_of_order(builder, body, firsts, seconds)
    is_padding = builder.elementwise(
        "or", builder.compare("GE", firsts[-1], length), builder.compare("GE", seconds[-1], length)
    )
    swap = builder.select(is_padding, later, swap)
    descends = builder.compare("NE", builder.elementwise("and", place, block), 0)
    swap = builder.elementwise("xor", swap, descends)
    return [builder.select(swap, other, one) for one, other in zip(values, partners, strict=True)]


def _swapped_halves(builder: Builder, value: Value, axis: int, step: int) -> Value:
    """Each element at the place of the one whose index differs in one bit."""
    shape = _shape(value)
    split = (*shape[:axis], number_of(shape[axis]) // (2 * step), 2, step, *shape[axis + 1 :])
    halves = builder.reshape(value, split)
    attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, (axis + 1,))}
    return builder.reshape(builder.append("reverse", [halves], [halves.type], attributes).result, shape)


_RULES: Final[Mapping[str, Callable[[Builder, Operation], Values]]] = {
    "stablehlo.cholesky": cholesky,
    "stablehlo.fft": fft,
    "stablehlo.rng": rng,
    "stablehlo.rng_bit_generator": rng_bit_generator,
    "stablehlo.sort": _sort,
    "stablehlo.triangular_solve": triangular_solve,
}
