"""Constants, shapes, and changes of shape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ....ir.attributes import type_shape
from ....ir.operation import Value, tensor_of
from ....ir.sizes import Dim, Size, is_multiple, number_of, product, quotient
from ....ir.types import I32, TensorType
from ....passes.formulas.expression import Expression
from ..file.tensors import array_of
from .known_values import broadcast_shape, broadcast_to
from .node import Node, Translate
from .pieces import parts


def _const(node: Node) -> Sequence[Value]:
    message = node.attributes.get("value")
    if message is None or message.WhichOneof("value") != "tensor":
        raise node.error("expected the attribute value with a tensor")
    array = array_of(message.tensor)
    element = node.element("dtype")
    if array.dtype != element.dtype:
        raise node.error(f"dtype is {element}, the value's elements are {array.dtype}")
    return [node.builder.constant(array, TensorType(array.shape, element))]


def _identity(node: Node) -> Sequence[Value]:
    return [node.operand(0)]


def _identity_n(node: Node) -> Sequence[Value]:
    return node.operands


def _ensure_shape(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    dims, shape = node.dims("shape"), node.shape(0)
    if dims is not None and (
        len(dims) != len(shape) or any(dim not in (None, length) for dim, length in zip(dims, shape, strict=True))
    ):
        raise node.error(f"expected the shape {list(dims)}, got {node.type(0)}")
    return [value]


def _placeholder(node: Node) -> Sequence[Value]:
    raise node.error("its value is needed: feed it, or fetch what does not depend on it")


def _shape(node: Node) -> Sequence[Value]:
    element = node.element("out_type") if node.has("out_type") else I32
    return [node.builder.convert(_shape_of(node, value), element) for value in node.operands]


def _shape_of(node: Node, value: Value) -> Value:
    """Returns the shape as a vector; its elements may be call-dependent."""
    builder, type = node.builder, tensor_of(value)
    if type.is_static:
        return builder.constant(type_shape(type), TensorType((type.rank,), I32))
    lengths = [
        builder.constant(length, TensorType((1,), I32))
        if isinstance(length, int)
        else builder.reshape(builder.dimension(value, axis), (1,))
        for axis, length in enumerate(type.lengths)
    ]
    return builder.concatenate(lengths, 0)


def _size(node: Node) -> Sequence[Value]:
    element = node.element("out_type") if node.has("out_type") else I32
    count = node.builder.constant(1, TensorType((), I32))
    for length in itertools.chain(
        *(parts(node.builder, _shape_of(node, value), 0, [1] * tensor_of(value).rank) for value in node.expect(1))
    ):
        count = node.builder.elementwise("multiply", count, node.builder.reshape(length, ()))
    return [node.builder.convert(count, element)]


def _rank(node: Node) -> Sequence[Value]:
    return [node.builder.constant(node.type(0).rank, TensorType((), I32))]


def _reshape(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    shape = list(node.known_lengths(1, "the shape"))
    count = product(node.shape(0))
    if shape.count(-1) == 1:
        rest = _divided(count, -product(shape))
        if rest is None:
            raise node.error(f"{node.type(0)} with {count} elements does not fit into the shape {shape}")
        shape[shape.index(-1)] = rest
    if any(isinstance(length, int) and length < 0 for length in shape) or product(shape) != count:
        raise node.error(f"{node.type(0)} with {count} elements does not fit into the shape {shape}")
    return [node.builder.reshape(value, shape)]


def _divided(size: Dim, divisor: Dim) -> Dim | None:
    """Returns the exact quotient of two sizes, or None; common symbols are cancelled first."""
    if isinstance(divisor, Size) and isinstance(size, Size) and len(divisor.terms) == 1:
        ((names, factor),) = divisor.terms
        kept = []
        for monomial, number in size.terms:
            if any(monomial.count(name) < names.count(name) for name in names):
                return None
            rest = list(monomial)
            for name in names:
                rest.remove(name)
            kept.append(product([number, *(Size((((name,), 1),)) for name in rest)]))
        size, divisor = sum(kept[1:], kept[0]), factor
    if isinstance(divisor, Size) or divisor <= 0 or not is_multiple(size, divisor):
        return None
    return quotient(size, divisor)


def _squeeze(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    shape = node.shape(0)
    axes = [node.axis(axis, len(shape)) for axis in node.integers("squeeze_dims")]
    if any(shape[axis] != 1 for axis in axes):
        raise node.error(f"expected dimensions of length 1 to be dropped, got {axes} of {node.type(0)}")
    dropped = axes or [axis for axis, length in enumerate(shape) if length == 1]
    return [node.builder.reshape(value, [length for axis, length in enumerate(shape) if axis not in dropped])]


def _expand_dims(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    shape = list(node.shape(0))
    shape.insert(node.axis(node.known_integer(1, "the dimension"), len(shape) + 1), 1)
    return [node.builder.reshape(value, shape)]


def _transpose(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    rank = node.type(0).rank
    order = [node.axis(axis, rank) for axis in node.known_integers(1, "the order of dimensions")]
    if sorted(order) != list(range(rank)):
        raise node.error(f"expected an order of {rank} dimensions, got {order}")
    if node.op == "ConjugateTranspose":
        value = node.chlo("conj", value)
    return [node.builder.transpose(value, order)]


def _tile(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    shape, times = node.shape(0), node.known_integers(1, "the multiples")
    if len(times) != len(shape) or min(times, default=0) < 0:
        raise node.error(f"expected a number of repetitions for each dimension of {node.type(0)}, got {list(times)}")
    pairs = [length for pair in zip(times, shape, strict=True) for length in pair]
    repeated = node.builder.broadcast(value, pairs, range(1, len(pairs), 2))
    return [node.builder.reshape(repeated, [count * other for count, other in zip(times, shape, strict=True)])]


def _lengths(node: Node, index: int) -> tuple[Dim, ...]:
    lengths = node.known_lengths(index, "the shape")
    if any(isinstance(length, int) and length < 0 for length in lengths):
        raise node.error(f"expected lengths that are not negative, got {list(lengths)}")
    return lengths


def _fill(node: Node) -> Sequence[Value]:
    node.expect(2)
    return [broadcast_to(node.builder, node.operand(1), _lengths(node, 0))]


def _broadcast_to(node: Node) -> Sequence[Value]:
    node.expect(2)
    return [broadcast_to(node.builder, node.operand(0), _lengths(node, 1))]


def _broadcast_args(node: Node) -> Sequence[Value]:
    node.expect(2)
    shape = broadcast_shape([_lengths(node, 0), _lengths(node, 1)])
    return [
        node.builder.constant([number_of(length) for length in shape], TensorType((len(shape),), node.type(0).element))
    ]


def _filled_like(number: int) -> Translate:
    return lambda node: [node.builder.like(node.expect(1)[0], number)]


def _empty(node: Node) -> Sequence[Value]:
    node.expect(1)
    return [node.builder.constant(0, TensorType(_lengths(node, 0), node.element("dtype")))]


def _range(node: Node) -> Sequence[Value]:
    node.expect(3)
    type = node.type(0)
    start, limit, step = (node.known(index, "a bound of the range").item() for index in range(3))
    if step == 0:
        raise node.error("expected a step other than 0")
    count = node.counted(max(math.ceil((limit - start) / step), 0), "the number of values")
    values = start + step * np.arange(count)
    return [node.builder.constant(values.astype(type.scalar.dtype), TensorType((count,), type.element))]


def _lin_space(node: Node) -> Sequence[Value]:
    node.expect(3)
    count = node.known_integer(2, "the number of values")
    type = TensorType((count,), node.type(0).element)
    builder = node.builder
    start = node.operand(0)
    if count < 2:
        return [broadcast_to(builder, start, (count,))]
    step = builder.elementwise("divide", builder.elementwise("subtract", node.operand(1), start), count - 1)
    product = builder.elementwise("multiply", broadcast_to(builder, step, (count,)), builder.iota(type, 0))
    return [builder.elementwise("add", broadcast_to(builder, start, (count,)), product)]


def _band(node: Node) -> Sequence[Value]:
    """Zeroes elements outside a band of diagonals around the main diagonal; negative numbers keep all."""
    value, _, _ = node.expect(3)
    below, above = node.known_integer(1, "the diagonals below"), node.known_integer(2, "the diagonals above")
    rank = node.type(0).rank
    if rank < 2:
        raise node.error(f"expected matrices, got {node.type(0)}")
    counting = node.type(0).of(I32)
    row, column = (Expression(node.builder, node.builder.iota(counting, axis)) for axis in (rank - 2, rank - 1))
    for difference, limit in ((row - column, below), (column - row, above)):
        if limit >= 0:
            value = node.builder.select((difference <= limit).value, value, 0)
    return [value]


def _invert_permutation(node: Node) -> Sequence[Value]:
    order = node.known_integers(0, "the order")
    if sorted(order) != list(range(len(order))):
        raise node.error(f"expected an order of {len(order)} numbers from 0, got {list(order[:16])}")
    return [node.builder.constant(np.argsort(order), node.type(0))]


SHAPES: Final[Mapping[str, Translate]] = {
    "BroadcastArgs": _broadcast_args,
    "BroadcastTo": _broadcast_to,
    "ConjugateTranspose": _transpose,
    "Const": _const,
    "Empty": _empty,
    "EnsureShape": _ensure_shape,
    "ExpandDims": _expand_dims,
    "Fill": _fill,
    "InvertPermutation": _invert_permutation,
    "LinSpace": _lin_space,
    "MatrixBandPart": _band,
    "OnesLike": _filled_like(1),
    "Range": _range,
    "Rank": _rank,
    "Reshape": _reshape,
    "Shape": _shape,
    "ShapeN": _shape,
    "Size": _size,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "ZerosLike": _filled_like(0),
    **dict.fromkeys(
        (
            "Enter",
            "Identity",
            "LoopCond",
            "NextIteration",
            "PreventGradient",
            "Snapshot",
            "StopGradient",
            "CheckNumerics",
            "PlaceholderWithDefault",
        ),
        _identity,
    ),
    "IdentityN": _identity_n,
    "NoOp": lambda node: [],
    "Placeholder": _placeholder,
}
