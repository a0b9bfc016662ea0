"""Counter-based random bits by integer arithmetic: Threefry and Philox, as defined by the reference device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ....hal_reference.random_bits import halved
from ...dialects.builder import Builder
from ...ir.attributes import EnumAttr
from ...ir.operation import Operation, Value, tensor_of
from ...ir.sizes import number_of
from ...ir.types import ScalarType, TensorType
from ..formulas.expression import Expression

_U32: Final = ScalarType("ui32")
_U64: Final = ScalarType("ui64")
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PHILOX_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_PHILOX_WEYL: Final = (0x9E3779B9, 0xBB67AE85)


def rng_bit_generator(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Returns the next state and random bits."""
    (state,) = operation.operands
    kind = operation.attributes["rng_algorithm"]
    assert isinstance(kind, EnumAttr)
    words = _words(builder, state)
    result = tensor_of(operation.results[1])
    bits, used = _bits(builder, words, result, kind.case != "THREE_FRY")
    count = Expression(builder, words[1]) + used
    new = [words[0], count.value, *words[2:]]
    vector = [builder.reshape(word, (1,)) for word in new]
    joined = builder.concatenate(vector, 0)
    before = tensor_of(state)
    if before.scalar.bits == 32:
        joined = builder.append("bitcast_convert", [joined], [TensorType((len(new), 2), _U32)]).result
        joined = builder.reshape(joined, (2 * len(new),))
    return [joined, bits]


def rng(builder: Builder, operation: Operation) -> Sequence[Value]:
    """Generates uniform or normal numbers from a fixed key; StableHLO does not specify the source of randomness."""
    low, high = (Expression(builder, value) for value in operation.operands[:2])
    result = tensor_of(operation.results[0])
    kind = operation.attributes["rng_distribution"]
    assert isinstance(kind, EnumAttr)
    scalar = TensorType((), _U64)
    words = [builder.constant(0x243F6A8885A308D3, scalar), builder.constant(0, scalar)]
    bits = Expression(builder, _bits(builder, words, TensorType(result.shape, _U32), False)[0])
    shape = [length or 0 for length in result.shape]
    first, second = (Expression(builder, builder.broadcast(bound.value, shape, ())) for bound in (low, high))
    if result.scalar.kind != "float":
        spread = (second - first).convert(_U32)
        return [(first + bits.call("remainder", spread).convert(result.scalar)).value]
    single = ScalarType("f32")
    unit = bits.call("shift_right_logical", 9).convert(single) * 2.0**-23
    if kind.case == "NORMAL":
        apart = [words[0], builder.constant(1 << 40, scalar)]
        other = Expression(builder, _bits(builder, apart, tensor_of(bits.value), False)[0])
        angle = other.call("shift_right_logical", 9).convert(single) * (2.0**-23 * 2 * math.pi)
        radius = (-2.0 * (1.0 - unit).call("log")).call("sqrt")
        return [(first + second * (radius * angle.call("cosine")).convert(result.scalar)).value]
    return [(first + (second - first) * unit.convert(result.scalar)).value]


def _words(builder: Builder, state: Value) -> list[Value]:
    """Returns the state as scalars of 64 bits."""
    type = tensor_of(state)
    if type.scalar.bits == 32:
        pairs = builder.reshape(state, (number_of(type.lengths[0]) // 2, 2))
        state = builder.append(
            "bitcast_convert", [pairs], [TensorType((number_of(type.lengths[0]) // 2,), _U64)]
        ).result
    count = number_of(tensor_of(state).lengths[0])
    return [builder.reshape(builder.slice(state, [(index, index + 1, 1)]), ()) for index in range(count)]


def _halves(value: Expression) -> tuple[Expression, Expression]:
    """Returns the low and the high half of 64 bits."""
    return value.convert(_U32), value.call("shift_right_logical", 32).convert(_U32)


def _bits(builder: Builder, words: Sequence[Value], result: TensorType, is_philox: bool) -> tuple[Value, int]:
    """Returns random bits of a type, and the increment of the counter."""
    total, width = number_of(result.count), max(result.scalar.bits // 8, 1)
    key = _halves(Expression(builder, words[0]))
    lanes = 4 if is_philox else 2
    shape = [number_of(length) for length in result.lengths]
    axis, half = halved(shape) if shape and width < 8 else (0, shape)
    used = (-(-total * max(width, 4) // 4) + 3) // 4 if is_philox else math.prod(half)
    used = max(used, 1) if total else 0
    if not total:
        return builder.constant(0, result), 0
    counter = TensorType((used,), _U64)
    start = Expression(builder, builder.broadcast(words[1], (used,), ()))
    numbers = Expression(builder, builder.iota(counter, 0)) + start
    keys = [Expression(builder, builder.broadcast(word.value, (used,), ())) for word in key]
    if is_philox:
        high = Expression(builder, builder.broadcast(words[2 if len(words) > 2 else 0], (used,), ()))
        carry = (numbers < start).convert(_U64) + high
        generated = _philox(keys, [*_halves(numbers), *_halves(carry)])
        vector = _interleaved(builder, generated)
    else:
        generated = _threefry(keys, _halves(numbers))
        vector = (
            _interleaved(builder, generated)
            if width == 8 or not shape
            else _paired(builder, generated, axis, half, shape)
        )
    assert len(generated) == lanes
    if width == 8:
        pairs = builder.reshape(builder.slice(vector, [(0, 2 * total, 1)]), (total, 2))
        flat = builder.append("bitcast_convert", [pairs], [TensorType((total,), _U64)]).result
    else:
        flat = builder.slice(vector, [(0, total, 1)])
    element = result.scalar
    if element.bits < 32:
        flat = builder.convert(flat, ScalarType(f"ui{element.bits}"))
    shaped = builder.reshape(flat, [length or 0 for length in result.shape])
    return (shaped if tensor_of(shaped).element is element else builder.bitcast(shaped, element)), used


def _interleaved(builder: Builder, values: Sequence[Expression]) -> Value:
    count = tensor_of(values[0].value).shape[0] or 0
    columns = [builder.reshape(value.value, (count, 1)) for value in values]
    return builder.reshape(builder.concatenate(columns, 1), (count * len(values),))


def _paired(
    builder: Builder, values: Sequence[Expression], axis: int, half: Sequence[int], shape: Sequence[int]
) -> Value:
    """Interleaves two halves along a dimension."""
    split = [*half[: axis + 1], 1, *half[axis + 1 :]]
    pairs = builder.concatenate([builder.reshape(value.value, split) for value in values], axis + 1)
    whole = builder.reshape(pairs, [2 * length if number == axis else length for number, length in enumerate(half)])
    return builder.reshape(builder.piece(whole, axis, 0, shape[axis]), (math.prod(shape),))


def _threefry(key: Sequence[Expression], counters: Sequence[Expression]) -> list[Expression]:
    keys = [*key, key[0].call("xor", key[1]).call("xor", 0x1BD11BDA)]
    x, y = counters[0] + keys[0], counters[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = (y.call("shift_left", rotation) | y.call("shift_right_logical", 32 - rotation)).call("xor", x)
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + (group + 1)
    return [x, y]


def _philox(key: Sequence[Expression], counters: Sequence[Expression]) -> list[Expression]:
    a, b, c, d = counters
    low, high = key
    for _ in range(10):
        first, second = (word.convert(_U64) * factor for word, factor in zip((a, c), _PHILOX_MULTIPLIERS, strict=True))
        (first_low, first_high), (second_low, second_high) = _halves(first), _halves(second)
        a, b, c, d = (
            second_high.call("xor", b).call("xor", low),
            second_low,
            first_high.call("xor", d).call("xor", high),
            first_low,
        )
        low, high = low + _PHILOX_WEYL[0], high + _PHILOX_WEYL[1]
    return [a, b, c, d]
