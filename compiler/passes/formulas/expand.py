"""Expansion of CHLO operations into StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...dialects.rewrite import rewrite_block
from ...ir.attributes import DenseElements
from ...ir.operation import Block, Operation, Value, tensor_of
from ...ir.types import F32, I1, ScalarType
from . import complex_functions, special_functions
from .chlo_structures import ragged_dot, scan
from .expression import Expression

_REAL: Final[Mapping[str, Callable[..., Expression]]] = vars(special_functions)
_COMPLEX: Final[Mapping[str, Callable[[Expression], Expression]]] = vars(complex_functions)
"""Functions by their names in CHLO."""


def expand_chlo(block: Block) -> None:
    """Expands CHLO operations in a block and the regions inside."""
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
    """Returns the upper half of a product, from products of halves, none of which overflows."""
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
    # Signed operands below zero stand for 2**bits less.
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
    """Sorts the last dimension stably with positions, the largest first, and takes the first k."""
    (value,) = operation.operands
    type, count = tensor_of(value), operation.integer("k")
    axis = type.rank - 1
    positions = builder.iota(type.of(tensor_of(operation.results[1]).element), axis)

    def larger(inner: Builder, arguments: Sequence[Value]) -> Value:
        left, right = (_ordered(inner, argument) for argument in arguments[:2])
        return inner.compare("GT", left, right)

    return [builder.piece(result, axis, 0, count) for result in builder.sort([value, positions], axis, larger)]


def _ordered(builder: Builder, value: Value) -> Value:
    """Maps floats to integers in the order of totalOrder; leaves other values as they are."""
    element = tensor_of(value).scalar
    if element.kind != "float":
        return value
    bits = builder.bitcast(value, ScalarType(f"i{element.bits}"))
    flipped = builder.elementwise("xor", bits, (1 << (element.bits - 1)) - 1)
    return builder.select(builder.compare("LT", bits, 0), flipped, bits)


def _broadcast(builder: Builder, operation: Operation, name: str) -> Value:
    """Broadcasts both operands to one shape; the smaller one's dimensions are the last ones unless an attribute says
    which.
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
