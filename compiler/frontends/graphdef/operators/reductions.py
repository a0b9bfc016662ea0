"""Reductions over dimensions, positions of extremes, and running results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....analysis.identities import identity_of
from ....dialects.builder import Builder
from ....ir.operation import Value, tensor_of
from ....ir.sizes import number_of, product
from ....ir.types import F32, I1, I32, I64, TensorType
from ....passes.formulas.expression import Expression
from .known_values import lengths_of
from .node import Node, Translate


def reduced(builder: Builder, value: Value, axes: Sequence[int], name: str) -> Value:
    """Reduces dimensions by an operation, and removes them.

    Raises:
        ValueError: the operation has no identity element for the type.
    """
    type = tensor_of(value)
    # A sum starts with 0, as the identity -0 would be the result of an empty sum.
    identity = 0 if name == "add" else identity_of(name, type.scalar)
    if identity is None:
        raise ValueError(f"{type} has no order")
    return builder.reduce(name, value, identity, axes)


def wide(builder: Builder, value: Value) -> Value:
    """Converts narrow floats to f32, in which sums are computed."""
    type = tensor_of(value)
    return builder.convert(value, F32) if type.scalar.kind == "float" and type.scalar.bits < 32 else value


def mean(builder: Builder, value: Value, axes: Sequence[int]) -> Value:
    """Returns the mean over dimensions, computed in f32 for narrow floats."""
    total = Expression(builder, reduced(builder, wide(builder, value), axes, "add"))
    return (total / number_of(product(lengths_of(value)[axis] for axis in axes))).value


def first_position(builder: Builder, value: Value, axis: int, direction: str) -> Value:
    """Returns the first position of the largest element along a dimension (``GT``), or of the smallest (``LT``), as
    i32.
    """
    type = tensor_of(value)
    length = number_of(lengths_of(value)[axis])
    scalars = [TensorType((), type.element), TensorType((), I32)]

    def better(inner: Builder, arguments: Sequence[Value]) -> Sequence[Value]:
        left, left_index, right, right_index = (Expression(inner, argument) for argument in arguments)
        is_better = Expression(inner, inner.compare(direction, left.value, right.value))
        chosen = is_better | left.equals(right) & (left_index < right_index)
        return [chosen.then(left, right).value, chosen.then(left_index, right_index).value]

    region = builder.region([*scalars, *scalars], better)
    extreme = identity_of("maximum" if direction == "GT" else "minimum", type.scalar)
    starts = [builder.constant(0 if extreme is None else extreme, scalars[0])]
    # A position past the end loses to an element that equals the start.
    starts.append(builder.constant(length, scalars[1]))
    return builder.reduction([value, builder.iota(type.of(I32), axis)], starts, [axis], region)[1]


def running(
    builder: Builder, value: Value, axis: int, name: str, *, is_reversed: bool = False, is_exclusive: bool = False
) -> Value:
    """Returns running sums (``add``) or products (``multiply``) along a dimension, from runs of half the length.

    Args:
        builder: the builder that appends the operations.
        value: the value to sum.
        axis: the dimension.
        name: the operation's name.
        is_reversed: whether runs start at the end.
        is_exclusive: whether an element's run ends before it.
    """
    shape = lengths_of(value)
    length = number_of(shape[axis])
    filling = builder.constant(0 if name == "add" else 1, TensorType((), tensor_of(value).element))

    def shifted(value: Value, count: int) -> Value:
        low, none = [0] * len(shape), [0] * len(shape)
        low[axis] = count
        return builder.pad(builder.piece(value, axis, 0, length - count), filling, low, none, none)

    value = builder.reverse(value, [axis]) if is_reversed else value
    if is_exclusive and length:
        value = shifted(value, 1)
    step = 1
    while step < length:
        value = builder.elementwise(name, value, shifted(value, step))
        step *= 2
    return builder.reverse(value, [axis]) if is_reversed else value


def _axes(node: Node) -> list[int]:
    rank = node.type(0).rank
    axes = [node.axis(axis, rank) for axis in node.known_integers(1, "the dimensions")]
    if len(set(axes)) < len(axes):
        raise node.error(f"expected each dimension once, got {axes}")
    return axes


def _kept(node: Node, value: Value, axes: Sequence[int]) -> Value:
    """Keeps reduced dimensions with length 1, if the node asks for it."""
    if not node.flag("keep_dims"):
        return value
    shape = [1 if axis in axes else length for axis, length in enumerate(node.shape(0))]
    return node.builder.reshape(value, shape)


def _reduction(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        axes = _axes(node)
        result = reduced(node.builder, wide(node.builder, value), axes, name)
        return [_kept(node, node.builder.convert(result, node.type(0).scalar), axes)]

    return translate


def _logical(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        if node.type(0).element is not I1:
            raise node.error(f"expected booleans, got {node.type(0)}")
        axes = _axes(node)
        return [_kept(node, reduced(node.builder, value, axes, name), axes)]

    return translate


def _mean(node: Node) -> Sequence[Value]:
    value, _ = node.expect(2)
    axes = _axes(node)
    return [_kept(node, node.builder.convert(mean(node.builder, value, axes), node.type(0).scalar), axes)]


def _euclidean_norm(node: Node) -> Sequence[Value]:
    node.expect(2)
    axes = _axes(node)
    x = Expression(node.builder, wide(node.builder, node.operand(0)))
    total = Expression(node.builder, reduced(node.builder, (x * x).value, axes, "add")).call("sqrt")
    return [_kept(node, total.convert(node.type(0).scalar).value, axes)]


def _l2_loss(node: Node) -> Sequence[Value]:
    node.expect(1)
    x = node.expression(0)
    total = reduced(node.builder, (x * x).value, range(node.type(0).rank), "add")
    return [(Expression(node.builder, total) / 2).value]


def _position(direction: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        axis = node.axis(node.known_integer(1, "the dimension"), node.type(0).rank)
        if not number_of(node.shape(0)[axis]):
            raise node.error(f"dimension {axis} of {node.type(0)} has no elements")
        wanted = node.element("output_type") if node.has("output_type") else I64
        return [node.builder.convert(first_position(node.builder, value, axis, direction), wanted)]

    return translate


def _running(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        axis = node.axis(node.known_integer(1, "the dimension"), node.type(0).rank)
        is_reversed, is_exclusive = node.flag("reverse"), node.flag("exclusive")
        return [running(node.builder, value, axis, name, is_reversed=is_reversed, is_exclusive=is_exclusive)]

    return translate


REDUCTIONS: Final[Mapping[str, Translate]] = {
    "All": _logical("and"),
    "Any": _logical("or"),
    "ArgMax": _position("GT"),
    "ArgMin": _position("LT"),
    "Cumprod": _running("multiply"),
    "Cumsum": _running("add"),
    "EuclideanNorm": _euclidean_norm,
    "L2Loss": _l2_loss,
    "Max": _reduction("maximum"),
    "Mean": _mean,
    "Min": _reduction("minimum"),
    "Prod": _reduction("multiply"),
    "Sum": _reduction("add"),
}
