"""Lists of tensors (TensorList, TensorArray) as one tensor whose first dimension counts elements.

A list made without an element shape is *open*: its type has the encoding ``open``, and the loop that fills it
determines the shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....dialects.builder import Builder
from ....ir.operation import Value, tensor_of
from ....ir.sizes import Dim, number_of
from ....ir.types import I32, ScalarType, TensorType, Type
from .indexing import take
from .known_values import lengths_of
from .node import Node, Translate

_OPEN: Final = "open"
OPEN_LIST: Final = "graphdef.list"
"""The operation that stands for a new open list."""


def is_open(type: Type) -> bool:
    """Whether a type is the type of an open list."""
    return isinstance(type, TensorType) and type.encoding == _OPEN


def opened(builder: Builder, value: Value, type: Type) -> Value:
    """Replaces an open list by an empty list of a type, if that fits; returns other values unchanged."""
    if not is_open(value.type) or not isinstance(type, TensorType) or type.encoding:
        return value
    return builder.constant(0, type) if type.shape[:1] == value.tensor.shape else value


def _new(node: Node, count: int, dims: Sequence[Dim | None] | None, element: ScalarType) -> Value:
    if count < 0:
        raise node.error(f"expected a number of elements, got {count}")
    if dims is None or None in dims:
        return node.append(OPEN_LIST, [], [TensorType((count,), element, _OPEN)], {})
    return node.builder.constant(0, TensorType((count, *dims), element))


def _dims(values: Sequence[Dim]) -> Sequence[Dim | None] | None:
    """Returns the shape in a list's operand; a single -1 means an unknown rank."""
    return None if tuple(values) == (-1,) else [None if value == -1 else value for value in values]


def _is_scalar(node: Node, index: int) -> bool:
    return node.type(index).rank == 0


def _reserve(node: Node) -> Sequence[Value]:
    node.expect(2)
    dims = None if _is_scalar(node, 0) else _dims(node.known_lengths(0, "the elements' shape"))
    return [_new(node, node.known_integer(1, "the number of elements"), dims, node.element("element_dtype"))]


def _tensor_array(node: Node) -> Sequence[Value]:
    node.expect(1)
    if node.flag("dynamic_size"):
        raise node.error("expected a TensorArray of a fixed size")
    made = _new(node, node.known_integer(0, "the size"), node.dims("element_shape"), node.element("dtype"))
    # The handle is a dummy; the contents are in the flow.
    return [node.builder.constant(0, TensorType((), I32)), made]


def _given(node: Node, count: int, index: int) -> Value:
    """Returns the list among the operands; it must not be open."""
    node.expect(count)
    if is_open(node.operand(index).type):
        raise node.error("the list is read before anything is written to it, and its elements have no shape")
    return node.operand(index)


def _starts(node: Node, index: int, rank: int) -> list[Value]:
    builder = node.builder
    number = node.operand(index)
    if tensor_of(number).rank or not tensor_of(number).scalar.is_integer:
        raise node.error(f"expected an index, got {number.type}")
    return [number, *[builder.like(number, 0)] * (rank - 1)]


def _get(node: Node, items: Value, index: int) -> Value:
    sizes = (1, *lengths_of(items)[1:])
    element = node.builder.part_at(items, _starts(node, index, len(sizes)), sizes)
    return node.builder.reshape(element, sizes[1:])


def _set(node: Node, items: Value, index: int, item: Value) -> Value:
    builder = node.builder
    shape = lengths_of(item)
    if is_open(items.type):
        (count,) = lengths_of(items)
        items = builder.constant(0, TensorType((count, *shape), items.tensor.element))
    update = builder.reshape(item, (1, *shape))
    starts = _starts(node, index, tensor_of(items).rank)
    return builder.put_at(items, update, starts)


def _length(node: Node, items: Value) -> Value:
    return node.builder.constant(number_of(lengths_of(items)[0]), TensorType((), I32))


def _array_gather(node: Node) -> Sequence[Value]:
    return [take(node.builder, _given(node, 3, 2), node.operand(1), 0, 0)]


def _array_scatter(node: Node) -> Sequence[Value]:
    node.expect(4)
    indices = node.known_integers(1, "the indices")
    if indices != tuple(range(number_of(lengths_of(node.operand(3))[0]))):
        raise node.error(f"expected every index in order, got {list(indices[:16])}")
    return [node.operand(2)]


LISTS: Final[Mapping[str, Translate]] = {
    "TensorArrayGatherV3": _array_gather,
    "TensorArrayReadV3": lambda node: [_get(node, _given(node, 3, 2), 1)],
    "TensorArrayScatterV3": _array_scatter,
    "TensorArraySizeV3": lambda node: [_length(node, node.expect(2)[1])],
    "TensorArrayV3": _tensor_array,
    "TensorArrayWriteV3": lambda node: [_set(node, node.expect(4)[3], 1, node.operand(2))],
    "TensorListFromTensor": lambda node: [node.expect(2)[0]],
    "TensorListGetItem": lambda node: [_get(node, _given(node, 3, 0), 1)],
    "TensorListLength": lambda node: [_length(node, node.expect(1)[0])],
    "TensorListReserve": _reserve,
    "TensorListSetItem": lambda node: [_set(node, node.expect(3)[0], 1, node.operand(2))],
    "TensorListStack": lambda node: [_given(node, 2, 0)],
}
