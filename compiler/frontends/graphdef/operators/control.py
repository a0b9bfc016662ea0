"""Conditionals, loops and calls of functions of the library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from ....dialects.builder import Builder
from ....ir.operation import Block, Location, Operation, Region, Value
from ....ir.types import I1, I32, TensorType, Type, types_text
from .known_values import known_array
from .lists import opened
from .node import Node, Translate

Body: TypeAlias = Callable[[Builder, Sequence[Value]], Sequence[Value]]
"""Appends operations for arguments; returns results."""


def truth(builder: Builder, values: Sequence[Value]) -> Value:
    """Returns a condition as a boolean: whether a number is not 0.

    Raises:
        ValueError: the operand is not a single scalar.
    """
    if len(values) != 1 or not isinstance(values[0].type, TensorType) or values[0].type.rank:
        raise ValueError(f"expected one boolean as the condition, got ({types_text([value.type for value in values])})")
    (value,) = values
    return value if value.type is TensorType((), I1) else builder.compare("NE", value, 0)


def choose(
    builder: Builder, name: str, index: Value, branches: Sequence[tuple[str, Callable[[Builder], Sequence[Value]]]]
) -> Sequence[Value]:
    """Appends a conditional; returns its results.

    Args:
        builder: the builder that appends the conditional.
        name: the operation's name, ``if`` or ``case``.
        index: the value that chooses the branch.
        branches: the branches, each as its name in errors and a function that appends its operations and returns its
            results.

    Raises:
        ValueError: branches return different types.
    """
    location = builder.location
    regions = [_region(branch, location) for _, branch in branches]
    types = [[value.type for value in region.block.terminator.operands] for region in regions]
    for (label, _), returned in zip(branches, types, strict=True):
        if returned != types[0]:
            raise ValueError(f"{label} gives ({types_text(returned)}), {branches[0][0]} ({types_text(types[0])})")
    builder.location = location  # branches may have appended the values that they use from outside
    return builder.append(name, [index], types[0], regions=regions).results


def _region(body: Callable[[Builder], Sequence[Value]], location: Location) -> Region:
    block = Block()
    results = body(Builder(block, location))
    block.append(Operation("stablehlo.return", list(results), location=location))
    return Region([block])


def while_loop(
    builder: Builder,
    initial: Sequence[Value],
    test: Body,
    body: Body,
    start_of: Callable[[Value, Type], Value] = lambda value, type: value,
) -> Sequence[Value]:
    """Appends a loop; returns the last value of each variable.

    The body is run twice. The first run finds the variables that it passes on unchanged. The second run uses these from
    outside the loop, where their values may be known.

    Args:
        builder: the builder that appends the loop.
        initial: the values of the variables.
        test: a function that returns whether to continue.
        body: a function that returns the variables' next values.
        start_of: a function that returns a variable's start from its initial value and the type of its next value.

    Raises:
        ValueError: the body returns a different number of values, or values of different types.
    """
    location = builder.location
    first = Block([value.type for value in initial])
    following = body(Builder(first, location), first.arguments)
    if len(following) != len(initial):
        raise ValueError(f"the loop has {len(initial)} variables, its body gives {len(following)}")
    pairs = zip(initial, first.arguments, following, strict=True)
    variables = [index for index, (_, argument, value) in enumerate(pairs) if value is not argument]
    starts = list(initial)
    for index in variables:
        starts[index] = start_of(starts[index], following[index].type)

    def inside(part: Body, is_test: bool) -> Region:
        block = Block([starts[index].type for index in variables])
        inner = Builder(block, location)
        arguments = list(starts)
        for index, argument in zip(variables, block.arguments, strict=True):
            arguments[index] = argument
        results = part(inner, arguments)
        if is_test:
            results = [truth(inner, results)]
        else:
            results = [results[index] for index in variables]
            for index, value in zip(variables, results, strict=True):
                if value.type is not starts[index].type:
                    raise ValueError(
                        f"variable {index} of the loop starts as {starts[index].type} and continues as {value.type}; "
                        "a shape has to stay the same"
                    )
        block.append(Operation("stablehlo.return", list(results), location=location))
        return Region([block])

    regions = [inside(test, True), inside(body, False)]
    builder.location = location
    operands = [starts[index] for index in variables]
    loop = builder.append("while", operands, [value.type for value in operands], regions=regions)
    results = list(starts)
    for index, value in zip(variables, loop.results, strict=True):
        results[index] = value
    return results


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
