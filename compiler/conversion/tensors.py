"""``tensor`` and ``shape``: slices and concatenations of tensors, and shapes as vectors of i64.

Shapes are known at compile time, so witnesses that shapes fit are checked there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ..dialects.builder import Values
from ..dialects.rules.requirements import OperationError
from ..ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr, type_shape
from ..ir.operation import Value, tensor_of
from ..ir.types import I1, I64, TensorType
from ..passes.canonical.legacy import constant_of, over_tensors
from .conversion import Rule, Site, integers_of, length_of, static_shape

DYNAMIC: Final = -(1 << 63)
"""Marks static offsets, sizes and strides whose value is an operand."""


def _starts(site: Site, indices: Sequence[Value], rank: int) -> list[Value]:
    if len(indices) != rank or any(not isinstance(value.type, TensorType) or value.type.rank for value in indices):
        raise OperationError(f"an index for each of {rank} dimensions, got {len(indices)}")
    return list(indices)


def _extract(site: Site) -> Values:
    value, *indices = site.operands
    shape = static_shape(value.type)
    starts = _starts(site, indices, len(shape))
    element = value
    if shape:
        element = site.builder.part_at(value, starts, (1,) * len(shape))
    return [site.builder.reshape(element, ())]


def _insert(site: Site) -> Values:
    scalar, target, *indices = site.operands
    shape = static_shape(target.type)
    starts = _starts(site, indices, len(shape))
    part = site.builder.reshape(scalar, (1,) * len(shape))
    return [site.builder.put_at(target, part, starts)]


def _from_elements(site: Site) -> Values:
    result = site.result_type()
    if len(site.operands) != result.count:
        raise OperationError(f"{result.count} elements for {result}, got {len(site.operands)}")
    if not site.operands:
        return [site.builder.constant(0, result)]
    parts = [site.builder.reshape(value, (1,)) for value in site.operands]
    return [site.builder.reshape(_joined(site, parts, 0), static_shape(result, "a result"))]


def _joined(site: Site, parts: Sequence[Value], axis: int) -> Value:
    shapes = [static_shape(part.type) for part in parts]
    if not 0 <= axis < len(shapes[0]):
        raise OperationError(f"a dimension below {len(shapes[0])}, got {axis}")
    shape = list(shapes[0])
    shape[axis] = sum(part[axis] for part in shapes)
    type = TensorType(shape, tensor_of(parts[0]).element)
    attributes: dict[str, Attribute] = {"dimension": IntegerAttr(axis, I64)}
    return site.builder.append("concatenate", list(parts), [type], attributes).result


def _splat(site: Site) -> Values:
    return [site.builder.broadcast(site.operands[0], static_shape(site.result_type(), "a result"), ())]


def _empty(site: Site) -> Values:
    return [
        site.builder.constant(0, TensorType(static_shape(site.result_type(), "a result"), site.result_type().element))
    ]


def _dim(site: Site) -> Values:
    value, index = site.operands
    (axis,) = integers_of([index], "dimensions")
    return [length_of(site, value, axis)]


def _cast(site: Site) -> Values:
    (value,) = site.operands
    static_shape(value.type)
    return [value]


def _reshaped(site: Site) -> Values:
    value, result = site.operands[0], site.result_type()
    shape = static_shape(result, "a result")
    if math.prod(static_shape(value.type)) != math.prod(shape):
        raise OperationError(f"as many elements in the result as in {value.type}, got {result}", 0)
    return [site.builder.reshape(value, shape)]


def _numbers_in(site: Site, name: str, rest: list[Value]) -> list[Value | int]:
    """Returns the numbers of an attribute, with operands in place of ``DYNAMIC``."""
    numbers = site.operation.integers(name)
    if numbers.count(DYNAMIC) > len(rest):
        raise OperationError(f"an operand for each number of {name} that is not static")
    return [rest.pop(0) if number == DYNAMIC else number for number in numbers]


def _ranges(site: Site, first: int) -> tuple[list[Value | int], list[int], list[int]]:
    """Returns offsets, sizes and strides, with operands in place of ``DYNAMIC``."""
    rest = list(site.operands[first:])
    lists = [_numbers_in(site, name, rest) for name in ("static_offsets", "static_sizes", "static_strides")]
    offsets, sizes, strides = lists
    if not len(offsets) == len(sizes) == len(strides):
        raise OperationError("as many offsets as sizes and strides")
    known = [
        [item if isinstance(item, int) else integers_of([item], "sizes and strides")[0] for item in dims]
        for dims in (sizes, strides)
    ]
    return offsets, known[0], known[1]


def _extract_slice(site: Site) -> Values:
    value = site.operands[0]
    shape = static_shape(value.type)
    offsets, sizes, strides = _ranges(site, 1)
    if len(sizes) != len(shape) or any(stride < 1 or size < 0 for size, stride in zip(sizes, strides, strict=True)):
        raise OperationError(f"an offset, a size and a stride of 1 or more for each of {len(shape)} dimensions")
    spans = [max(0, (size - 1) * stride + 1) for size, stride in zip(sizes, strides, strict=True)]
    starts = [site.builder.constant(item, TensorType((), I64)) if isinstance(item, int) else item for item in offsets]
    if any(span > length for span, length in zip(spans, shape, strict=True)):
        raise OperationError(f"a slice within {value.type}, got sizes {sizes} and strides {strides}", 0)
    part = site.builder.part_at(value, starts, spans) if shape else value
    part = site.builder.slice(part, [(0, *pair) for pair in zip(spans, strides, strict=True)])
    return [site.builder.reshape(part, static_shape(site.result_type(), "a result"))]


def _insert_slice(site: Site) -> Values:
    source, target = site.operands[:2]
    shape = static_shape(target.type)
    offsets, sizes, strides = _ranges(site, 2)
    if len(sizes) != len(shape) or math.prod(sizes) != math.prod(static_shape(source.type)):
        raise OperationError(f"a source of sizes {sizes}, got {source.type}", 0)
    if any(stride != 1 for stride in strides):
        raise OperationError(f"strides of 1, got {strides}; insert slices with gaps by a stablehlo.scatter")
    starts = [site.builder.constant(item, TensorType((), I64)) if isinstance(item, int) else item for item in offsets]
    part = site.builder.reshape(source, sizes)
    return [site.builder.put_at(target, part, starts)]


def _pad(site: Site) -> Values:
    value = site.operands[0]
    rest = list(site.operands[1:])
    amounts = []
    for name in ("static_low", "static_high"):
        numbers = _numbers_in(site, name, rest)
        amounts.append([integers_of([item], "paddings")[0] if isinstance(item, Value) else item for item in numbers])
    low, high = amounts
    shape = static_shape(value.type)
    if not len(low) == len(high) == len(shape):
        raise OperationError(f"padding below and above each of {len(shape)} dimensions")
    padded = [a + length + b for a, length, b in zip(low, shape, high, strict=True)]
    type = TensorType(padded, tensor_of(value).element)
    block = site.operation.regions[0].block
    positions = [site.builder.constant(0, TensorType((), I64)) for _ in block.arguments]
    (filler,) = site.conversion.inline(block, positions, site.builder)
    attributes: dict[str, Attribute] = {
        "edge_padding_low": DenseArray(I64, tuple(low)),
        "edge_padding_high": DenseArray(I64, tuple(high)),
        "interior_padding": DenseArray(I64, (0,) * len(shape)),
    }
    return [site.builder.append("pad", [value, filler], [type], attributes).result]


def _generate(site: Site) -> Values:
    """Applies the body to all indices at once."""
    type = site.result_type()
    shape = static_shape(type, "a result")
    indices = [site.builder.iota(TensorType(shape, I64), axis) for axis in range(len(shape))]
    body = site.operation.regions[0].block
    if len(body.arguments) != len(shape):
        raise OperationError(f"a body that takes {len(shape)} indices, got {len(body.arguments)}")
    scalar = TensorType((), I64)
    region = site.builder.region(
        [scalar] * len(shape), lambda inner, arguments: site.conversion.inline(body, arguments, inner)
    )
    if not shape:
        return site.conversion.inline(body, [], site.builder)
    return over_tensors(site.builder, region.block, indices)


TENSOR: Final[Mapping[str, Rule]] = {
    "bitcast": Rule(1, lambda site: [site.builder.bitcast(site.operands[0], site.result_type().scalar)]),
    "cast": Rule(1, _cast),
    "collapse_shape": Rule(1, _reshaped),
    "concat": Rule(None, lambda site: [_joined(site, site.operands, site.operation.integer("dim"))]),
    "dim": Rule(2, _dim),
    "empty": Rule(None, _empty),
    "expand_shape": Rule(None, _reshaped),
    "extract": Rule(None, _extract),
    "extract_slice": Rule(None, _extract_slice),
    "from_elements": Rule(None, _from_elements),
    "generate": Rule(None, _generate, 1),
    "insert": Rule(None, _insert),
    "insert_slice": Rule(None, _insert_slice),
    "pad": Rule(None, _pad, 1),
    "rank": Rule(1, lambda site: [site.builder.constant(tensor_of(site.operands[0]).rank, TensorType((), I64))]),
    "reshape": Rule(2, _reshaped),
    "splat": Rule(None, _splat),
}
"""Conversions of ``tensor`` operations. Keys are operation names without ``tensor.``."""


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


SHAPE: Final[Mapping[str, Rule]] = {
    "assuming": Rule(1, lambda site: site.conversion.inline(site.operation.regions[0].block, [], site.builder), 1),
    "assuming_all": Rule(None, _witness),
    "broadcast": Rule(None, _broadcast),
    "concat": Rule(2, lambda site: _vector(site, [number for value in site.operands for number in _numbers(value)])),
    "const_shape": Rule(0, _const_shape),
    "const_size": Rule(0, _const_size),
    "const_witness": Rule(0, _witness),
    "cstr_broadcastable": Rule(None, _broadcastable),
    "cstr_eq": Rule(None, _equal),
    "cstr_require": Rule(1, _witness),
    "dim": Rule(2, _dim),
    "from_extent_tensor": Rule(1, _same),
    "from_extents": Rule(None, lambda site: _vector(site, integers_of(site.operands, "lengths"))),
    "get_extent": Rule(2, _get_extent),
    "index_to_size": Rule(1, _same),
    "num_elements": Rule(1, _num_elements),
    "rank": Rule(1, lambda site: [site.builder.constant(len(_numbers(site.operands[0])), TensorType((), I64))]),
    "shape_of": Rule(1, _shape_of),
    "size_to_index": Rule(1, _same),
    "to_extent_tensor": Rule(1, _same),
}
"""Conversions of ``shape`` operations. Keys are operation names without ``shape.``."""
