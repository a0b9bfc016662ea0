"""Constraints and result types of transforms, factorisations and triangular systems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import EnumAttr
from ...ir.operation import Operation
from ...ir.types import ScalarType, TensorType, Type
from .requirements import FLOATS, OperationError, Rule, declared_result, expect_kind, ints, merged, same_length, tensors

_TRANSPOSES: Final = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _fft(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    length = ints(operation, "fft_length")
    kind = operation.attributes.get("fft_type")
    if not isinstance(kind, EnumAttr) or kind.case not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise OperationError("fft_type to be FFT, IFFT, RFFT or IRFFT")
    if not 1 <= len(length) <= min(3, value.rank):
        raise OperationError(f"1 to 3 lengths, and no more than {value}'s dimensions, got {list(length)}")
    if (value.scalar.kind == "complex") != (kind.case != "RFFT"):
        raise OperationError(f"{'real' if kind.case == 'RFFT' else 'complex'} numbers for {kind.case}, got {value}", 0)
    wanted = (*length[:-1], length[-1] // 2 + 1 if kind.case == "IRFFT" else length[-1])
    tail = value.shape[value.rank - len(length) :]
    if math.prod(length) and any(dim not in (None, want) for dim, want in zip(tail, wanted, strict=True)):
        raise OperationError(f"last dimensions of {list(wanted)} elements for {kind.case}, got {value}", 0)
    part = value.scalar.part
    element = part if kind.case == "IRFFT" else ScalarType(f"complex<{part}>")
    transformed = (*length[:-1], length[-1] // 2 + 1 if kind.case == "RFFT" else length[-1])
    if not math.prod(length):
        return [declared_result(operation)]
    return [TensorType((*value.shape[: value.rank - len(length)], *transformed), element)]


def _square(type: TensorType, index: int) -> None:
    if type.rank < 2 or (None not in type.shape[-2:] and type.shape[-1] != type.shape[-2]):
        raise OperationError(f"square matrices, got {type}", index)
    expect_kind(type.scalar, FLOATS)


def _cholesky(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    _square(value, 0)
    return [value]


def _triangular_solve(operation: Operation) -> Sequence[Type]:
    matrix, right = tensors(operation, 2)
    _square(matrix, 0)
    transpose = operation.attributes.get("transpose_a")
    if transpose is not None and (not isinstance(transpose, EnumAttr) or transpose.case not in _TRANSPOSES):
        raise OperationError(f"transpose_a to be one of {', '.join(_TRANSPOSES)}, got {transpose}")
    if right.rank != matrix.rank or right.element is not matrix.element:
        raise OperationError(f"a right side of {matrix}'s rank and element type, got {right}", 1)
    side = right.shape[-2 if operation.flag("left_side") else -1]
    same_length(side, matrix.shape[-1], f"a right side that fits {matrix}, got {right}", 1)
    merged(right.shape[:-2], matrix.shape[:-2], f"equal batch dimensions, got {matrix} and {right}", 1)
    return [right]


LINEAR_ALGEBRA: Final[Mapping[str, Rule]] = {
    "cholesky": _cholesky,
    "fft": _fft,
    "triangular_solve": _triangular_solve,
}
