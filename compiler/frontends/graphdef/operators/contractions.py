"""Products of matrices, Einstein sums and biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....ir.attributes import Attribute, StructAttr
from ....ir.operation import Value, tensor_of
from ....ir.sizes import Dim
from ....ir.types import I32, TensorType
from ....passes.formulas.expression import Expression
from .broadcasting import broadcast_shape, broadcast_to
from .node import Node, Translate, lengths_of
from .reductions import reduced
from .shapes import transpose

Pairs = Sequence[tuple[int, int]]


def dot_general(node: Node, left: Value, right: Value, batch: Pairs, contracted: Pairs) -> Value:
    """A contraction: batch dimensions come first, then those of the left operand, then those of the right."""
    fields = {
        "lhs_batching_dimensions": tuple(one for one, _ in batch),
        "rhs_batching_dimensions": tuple(other for _, other in batch),
        "lhs_contracting_dimensions": tuple(one for one, _ in contracted),
        "rhs_contracting_dimensions": tuple(other for _, other in contracted),
    }
    shapes = lengths_of(left), lengths_of(right)
    shape = [shapes[0][one] for one, _ in batch]
    for side, lengths in enumerate(shapes):
        used = {pair[side] for pair in (*batch, *contracted)}
        shape += [length for axis, length in enumerate(lengths) if axis not in used]
    attributes: dict[str, Attribute] = {"dot_dimension_numbers": StructAttr("stablehlo.dot", fields)}
    type = TensorType(shape, tensor_of(left).element)
    return node.builder.append("dot_general", [left, right], [type], attributes).result


def _matmul(node: Node) -> Sequence[Value]:
    left, right = node.expect(2)
    if node.type(0).rank != 2 or node.type(1).rank != 2:
        raise node.error(f"expected two matrices, got {node.type(0)} and {node.type(1)}")
    pair = (0 if node.flag("transpose_a") else 1, 1 if node.flag("transpose_b") else 0)
    return [dot_general(node, left, right, [], [pair])]


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
    return [dot_general(node, left, right, [(axis, axis) for axis in range(rank)], [pair])]


def _bias_add(node: Node) -> Sequence[Value]:
    value, bias = node.expect(2)
    rank = node.type(0).rank
    if node.type(1).rank != 1 or rank < 2:
        raise node.error(f"expected a vector to be added along one dimension, got {node.type(0)} and {node.type(1)}")
    axis = 1 if node.text("data_format", "NHWC").startswith("NC") else rank - 1
    if node.shape(0)[axis] != node.shape(1)[0]:
        raise node.error(f"dimension {axis} of {node.type(0)} is not as long as {node.type(1)}")
    return [node.builder.elementwise("add", value, node.builder.broadcast(bias, node.shape(0), [axis]))]


# -- Einstein sums ---------------------------------------------------------------------------------------


def _einsum(node: Node) -> Sequence[Value]:
    inputs, _, output = node.text("equation").replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(node.expect(1, 2)) or "->" not in node.text("equation"):
        raise node.error(f"expected the equation to have {len(node.operands)} inputs and an output")
    ranks = [
        node.type(index).rank - len(term.replace("...", "")) if "..." in term else 0 for index, term in enumerate(terms)
    ]
    if min(ranks) < 0:
        raise node.error(f"the equation {node.text('equation')} does not fit the ranks of its inputs")
    # Dimensions of the ellipsis are named from the last, since shorter ones lack the first.
    hidden = [f"<{number}>" for number in range(max(ranks), 0, -1)]

    def labels(term: str, rank: int) -> list[str]:
        before, dots, after = term.partition("...")
        return [*before, *(hidden[len(hidden) - rank :] if dots else ()), *after]

    names = [labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    wanted = labels(output, max(ranks))
    values = list(node.operands)
    lengths: dict[str, Dim] = {}
    for index, (value, term_names) in enumerate(zip(values, names, strict=True)):
        shape = lengths_of(value)
        if len(shape) != len(term_names):
            raise node.error(f"the equation names {len(term_names)} dimensions of input {index}, {value.type}")
        for name, length in zip(term_names, shape, strict=True):
            (lengths[name],) = broadcast_shape([(lengths.get(name, 1),), (length,)])
    if not set(wanted) <= set(lengths) or len(set(wanted)) < len(wanted):
        raise node.error("expected the equation's output to name dimensions of its inputs, each once")
    prepared = [_prepared(node, value, each, lengths) for value, each in zip(values, names, strict=True)]
    value, found = prepared[0]
    for other, other_names in prepared[1:]:
        value, found = _joined(node, value, found, other, other_names, wanted)
    value, found = _summed(node, value, found, wanted)
    return [transpose(node, value, [found.index(name) for name in wanted])]


def _prepared(
    node: Node, value: Value, names: Sequence[str], lengths: Mapping[str, Dim]
) -> tuple[Value, Sequence[str]]:
    """A value with every dimension at its full length and each name once: a repeated one takes a diagonal."""
    builder = node.builder
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


def _summed(node: Node, value: Value, names: Sequence[str], wanted: Sequence[str]) -> tuple[Value, list[str]]:
    """A value summed over dimensions that nobody wants."""
    axes = [axis for axis, name in enumerate(names) if name not in wanted]
    found = reduced(node.builder, value, axes, "add") if axes else value
    return found, [name for name in names if name in wanted]


def _joined(
    node: Node,
    left: Value,
    left_names: Sequence[str],
    right: Value,
    right_names: Sequence[str],
    wanted: Sequence[str],
) -> tuple[Value, list[str]]:
    """The product of two values, summed over what they share and nobody wants."""
    left, left_names = _summed(node, left, left_names, [*right_names, *wanted])
    right, right_names = _summed(node, right, right_names, [*left_names, *wanted])
    shared = [name for name in left_names if name in right_names]
    batch = [name for name in shared if name in wanted]
    contracted = [name for name in shared if name not in wanted]

    def pairs(names: Sequence[str]) -> Pairs:
        return [(left_names.index(name), right_names.index(name)) for name in names]

    value = dot_general(node, left, right, pairs(batch), pairs(contracted))
    rest = [name for each in (left_names, right_names) for name in each if name not in shared]
    return value, [*batch, *rest]


CONTRACTIONS: Final[Mapping[str, Translate]] = {
    "BatchMatMul": _batch_matmul,
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "BiasAdd": _bias_add,
    "BiasAddV1": _bias_add,
    "Einsum": _einsum,
    "MatMul": _matmul,
}
