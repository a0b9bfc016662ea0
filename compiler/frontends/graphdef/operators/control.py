"""Conditionals, loops and calls of functions of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ....dialects.builder import Builder
from ....ir.operation import Block, Location, Operation, Region, Value
from ....ir.types import I1, I32, TensorType, types_text
from .lists import is_open, opened
from .node import Node, Translate, known_array

Body: TypeAlias = Callable[[Builder, Sequence[Value]], Sequence[Value]]


def emit_while(
    builder: Builder, initial: Sequence[Value], test: Body, body: Body, node: Node, location: Location
) -> Sequence[Value]:
    """A loop; gives the last value of each variable.

    The body is translated twice: the first time shows which variables it passes on as they are, which are then used
    from outside, where their values may be known, and what the elements of lists are that were made without a shape.

    Args:
        builder: appends the loop.
        initial: values of the variables.
        test: says whether to go on.
        body: gives the variables' next values.
        node: for errors.
        location: of the loop.
    """
    first = Block([value.type for value in initial])
    following = body(Builder(first, location), first.arguments)
    if len(following) != len(initial):
        raise node.error(f"the loop has {len(initial)} variables, its body gives {len(following)}")
    pairs = list(zip(initial, first.arguments, following, strict=True))
    variables = [index for index, (_, argument, value) in enumerate(pairs) if value is not argument]
    starts = list(initial)
    for index in variables:
        if is_open(starts[index].type):
            starts[index] = opened(builder, starts[index], following[index].type)

    def inside(part: Body, is_test: bool) -> Region:
        block = Block([starts[index].type for index in variables])
        inner = Builder(block, location)
        arguments = list(starts)
        for index, argument in zip(variables, block.arguments, strict=True):
            arguments[index] = argument
        results = part(inner, arguments)
        if is_test:
            if len(results) != 1 or results[0].type is not TensorType((), I1):
                results = [truth(inner, node, results)]
        else:
            results = [results[index] for index in variables]
        for index, value in zip(variables, () if is_test else results, strict=is_test is False):
            if value.type is not starts[index].type:
                raise node.error(
                    f"variable {index} of the loop starts as {starts[index].type} and goes on as {value.type}; "
                    "a shape has to stay the same"
                )
        block.append(Operation("stablehlo.return", list(results), location=location))
        return Region([block])

    regions = [inside(test, True), inside(body, False)]
    builder.location = location
    operands = [starts[index] for index in variables]
    made = builder.append("while", operands, [value.type for value in operands], regions=regions)
    results = list(starts)
    for index, value in zip(variables, made.results, strict=True):
        results[index] = value
    return results


def truth(builder: Builder, node: Node, values: Sequence[Value]) -> Value:
    """One value as a boolean: of a number whether it is not 0."""
    if len(values) != 1 or not isinstance(values[0].type, TensorType) or values[0].type.rank:
        raise node.error(f"expected one boolean as the condition, got ({types_text([value.type for value in values])})")
    (value,) = values
    return value if value.type is TensorType((), I1) else builder.compare("NE", value, 0)


def _branches(node: Node, names: Sequence[str], arguments: Sequence[Value]) -> list[Region]:
    regions = []
    for name in names:
        block = Block()
        results = node.caller.call(name, arguments, node, Builder(block, node.builder.location))
        block.append(Operation("stablehlo.return", list(results), location=node.builder.location))
        regions.append(Region([block]))
    types = [[value.type for value in region.block.terminator.operands] for region in regions]
    for name, given in zip(names, types, strict=True):
        if given != types[0]:
            raise node.error(
                f"function '{name}' gives ({types_text(given)}), function '{names[0]}' ({types_text(types[0])})"
            )
    return regions


def _if(node: Node) -> Sequence[Value]:
    predicate = truth(node.builder, node, [node.operand(0)])
    (chosen,), (other,) = node.functions("then_branch"), node.functions("else_branch")
    known = known_array(predicate)
    if known is not None:
        return node.caller.call(chosen if known else other, node.operands[1:], node, node.builder)
    regions = _branches(node, (chosen, other), node.operands[1:])
    types = [value.type for value in regions[0].block.terminator.operands]
    return node.builder.append("if", [predicate], types, regions=regions).results


def _case(node: Node) -> Sequence[Value]:
    names = node.functions("branches")
    if node.operand(0).type is not TensorType((), I32) or not names:
        raise node.error(f"expected a branch for an index of type tensor<i32>, got {node.operand(0).type}")
    known = known_array(node.operand(0))
    if known is not None:
        index = int(known)
        chosen = names[index] if 0 <= index < len(names) else names[-1]
        return node.caller.call(chosen, node.operands[1:], node, node.builder)
    regions = _branches(node, names, node.operands[1:])
    types = [value.type for value in regions[0].block.terminator.operands]
    return node.builder.append("case", [node.operand(0)], types, regions=regions).results


def _while(node: Node) -> Sequence[Value]:
    (test,), (body,) = node.functions("cond"), node.functions("body")
    return emit_while(
        node.builder,
        node.operands,
        lambda builder, arguments: node.caller.call(test, arguments, node, builder),
        lambda builder, arguments: node.caller.call(body, arguments, node, builder),
        node,
        node.builder.location,
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
