"""Reductions over dimensions, positions of extremes, and running sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....ir.operation import Value
from ....ir.sizes import number_of
from ....ir.types import I1, I64
from ....passes.formulas.expression import Expression
from ...building.reductions import first_position, mean, reduced, running, wide
from .node import Node, Translate


def _axes(node: Node) -> list[int]:
    rank = node.type(0).rank
    axes = [node.axis(axis, rank) for axis in node.known_integers(1, "the dimensions")]
    if len(set(axes)) < len(axes):
        raise node.error(f"expected each dimension once, got {axes}")
    return axes


def _kept(node: Node, value: Value, axes: Sequence[int]) -> Value:
    """Keeps reduced dimensions with length 1, if the node says so."""
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
