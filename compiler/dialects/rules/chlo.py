"""Constraints and result types of CHLO operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...ir.attributes import StructAttr
from ...ir.operation import Operation
from ...ir.types import I1, TensorType, Type
from .control import region_results
from .elementwise import elementwise, predicate
from .reductions import contraction
from .requirements import (
    ALL,
    BITS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    Kinds,
    Length,
    OperationError,
    Rule,
    axes,
    declared_result,
    expect_kind,
    integer,
    may_fit,
    merged,
    tensors,
)
from .shapes import constant

_REAL_FLOATS: Final[Kinds] = frozenset({"float"})


def _constant_like(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    if not hasattr(operation.attributes.get("value"), "value"):
        raise OperationError("a number as the attribute value")
    return [value]


def _top_k(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    count = integer(operation, "k", -1)
    last = value.shape[-1] if value.rank else 0
    if count < 0 or not may_fit(count, last):
        raise OperationError(f"k from 0 to the last dimension of {value}, got {count}")
    shape = (*value.shape[:-1], count)
    return [TensorType(shape, value.element), TensorType(shape, declared_result(operation, 1).element)]


def _broadcast(count: int, kinds: Kinds, is_comparison: bool = False) -> Rule:
    def rule(operation: Operation) -> Sequence[Type]:
        types = tensors(operation, count)
        dimensions = operation.integers("broadcast_dimensions", ())
        rank = max(type.rank for type in types)
        shape: tuple[Length, ...] = (1,) * rank
        for index, type in enumerate(types):
            if index and type.element is not types[0].element:
                raise OperationError(f"operands of one element type, got {types[0]} and {type}", index)
            places = dimensions if dimensions and type.rank < rank else range(rank - type.rank, rank)
            axes(places, rank, "broadcast_dimensions")
            if len(places) != type.rank:
                raise OperationError(f"a number in broadcast_dimensions for each dimension of {type}", index)
            whole: list[Length] = [1] * rank
            for axis, length in zip(places, type.shape, strict=True):
                whole[axis] = length
            pairs = zip(shape, whole, strict=True)
            known = [(b, b) if a == 1 else (a, a) if b == 1 else (a, b) for a, b in pairs]
            expected = f"operands whose lengths agree or are 1, got {types[0]} and {type}"
            shape = merged([a for a, _ in known], [b for _, b in known], expected, index)
        expect_kind(types[0].scalar, kinds)
        return [TensorType(shape, I1 if is_comparison else types[0].element)]

    return rule


def _broadcast_complex(operation: Operation) -> Sequence[Type]:
    (result,) = _broadcast(2, _REAL_FLOATS)(operation)
    assert isinstance(result, TensorType)
    return [result.of(declared_result(operation).element)]


def _broadcast_select(operation: Operation) -> Sequence[Type]:
    predicate, chosen, other = tensors(operation, 3)
    if predicate.element is not I1 or chosen.element is not other.element:
        raise OperationError(f"a predicate of i1 and two values of one type, got {predicate}, {chosen} and {other}", 0)
    return [TensorType(declared_result(operation).shape, chosen.element)]


def _ragged_dot(operation: Operation) -> Sequence[Type]:
    left, right, sizes = tensors(operation, 3)
    numbers = operation.attributes.get("ragged_dot_dimension_numbers")
    if not isinstance(numbers, StructAttr):
        raise OperationError("the attribute ragged_dot_dimension_numbers")
    expect_kind(left.scalar, ALL)
    if not sizes.rank or sizes.scalar.kind not in INTEGERS:
        raise OperationError(f"group sizes as integers with a dimension of groups, got {sizes}", 2)
    ragged, group = numbers.ints("lhs_ragged_dimensions"), numbers.ints("rhs_group_dimensions")
    if len(ragged) != 1:
        raise OperationError(f"one ragged dimension, got {list(ragged)}")
    axes(ragged, left.rank, "lhs_ragged_dimensions")
    batching, contracting = numbers.ints("lhs_batching_dimensions"), numbers.ints("lhs_contracting_dimensions")
    is_free = ragged[0] not in batching and ragged[0] not in contracting
    if len(group) != is_free:
        raise OperationError(f"{int(is_free)} group dimensions on the right side, got {list(group)}")
    used = [*group, *numbers.ints("rhs_batching_dimensions"), *numbers.ints("rhs_contracting_dimensions")]
    axes(used, right.rank, "the right operand's batching and contracting dimensions")
    if group and None not in (right.shape[group[0]], sizes.shape[-1]) and right.shape[group[0]] != sizes.shape[-1]:
        raise OperationError(f"{sizes.shape[-1]} groups along dimension {group[0]} of {right}", 1)
    if sizes.rank > 1:
        if ragged[0] in batching:
            prefix = list(batching[: batching.index(ragged[0])])
        elif is_free:
            prefix = [*batching, *(axis for axis in range(ragged[0]) if axis not in (*batching, *contracting))]
        else:
            prefix = [*batching, *contracting[: contracting.index(ragged[0])]]
        expected = f"group sizes for each index of the left side's dimensions {prefix}, got {sizes}"
        merged([left.shape[axis] for axis in prefix], sizes.shape[:-1], expected, 2)
    rest = [length for axis, length in enumerate(right.shape) if axis not in group]
    shift = {axis: axis - sum(removed < axis for removed in group) for axis in range(right.rank)}
    lists = {key: numbers.ints(key) for key in _LISTS}
    lists |= {key: tuple(shift[axis] for axis in lists[key]) for key in _LISTS if key.startswith("rhs")}
    shape = contraction(left, TensorType(rest, right.element), lists)
    if ragged[0] in contracting:
        shape = [sizes.shape[-1], *shape]
    return [TensorType(shape, declared_result(operation).element)]


_LISTS: Final = tuple(f"{side}_{kind}_dimensions" for side in ("lhs", "rhs") for kind in ("batching", "contracting"))


def _scan(operation: Operation) -> Sequence[Type]:
    counts = operation.integers("operandSegmentSizes", ())
    types = tensors(operation)
    if len(counts) != 2 or min(counts) < 0 or sum(counts) != len(types):
        raise OperationError(f"operandSegmentSizes to share out {len(types)} operands as inputs and initial values")
    inputs, inits = types[: counts[0]], types[counts[0] :]
    axis = integer(operation, "dimension", -1)
    length: Length = integer(operation, "scan_dim_size", -1)
    length = None if length == -1 else length
    for index, type in enumerate(inputs):
        axes([axis], type.rank, "dimension")
        (length,) = merged([length], [type.shape[axis]], f"inputs of one length along dimension {axis}", index)
    results = region_results(operation, 0)
    parts: list[Type] = [TensorType(type.shape[:axis] + type.shape[axis + 1 :], type.element) for type in inputs]
    arguments = [value.type for value in operation.regions[0].block.arguments]
    if arguments != [*parts, *inits]:
        wanted = ", ".join(map(str, [*parts, *inits]))
        raise OperationError(f"a body that takes ({wanted}), got ({', '.join(map(str, arguments))})")
    if len(results) < len(inits) or results[len(results) - len(inits) :] != inits:
        raise OperationError(f"a body that gives the carries of types ({', '.join(map(str, inits))}) last")
    outputs: list[Type] = []
    for carry in results[: len(results) - len(inits)]:
        if not isinstance(carry, TensorType) or not 0 <= axis <= carry.rank:
            raise OperationError(f"a body that gives tensors with room for dimension {axis}, got {carry}")
        outputs.append(TensorType((*carry.shape[:axis], length, *carry.shape[axis:]), carry.element))
    return [*outputs, *inits]


CHLO_RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "square"), elementwise(1, FLOATS)
    ),
    **dict.fromkeys(("bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma"), elementwise(1, _REAL_FLOATS)),
    **dict.fromkeys(("next_after", "polygamma", "zeta"), elementwise(2, _REAL_FLOATS)),
    **dict.fromkeys(("is_inf", "is_neg_inf", "is_pos_inf"), predicate),
    **dict.fromkeys(
        ("broadcast_add", "broadcast_maximum", "broadcast_minimum", "broadcast_multiply", "broadcast_subtract"),
        _broadcast(2, ALL),
    ),
    **dict.fromkeys(("broadcast_divide", "broadcast_power"), _broadcast(2, NUMBERS)),
    **dict.fromkeys(("broadcast_and", "broadcast_or", "broadcast_xor"), _broadcast(2, BITS)),
    **dict.fromkeys(("broadcast_next_after", "broadcast_polygamma", "broadcast_zeta"), _broadcast(2, _REAL_FLOATS)),
    **dict.fromkeys(
        ("broadcast_shift_left", "broadcast_shift_right_arithmetic", "broadcast_shift_right_logical"),
        _broadcast(2, INTEGERS),
    ),
    "broadcast_atan2": _broadcast(2, FLOATS),
    "broadcast_compare": _broadcast(2, ALL, True),
    "broadcast_complex": _broadcast_complex,
    "broadcast_remainder": _broadcast(2, REALS),
    "broadcast_select": _broadcast_select,
    "conj": elementwise(1, NUMBERS),
    "constant": constant,
    "constant_like": _constant_like,
    "mulhi": elementwise(2, INTEGERS),
    "ragged_dot": _ragged_dot,
    "scan": _scan,
    "top_k": _top_k,
}
"""Rules by the operation's name without the dialect."""
