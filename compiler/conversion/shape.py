"""``shape``: computations of shapes, as vectors of i64. Witnesses that shapes fit are checked at compile time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ..dialects.rules.requirements import OperationError
from ..ir.attributes import DenseElements, type_shape
from ..ir.operation import Value, tensor_of
from ..ir.types import I1, I64, TensorType
from ..passes.canonical.legacy import constant_of
from .conversion import Rule, Site, integers_of, length_of

Values = Sequence[Value]


def _vector(site: Site, numbers: Sequence[int]) -> Values:
    return [site.builder.constant(np.array(numbers, np.int64), TensorType((len(numbers),), I64))]


def _shape_of(site: Site) -> Values:
    (value,) = site.operands
    type = tensor_of(value)
    if type.is_static:
        return _vector(site, type_shape(type))
    lengths = [site.builder.reshape(length_of(site, value, axis), (1,)) for axis in range(type.rank)]
    return [site.builder.concatenate(lengths, 0)]


def _numbers(value: Value) -> list[int]:
    """Returns the shape of a constant vector."""
    constant = constant_of(value)
    if constant is None or tensor_of(value).rank != 1:
        raise OperationError("shapes that are known when the program is compiled")
    return [int(item) for item in np.asarray(constant.array).reshape(-1)]


def _const_shape(site: Site) -> Values:
    value = site.operation.attributes.get("shape")
    if not isinstance(value, DenseElements):
        raise OperationError("a shape such as [2, 3]")
    return _vector(site, [int(item) for item in value.array.reshape(-1)])


def _const_size(site: Site) -> Values:
    number = getattr(site.operation.attributes.get("value"), "value", None)
    if not isinstance(number, int):
        raise OperationError("a size such as 3")
    return [site.builder.constant(number, TensorType((), I64))]


def _num_elements(site: Site) -> Values:
    return [site.builder.constant(math.prod(_numbers(site.operands[0])), TensorType((), I64))]


def _broadcast(site: Site) -> Values:
    shapes = [tuple(_numbers(value)) for value in site.operands]
    return _vector(site, _together(shapes))


def _together(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise OperationError(f"shapes that fit each other, got {', '.join(map(str, shapes))}") from None


def _get_extent(site: Site) -> Values:
    shape, index = site.operands
    numbers = _numbers(shape)
    (axis,) = integers_of([index], "dimensions")
    if not 0 <= axis < len(numbers):
        raise OperationError(f"a dimension below {len(numbers)}, got {axis}")
    return [site.builder.constant(numbers[axis], TensorType((), I64))]


def _dim(site: Site) -> Values:
    value, index = site.operands
    (axis,) = integers_of([index], "dimensions")
    return [length_of(site, value, axis)]


def _rank(site: Site) -> Values:
    return [site.builder.constant(len(_numbers(site.operands[0])), TensorType((), I64))]


def _concat(site: Site) -> Values:
    return _vector(site, [number for value in site.operands for number in _numbers(value)])


def _from_extents(site: Site) -> Values:
    return _vector(site, integers_of(site.operands, "lengths"))


def _same(site: Site) -> Values:
    return site.operands


def _witness(site: Site) -> Values:
    return [site.builder.constant(True, TensorType((), I1))]


def _broadcastable(site: Site) -> Values:
    _together([tuple(_numbers(value)) for value in site.operands])
    return _witness(site)


def _equal(site: Site) -> Values:
    shapes = [_numbers(value) for value in site.operands]
    if any(shape != shapes[0] for shape in shapes):
        raise OperationError(f"equal shapes, got {', '.join(map(str, shapes))}")
    return _witness(site)


def _assuming(site: Site) -> Values:
    return site.conversion.inline(site.operation.regions[0].block, [], site.builder)


SHAPE: Final[Mapping[str, Rule]] = {
    "assuming": Rule(1, _assuming, 1),
    "assuming_all": Rule(None, _witness),
    "broadcast": Rule(None, _broadcast),
    "concat": Rule(2, _concat),
    "const_shape": Rule(0, _const_shape),
    "const_size": Rule(0, _const_size),
    "const_witness": Rule(0, _witness),
    "cstr_broadcastable": Rule(None, _broadcastable),
    "cstr_eq": Rule(None, _equal),
    "cstr_require": Rule(1, _witness),
    "dim": Rule(2, _dim),
    "from_extent_tensor": Rule(1, _same),
    "from_extents": Rule(None, _from_extents),
    "get_extent": Rule(2, _get_extent),
    "index_to_size": Rule(1, _same),
    "num_elements": Rule(1, _num_elements),
    "rank": Rule(1, _rank),
    "shape_of": Rule(1, _shape_of),
    "size_to_index": Rule(1, _same),
    "to_extent_tensor": Rule(1, _same),
}
"""Conversions of ``shape`` operations. Keys are operation names without ``shape.``."""
