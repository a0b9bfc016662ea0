"""Fourier transforms by Cooley and Tukey's factorisation, down to rows that a kernel transforms in registers.

Larger prime factors are products with matrices of roots of unity, or Bluestein's convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ...analysis.special_forms import MAX_RADIX
from ...dialects.builder import Builder, Values
from ...ir.attributes import Attribute, DenseArray, EnumAttr
from ...ir.operation import Operation, Value, tensor_of
from ...ir.sizes import Dim, number_of
from ...ir.types import I32, I64, TensorType
from .building import taken


def _shape(value: Value) -> tuple[Dim, ...]:
    return tensor_of(value).lengths


_MAX_PRIME: Final = 256
"""The largest prime length computed as a product with a matrix."""

_MAX_TABLE: Final = 1 << 12
"""The most roots of unity in a constant; further roots are products of two."""


def fft(builder: Builder, operation: Operation) -> Values | None:
    if is_short(operation):
        return None
    kind = operation.attributes["fft_type"]
    assert isinstance(kind, EnumAttr)
    (value,) = operation.operands
    result = tensor_of(operation.results[0])
    lengths = operation.integers("fft_length")
    if result.count == 0:
        return [builder.constant(0, result)]
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
    if kind.case == "IRFFT":
        return [builder.part("real", value)]
    return [value]


def is_short(operation: Operation) -> bool:
    """Whether a kernel transforms the rows in registers."""
    kind, lengths = operation.attributes["fft_type"], operation.integers("fft_length")
    is_complex = isinstance(kind, EnumAttr) and kind.case in ("FFT", "IFFT")
    return is_complex and len(lengths) == 1 and 1 <= lengths[0] <= MAX_RADIX and operation.tensor.count != 0


def _hermitian(builder: Builder, value: Value, lengths: Sequence[int], inner: int) -> Value:
    """Returns the whole spectrum of a real signal from its first half; the rest is the mirrored conjugate."""
    axis = len(_shape(value)) - 1
    length = lengths[-1]
    missing = length - (length // 2 + 1)
    if not missing:
        return builder.piece(value, axis, 0, length)
    rest = builder.piece(value, axis, 1, 1 + missing)
    rest = builder.reverse(builder.conjugate(rest), [axis])
    for other in range(inner, axis):
        # Index 0 is its own mirror image.
        if number_of(_shape(rest)[other]) > 1:
            first = builder.piece(rest, other, 0, 1)
            others = builder.piece(rest, other, 1, _shape(rest)[other])
            rest = builder.concatenate([first, builder.reverse(others, [other])], other)
    return builder.concatenate([value, rest], axis)


def _transformed(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """Transforms along a dimension; scales the inverse."""
    shape = _shape(value)
    length = number_of(shape[axis])
    factor = _factor(length)
    if factor == length:
        if length <= MAX_RADIX:
            return _short(builder, value, axis, inverse)
        return (
            _convolved(builder, value, axis, inverse)
            if length > _MAX_PRIME
            else _product(builder, value, axis, inverse)
        )
    rest = length // factor
    split = builder.reshape(value, (*shape[:axis], factor, rest, *shape[axis + 1 :]))
    columns = _transformed(builder, split, axis, inverse)
    factors = builder.broadcast(_twiddles(builder, factor, rest, inverse, columns), _shape(columns), (axis, axis + 1))
    rows = _transformed(builder, builder.elementwise("multiply", columns, factors), axis + 1, inverse)
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(shape) + 1)]
    return builder.reshape(builder.transpose(rows, order), shape)


def _factor(length: int) -> int:
    """Returns a factor to split off: the largest that a kernel transforms, else the smallest prime, or the length
    itself.
    """
    radices = [factor for factor in range(2, MAX_RADIX + 1) if length % factor == 0]
    if radices:
        return radices[-1]
    return next((factor for factor in range(MAX_RADIX + 1, math.isqrt(length) + 1) if length % factor == 0), length)


def _short(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """Transforms along a dimension by the operation, which transforms the last dimension."""
    rank = len(_shape(value))
    order = [*range(axis), *range(axis + 1, rank), axis]
    moved = builder.transpose(value, order)
    attributes: dict[str, Attribute] = {
        "fft_type": EnumAttr("stablehlo", "fft_type", "IFFT" if inverse else "FFT"),
        "fft_length": DenseArray(I64, (number_of(_shape(value)[axis]),)),
    }
    result = builder.append("fft", [moved], [moved.type], attributes).result
    return builder.transpose(result, [order.index(number) for number in range(rank)])


def _twiddles(builder: Builder, factor: int, rest: int, inverse: bool, like: Value) -> Value:
    """Returns powers of a root of unity by row times column, from a table or from products of two short tables."""
    length, element = factor * rest, tensor_of(like).element
    grid = TensorType((factor, rest), element)
    sign = 2j if inverse else -2j
    if length <= _MAX_TABLE:
        powers = np.outer(np.arange(factor), np.arange(rest))
        return builder.constant(np.exp(sign * np.pi / length * powers), grid)
    step = 1 << ((length - 1).bit_length() + 1) // 2
    power = builder.elementwise("multiply", *(builder.iota(grid.of(I32), axis) for axis in range(2)))
    factors = []
    for name, part, count in (("divide", step, -(-length // step)), ("remainder", 1, step)):
        table = builder.constant(np.exp(sign * np.pi / length * part * np.arange(count)), TensorType((count,), element))
        places = builder.reshape(builder.elementwise(name, power, step), (length,))
        factors.append(builder.reshape(taken(builder, table, places), (factor, rest)))
    return builder.elementwise("multiply", *factors)


def _convolved(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """Returns a transform of prime length by Bluestein's convolution with a chirp, in lengths of a power of two."""
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

    padded = builder.lengthen(times(value, chirp), axis, size - length)
    spectrum = times(_transformed(builder, padded, axis, False), np.fft.fft(response))
    result = _transformed(builder, spectrum, axis, True)
    return times(builder.piece(result, axis, 0, length), chirp / length if inverse else chirp)


def _product(builder: Builder, value: Value, axis: int, inverse: bool) -> Value:
    """Multiplies the vectors along a dimension by a matrix of roots of unity."""
    shape = _shape(value)
    length = number_of(shape[axis])
    powers = np.outer(np.arange(length), np.arange(length)) % length
    matrix = np.exp((2j if inverse else -2j) * np.pi / length * powers) / (length if inverse else 1)
    element = tensor_of(value).element
    constant = builder.constant(matrix, TensorType(matrix.shape, element))
    product = builder.contract(value, constant, ((axis,), (0,)))
    last = len(shape) - 1
    return builder.transpose(product, [*range(axis), last, *range(axis, last)])
