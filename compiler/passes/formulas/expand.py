"""Expansion of CHLO operations to StableHLO: functions as formulas, scans as loops, masked contractions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from ...dialects.builder import Builder
from ...dialects.rewrite import rewrite_block
from ...ir.attributes import DenseElements, StructAttr
from ...ir.copying import copy_operations
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.sizes import Dim, number_of
from ...ir.types import F32, I1, ScalarType, TensorType
from . import complex_functions, special_functions
from .expression import Expression


def scan(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Makes a scan a loop over the dimension, which carries the carries and the outputs."""
    input_count, carry_count = operation.integers("operandSegmentSizes")
    inputs, inits = operation.operands[:input_count], operation.operands[input_count:]
    outputs = [tensor_of(value) for value in operation.results[: len(operation.results) - carry_count]]
    axis = operation.integer("dimension")
    whole_values = [*inputs, *operation.results[: len(outputs)]]
    found_length = tensor_of(whole_values[0]).lengths[axis] if whole_values else operation.integer("scan_dim_size", 0)
    length: Value | int
    last: Value | int
    if isinstance(found_length, int):
        length, last = found_length, found_length - 1
    else:
        length = builder.dimension(inputs[0], axis)
        last = builder.elementwise("subtract", length, 1)
    is_reversed = operation.flag("is_reverse")
    body = operation.regions[0].block

    def step(inner: Builder, number: Value, values: Sequence[Value]) -> Sequence[Value]:
        position = inner.elementwise("subtract", last, number) if is_reversed else number
        elements = [_element_at(inner, value, axis, position) for value in inputs]
        inside = dict(zip(body.arguments, [*elements, *values[:carry_count]], strict=True))
        copy_operations(body.operations[:-1], inner.block, inside)
        returned = [inside[value] for value in body.terminator.operands]
        pairs = zip(values[carry_count:], returned[: len(outputs)], strict=True)
        return [*returned[len(outputs) :], *(_written(inner, *pair, axis, position) for pair in pairs)]

    results = builder.loop(length, [*inits, *(builder.constant(0, type) for type in outputs)], step)
    return [*results[carry_count:], *results[:carry_count]]


def _element_at(builder: Builder, value: Value, axis: int, position: Value) -> Value:
    """Returns an element along a dimension, and removes the dimension."""
    sizes = tensor_of(value).lengths
    return builder.reshape(builder.piece_at(value, axis, position, 1), sizes[:axis] + sizes[axis + 1 :])


def _written(builder: Builder, whole: Value, part: Value, axis: int, position: Value) -> Value:
    shape = [1 if number == axis else length for number, length in enumerate(tensor_of(whole).lengths)]
    return builder.put_along(whole, builder.reshape(part, shape), axis, position)


def ragged_dot(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Contracts each group's part of the left operand, with zeros elsewhere.

    Rows along the ragged dimension belong to groups, one after another. If the dimension is contracted, each group has
    its own result. If it stays, groups are contracted too, since the right operand has one matrix per group. If it is a
    batch dimension, elements outside all groups become zero.
    """
    left, right, sizes = operation.operands
    numbers = operation.attributes["ragged_dot_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    lists = {
        side: [numbers.ints(f"{side}_{kind}_dimensions") for kind in ("batching", "contracting")]
        for side in ("lhs", "rhs")
    }
    (ragged,) = numbers.ints("lhs_ragged_dimensions")
    batching, contracting = lists["lhs"]
    mask = _members(builder, left, sizes, ragged, _prefix(tensor_of(left).rank, ragged, batching, contracting))
    if ragged in batching:
        mask = builder.reduce("or", mask, False, (0,))
        masked = builder.select(mask, left, 0)
        return [_contracted(builder, operation, masked, right, lists["lhs"], lists["rhs"])]
    groups = tensor_of(mask).lengths[0]
    type = tensor_of(left)
    spread = builder.broadcast(left, (groups, *type.shape), range(1, type.rank + 1))
    masked = builder.select(mask, spread, 0)
    shifted = [[axis + 1 for axis in axes] for axes in lists["lhs"]]
    if ragged in lists["lhs"][1]:
        # The left operand's group is a free dimension, which precedes the batch dimensions in results.
        result = _contracted(builder, operation, masked, right, shifted, lists["rhs"])
        count = len(batching)
        return [builder.transpose(result, (count, *range(count), *range(count + 1, tensor_of(result).rank)))]
    (group,) = numbers.ints("rhs_group_dimensions")
    right_lists = [lists["rhs"][0], (group, *lists["rhs"][1])]
    return [_contracted(builder, operation, masked, right, [shifted[0], [0, *shifted[1]]], right_lists)]


def _prefix(rank: int, ragged: int, batching: Sequence[int], contracting: Sequence[int]) -> list[int]:
    """Returns the left operand's dimensions along which group sizes may vary."""
    if ragged in batching:
        return list(batching[: batching.index(ragged)])
    if ragged in contracting:
        return [*batching, *contracting[: contracting.index(ragged)]]
    return [*batching, *(axis for axis in range(ragged) if axis not in batching and axis not in contracting)]


def _members(builder: Builder, left: Value, sizes: Value, ragged: int, prefix: Sequence[int]) -> Value:
    """Returns a mask of the left operand's elements for each group."""
    type = tensor_of(sizes)
    groups = number_of(type.lengths[-1])
    below = np.tri(groups, dtype=np.int64)
    triangle = builder.constant(below.T, TensorType((groups, groups), type.element))
    ends = builder.contract(sizes, triangle, ((type.rank - 1,), (0,)))
    begins = builder.elementwise("subtract", ends, sizes)
    shape = (groups, *tensor_of(left).lengths)
    places = [axis + 1 for axis in prefix] if type.rank > 1 else []
    begins, ends = (_spread(builder, value, shape, places) for value in (begins, ends))
    position = builder.iota(TensorType(shape, type.element), ragged + 1)
    inside = builder.compare("GE", position, begins), builder.compare("LT", position, ends)
    return builder.elementwise("and", *inside)


def _spread(builder: Builder, value: Value, shape: Sequence[Dim], places: Sequence[int]) -> Value:
    """Broadcasts a per-group value to the left operand."""
    rank = tensor_of(value).rank
    first = builder.transpose(value, (rank - 1, *range(rank - 1)))
    axes = sorted(range(len(places)), key=lambda index: places[index])
    first = builder.transpose(first, (0, *(axis + 1 for axis in axes)))
    return builder.broadcast(first, shape, (0, *sorted(places)))


def _contracted(
    builder: Builder,
    operation: Operation,
    left: Value,
    right: Value,
    left_axes: Sequence[Sequence[int]],
    right_axes: Sequence[Sequence[int]],
) -> Value:
    """Returns a contraction with batching and contracting dimensions of both operands."""
    batches, axes = zip(left_axes, right_axes, strict=True)
    kept = {key: value for key, value in operation.attributes.items() if key == "precision_config"}
    return builder.contract(left, right, axes, batches, operation.tensor.element, kept)


_REAL: Final[Mapping[str, Callable[..., Expression]]] = vars(special_functions)
_COMPLEX: Final[Mapping[str, Callable[[Expression], Expression]]] = vars(complex_functions)
"""Functions by their names in CHLO."""


def expand_chlo(block: Block) -> None:
    """Expands CHLO operations in a block and its nested regions."""
    rewrite_block(block, _expand)


def expand_operation(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Appends the expansion of one CHLO operation; returns its results."""
    result = _expand(builder, operation)
    assert result is not None, f"{operation.name} is none of CHLO's"
    return result


def _expand(builder: Builder, operation: Operation) -> Sequence[Value] | None:
    dialect, _, name = operation.name.partition(".")
    if dialect != "chlo":
        return None
    if name.startswith("broadcast_"):
        return [_broadcast(builder, operation, name.removeprefix("broadcast_"))]
    other = _OTHERS.get(name)
    if other is not None:
        return other(builder, operation)
    return [_function(builder, name, operation)]


def _function(builder: Builder, name: str, operation: Operation) -> Value:
    operands = [Expression(builder, value) for value in operation.operands]
    element = operands[0].element
    if element.kind == "complex":
        return _COMPLEX[name](operands[0]).value
    # Narrow floats are computed in f32.
    wide = [operand.convert(F32) if element.bits < 32 else operand for operand in operands]
    return _REAL[name](*wide).convert(element).value


def _next_after(builder: Builder, operation: Operation) -> Sequence[Value]:
    x, y = (Expression(builder, value) for value in operation.operands)
    return [special_functions.next_after(x, y).value]


def _mulhi(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Returns the upper half of a product, from products of halves that do not overflow."""
    x, y = (Expression(builder, value) for value in operation.operands)
    element = x.element
    half = element.bits // 2
    bits = ScalarType(f"ui{element.bits}")
    is_signed = element.kind == "int"
    left, right = (value.bitcast(bits) if is_signed else value for value in (x, y))

    def split(value: Expression) -> tuple[Expression, Expression]:
        return value & value.constant((1 << half) - 1), value.call("shift_right_logical", half)

    (low_x, high_x), (low_y, high_y) = split(left), split(right)
    carry = low_x * high_y + (low_x * low_y).call("shift_right_logical", half)
    low, high = split(carry)
    middle = high_x * low_y + low
    product = high_x * high_y + high + middle.call("shift_right_logical", half)
    if not is_signed:
        return [product.value]
    # As unsigned numbers, negative operands are 2**bits too large.
    zero = product.constant(0)
    product = product - (x < 0).then(right, zero) - (y < 0).then(left, zero)
    return [product.bitcast(element).value]


def _square(builder: Builder, operation: Operation) -> Sequence[Value]:
    (value,) = operation.operands
    if tensor_of(value).scalar.kind == "complex":
        return [complex_functions.square(Expression(builder, value)).value]
    return [builder.elementwise("multiply", value, value)]


def _constant(builder: Builder, operation: Operation) -> Sequence[Value]:
    value = operation.attributes["value"]
    assert isinstance(value, DenseElements)
    return [builder.append("constant", (), [value.type], {"value": value}).result]


def _constant_like(builder: Builder, operation: Operation) -> Sequence[Value]:
    number = getattr(operation.attributes["value"], "value", 0)
    return [builder.constant(number, tensor_of(operation.results[0]))]


def _is_infinite(sign: int) -> Callable[[Builder, Operation], Sequence[Value]]:
    def define(builder: Builder, operation: Operation) -> Sequence[Value]:
        (value,) = operation.operands
        compared = builder.elementwise("abs", value) if sign == 0 else value
        return [builder.compare("EQ", compared, -float("inf") if sign < 0 else float("inf"))]

    return define


def _top_k(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Sorts the last dimension stably and in descending order with positions, and takes the first k."""
    (value,) = operation.operands
    type, count = tensor_of(value), operation.integer("k")
    axis = type.rank - 1
    positions = builder.iota(type.of(tensor_of(operation.results[1]).element), axis)

    def larger(inner: Builder, arguments: Sequence[Value]) -> Value:
        left, right = (_ordered(inner, argument) for argument in arguments[:2])
        return inner.compare("GT", left, right)

    return [builder.piece(result, axis, 0, count) for result in builder.sort([value, positions], axis, larger)]


def _ordered(builder: Builder, value: Value) -> Value:
    """Maps floats to integers in the order of totalOrder; leaves other values unchanged."""
    element = tensor_of(value).scalar
    if element.kind != "float":
        return value
    bits = builder.bitcast(value, ScalarType(f"i{element.bits}"))
    flipped = builder.elementwise("xor", bits, (1 << (element.bits - 1)) - 1)
    return builder.select(builder.compare("LT", bits, 0), flipped, bits)


def _broadcast(builder: Builder, operation: Operation, name: str) -> Value:
    """Broadcasts both operands to one shape.

    The smaller operand's dimensions are the last ones unless an attribute lists them.
    """
    result = tensor_of(operation.results[0])
    values = []
    for value in operation.operands:
        type = tensor_of(value)
        axes = operation.integers("broadcast_dimensions", range(result.rank - type.rank, result.rank))
        dimensions = axes if type.rank < result.rank else range(result.rank)
        values.append(
            value if type.shape == result.shape else builder.broadcast(value, result.shape, tuple(dimensions))
        )
    attributes = {key: item for key, item in operation.attributes.items() if key != "broadcast_dimensions"}
    if name in ("zeta", "polygamma", "next_after"):
        inner = Operation(f"chlo.{name}", values, [result])
        return (_expand(builder, inner) or [])[0]
    return builder.append(name, values, [result.of(I1) if name == "compare" else result], attributes).result


_OTHERS: Final[Mapping[str, Callable[[Builder, Operation], Sequence[Value]]]] = {
    "conj": lambda builder, operation: [builder.conjugate(*operation.operands)],
    "constant": _constant,
    "constant_like": _constant_like,
    "is_inf": _is_infinite(0),
    "is_neg_inf": _is_infinite(-1),
    "is_pos_inf": _is_infinite(1),
    "mulhi": _mulhi,
    "next_after": _next_after,
    "ragged_dot": ragged_dot,
    "scan": scan,
    "square": _square,
    "tan": lambda builder, operation: [builder.elementwise("tan", *operation.operands)],
    "top_k": _top_k,
}
