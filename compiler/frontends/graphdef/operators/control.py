"""Conditionals, loops and calls of functions of the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from ....dialects.builder import Builder
from ....ir.operation import Value
from ....ir.types import I32, TensorType
from ...building.control import choose, truth, while_loop
from ...building.known_values import known_array
from .lists import opened
from .node import Node, Translate


def _branches(node: Node, op: str, index: Value, names: Sequence[str]) -> Sequence[Value]:
    def branch(name: str, builder: Builder) -> Sequence[Value]:
        return node.caller.call(name, node.operands[1:], node, builder)

    return choose(node.builder, op, index, [(f"function '{name}'", partial(branch, name)) for name in names])


def _if(node: Node) -> Sequence[Value]:
    predicate = truth(node.builder, [node.operand(0)])
    (chosen,), (other,) = node.functions("then_branch"), node.functions("else_branch")
    known = known_array(predicate)
    if known is not None:
        return node.caller.call(chosen if known else other, node.operands[1:], node, node.builder)
    return _branches(node, "if", predicate, (chosen, other))


def _case(node: Node) -> Sequence[Value]:
    names = node.functions("branches")
    if node.operand(0).type is not TensorType((), I32) or not names:
        raise node.error(f"expected a branch for an index of type tensor<i32>, got {node.operand(0).type}")
    known = known_array(node.operand(0))
    if known is not None:
        index = int(known)
        chosen = names[index] if 0 <= index < len(names) else names[-1]
        return node.caller.call(chosen, node.operands[1:], node, node.builder)
    return _branches(node, "case", node.operand(0), names)


def _while(node: Node) -> Sequence[Value]:
    (test,), (body,) = node.functions("cond"), node.functions("body")
    return while_loop(
        node.builder,
        node.operands,
        lambda builder, arguments: node.caller.call(test, arguments, node, builder),
        lambda builder, arguments: node.caller.call(body, arguments, node, builder),
        partial(opened, node.builder),
    )


def _call(node: Node) -> Sequence[Value]:
    (name,) = node.functions("f")
    return node.caller.call(name, node.operands, node, node.builder)


CONTROL: Final[Mapping[str, Translate]] = {
    "Case": _case,
    "If": _if,
    "PartitionedCall": _call,
    "StatefulPartitionedCall": _call,
    "StatelessCase": _case,
    "StatelessIf": _if,
    "StatelessWhile": _while,
    "While": _while,
}
