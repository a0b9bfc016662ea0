"""Constraints and result types of operations with shapes as operands.

If such an operand is a constant, the constraints of the static form apply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import Attribute, DenseArray, DenseElements
from ...ir.operation import Operation, Value
from ...ir.types import I64, TensorType, Type
from .indexing import INDEXING, gathered
from .reductions import convolved
from .requirements import OperationError, Rule, compatible, declared_result, integer, operands, tensors
from .shapes import SHAPES


def constant_numbers(value: Value) -> tuple[int, ...] | None:
    """Returns the elements of a constant vector of integers, or None."""
    owner = value.owner
    if not isinstance(owner, Operation) or not owner.name.endswith(".constant"):
        return None
    elements = owner.attributes.get("value")
    if not isinstance(elements, DenseElements) or not elements.type.scalar.is_integer:
        return None
    return tuple(int(item) for item in elements.array.reshape(-1))


def _vector(operation: Operation, index: int, length: int | None = None) -> tuple[int, ...] | None:
    """Checks that an operand is a vector of integers of known length; returns its elements if it is constant."""
    type = tensors(operation)[index]
    if type.rank != 1 or not type.is_static or not type.scalar.is_integer:
        raise OperationError(f"a vector of integers of known length as operand {index}, got {type}", index)
    if length is not None and type.shape != (length,):
        raise OperationError(f"{length} numbers as operand {index}, got {type}", index)
    return constant_numbers(operation.operands[index])


def _shaped(operation: Operation, index: int) -> TensorType:
    """Returns the result's type, which must have the shape in an operand."""
    result = declared_result(operation)
    numbers = _vector(operation, index, result.rank)
    if numbers is not None and not compatible(TensorType(numbers, result.element), result):
        raise OperationError(f"a result of the shape {list(numbers)} that operand {index} gives, got {result}", index)
    if numbers is not None and any(number < 0 for number in numbers):
        raise OperationError(f"lengths of 0 or more, got {list(numbers)}", index)
    return TensorType(numbers, result.element) if numbers is not None else result


def _as(operation: Operation, name: str, result: Type, attributes: Mapping[str, Attribute]) -> Operation:
    """Returns the static form of an operation, with the first operand only."""
    return Operation(f"stablehlo.{name}", operation.operands[:1], [result], {**operation.attributes, **attributes})


def _dynamic_reshape(operation: Operation) -> Sequence[Type]:
    operands(operation, 2)
    return SHAPES["reshape"](_as(operation, "reshape", _shaped(operation, 1), {}))


def _dynamic_broadcast(operation: Operation) -> Sequence[Type]:
    operands(operation, 2)
    result = _shaped(operation, 1)
    known = [*operation.integers("known_expanding_dimensions"), *operation.integers("known_nonexpanding_dimensions")]
    rank = tensors(operation)[0].rank
    if len(set(known)) != len(known) or any(not 0 <= axis < rank for axis in known):
        raise OperationError(f"known dimensions to be different numbers from 0 to {rank - 1}, got {known}")
    return SHAPES["broadcast_in_dim"](_as(operation, "broadcast_in_dim", result, {}))


def _dynamic_iota(operation: Operation) -> Sequence[Type]:
    operands(operation, 1)
    result = _shaped(operation, 0)
    return SHAPES["iota"](Operation("stablehlo.iota", (), [result], dict(operation.attributes)))


def _static(operation: Operation, name: str, names: Sequence[str], first: int) -> Sequence[Type]:
    """Returns the types of the static form, with the operands from ``first`` on as attributes, if all are known."""
    value = tensors(operation)[0]
    lists = [_vector(operation, first + index, value.rank) for index in range(len(names))]
    attributes = {
        key: DenseArray(I64, numbers) for key, numbers in zip(names, lists, strict=True) if numbers is not None
    }
    if len(attributes) < len(names):
        return [TensorType([None] * value.rank, value.element)]
    return INDEXING[name](Operation(f"stablehlo.{name}", operation.operands[:first], (), dict(attributes)))


def _dynamic_pad(operation: Operation) -> Sequence[Type]:
    value, *_ = tensors(operation, 5)
    interior = _vector(operation, 4, value.rank) or ()
    if any(number < 0 for number in interior):
        raise OperationError(f"interior padding of 0 or more, got {list(interior)}", 4)
    return _static(operation, "pad", ("edge_padding_low", "edge_padding_high", "interior_padding"), 2)


def _real_dynamic_slice(operation: Operation) -> Sequence[Type]:
    operands(operation, 4)
    return _static(operation, "slice", ("start_indices", "limit_indices", "strides"), 1)


def _dynamic_gather(operation: Operation) -> Sequence[Type]:
    value, indices, _ = tensors(operation, 3)
    sizes = _vector(operation, 2, value.rank)
    return gathered(operation, value, indices, sizes if sizes is not None else [None] * value.rank)


def _dynamic_conv(operation: Operation) -> Sequence[Type]:
    value, kernel, padding = tensors(operation, 3)
    rank = value.rank - 2
    if padding.shape != (rank, 2) or not padding.scalar.is_integer:
        raise OperationError(f"integers of shape {[rank, 2]} as operand 2, got {padding}", 2)
    flat = constant_numbers(operation.operands[2])
    pairs = None if flat is None else list(zip(flat[::2], flat[1::2], strict=True))
    return convolved(operation, value, kernel, pairs)


def _set_dimension_size(operation: Operation) -> Sequence[Type]:
    value, size = tensors(operation, 2)
    axis = integer(operation, "dimension", -1)
    if not 0 <= axis < value.rank:
        raise OperationError(f"dim from 0 to {value.rank - 1}, got {axis}")
    if size.rank or not size.scalar.is_integer:
        raise OperationError(f"a size that is an integer, got {size}", 1)
    shape = list(value.shape)
    shape[axis] = None
    return [TensorType(shape, value.element)]


DYNAMIC: Final[Mapping[str, Rule]] = {
    "dynamic_broadcast_in_dim": _dynamic_broadcast,
    "dynamic_conv": _dynamic_conv,
    "dynamic_gather": _dynamic_gather,
    "dynamic_iota": _dynamic_iota,
    "dynamic_pad": _dynamic_pad,
    "dynamic_reshape": _dynamic_reshape,
    "real_dynamic_slice": _real_dynamic_slice,
    "set_dimension_size": _set_dimension_size,
}
