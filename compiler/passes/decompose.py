"""Operations that no kernel computes alone, in terms of those that one does.

Sorts are bitonic networks, Fourier transforms products with matrices of roots of unity, factorisations and triangular
systems go row by row, and random bits are integer arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..dialects.builder import Builder
from ..ir.attributes import Attribute, DenseArray, EnumAttr, StructAttr
from ..ir.operation import Block, Operation, Value, tensor_of
from ..ir.types import I32, I64, ScalarType, TensorType
from .legacy import over_tensors
from .random_bits import rng, rng_bit_generator
from .rewrite import rewrite_block

Values = Sequence[Value]


def decompose(block: Block) -> None:
    """Replaces these operations in a block and the regions inside."""
    rewrite_block(block, _rewritten)


def _rewritten(builder: Builder, operation: Operation) -> Values | None:
    rule = _RULES.get(operation.name)
    return None if rule is None else rule(builder, operation)


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(length or 0 for length in tensor_of(value).shape)


# -- sorts -----------------------------------------------------------------------------------------------


def _sort(builder: Builder, operation: Operation) -> Values:
    """A bitonic network over the sorted dimension, padded to a power of two; ties go by position: it is stable."""
    shape = _shape(operation.operands[0])
    axis = operation.integer("dimension", -1) % len(shape)
    length = shape[axis]
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
    firsts = [builder.select(is_lower, one, other) for one, other in zip(values, partners, strict=True)]
    seconds = [builder.select(is_lower, other, one) for one, other in zip(values, partners, strict=True)]
    pairs = list(zip(seconds[:-1], firsts[:-1], strict=True))
    (after,) = over_tensors(builder, body, [value for pair in pairs for value in pair])
    (before,) = over_tensors(builder, body, [value for pair in pairs for value in pair[::-1]])
    later = builder.compare("GT", firsts[-1], seconds[-1])
    tie = builder.elementwise("and", builder.elementwise("not", before), later)
    swap = builder.elementwise("or", after, tie)
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
    split = (*shape[:axis], shape[axis] // (2 * step), 2, step, *shape[axis + 1 :])
    halves = builder.reshape(value, split)
    attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, (axis + 1,))}
    return builder.reshape(builder.append("reverse", [halves], [halves.type], attributes).result, shape)


# -- Fourier transforms ----------------------------------------------------------------------------------

_MAX_DIRECT: Final = 64
"""Lengths up to this, and prime ones, are one product with a matrix."""


def _fft(builder: Builder, operation: Operation) -> Values:
    kind = operation.attributes["fft_type"]
    assert isinstance(kind, EnumAttr)
    (value,) = operation.operands
    result = tensor_of(operation.results[0])
    lengths = operation.integers("fft_length")
    if result.count == 0:
        return [builder.constant(0, result)]
    part = tensor_of(value).scalar.part
    rank = result.rank
    inner = rank - len(lengths)
    if kind.case == "RFFT":
        value = builder.complex(value, builder.like(value, 0))
    elif kind.case == "IRFFT":
        value = _hermitian(builder, value, lengths, inner)
    inverse = kind.case in ("IFFT", "IRFFT")
    for axis in range(inner, rank):
        value = _transformed(builder, value, axis, inverse)
    if kind.case == "RFFT":
        return [builder.piece(value, rank - 1, 0, lengths[-1] // 2 + 1)]
    if inverse:
        scale = 1.0 / math.prod(lengths)
        if kind.case == "IRFFT":
            return [builder.elementwise("multiply", builder.part("real", value), scale)]
        parts = [builder.elementwise("multiply", builder.part(name, value), scale) for name in ("real", "imag")]
        value = builder.complex(parts[0], parts[1])
    assert part.kind == "float"
    return [value]


def _hermitian(builder: Builder, value: Value, lengths: Sequence[int], inner: int) -> Value:
    """The whole spectrum of a real signal from its first half: the rest is conjugate, at mirrored indices."""
    axis = len(_shape(value)) - 1
    length = lengths[-1]
    missing = length - (length // 2 + 1)
    if not missing:
        return builder.piece(value, axis, 0, length)
    rest = builder.piece(value, axis, 1, 1 + missing)
    rest = builder.complex(builder.part("real", rest), builder.elementwise("negate", builder.part("imag", rest)))
    rest = _reversed(builder, rest, [axis])
    for other in range(inner, axis):
        # Index 0 is its own mirror image.
        if _shape(rest)[other] > 1:
            first = builder.piece(rest, other, 0, 1)
            others = builder.piece(rest, other, 1, _shape(rest)[other])
            rest = builder.concatenate([first, _reversed(builder, others, [other])], other)
    return builder.concatenate([value, rest], axis)


def _reversed(builder: Builder, value: Value, axes: Sequence[int]) -> Value:
    return builder.append("reverse", [value], [value.type], {"dimensions": DenseArray(I64, tuple(axes))}).result


def _transformed(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """The unscaled transform along a dimension: direct, or by factors as Cooley and Tukey did."""
    shape = _shape(value)
    length = shape[axis]
    factor = _factor(length)
    sign = 2j if inverse else -2j
    if factor == length:
        roots = np.exp(sign * np.pi / length * (np.outer(np.arange(length), np.arange(length)) % length))
        return _product(builder, value, axis, roots)
    rest = length // factor
    split = builder.reshape(value, (*shape[:axis], factor, rest, *shape[axis + 1 :]))
    columns = _transformed(builder, split, axis, inverse)
    twiddles = np.exp(sign * np.pi / length * np.outer(np.arange(factor), np.arange(rest)))
    grid = TensorType((factor, rest), tensor_of(value).element)
    factors = builder.broadcast(builder.constant(twiddles, grid), _shape(columns), (axis, axis + 1))
    rows = _transformed(builder, builder.elementwise("multiply", columns, factors), axis + 1, inverse)
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(shape) + 1)]
    swapped = [_shape(rows)[index] for index in order]
    moved = builder.append(
        "transpose",
        [rows],
        [TensorType(swapped, tensor_of(value).element)],
        {"permutation": DenseArray(I64, tuple(order))},
    ).result
    return builder.reshape(moved, shape)


def _factor(length: int) -> int:
    """A factor to split off, or the length itself."""
    if length <= _MAX_DIRECT:
        return length
    divisors = [each for each in range(2, math.isqrt(length) + 1) if length % each == 0]
    return divisors[-1] if divisors else length


def _product(builder: Builder, value: Value, axis: int, matrix: npt.NDArray[np.complex128]) -> Value:
    """The product of a matrix with the vectors along a dimension."""
    shape = _shape(value)
    element = tensor_of(value).element
    constant = builder.constant(matrix, TensorType(matrix.shape, element))
    fields = {
        "lhs_batching_dimensions": (),
        "rhs_batching_dimensions": (),
        "lhs_contracting_dimensions": (axis,),
        "rhs_contracting_dimensions": (0,),
    }
    others = [length for index, length in enumerate(shape) if index != axis]
    numbers: dict[str, Attribute] = {"dot_dimension_numbers": StructAttr("stablehlo.dot", fields)}
    product = builder.append("dot_general", [value, constant], [TensorType([*others, len(matrix)], element)], numbers)
    last = len(shape) - 1
    if axis == last:
        return product.result
    order = [*range(axis), last, *range(axis, last)]
    permutation: dict[str, Attribute] = {"permutation": DenseArray(I64, tuple(order))}
    return builder.append("transpose", [product.result], [TensorType(shape, element)], permutation).result


# -- linear algebra --------------------------------------------------------------------------------------


def _conjugate(builder: Builder, value: Value) -> Value:
    if tensor_of(value).scalar.kind != "complex":
        return value
    return builder.complex(builder.part("real", value), builder.elementwise("negate", builder.part("imag", value)))


def _transposed(builder: Builder, value: Value) -> Value:
    shape = _shape(value)
    rank = len(shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    type = TensorType([shape[axis] for axis in order], tensor_of(value).element)
    return builder.append("transpose", [value], [type], {"permutation": DenseArray(I64, order)}).result


def _wide(builder: Builder, value: Value) -> Value:
    """Narrow floats as f32."""
    type = tensor_of(value)
    return builder.convert(value, ScalarType("f32")) if type.scalar.bits < 32 else value


def _row(builder: Builder, value: Value, index: int) -> Value:
    return builder.piece(value, len(_shape(value)) - 2, index, index + 1)


def _entry(builder: Builder, value: Value, row: int, column: int) -> Value:
    return builder.piece(_row(builder, value, row), len(_shape(value)) - 1, column, column + 1)


def _matmul(builder: Builder, left: Value, right: Value) -> Value:
    a, b = _shape(left), _shape(right)
    rank = len(a)
    batch = tuple(range(rank - 2))
    fields = {
        "lhs_batching_dimensions": batch,
        "rhs_batching_dimensions": batch,
        "lhs_contracting_dimensions": (rank - 1,),
        "rhs_contracting_dimensions": (rank - 2,),
    }
    type = TensorType((*a[:-1], b[-1]), tensor_of(left).element)
    numbers: dict[str, Attribute] = {"dot_dimension_numbers": StructAttr("stablehlo.dot", fields)}
    return builder.append("dot_general", [left, right], [type], numbers).result


def _triangular_solve(builder: Builder, operation: Operation) -> Values:
    """Rows of the solution one after another, each from those before it."""
    matrix, right = (_wide(builder, value) for value in operation.operands)
    lower, unit, left = (operation.flag(name) for name in ("lower", "unit_diagonal", "left_side"))
    mode = operation.attributes.get("transpose_a")
    case = mode.case if isinstance(mode, EnumAttr) else "NO_TRANSPOSE"
    if case == "ADJOINT":
        matrix = _conjugate(builder, matrix)
    transposes = (case in ("TRANSPOSE", "ADJOINT")) != (not left)
    if transposes:
        matrix, lower = _transposed(builder, matrix), not lower
    if not left:
        right = _transposed(builder, right)
    size = _shape(matrix)[-1]
    if 0 in _shape(right):
        return [operation.operands[1]]
    rows: list[Value] = []
    for index in range(size) if lower else range(size - 1, -1, -1):
        row = _row(builder, right, index)
        if rows:
            known = builder.concatenate(rows if lower else rows[::-1], len(_shape(right)) - 2)
            start, stop = (0, index) if lower else (index + 1, size)
            factors = builder.piece(_row(builder, matrix, index), len(_shape(matrix)) - 1, start, stop)
            row = builder.elementwise("subtract", row, _matmul(builder, factors, known))
        if not unit:
            pivot = _entry(builder, matrix, index, index)
            row = builder.elementwise("divide", row, builder.broadcast(pivot, _shape(row), range(len(_shape(row)))))
        rows.append(row)
    found = builder.concatenate(rows if lower else rows[::-1], len(_shape(right)) - 2)
    found = found if left else _transposed(builder, found)
    return [builder.convert(found, tensor_of(operation.results[0]).scalar)]


def _cholesky(builder: Builder, operation: Operation) -> Values:
    """Columns of the lower factor one after another; NaN where the matrix is not positive definite."""
    (value,) = operation.operands
    lower = operation.flag("lower")
    matrix = _wide(builder, value)
    if not lower:
        matrix = _conjugate(builder, _transposed(builder, matrix))
    shape = _shape(matrix)
    rank, size = len(shape), shape[-1]
    if 0 in shape:
        return [value]
    columns: list[Value] = []
    for index in range(size):
        column = builder.piece(builder.piece(matrix, rank - 2, index, size), rank - 1, index, index + 1)
        if columns:
            known = builder.concatenate(columns, rank - 1)
            below = builder.piece(known, rank - 2, index, size)
            row = _conjugate(builder, _row(builder, known, index))
            column = builder.elementwise("subtract", column, _matmul(builder, below, _transposed(builder, row)))
        pivot = builder.piece(column, rank - 2, 0, 1)
        real = builder.part("real", pivot) if tensor_of(pivot).scalar.kind == "complex" else pivot
        good = builder.compare("GT", real, 0.0)
        root = builder.elementwise("sqrt", builder.select(good, real, math.nan))
        if tensor_of(pivot).scalar.kind == "complex":
            root = builder.complex(root, builder.like(root, 0))
        column = builder.elementwise("divide", column, builder.broadcast(root, _shape(column), range(rank)))
        if index:
            above = (*shape[:-2], index, 1)
            zeros = builder.constant(0, TensorType(above, tensor_of(column).element))
            column = builder.concatenate([zeros, column], rank - 2)
        columns.append(column)
    factor = builder.concatenate(columns, rank - 1)
    if not lower:
        factor = _conjugate(builder, _transposed(builder, factor))
    return [builder.convert(factor, tensor_of(value).scalar)]


_RULES: Final[Mapping[str, Callable[[Builder, Operation], Values]]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.fft": _fft,
    "stablehlo.rng": rng,
    "stablehlo.rng_bit_generator": rng_bit_generator,
    "stablehlo.sort": _sort,
    "stablehlo.triangular_solve": _triangular_solve,
}
