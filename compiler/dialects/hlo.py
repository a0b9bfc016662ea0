"""What each StableHLO operation requires and gives: types of results from operands and attributes.

Constraints are those of StableHLO's specification (``docs/spec.md``). A rule takes an operation and gives its result
types, or raises ``OperationError`` with what is wrong; lengths that are not known agree with all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ..ir.attributes import DenseElements, EnumAttr
from ..ir.operation import Operation
from ..ir.types import I1, I32, ScalarType, ShapedType, TensorType, Type
from .hlo_indexing import INDEXING
from .hlo_reductions import REDUCTIONS
from .rules import (
    Dim,
    OperationError,
    Rule,
    axes,
    ints,
    merged,
    operands,
    same_length,
    tensors,
)

Kinds: TypeAlias = frozenset[str]

NUMBERS: Final = frozenset({"int", "uint", "float", "complex", "index"})
REALS: Final = frozenset({"int", "uint", "float", "index"})
FLOATS: Final = frozenset({"float", "complex"})
BITS: Final = frozenset({"bool", "int", "uint", "index"})
ALL: Final = NUMBERS | {"bool"}
INTEGERS: Final = frozenset({"int", "uint", "index"})


def elementwise(count: int, kinds: Kinds) -> Rule:
    """Operands of one type, of which the result is too."""

    def rule(operation: Operation) -> Sequence[Type]:
        types = tensors(operation, count)
        _expect_kind(types[0].scalar, kinds)
        shape = types[0].shape
        for index, type in enumerate(types[1:], 1):
            if type.element is not types[0].element:
                raise OperationError(f"operands of one element type, got {types[0]} and {type}", index)
            shape = merged(shape, type.shape, f"operands of one shape, got {types[0]} and {type}", index)
        return [TensorType(shape, types[0].element)]

    return rule


def _expect_kind(element: ScalarType, kinds: Kinds) -> None:
    if element.kind not in kinds:
        names = {"int": "signed", "uint": "unsigned", "bool": "boolean"}
        wanted = ", ".join(sorted(names.get(kind, kind) for kind in kinds if kind != "index"))
        raise OperationError(f"elements of one of these kinds: {wanted}; got {element}", 0)


def _clamp(operation: Operation) -> Sequence[Type]:
    low, value, high = tensors(operation, 3)
    for index, bound in ((0, low), (2, high)):
        if (bound.rank and not compatible(bound, value)) or bound.element is not value.element:
            raise OperationError(f"bounds of type {value} or without dimensions, got {bound}", index)
    _expect_kind(value.scalar, REALS | {"bool"})
    return [value]


def _compare(operation: Operation) -> Sequence[Type]:
    left, right = tensors(operation, 2)
    if left.element is not right.element:
        raise OperationError(f"operands of one element type, got {left} and {right}", 1)
    direction = operation.attributes.get("comparison_direction")
    if not isinstance(direction, EnumAttr) or direction.case not in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        raise OperationError("comparison_direction to be EQ, NE, LT, LE, GT or GE")
    if left.scalar.kind == "complex" and direction.case not in ("EQ", "NE"):
        raise OperationError("EQ or NE, since complex numbers have no order", 0)
    return [TensorType(merged(left.shape, right.shape, f"operands of one shape, got {left} and {right}", 1), I1)]


def _select(operation: Operation) -> Sequence[Type]:
    predicate, chosen, other = tensors(operation, 3)
    if predicate.element is not I1:
        raise OperationError(f"a predicate of i1, got {predicate}", 0)
    if chosen.element is not other.element:
        raise OperationError(f"two values of one type, got {chosen} and {other}", 2)
    shape = merged(chosen.shape, other.shape, f"two values of one type, got {chosen} and {other}", 2)
    if predicate.rank:
        shape = merged(
            shape, predicate.shape, f"a predicate of the values' shape or without dimensions, got {predicate}", 0
        )
    return [TensorType(shape, chosen.element)]


def _convert(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    return [value.of(_result(operation).element)]


def _result(operation: Operation, index: int = 0) -> TensorType:
    if len(operation.results) <= index or not isinstance(operation.results[index].type, TensorType):
        raise OperationError("a tensor as result")
    type = operation.results[index].type
    assert isinstance(type, TensorType)
    return type


def _bitcast(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    result = _result(operation)
    source, target = value.scalar.bits, result.scalar.bits
    shape: tuple[Dim, ...] = value.shape
    if source > target:
        shape = (*shape, source // target)
    elif source < target:
        if not value.rank or value.shape[-1] not in (None, target // source):
            raise OperationError(f"a last dimension of {target // source} elements to be put together, got {value}", 0)
        shape = shape[:-1]
    return [TensorType(shape, result.element)]


def _complex(operation: Operation) -> Sequence[Type]:
    real, imaginary = tensors(operation, 2)
    if real is not imaginary or str(real.element) not in ("f32", "f64"):
        raise OperationError(f"two tensors of f32 or f64, got {real} and {imaginary}", 1)
    return [real.of(ScalarType(f"complex<{real.element}>"))]


def _part(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    _expect_kind(value.scalar, FLOATS)
    return [value.of(value.scalar.part)]


def _abs(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    _expect_kind(value.scalar, frozenset({"int", "float", "complex"}))
    return [value.of(value.scalar.part)]


def _is_finite(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    _expect_kind(value.scalar, frozenset({"float"}))
    return [value.of(I1)]


def _constant(operation: Operation) -> Sequence[Type]:
    operands(operation, 0)
    value = operation.attributes.get("value")
    if not isinstance(value, DenseElements):
        raise OperationError("a value such as dense<0> : tensor<i32>")
    return [value.type]


def _iota(operation: Operation) -> Sequence[Type]:
    operands(operation, 0)
    result = _result(operation)
    _expect_kind(result.scalar, NUMBERS)
    axes([operation.integer("iota_dimension", -1)], result.rank, "iota_dimension")
    return [result]


def _reshape(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    result = _result(operation)
    if value.is_static and result.is_static and value.count != result.count:
        raise OperationError(f"as many elements in the result as in {value} ({value.count}), got {result.count}", 0)
    return [TensorType(result.shape, value.element)]


def _broadcast_in_dim(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    result = _result(operation)
    dimensions = ints(operation, "broadcast_dimensions")
    if len(dimensions) != value.rank:
        raise OperationError(f"a number in dims for each of {value}'s {value.rank} dimensions, got {list(dimensions)}")
    axes(dimensions, result.rank, "dims")
    for axis, target in enumerate(dimensions):
        length, wanted = value.shape[axis], result.shape[target]
        if None not in (length, wanted) and length not in (1, wanted):
            raise OperationError(
                f"dimension {axis} of {value} to be 1 or {wanted}, which is dimension {target} of the result", 0
            )
    return [TensorType(result.shape, value.element)]


def _broadcast(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    return [TensorType((*ints(operation, "broadcast_sizes"), *value.shape), value.element)]


def _transpose(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    order = ints(operation, "permutation")
    if sorted(order) != list(range(value.rank)):
        raise OperationError(f"dims to be an order of 0 to {value.rank - 1}, got {list(order)}")
    return [TensorType([value.shape[axis] for axis in order], value.element)]


def _reverse(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    axes(ints(operation, "dimensions"), value.rank, "dims")
    return [value]


def _concatenate(operation: Operation) -> Sequence[Type]:
    types = tensors(operation)
    if not types:
        raise OperationError("at least one operand")
    first = types[0]
    axis = operation.integer("dimension", -1)
    axes([axis], first.rank, "dim")
    shape = list(first.shape)
    total: Dim = shape[axis]
    for index, type in enumerate(types[1:], 1):
        if type.element is not first.element or type.rank != first.rank:
            raise OperationError(f"operands of one element type and rank, got {first} and {type}", index)
        for other, length in enumerate(type.shape):
            if other != axis:
                shape[other] = same_length(
                    shape[other], length, f"equal lengths but along {axis}, got {first} and {type}", index
                )
        length = type.shape[axis]
        total = None if total is None or length is None else total + length
    shape[axis] = total
    return [TensorType(shape, first.element)]


def _reduce_precision(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    _expect_kind(value.scalar, frozenset({"float"}))
    if operation.integer("exponent_bits") < 1 or operation.integer("mantissa_bits") < 0:
        raise OperationError("at least 1 exponent bit and 0 mantissa bits")
    return [value]


_CUSTOM: Final = re.compile(
    r"check\..*|lapack_[sdcz](potrf|trsm)_ffi|Sharding|SPMD(FullToShard|ShardToFull)Shape|annotate_device_placement"
)


def _custom_call(operation: Operation) -> Sequence[Type]:
    target = operation.attributes.get("call_target_name")
    if not isinstance(target, str) or not _CUSTOM.fullmatch(target):
        raise OperationError(
            f"a call that is a check, a sharding, or LAPACK's potrf or trsm, got @{target}; JAX lowers linear algebra "
            "without LAPACK for another platform: jax.jit(f).trace(…).lower(lowering_platforms=('tpu',))"
        )
    return _declared(operation)


def _declared(operation: Operation) -> Sequence[Type]:
    """Whatever the operation declares: its meaning is elsewhere."""
    return [value.type for value in operation.results]


def _same_as_operands(operation: Operation) -> Sequence[Type]:
    return [value.type for value in operation.operands]


def _region_results(operation: Operation, index: int) -> list[Type]:
    if len(operation.regions) <= index or len(operation.regions[index].blocks) != 1:
        raise OperationError(f"at least {index + 1} regions of one block each")
    return [value.type for value in operation.regions[index].block.terminator.operands]


def _agree(found: Sequence[Type], wanted: Sequence[Type], what: str) -> None:
    if len(found) != len(wanted) or not all(compatible(one, other) for one, other in zip(found, wanted, strict=True)):
        raise OperationError(f"{what} of types ({_texts(wanted)}), got ({_texts(found)})")


def _texts(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))


def _while(operation: Operation) -> Sequence[Type]:
    types = [value.type for value in operation.operands]
    for region in operation.regions:
        _agree([value.type for value in region.blocks[0].arguments], types, "arguments of both regions")
    condition = _region_results(operation, 0)
    if len(condition) != 1 or condition[0] is not TensorType((), I1):
        raise OperationError(f"a condition that gives tensor<i1>, got ({_texts(condition)})")
    _agree(_region_results(operation, 1), types, "a body that gives values")
    return types


def _if(operation: Operation) -> Sequence[Type]:
    (predicate,) = tensors(operation, 1)
    if predicate is not TensorType((), I1):
        raise OperationError(f"a predicate of type tensor<i1>, got {predicate}", 0)
    types = _region_results(operation, 0)
    _agree(_region_results(operation, 1), types, "a second branch that gives values")
    return types


def _case(operation: Operation) -> Sequence[Type]:
    (index,) = tensors(operation, 1)
    if index is not TensorType((), I32):
        raise OperationError(f"an index of type tensor<i32>, got {index}", 0)
    types = _region_results(operation, 0)
    for number in range(1, len(operation.regions)):
        _agree(_region_results(operation, number), types, f"branch {number} to give values")
    return types


def _fft(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    length = ints(operation, "fft_length")
    kind = operation.attributes.get("fft_type")
    if not isinstance(kind, EnumAttr) or kind.case not in ("FFT", "IFFT", "RFFT", "IRFFT"):
        raise OperationError("fft_type to be FFT, IFFT, RFFT or IRFFT")
    if not 1 <= len(length) <= min(3, value.rank):
        raise OperationError(f"1 to 3 lengths, and no more than {value}'s dimensions, got {list(length)}")
    if (value.scalar.kind == "complex") != (kind.case != "RFFT"):
        raise OperationError(f"{'real' if kind.case == 'RFFT' else 'complex'} numbers for {kind.case}, got {value}", 0)
    wanted = (*length[:-1], length[-1] // 2 + 1 if kind.case == "IRFFT" else length[-1])
    tail = value.shape[value.rank - len(length) :]
    if math.prod(length) and any(dim not in (None, want) for dim, want in zip(tail, wanted, strict=True)):
        raise OperationError(f"last dimensions of {list(wanted)} elements for {kind.case}, got {value}", 0)
    part = value.scalar.part
    element = part if kind.case == "IRFFT" else ScalarType(f"complex<{part}>")
    given = (*length[:-1], length[-1] // 2 + 1 if kind.case == "RFFT" else length[-1])
    if not math.prod(length):
        return [_result(operation)]
    return [TensorType((*value.shape[: value.rank - len(length)], *given), element)]


def _square(type: TensorType, index: int) -> None:
    if type.rank < 2 or (None not in type.shape[-2:] and type.shape[-1] != type.shape[-2]):
        raise OperationError(f"square matrices, got {type}", index)
    _expect_kind(type.scalar, FLOATS)


def _cholesky(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    _square(value, 0)
    return [value]


def _triangular_solve(operation: Operation) -> Sequence[Type]:
    matrix, right = tensors(operation, 2)
    _square(matrix, 0)
    if right.rank != matrix.rank or right.element is not matrix.element:
        raise OperationError(f"a right side of {matrix}'s rank and element type, got {right}", 1)
    side = right.shape[-2 if operation.flag("left_side") else -1]
    same_length(side, matrix.shape[-1], f"a right side that fits {matrix}, got {right}", 1)
    merged(right.shape[:-2], matrix.shape[:-2], f"equal batch dimensions, got {matrix} and {right}", 1)
    return [right]


def _dimension_size(operation: Operation) -> Sequence[Type]:
    (value,) = tensors(operation, 1)
    axes([operation.integer("dimension", -1)], value.rank, "dim")
    return [TensorType((), I32)]


def compatible(one: Type, other: Type) -> bool:
    """Whether two types are the same but for lengths that are not known."""
    if one is other:
        return True
    if not isinstance(one, ShapedType) or not isinstance(other, ShapedType) or one.element is not other.element:
        return False
    return len(one.shape) == len(other.shape) and all(
        a == b or a is None or b is None for a, b in zip(one.shape, other.shape, strict=True)
    )


RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(("add", "multiply"), elementwise(2, ALL)),
    **dict.fromkeys(("subtract",), elementwise(2, ALL)),
    **dict.fromkeys(("divide", "power"), elementwise(2, NUMBERS)),
    "remainder": elementwise(2, REALS),
    "atan2": elementwise(2, FLOATS),
    **dict.fromkeys(("maximum", "minimum"), elementwise(2, ALL)),
    **dict.fromkeys(("and", "or", "xor"), elementwise(2, BITS)),
    **dict.fromkeys(("shift_left", "shift_right_arithmetic", "shift_right_logical"), elementwise(2, INTEGERS)),
    "not": elementwise(1, BITS),
    **dict.fromkeys(("popcnt", "count_leading_zeros"), elementwise(1, INTEGERS)),
    **dict.fromkeys(("negate", "sign"), elementwise(1, NUMBERS)),
    **dict.fromkeys(("ceil", "floor", "round_nearest_afz", "round_nearest_even"), elementwise(1, frozenset({"float"}))),
    **dict.fromkeys(
        (
            *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic"),
            *("rsqrt", "sine", "sqrt", "tan", "tanh"),
        ),
        elementwise(1, FLOATS),
    ),
    "abs": _abs,
    "bitcast_convert": _bitcast,
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "case": _case,
    "cholesky": _cholesky,
    "clamp": _clamp,
    "compare": _compare,
    "complex": _complex,
    "concatenate": _concatenate,
    "constant": _constant,
    "convert": _convert,
    "custom_call": _custom_call,
    "fft": _fft,
    "get_dimension_size": _dimension_size,
    "if": _if,
    "imag": _part,
    "iota": _iota,
    "is_finite": _is_finite,
    "optimization_barrier": _same_as_operands,
    "real": _part,
    "reduce_precision": _reduce_precision,
    "reshape": _reshape,
    "reverse": _reverse,
    "select": _select,
    "transpose": _transpose,
    "triangular_solve": _triangular_solve,
    "while": _while,
    **INDEXING,
    **REDUCTIONS,
    **dict.fromkeys(
        (
            *("after_all", "composite", "create_token", "get_tuple_element", "partition_id"),
            *("replica_id", "rng", "rng_bit_generator", "tuple", "return", "dynamic_iota", "dynamic_reshape"),
            *("dynamic_broadcast_in_dim", "dynamic_pad", "dynamic_gather", "dynamic_conv", "real_dynamic_slice"),
            *("einsum", "unary_einsum", "torch_index_select", "batch_norm_inference", "batch_norm_training"),
            *("batch_norm_grad", "set_dimension_size"),
        ),
        _declared,
    ),
}
"""By the operation's name without the dialect."""


def infer(operation: Operation) -> Sequence[Type]:
    """Types of an operation's results.

    Raises:
        OperationError: the operation is not as the specification wants it, or is none that is known.
    """
    rule = RULES.get(operation.name.removeprefix("stablehlo."))
    if rule is None:
        raise OperationError(f"an operation that one device can run, got {operation.name}")
    try:
        return rule(operation)
    except ValueError as error:
        raise OperationError(f"elements of scalar types: {error}") from None
