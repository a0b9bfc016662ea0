"""Reductions over dimensions, positions of extremes, and running sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....analysis.identities import identity_of
from ....dialects.builder import Builder
from ....ir.attributes import Attribute, DenseArray
from ....ir.operation import Value, tensor_of
from ....ir.sizes import number_of, product
from ....ir.types import F32, I1, I32, I64, TensorType
from ....passes.formulas.expression import Expression
from .node import Node, Translate, lengths_of


def reduced(builder: Builder, value: Value, axes: Sequence[int], name: str) -> Value:
    """A value joined along dimensions by an operation, which are gone then."""
    type = tensor_of(value)
    scalar = TensorType((), type.element)
    region = builder.region([scalar, scalar], lambda inner, pair: [inner.elementwise(name, *pair)])
    start = builder.constant(_start(name, type), scalar)
    shape = [length for axis, length in enumerate(type.shape) if axis not in axes]
    attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, tuple(axes))}
    return builder.append("reduce", [value, start], [TensorType(shape, type.element)], attributes, [region]).result


def _start(name: str, type: TensorType) -> complex:
    """What a reduction starts with: 0 where -0 would show in an empty sum."""
    if name == "add":
        return 0
    found = identity_of(name, type.scalar)
    if found is None:
        raise ValueError(f"{type} has no order")
    return found


def _axes(node: Node) -> list[int]:
    rank = node.type(0).rank
    axes = [node.axis(axis, rank) for axis in node.known_integers(1, "the dimensions")]
    if len(set(axes)) < len(axes):
        raise node.error(f"expected each dimension once, got {axes}")
    return axes


def _kept(node: Node, value: Value, axes: Sequence[int]) -> Value:
    """The result with dimensions of length 1 for those that are gone, if that is wanted."""
    if not node.flag("keep_dims"):
        return value
    shape = [1 if axis in axes else length for axis, length in enumerate(node.shape(0))]
    return node.builder.reshape(value, shape)


def wide(builder: Builder, value: Value) -> Value:
    """Narrow floats as f32, in which they are summed."""
    type = tensor_of(value)
    return builder.convert(value, F32) if type.scalar.kind == "float" and type.scalar.bits < 32 else value


def _reduction(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        axes = _axes(node)
        found = reduced(node.builder, wide(node.builder, value), axes, name)
        return [_kept(node, node.builder.convert(found, node.type(0).scalar), axes)]

    return translate


def _logical(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        if node.type(0).element is not I1:
            raise node.error(f"expected booleans, got {node.type(0)}")
        axes = _axes(node)
        return [_kept(node, reduced(node.builder, value, axes, name), axes)]

    return translate


def mean(builder: Builder, value: Value, axes: Sequence[int]) -> Value:
    """The mean along dimensions, of f32 for narrow floats."""
    total = Expression(builder, reduced(builder, wide(builder, value), axes, "add"))
    return (total / number_of(product(lengths_of(value)[axis] for axis in axes))).value


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
    """The first position of the largest or the smallest element."""

    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        builder = node.builder
        type = node.type(0)
        axis = node.axis(node.known_integer(1, "the dimension"), type.rank)
        length = number_of(node.shape(0)[axis])
        if not length:
            raise node.error(f"dimension {axis} of {type} has no elements")
        scalars = [TensorType((), type.element), TensorType((), I32)]

        def better(inner: Builder, arguments: Sequence[Value]) -> Sequence[Value]:
            one, index, other, other_index = (Expression(inner, argument) for argument in arguments)
            is_better = Expression(inner, inner.compare(direction, one.value, other.value))
            is_first = one.equals(other) & (index < other_index)
            chosen = is_better | is_first
            return [chosen.then(one, other).value, chosen.then(index, other_index).value]

        region = builder.region([*scalars, *scalars], better)
        extreme = identity_of("maximum" if direction == "GT" else "minimum", type.scalar)
        starts = [builder.constant(0 if extreme is None else extreme, scalars[0])]
        # A position past the end loses against that of an element that is as small as can be.
        starts.append(builder.constant(length, scalars[1]))
        shape = [length for number, length in enumerate(type.shape) if number != axis]
        types = [TensorType(shape, type.element), TensorType(shape, I32)]
        positions = builder.iota(type.of(I32), axis)
        attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, (axis,))}
        made = builder.append("reduce", [value, positions, *starts], types, attributes, [region])
        wanted = node.element("output_type") if node.has("output_type") else I64
        return [builder.convert(made.results[1], wanted)]

    return translate


def _running(name: str) -> Translate:
    """Sums of ever longer runs, each from two of half the length."""

    def translate(node: Node) -> Sequence[Value]:
        value, _ = node.expect(2)
        builder = node.builder
        shape = node.shape(0)
        axis = node.axis(node.known_integer(1, "the dimension"), len(shape))
        length = number_of(shape[axis])
        filling = builder.constant(0 if name == "add" else 1, TensorType((), node.type(0).element))

        def shifted(value: Value, count: int) -> Value:
            low, none = [0] * len(shape), [0] * len(shape)
            low[axis] = count
            return builder.pad(builder.piece(value, axis, 0, length - count), filling, low, none, none)

        def reversed_(value: Value) -> Value:
            attributes: dict[str, Attribute] = {"dimensions": DenseArray(I64, (axis,))}
            return builder.append("reverse", [value], [value.type], attributes).result

        is_reversed = node.flag("reverse")
        value = reversed_(value) if is_reversed else value
        if node.flag("exclusive") and length:
            value = shifted(value, 1)
        step = 1
        while step < length:
            value = builder.elementwise(name, value, shifted(value, step))
            step *= 2
        return [reversed_(value) if is_reversed else value]

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
