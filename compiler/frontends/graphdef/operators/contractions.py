"""Products of tensors, Einstein sums and biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....dialects.builder import Builder
from ....ir.operation import Value, tensor_of
from ....ir.sizes import Dim
from ....ir.types import I32
from ....passes.formulas.expression import Expression
from .known_values import broadcast_shape, broadcast_to, lengths_of
from .node import Node, Translate
from .reductions import reduced


def einsum(builder: Builder, equation: str, values: Sequence[Value]) -> Value:
    """Returns an Einstein sum, such as ``"bij,bjk->bik"``; ``...`` stands for dimensions that broadcast.

    Raises:
        ValueError: the equation has no output, or does not fit the values.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(values) or not arrow:
        raise ValueError(f"expected the equation to have {len(values)} inputs and an output")
    ranks = [
        tensor_of(value).rank - len(term.replace("...", "")) if "..." in term else 0
        for value, term in zip(values, terms, strict=True)
    ]
    if min(ranks) < 0:
        raise ValueError(f"the equation {equation} does not fit the ranks of its inputs")
    # Dimensions of the ellipsis are named from the last, since shorter ellipses lack the first.
    hidden = [f"<{number}>" for number in range(max(ranks), 0, -1)]

    def labels(term: str, rank: int) -> list[str]:
        before, dots, after = term.partition("...")
        return [*before, *(hidden[len(hidden) - rank :] if dots else ()), *after]

    names = [labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    wanted = labels(output, max(ranks))
    lengths: dict[str, Dim] = {}
    for index, (value, term_names) in enumerate(zip(values, names, strict=True)):
        shape = lengths_of(value)
        if len(shape) != len(term_names):
            raise ValueError(f"the equation names {len(term_names)} dimensions of input {index}, {value.type}")
        for name, length in zip(term_names, shape, strict=True):
            (lengths[name],) = broadcast_shape([(lengths.get(name, 1),), (length,)])
    if not set(wanted) <= set(lengths) or len(set(wanted)) < len(wanted):
        raise ValueError("expected the equation's output to name dimensions of its inputs, each once")
    factors = [_full(builder, value, term_names, lengths) for value, term_names in zip(values, names, strict=True)]
    value, left = factors[0]
    for other, right in factors[1:]:
        value, left = _multiplied(builder, value, left, other, right, wanted)
    value, left = _summed(builder, value, left, wanted)
    return builder.transpose(value, [left.index(name) for name in wanted])


def _full(
    builder: Builder, value: Value, names: Sequence[str], lengths: Mapping[str, Dim]
) -> tuple[Value, Sequence[str]]:
    """Broadcasts every dimension to its full length; takes the diagonal for a repeated name."""
    value = builder.broadcast(value, [lengths[name] for name in names], range(len(names)))
    kept = list(names)
    for name in dict.fromkeys(names):
        while kept.count(name) > 1:
            first = kept.index(name)
            second = kept.index(name, first + 1)
            counting = tensor_of(value).of(I32)
            positions = [Expression(builder, builder.iota(counting, axis)) for axis in (first, second)]
            value = builder.select(positions[0].equals(positions[1]).value, value, 0)
            value = reduced(builder, value, [second], "add")
            del kept[second]
    return value, kept


def _summed(builder: Builder, value: Value, names: Sequence[str], wanted: Sequence[str]) -> tuple[Value, list[str]]:
    """Sums over the unwanted dimensions."""
    axes = [axis for axis, name in enumerate(names) if name not in wanted]
    total = reduced(builder, value, axes, "add") if axes else value
    return total, [name for name in names if name in wanted]


def _multiplied(
    builder: Builder,
    left: Value,
    left_names: Sequence[str],
    right: Value,
    right_names: Sequence[str],
    wanted: Sequence[str],
) -> tuple[Value, list[str]]:
    """Returns the product of two values, summed over their shared unwanted dimensions."""
    left, left_names = _summed(builder, left, left_names, [*right_names, *wanted])
    right, right_names = _summed(builder, right, right_names, [*left_names, *wanted])
    shared = [name for name in left_names if name in right_names]
    batch = [name for name in shared if name in wanted]
    contracted = [name for name in shared if name not in wanted]

    def both(names: Sequence[str]) -> Sequence[Sequence[int]]:
        return [[side.index(name) for name in names] for side in (left_names, right_names)]

    value = builder.contract(left, right, both(contracted), both(batch))
    rest = [name for names in (left_names, right_names) for name in names if name not in shared]
    return value, [*batch, *rest]


def _matmul(node: Node) -> Sequence[Value]:
    left, right = node.expect(2)
    if node.type(0).rank != 2 or node.type(1).rank != 2:
        raise node.error(f"expected two matrices, got {node.type(0)} and {node.type(1)}")
    axes = [[0 if node.flag("transpose_a") else 1], [1 if node.flag("transpose_b") else 0]]
    return [node.builder.contract(left, right, axes)]


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
    axes = [[rank if adjoint[0] else rank + 1], [rank + 1 if adjoint[1] else rank]]
    return [node.builder.contract(left, right, axes, [range(rank)] * 2)]


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
