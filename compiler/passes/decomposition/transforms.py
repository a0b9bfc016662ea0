"""Fourier transforms: products with matrices of roots of unity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, EnumAttr, StructAttr
from ...ir.operation import Operation, Value, tensor_of
from ...ir.sizes import Dim, number_of
from ...ir.types import I64, TensorType

Values = Sequence[Value]


def _shape(value: Value) -> tuple[Dim, ...]:
    return tensor_of(value).lengths


_MAX_DIRECT: Final = 64
"""Lengths up to this are one product with a matrix."""

_MAX_PRIME: Final = 256
"""So are prime ones up to this."""


def fft(builder: Builder, operation: Operation) -> Values:
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
        if number_of(_shape(rest)[other]) > 1:
            first = builder.piece(rest, other, 0, 1)
            others = builder.piece(rest, other, 1, _shape(rest)[other])
            rest = builder.concatenate([first, _reversed(builder, others, [other])], other)
    return builder.concatenate([value, rest], axis)


def _reversed(builder: Builder, value: Value, axes: Sequence[int]) -> Value:
    return builder.append("reverse", [value], [value.type], {"dimensions": DenseArray(I64, tuple(axes))}).result


def _transformed(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """The unscaled transform along a dimension: direct, by factors as Cooley and Tukey did, or as a convolution."""
    shape = _shape(value)
    length = number_of(shape[axis])
    factor = _factor(length)
    sign = 2j if inverse else -2j
    if factor == length and length > _MAX_PRIME:
        return _convolved(builder, value, axis, inverse)
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


def _convolved(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """A transform of prime length by transforms of a power of two: Bluestein's convolution with a chirp."""
    shape = _shape(value)
    length = number_of(shape[axis])
    size = 1 << (2 * length - 2).bit_length()
    # Squares are reduced first, so that angles stay small and exact.
    chirp = np.exp((1j if inverse else -1j) * np.pi / length * (np.arange(length, dtype=np.int64) ** 2 % (2 * length)))
    response = np.zeros(size, np.complex128)
    response[:length] = chirp.conj()
    response[size - length + 1 :] = chirp[:0:-1].conj()
    element = tensor_of(value).element

    def times(value: Value, factors: npt.NDArray[np.complex128]) -> Value:
        vector = builder.constant(factors, TensorType(factors.shape, element))
        return builder.elementwise("multiply", value, builder.broadcast(vector, _shape(value), (axis,)))

    none = [0] * len(shape)
    high = [size - length if each == axis else 0 for each in range(len(shape))]
    zero = builder.constant(0, TensorType((), element))
    padded = builder.pad(times(value, chirp), zero, none, high, none)
    spectrum = times(_transformed(builder, padded, axis, False), np.fft.fft(response) / size)
    found = _transformed(builder, spectrum, axis, True)
    return times(builder.piece(found, axis, 0, length), chirp)


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
