"""Products of matrices, Einstein sums and biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....ir.operation import Value, tensor_of
from ...building.broadcasting import broadcast_shape, broadcast_to
from ...building.contractions import dot_general, einsum
from .node import Node, Translate


def _matmul(node: Node) -> Sequence[Value]:
    left, right = node.expect(2)
    if node.type(0).rank != 2 or node.type(1).rank != 2:
        raise node.error(f"expected two matrices, got {node.type(0)} and {node.type(1)}")
    pair = (0 if node.flag("transpose_a") else 1, 1 if node.flag("transpose_b") else 0)
    return [dot_general(node.builder, left, right, [], [pair])]


def _batch_matmul(node: Node) -> Sequence[Value]:
    left, right = node.expect(2)
    if node.has("Tout"):
        left, right = (node.builder.convert(value, node.element("Tout")) for value in (left, right))
    shapes = node.shape(0), node.shape(1)
    if min(map(len, shapes)) < 2:
        raise node.error(f"expected matrices, got {node.type(0)} and {node.type(1)}")
    outer = broadcast_shape([shape[:-2] for shape in shapes])
    rank = len(outer)
    left, right = (
        broadcast_to(node.builder, value, (*outer, *shape[-2:]))
        for value, shape in zip((left, right), shapes, strict=True)
    )
    adjoint = node.flag("adj_x"), node.flag("adj_y")
    if tensor_of(left).scalar.kind == "complex":
        left, right = (
            node.chlo("conj", value) if is_adjoint else value
            for value, is_adjoint in zip((left, right), adjoint, strict=True)
        )
    pair = (rank if adjoint[0] else rank + 1, rank + 1 if adjoint[1] else rank)
    return [dot_general(node.builder, left, right, [(axis, axis) for axis in range(rank)], [pair])]


def _bias_add(node: Node) -> Sequence[Value]:
    value, bias = node.expect(2)
    rank = node.type(0).rank
    if node.type(1).rank != 1 or rank < 2:
        raise node.error(f"expected a vector to be added along one dimension, got {node.type(0)} and {node.type(1)}")
    axis = 1 if node.text("data_format", "NHWC").startswith("NC") else rank - 1
    if node.shape(0)[axis] != node.shape(1)[0]:
        raise node.error(f"dimension {axis} of {node.type(0)} is not as long as {node.type(1)}")
    return [node.builder.elementwise("add", value, node.builder.broadcast(bias, node.shape(0), [axis]))]


def _einsum(node: Node) -> Sequence[Value]:
    return [einsum(node.builder, node.text("equation"), node.expect(1, 2))]


CONTRACTIONS: Final[Mapping[str, Translate]] = {
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "BiasAdd": _bias_add,
    "BiasAddV1": _bias_add,
    "Einsum": _einsum,
    "MatMul": _matmul,
}
