"""What each operation means, in NumPy: the definition that devices are held against.

Operations and their constraints are those of StableHLO's specification (``docs/spec.md``). Where the specification
leaves the order or the accuracy open, this is one of the permitted results: reductions go pairwise, transcendental
functions are rounded from double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .linear_algebra import cholesky, convolution, dot_general, padding_of, triangular_solve
from .program import Array, Body, Definition, Evaluator, Node
from .random_bits import rng_bit_generator

_MAX_IN_ORDER: Final = 128
"""Reductions of more elements go pairwise."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a real floating-point type, NumPy's or one of ml_dtypes."""
    return dtype.kind == "f" or bool(dtype.kind == "V" and "float" in dtype.name)


def convert(value: Array, dtype: np.dtype[Any]) -> Array:
    """Elements of another type: from complex numbers by their real parts, to booleans by comparing with zero, from
    floats to integers towards zero, saturated, NaN to zero."""
    source = value.dtype
    if dtype == source:
        return value
    if source.kind == "c" and dtype.kind != "c":
        return convert(value.real, dtype)
    if dtype == np.bool_:
        return np.asarray(value != np.zeros((), source), np.bool_)
    if is_float(source) and not is_float(dtype) and dtype.kind != "c":
        whole = np.trunc(value.astype(np.float64))
        info = _integer_limits(dtype)
        inside = np.where(np.isnan(whole), 0.0, np.clip(whole, float(info[0]), float(info[1])))
        # The largest 64-bit integers are no doubles: clipped ones are set by hand.
        found = np.where(inside >= float(info[1]), 0.0, inside)
        wide = found.astype(np.uint64 if info[0] == 0 else np.int64).astype(dtype)
        return np.where(inside >= float(info[1]), np.array(info[1]).astype(dtype), wide).astype(dtype)
    if source.kind in "iub" or dtype.itemsize >= 4 or is_float(source):
        return value.astype(dtype)
    return value.astype(np.int64).astype(dtype)


def _integer_limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    name = dtype.name
    bits = int("".join(char for char in name if char.isdigit()))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def by_doubles(function: Callable[[Array], Array]) -> Definition:
    """An element-wise function of one operand, computed in double precision; of doubles, in the longest there is."""

    def define(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
        (value,) = operands
        if value.dtype.kind == "c":
            wide = value.astype(np.clongdouble if value.dtype.itemsize == 16 else np.complex128)
        else:
            wide = value.astype(np.longdouble if value.dtype == np.float64 else np.float64)
        return [np.asarray(function(wide)).astype(node.types[0].dtype)]

    return define


def direct(function: Callable[..., Array]) -> Definition:
    """An element-wise function that NumPy computes in the operands' own type."""

    def define(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
        return [np.asarray(function(*operands)).astype(node.types[0].dtype, copy=False)]

    return define


def structural(function: Callable[[Node, Sequence[Array]], Array]) -> Definition:
    """An operation that moves elements."""
    return lambda _, node, operands: [np.asarray(function(node, operands))]


def of_one_element(function: Callable[[Node, Sequence[Array]], Array]) -> Definition:
    """An operation that, in a body, runs over arrays of scalars, where it changes nothing."""

    def define(node: Node, operands: Sequence[Array]) -> Array:
        return function(node, operands) if node.types[0].shape or operands[0].size == 1 else operands[0]

    return structural(define)


# -- element-wise ----------------------------------------------------------------------------------------


def _cbrt(value: Array) -> Array:
    return np.cbrt(value) if value.dtype.kind != "c" else np.exp(np.log(value) / 3)


def _logistic(value: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-value)))


def _log_plus_one(value: Array) -> Array:
    if value.dtype.kind != "c":
        return np.log1p(value)
    x, y = value.real, value.imag
    # |1 + z|**2 - 1 = x (2 + x) + y**2, which keeps what is small beside 1.
    is_small = (np.abs(x) < 2) & (np.abs(y) < 2) & (x * (2 + x) + y * y > -0.75)
    near = np.log1p(np.where(is_small, x * (2 + x) + y * y, 0)) / 2
    found = np.empty_like(value)
    found.real = np.where(is_small, near, np.log(np.hypot(1 + x, y)))
    found.imag = np.arctan2(y, 1 + x)
    return found


def _exponential(value: Array) -> Array:
    found = np.asarray(np.exp(value))
    if value.dtype.kind == "c":
        # Of no direction.
        found[np.isinf(value.real) & ~np.isfinite(value.imag)] = complex(math.nan, math.nan)
    return found


def _sign(value: Array) -> Array:
    if value.dtype.kind == "c":
        size = np.abs(value)
        return np.asarray(np.where(size == 0, 0, value / np.where(size == 0, 1, size)))
    return np.sign(value.astype(np.float64)) if is_float(value.dtype) else np.sign(value.astype(np.int64))


def _round_away(value: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(value) + 0.5), value))


def _round_nearest_afz(value: Array) -> Array:
    rounded = _round_away(value)
    # Adding a half may round up what is just below it.
    return np.where(np.abs(rounded - value) > 0.5, np.trunc(value), rounded)


def _divide(left: Array, right: Array) -> Array:
    if left.dtype.kind not in "iu" and "int" not in left.dtype.name:
        return left / right
    a, b = _unbounded(left), _unbounded(right)
    zero = b == 0
    quotient = np.abs(a) // np.where(zero, 1, np.abs(b))
    signed = np.where((a < 0) != (b < 0), -quotient, quotient)
    return _wrapped(np.where(zero, -1, signed), left.dtype).reshape(left.shape)


def _remainder(left: Array, right: Array) -> Array:
    if left.dtype.kind not in "iu" and "int" not in left.dtype.name:
        return np.fmod(left, right)
    a, b = _unbounded(left), _unbounded(right)
    zero = b == 0
    rest = np.abs(a) % np.where(zero, 1, np.abs(b))
    return _wrapped(np.where(zero, a, np.where(a < 0, -rest, rest)), left.dtype).reshape(left.shape)


def _unbounded(value: Array) -> Array:
    """Python's integers, with a dimension at least: without one, NumPy gives numbers, and makes them 64-bit again."""
    return np.atleast_1d(value).astype(object)


def _wrapped(values: Array, dtype: np.dtype[Any]) -> Array:
    bits = int("".join(char for char in dtype.name if char.isdigit()))
    raw = np.asarray(np.asarray(values, object) & ((1 << bits) - 1), np.uint64)
    if dtype.itemsize * 8 == bits:
        return raw.astype(f"u{dtype.itemsize}").view(dtype)
    signed = raw.astype(np.int64)
    if not dtype.name.startswith("u"):
        signed = np.where(signed >= 1 << (bits - 1), signed - (1 << bits), signed)
    return signed.astype(dtype)


def _power(left: Array, right: Array) -> Array:
    if left.dtype.kind == "c":
        return np.power(left.astype(np.complex128), right.astype(np.complex128))
    if is_float(left.dtype):
        return np.power(left.astype(np.float64), right.astype(np.float64))
    modulus = 1 << 64
    shape = np.broadcast_shapes(left.shape, right.shape)
    pairs = zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)
    found = [_integer_power(int(base), int(exponent), modulus) for base, exponent in pairs]
    return _wrapped(np.array(found, object).reshape(shape), left.dtype)


def _atan2(y: Array, x: Array) -> Array:
    if y.dtype.kind != "c":
        return np.arctan2(y.astype(np.float64), x.astype(np.float64))
    y, x = y.astype(np.complex128), x.astype(np.complex128)
    return np.asarray(-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)))


def _integer_power(base: int, exponent: int, modulus: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, modulus)
    if abs(base) == 1:
        return base if exponent % 2 else 1
    return 0 if base else -1


def _extreme(choose: Callable[[Array, Array], Array], compare: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def function(left: Array, right: Array) -> Array:
        if left.dtype.kind != "c":
            return choose(left, right)
        pick = np.where(left.real == right.real, compare(left.imag, right.imag), compare(left.real, right.real))
        pick |= np.isnan(left)
        return np.where(pick & ~(np.isnan(right) & ~np.isnan(left)), left, right)

    return function


def _shift(function: Callable[[Array, Array, int], Array]) -> Callable[..., Array]:
    def shifted(value: Array, amount: Array) -> Array:
        bits = int("".join(char for char in value.dtype.name if char.isdigit()))
        by = amount.astype(np.int64) if not amount.dtype.name.startswith("u") else amount.astype(np.uint64)
        outside = (by < 0) | (by >= bits)
        return function(value, np.where(outside, bits, by).astype(np.int64), bits)

    return shifted


def _shift_left(value: Array, amount: Array, bits: int) -> Array:
    wide = value.astype(object) << np.asarray(amount, object)
    return _wrapped(wide, value.dtype)


def _shift_right_logical(value: Array, amount: Array, bits: int) -> Array:
    wide = (value.astype(object) & ((1 << bits) - 1)) >> np.asarray(amount, object)
    return _wrapped(wide, value.dtype)


def _shift_right_arithmetic(value: Array, amount: Array, bits: int) -> Array:
    raw = _unbounded(value) & ((1 << bits) - 1)
    signed = np.where(raw >= 1 << (bits - 1), raw - (1 << bits), raw)
    return _wrapped(signed >> _unbounded(amount), value.dtype).reshape(value.shape)


def _not(value: Array) -> Array:
    return ~value if value.dtype == np.bool_ else _wrapped(~value.astype(object), value.dtype)


def _bitwise(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def both(left: Array, right: Array) -> Array:
        if left.dtype.kind in "biu":
            return function(left, right)
        return _wrapped(function(left.astype(np.int64), right.astype(np.int64)), left.dtype)

    return both


def _arithmetic(
    function: Callable[[Array, Array], Array], of_bools: Callable[[Array, Array], Array]
) -> Callable[..., Array]:
    """Sums, products and so on, of booleans by logic."""
    return lambda left, right: (of_bools if left.dtype == np.bool_ else function)(left, right)


def _subtract_bools(left: Array, right: Array) -> Array:
    return left ^ right


def _negate(value: Array) -> Array:
    return _wrapped(-value.astype(object), value.dtype) if value.dtype.name.startswith("uint") else -value


def _absolute(value: Array) -> Array:
    return np.abs(value) if value.dtype.kind in "fciu" else np.where(value < 0, -value, value)


def _count_leading_zeros(value: Array) -> Array:
    bits = int("".join(char for char in value.dtype.name if char.isdigit()))
    raw = [int(item) & ((1 << bits) - 1) for item in value.reshape(-1).tolist()]
    return np.array([bits - item.bit_length() for item in raw], np.int64).reshape(value.shape)


def _popcnt(value: Array) -> Array:
    bits = int("".join(char for char in value.dtype.name if char.isdigit()))
    raw = [int(item) & ((1 << bits) - 1) for item in value.reshape(-1).tolist()]
    return np.array([item.bit_count() for item in raw], np.int64).reshape(value.shape)


_COMPARISONS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def total_order(value: Array) -> Array:
    """Integers that order floats as IEEE's totalOrder does: -NaN, -inf, …, -0, 0, …, inf, NaN."""
    size = value.dtype.itemsize
    if value.dtype.name == "float8_e8m0fnu":  # without a sign
        return np.ascontiguousarray(value).view(np.uint8).reshape(value.shape).astype(np.int16)
    bits = np.ascontiguousarray(value).view(f"i{size}").reshape(value.shape)
    bits = bits << (size * 8 - _bits(value.dtype))
    return np.where(bits < 0, bits ^ np.array((1 << (size * 8 - 1)) - 1, bits.dtype), bits)


def _compare(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    left, right = operands
    direction = node.attributes["comparison_direction"]
    if node.attributes.get("compare_type") == "TOTALORDER" and is_float(left.dtype):
        left, right = total_order(left), total_order(right)
    return [np.asarray(_COMPARISONS[direction](left, right), np.bool_)]


def _clamp(low: Array, value: Array, high: Array) -> Array:
    return np.minimum(np.maximum(value, low), high)


def _complex(node: Node, operands: Sequence[Array]) -> Array:
    real, imaginary = operands
    pairs = np.stack([real, imaginary], -1)
    return np.ascontiguousarray(pairs).view(node.types[0].dtype)[..., 0]


def _reduce_precision(node: Node, operands: Sequence[Array]) -> Array:
    """Rounds the mantissa to nearest even; what overflows the exponent is infinite, what underflows it is zero."""
    (value,) = operands
    exponent_bits, mantissa_bits = node.attributes["exponent_bits"], node.attributes["mantissa_bits"]
    wide = value.astype(np.float64)
    fraction, exponent = np.frexp(wide)
    digits = mantissa_bits + 1
    rounded = np.ldexp(np.rint(np.ldexp(fraction, digits)), exponent - digits)
    bias = (1 << (exponent_bits - 1)) - 1
    largest = math.ldexp(2.0 - 2.0**-mantissa_bits, bias) if bias < 1024 else np.inf
    smallest = math.ldexp(1.0, max(1 - bias, -1074))
    found = np.where(np.abs(rounded) > largest, np.copysign(np.inf, wide), rounded)
    found = np.where(np.abs(rounded) < smallest, np.copysign(0.0, wide), found)
    # Without a mantissa there is no NaN.
    special = np.where(np.isnan(wide) & (mantissa_bits == 0), np.copysign(np.inf, wide), wide)
    return np.where(np.isfinite(wide), found, special).astype(value.dtype)


def _bitcast(node: Node, operands: Sequence[Array]) -> Array:
    (value,) = operands
    (spec,) = node.types
    source, target = _bits(value.dtype), _bits(spec.dtype)
    if value.dtype.itemsize * 8 == source and spec.dtype.itemsize * 8 == target:
        shape = value.shape if source == target else spec.shape
        return np.ascontiguousarray(value).reshape(-1).view(spec.dtype).reshape(shape)
    if value.dtype.itemsize * 8 == source:
        octets = np.ascontiguousarray(value).reshape(-1).view(np.uint8).reshape(-1, value.dtype.itemsize)
        raw = np.pad(octets, ((0, 0), (0, 8 - value.dtype.itemsize))).view(np.uint64).reshape(-1)
    else:
        # Floats of fewer than 8 bits have theirs in the low ones of a byte.
        whole = np.ascontiguousarray(value).view(np.uint8) if is_float(value.dtype) else value.astype(np.int64)
        raw = (whole & ((1 << source) - 1)).astype(np.uint64).reshape(-1)
    packed = np.unpackbits(raw.astype("<u8").view(np.uint8), bitorder="little").reshape(-1, 64)[:, :source].reshape(-1)
    lanes = np.zeros((packed.size // target, 64), np.uint8)
    lanes[:, :target] = packed.reshape(-1, target)
    numbers = np.packbits(lanes, axis=1, bitorder="little").view("<u8").reshape(spec.shape)
    if is_float(spec.dtype):
        return numbers.astype(f"u{spec.dtype.itemsize}").view(spec.dtype)
    return numbers != 0 if spec.dtype == np.bool_ else _wrapped(numbers.astype(object), spec.dtype)


_NARROW_BITS: Final = {
    "bool": 1,
    "int2": 2,
    "uint2": 2,
    "int4": 4,
    "uint4": 4,
    "float4_e2m1fn": 4,
    "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
}


def _bits(dtype: np.dtype[Any]) -> int:
    return _NARROW_BITS.get(dtype.name, dtype.itemsize * 8)


# -- structure -------------------------------------------------------------------------------------------


def _constant(node: Node, operands: Sequence[Array]) -> Array:
    value: Array = node.attributes["value"]
    return value


def _dimension_size(node: Node, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0].shape[node.attributes["dimension"]], node.types[0].dtype)


def _iota(node: Node, operands: Sequence[Array]) -> Array:
    (spec,) = node.types
    dimension = node.attributes["iota_dimension"]
    numbers = np.arange(spec.shape[dimension])
    shape = [1] * len(spec.shape)
    shape[dimension] = -1
    return np.broadcast_to(convert(numbers, spec.dtype).reshape(shape), spec.shape)


def _broadcast_in_dim(node: Node, operands: Sequence[Array]) -> Array:
    (value, *_) = operands
    shape = [1] * len(node.types[0].shape)
    for source, target in enumerate(node.attributes["broadcast_dimensions"]):
        shape[target] = value.shape[source]
    order = sorted(range(value.ndim), key=node.attributes["broadcast_dimensions"].__getitem__)
    return np.broadcast_to(value.transpose(order).reshape(shape), node.types[0].shape)


def _reshape(node: Node, operands: Sequence[Array]) -> Array:
    return operands[0].reshape(node.types[0].shape)


def _slice(node: Node, operands: Sequence[Array]) -> Array:
    keys = (node.attributes[name] for name in ("start_indices", "limit_indices", "strides"))
    return operands[0][tuple(slice(*item) for item in zip(*keys, strict=True))]


def _pad(node: Node, operands: Sequence[Array]) -> Array:
    value, padding = operands
    low, interior = node.attributes["edge_padding_low"], node.attributes["interior_padding"]
    found = np.full(node.types[0].shape, padding, value.dtype)
    sources, targets = [], []
    for axis, length in enumerate(value.shape):
        step = interior[axis] + 1
        positions = np.arange(length) * step + low[axis]
        inside = (positions >= 0) & (positions < found.shape[axis])
        sources.append(np.flatnonzero(inside))
        targets.append(positions[inside])
    found[np.ix_(*targets)] = value[np.ix_(*sources)]
    return found


def _starts(indices: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Start indices, moved so that the slice lies within the shape."""
    return [min(max(int(index), 0), length - size) for index, length, size in zip(indices, shape, sizes, strict=True)]


def _dynamic_slice(node: Node, operands: Sequence[Array]) -> Array:
    value, *indices = operands
    sizes = node.attributes["slice_sizes"]
    starts = _starts(indices, value.shape, sizes)
    return value[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


def _dynamic_update_slice(node: Node, operands: Sequence[Array]) -> Array:
    value, update, *indices = operands
    starts = _starts(indices, value.shape, update.shape)
    found = value.copy()
    found[tuple(slice(start, start + size) for start, size in zip(starts, update.shape, strict=True))] = update
    return found


def _gather(node: Node, operands: Sequence[Array]) -> Array:
    value, indices = operands
    get = node.attributes.get
    offset, collapsed = get("offset_dims", ()), get("collapsed_slice_dims", ())
    operand_batch, index_batch = get("operand_batching_dims", ()), get("start_indices_batching_dims", ())
    sizes = node.attributes["slice_sizes"]
    shape = node.types[0].shape
    grid = np.indices(shape, np.int64)
    batch = [axis for axis in range(len(shape)) if axis not in offset]
    starts = _index_vectors(indices, get("index_vector_dim", 0), [grid[axis] for axis in batch])
    full = [np.zeros(shape, np.int64) for _ in value.shape]
    for component, axis in enumerate(get("start_index_map", ())):
        full[axis] = np.clip(starts[component], 0, value.shape[axis] - sizes[axis])
    kept = [axis for axis in range(value.ndim) if axis not in collapsed and axis not in operand_batch]
    for axis, source in zip(kept, offset, strict=True):
        full[axis] = full[axis] + grid[source]
    for axis, source in zip(operand_batch, index_batch, strict=True):
        full[axis] = grid[batch[source - (source > get("index_vector_dim", 0))]]
    return value[tuple(full)]


def _index_vectors(indices: Array, vector_axis: int, batch: Sequence[Array]) -> list[Array]:
    """Each component of the index vectors, at the batch positions of a grid."""
    if vector_axis == indices.ndim:
        indices = indices[..., None]
    count = indices.shape[vector_axis]
    whole = indices.astype(np.int64) if indices.dtype != np.uint64 else np.minimum(indices, 2**63 - 1).astype(np.int64)
    moved = np.moveaxis(whole, vector_axis, 0)
    return [moved[component][tuple(batch)] for component in range(count)]


def _scatter(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    count = len(node.results)
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    get = node.attributes.get
    window, inserted = get("update_window_dims", ()), get("inserted_window_dims", ())
    input_batch, index_batch = get("input_batching_dims", ()), get("scatter_indices_batching_dims", ())
    shape, target_shape = updates[0].shape, inputs[0].shape
    grid = np.indices(shape, np.int64)
    scatter = [axis for axis in range(len(shape)) if axis not in window]
    starts = _index_vectors(indices, get("index_vector_dim", 0), [grid[axis] for axis in scatter])
    full = [np.zeros(shape, np.int64) for _ in target_shape]
    for component, axis in enumerate(get("scatter_dims_to_operand_dims", ())):
        full[axis] = starts[component]
    for axis, source in zip(input_batch, index_batch, strict=True):
        full[axis] = full[axis] + grid[scatter[source - (source > get("index_vector_dim", 0))]]
    kept = [axis for axis in range(len(target_shape)) if axis not in inserted and axis not in input_batch]
    inside = np.ones(shape, np.bool_)
    for axis, source in zip(kept, window, strict=True):
        # A sum of a far index and a window's offset may wrap around: such an index is outside anyway.
        inside &= (full[axis] >= -(2**62)) & (full[axis] < 2**62)
        full[axis] = full[axis] + grid[source]
    for axis, length in enumerate(target_shape):
        inside &= (full[axis] >= 0) & (full[axis] < length)
    chosen = np.flatnonzero(inside.reshape(-1))
    coordinates = [np.broadcast_to(axis, shape).reshape(-1)[chosen] for axis in full]
    linear = np.ravel_multi_index(tuple(coordinates), target_shape) if target_shape else np.zeros(chosen.size, np.int64)
    flat = [np.array(value).reshape(-1) for value in inputs]
    given = [update.reshape(-1)[chosen] for update in updates]
    for places in _rounds(linear):
        target = linear[places]
        old = [value[target] for value in flat]
        new = evaluator.run(node.bodies[0], [*old, *(update[places] for update in given)])
        for value, item in zip(flat, new, strict=True):
            value[target] = item
    return [value.reshape(target_shape) for value in flat]


def _rounds(targets: Array) -> Iterator[Array]:
    """Positions of targets in rounds, such that no target comes twice in a round and each keeps its order."""
    order = np.argsort(targets, kind="stable")
    ordered = targets[order]
    is_first = np.ones(ordered.size, np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    rank = np.arange(ordered.size) - np.repeat(starts, np.diff(np.append(starts, ordered.size)))
    for number in range(int(rank.max()) + 1 if rank.size else 0):
        yield order[rank == number]


# -- reductions ------------------------------------------------------------------------------------------


def _folded(evaluator: Evaluator, body: Body, values: Sequence[Array], starts: Sequence[Array]) -> list[Array]:
    """Reduces the last axis: pairwise while it is long, then one after another from the initial values."""
    values = list(values)
    while values[0].shape[-1] > _MAX_IN_ORDER:
        length = values[0].shape[-1]
        even = length // 2 * 2
        pairs = evaluator.run(body, [*(v[..., 0:even:2] for v in values), *(v[..., 1:even:2] for v in values)])
        shape = (*values[0].shape[:-1], even // 2)
        rests = [value[..., even:] for value in values]
        values = [np.concatenate([np.broadcast_to(p, shape), rest], -1) for p, rest in zip(pairs, rests, strict=True)]
    found = [np.broadcast_to(start, values[0].shape[:-1]) for start in starts]
    for index in range(values[0].shape[-1]):
        found = evaluator.run(body, [*found, *(value[..., index] for value in values)])
    return found


def _reduce(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    count = len(node.results)
    axes = sorted(node.attributes["dimensions"])
    kept = [axis for axis in range(operands[0].ndim) if axis not in axes]
    values = []
    for value in operands[:count]:
        moved = value.transpose([*kept, *axes])
        values.append(moved.reshape(*moved.shape[: len(kept)], math.prod(moved.shape[len(kept) :])))
    return _shaped(node, _folded(evaluator, node.bodies[0], values, operands[count:]))


def _shaped(node: Node, values: Sequence[Array]) -> list[Array]:
    """Values of the result types, since a body may give a constant that has fewer dimensions."""
    return [np.broadcast_to(value, spec.shape) for value, spec in zip(values, node.types, strict=True)]


def _windows(node: Node, value: Array, fill: Array) -> Array:
    """The elements of each window along a last axis; outside of the operand stands ``fill``."""
    return _windows_at(node, value, fill)[0]


def _windows_at(node: Node, value: Array, fill: Array) -> tuple[Array, Array]:
    rank = value.ndim
    get = node.attributes.get
    sizes = node.attributes["window_dimensions"]
    strides = get("window_strides") or [1] * rank
    dilations, base = get("window_dilations") or [1] * rank, get("base_dilations") or [1] * rank
    low = padding_of(node, rank)[:, 0]
    counts = node.types[0].shape if node.name == "reduce_window" else node.attributes["counts"]
    linear = np.zeros((*counts, *sizes), np.int64)
    inside = np.ones((*counts, *sizes), np.bool_)
    for axis, length in enumerate(value.shape):
        outer = np.arange(counts[axis]) * strides[axis] - low[axis]
        position = outer[:, None] + np.arange(sizes[axis]) * dilations[axis]
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = counts[axis], sizes[axis]
        position = position.reshape(shape)
        index, rest = np.divmod(position, base[axis])
        inside &= (rest == 0) & (index >= 0) & (index < length)
        linear = linear * length + np.clip(index, 0, max(length - 1, 0))
    linear = np.where(inside, linear, -1).reshape(*counts, math.prod(sizes))
    padded = np.append(value.reshape(-1), np.asarray(fill, value.dtype))
    return padded[linear], linear


def _reduce_window(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    count = len(node.results)
    starts = operands[count:]
    values = [_windows(node, value, start) for value, start in zip(operands[:count], starts, strict=True)]
    return _shaped(node, _folded(evaluator, node.bodies[0], values, starts))


def _select_and_scatter(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    value, source, start = operands
    rank = value.ndim
    sizes = node.attributes.get("window_dimensions") or [1] * rank
    attributes = {**node.attributes, "window_dimensions": sizes, "counts": source.shape}
    windows, places = _windows_at(Node(node.name, (), (), node.types, attributes), value, start)
    best, at = windows[..., 0], places[..., 0]
    for index in range(1, windows.shape[-1]):
        item, place = windows[..., index], places[..., index]
        (keeps,) = evaluator.run(node.bodies[0], [best, item])
        moves = ((at < 0) | ~np.asarray(keeps)) & (place >= 0)
        best, at = np.where(moves, item, best), np.where(moves, place, at)
    found = np.full(value.size, start, value.dtype)
    chosen = np.flatnonzero(at.reshape(-1) >= 0)
    targets, given = at.reshape(-1)[chosen], source.reshape(-1)[chosen]
    for part in _rounds(targets):
        (new,) = evaluator.run(node.bodies[1], [found[targets[part]], given[part]])
        found[targets[part]] = new
    return [found.reshape(value.shape)]


def _sort(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    """A bitonic network over the sorted axis; ties go by position, so that every sort is stable."""
    axis = node.attributes.get("dimension", -1)
    moved = [np.moveaxis(value, axis, -1) for value in operands]
    length = moved[0].shape[-1]
    size = 1 << max(length - 1, 0).bit_length()
    positions = np.broadcast_to(np.arange(size), (*moved[0].shape[:-1], size)).copy()
    if not length:
        return list(operands)
    padded = [np.concatenate([value, np.repeat(value[..., :1], size - length, -1)], -1) for value in moved]
    block = 2
    while block <= size:
        step = block // 2
        while step:
            index = np.arange(size)
            left = index[(index & step) == 0]
            right = left | step
            a, b = [v[..., left] for v in padded], [v[..., right] for v in padded]
            p, q = positions[..., left], positions[..., right]
            (after,) = evaluator.run(node.bodies[0], _interleaved(b, a))
            (before,) = evaluator.run(node.bodies[0], _interleaved(a, b))
            swap = np.where((p >= length) | (q >= length), p > q, after | (~np.asarray(before) & (p > q)))
            swap = swap ^ ((left & block) != 0)
            for value, x, y in zip([*padded, positions], [*a, p], [*b, q], strict=True):
                value[..., left], value[..., right] = np.where(swap, y, x), np.where(swap, x, y)
            step //= 2
        block *= 2
    return [np.moveaxis(value[..., :length], -1, axis) for value in padded]


def _interleaved(first: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    return [value for pair in zip(first, second, strict=True) for value in pair]


# -- control flow ----------------------------------------------------------------------------------------


def _while(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    condition, body = node.bodies
    values = list(operands)
    while bool(evaluator.run(condition, values)[0]):
        values = evaluator.run(body, values)
    return values


def _if(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    return evaluator.run(node.bodies[0 if operands[0] else 1], ())


def _case(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    index = int(operands[0])
    return evaluator.run(node.bodies[index if 0 <= index < len(node.bodies) else -1], ())


def _map(evaluator: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    return _shaped(node, evaluator.run(node.bodies[0], operands))


def _fft(node: Node, operands: Sequence[Array]) -> Array:
    (value,) = operands
    kind, length = node.attributes["fft_type"], node.attributes["fft_length"]
    axes = range(value.ndim - len(length), value.ndim)
    if 0 in node.types[0].shape or 0 in value.shape:
        return np.zeros(node.types[0].shape, node.types[0].dtype)
    functions: Mapping[str, Callable[..., Array]] = {
        "FFT": np.fft.fftn,
        "IFFT": np.fft.ifftn,
        "RFFT": np.fft.rfftn,
        "IRFFT": np.fft.irfftn,
    }
    wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return functions[kind](wide, length, tuple(axes)).astype(node.types[0].dtype)


def _same(_: Evaluator, node: Node, operands: Sequence[Array]) -> Sequence[Array]:
    return list(operands)


def _rng(node: Node, operands: Sequence[Array]) -> Array:
    (spec,) = node.types
    generator = np.random.default_rng(0)
    low, high = operands[0], operands[1]
    if node.attributes["rng_distribution"] == "NORMAL":
        return generator.normal(float(low), float(high), spec.shape).astype(spec.dtype)
    if is_float(spec.dtype):
        return generator.uniform(float(low), float(high), spec.shape).astype(spec.dtype)
    return generator.integers(int(low), int(high), spec.shape).astype(spec.dtype)


def _token(node: Node, operands: Sequence[Array]) -> Array:
    return np.zeros(0, np.uint8)


DEFINITIONS: Final[Mapping[str, Definition]] = {
    "abs": direct(_absolute),
    "add": direct(_arithmetic(np.add, np.logical_or)),
    "after_all": structural(_token),
    "and": direct(_bitwise(np.bitwise_and)),
    "atan2": direct(_atan2),
    "bitcast_convert": structural(_bitcast),
    "broadcast_in_dim": of_one_element(_broadcast_in_dim),
    "case": _case,
    "cbrt": by_doubles(_cbrt),
    "ceil": by_doubles(np.ceil),
    "cholesky": structural(lambda node, operands: cholesky(operands[0], bool(node.attributes.get("lower")))),
    "clamp": direct(_clamp),
    "compare": _compare,
    "complex": structural(_complex),
    "concatenate": structural(lambda node, operands: np.concatenate(operands, node.attributes["dimension"])),
    "constant": structural(_constant),
    "convert": structural(lambda node, operands: convert(operands[0], node.types[0].dtype)),
    "convolution": structural(convolution),
    "cosine": by_doubles(np.cos),
    "count_leading_zeros": direct(_count_leading_zeros),
    "create_token": structural(_token),
    "divide": direct(_divide),
    "dot_general": structural(dot_general),
    "dynamic_slice": structural(_dynamic_slice),
    "dynamic_update_slice": structural(_dynamic_update_slice),
    "exponential": by_doubles(_exponential),
    "exponential_minus_one": by_doubles(np.expm1),
    "fft": structural(_fft),
    "floor": by_doubles(np.floor),
    "gather": structural(_gather),
    "if": _if,
    "imag": direct(np.imag),
    "get_dimension_size": structural(_dimension_size),
    "iota": structural(_iota),
    "is_finite": direct(np.isfinite),
    "log": by_doubles(np.log),
    "log_plus_one": by_doubles(_log_plus_one),
    "logistic": by_doubles(_logistic),
    "map": _map,
    "maximum": direct(_extreme(np.maximum, np.greater)),
    "minimum": direct(_extreme(np.minimum, np.less)),
    "multiply": direct(_arithmetic(np.multiply, np.logical_and)),
    "negate": direct(_negate),
    "not": direct(_not),
    "optimization_barrier": _same,
    "or": direct(_bitwise(np.bitwise_or)),
    "pad": structural(_pad),
    "partition_id": structural(lambda node, operands: np.zeros((), np.uint32)),
    "popcnt": direct(_popcnt),
    "power": direct(_power),
    "real": direct(np.real),
    "reduce": _reduce,
    "reduce_precision": structural(_reduce_precision),
    "reduce_window": _reduce_window,
    "remainder": direct(_remainder),
    "replica_id": structural(lambda node, operands: np.zeros((), np.uint32)),
    "reshape": of_one_element(_reshape),
    "reverse": structural(lambda node, operands: np.flip(operands[0], node.attributes["dimensions"])),
    "rng": structural(_rng),
    "rng_bit_generator": rng_bit_generator,
    "round_nearest_afz": by_doubles(_round_nearest_afz),
    "round_nearest_even": by_doubles(np.rint),
    "rsqrt": by_doubles(lambda value: 1 / np.sqrt(value)),
    "scatter": _scatter,
    "select": direct(np.where),
    "select_and_scatter": _select_and_scatter,
    "shift_left": direct(_shift(_shift_left)),
    "shift_right_arithmetic": direct(_shift(_shift_right_arithmetic)),
    "shift_right_logical": direct(_shift(_shift_right_logical)),
    "sign": direct(_sign),
    "sine": by_doubles(np.sin),
    "slice": structural(_slice),
    "sort": _sort,
    "sqrt": by_doubles(np.sqrt),
    "subtract": direct(_arithmetic(np.subtract, _subtract_bools)),
    "tan": by_doubles(np.tan),
    "tanh": by_doubles(np.tanh),
    "transpose": structural(lambda node, operands: operands[0].transpose(node.attributes["permutation"])),
    "triangular_solve": structural(triangular_solve),
    "while": _while,
    "xor": direct(_bitwise(np.bitwise_xor)),
}
"""By name of the operation, without the dialect. Integer operations wrap around."""


def evaluate(body: Body, arguments: Sequence[Array]) -> list[Array]:
    """What a body gives for its arguments, as arrays of the types that it says."""
    with np.errstate(all="ignore"):
        return Evaluator(DEFINITIONS).run(body, arguments)
