"""Constraints and result types of StableHLO's older forms and tokens: ``einsum``, ``torch_index_select``,
``after_all``, …
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.operation import Operation
from ...ir.types import DialectType, ScalarType, TensorType, Type
from .requirements import Length, OperationError, Rule, declared_result, integer, merged, operands, same_length, tensors

_TOKEN: Final = DialectType("!stablehlo.token")
_CONFIG: Final = re.compile(r"[a-zA-Z]*(,[a-zA-Z]*)?->[a-zA-Z]*", re.ASCII)


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


def _torch_index_select(operation: Operation) -> Sequence[Type]:
    value, indices = tensors(operation, 2)
    axis, batch = integer(operation, "dim", -1), integer(operation, "batch_dims", -1)
    if not 0 <= batch <= indices.rank or not batch <= axis < value.rank:
        raise OperationError(f"0 <= batch_dims <= {indices.rank} and batch_dims <= dim < {value.rank}")
    if not indices.scalar.is_integer:
        raise OperationError(f"indices that are integers, got {indices}", 1)
    merged(value.shape[:batch], indices.shape[:batch], f"equal batch dimensions, got {value} and {indices}", 1)
    shape = (*value.shape[:axis], *indices.shape[batch:], *value.shape[axis + 1 :])
    return [TensorType(shape, value.element)]


def _after_all(operation: Operation) -> Sequence[Type]:
    if any(value.type is not _TOKEN for value in operation.operands):
        raise OperationError("operands that are tokens")
    return [_TOKEN]


def _place(operation: Operation) -> Sequence[Type]:
    operands(operation, 0)
    return [TensorType((), ScalarType("ui32"))]


OLDER: Final[Mapping[str, Rule]] = {
    "after_all": _after_all,
    "create_token": _after_all,
    "einsum": _einsum,
    "partition_id": _place,
    "replica_id": _place,
    "torch_index_select": _torch_index_select,
    "unary_einsum": _einsum,
}
