"""Constraints and result types of transforms, factorisations, triangular systems and Einstein sums."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import EnumAttr
from ...ir.operation import Operation
from ...ir.types import ScalarType, TensorType, Type
from .requirements import (
    FLOATS,
    Length,
    OperationError,
    Rule,
    declared_result,
    expect_kind,
    ints,
    merged,
    same_length,
    tensors,
)

_CONFIG: Final = re.compile(r"[a-zA-Z]*(,[a-zA-Z]*)?->[a-zA-Z]*", re.ASCII)
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


def _einsum(operation: Operation) -> Sequence[Type]:
    count = 1 if operation.name.endswith("unary_einsum") else 2
    types = tensors(operation, count)
    config = str(operation.attributes.get("einsum_config")).replace(" ", "")
    inputs, _, output = config.partition("->")
    names = inputs.split(",")
    if not _CONFIG.fullmatch(config) or len(names) != count:
        raise OperationError(f"einsum_config such as {'ab->a' if count == 1 else 'ab,bc->ac'}, got {config}")
    lengths: dict[str, Length] = {}
    for index, (letters, type) in enumerate(zip(names, types, strict=True)):
        if len(set(letters)) != type.rank or len(letters) != type.rank:
            raise OperationError(f"a different letter for each dimension of {type}, got {letters}", index)
        for letter, length in zip(letters, type.shape, strict=True):
            expected = f"dimensions {letter} of one length, got {' and '.join(map(str, types))}"
            lengths[letter] = same_length(lengths.get(letter), length, expected, index)
    if len(set(output)) != len(output) or not set(output) <= set(lengths):
        raise OperationError(f"different letters of the operands in the result, got {output}")
    return [TensorType([lengths[letter] for letter in output], declared_result(operation).element)]


LINEAR_ALGEBRA: Final[Mapping[str, Rule]] = {
    "cholesky": _cholesky,
    "einsum": _einsum,
    "fft": _fft,
    "triangular_solve": _triangular_solve,
    "unary_einsum": _einsum,
}
