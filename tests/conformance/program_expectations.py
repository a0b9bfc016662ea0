"""The results of each program, computed in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

__all__ = ["session"]

Array = np.ndarray
Function = Callable[..., object]
Parameters = Mapping[str, Mapping[str, Array]]

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64


def _matmul(a: Array, b: Array, dtype: type = f32) -> Array:
    return np.asarray(np.matmul(a.astype(f64), b.astype(f64))).astype(dtype)


def _sum(x: Array, axis: int | tuple[int, ...] | None = None, dtype: type = f32) -> Array:
    return np.asarray(x.astype(f64).sum(axis=axis)).astype(dtype)


def _softmax(x: Array) -> Array:
    exponentials = np.exp(x.astype(f64) - x.max(axis=-1, keepdims=True))
    return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(f32)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x.astype(f64)))


def _conv_2d_nhwc(x: Array, kernel: Array, stride: int = 1, dilation: int = 1) -> Array:
    """``x`` [N, H, W, C] with ``kernel`` [KH, KW, C, F], unpadded."""
    height, width = kernel.shape[:2]
    rows = (x.shape[1] - dilation * (height - 1) - 1) // stride + 1
    columns = (x.shape[2] - dilation * (width - 1) - 1) // stride + 1
    y = np.zeros((x.shape[0], rows, columns, kernel.shape[3]), f64)
    for i in range(height):
        for j in range(width):
            top, left = i * dilation, j * dilation
            window = x[:, top : top + stride * rows : stride, left : left + stride * columns : stride]
            y += window.astype(f64) @ kernel[i, j].astype(f64)
    return y.astype(f32)


def _windows(x: Array, size: int, stride: int) -> Array:
    """Every window of ``x`` [N, H, W, C] as [N, H', W', C, size, size]."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
    return windows[:, ::stride, ::stride]


def _lstm(gates: Array, c: Array) -> tuple[Array, Array]:
    i, f, g, o = np.split(gates.astype(f64), 4, axis=1)
    c_next = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return (_sigmoid(o) * np.tanh(c_next)).astype(f32), c_next.astype(f32)


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.dtype}")


def _wrapped(value: int, bits: int) -> int:
    """A whole number as a signed one of so many bits."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def _ramp(shape: tuple[int, ...], step: int, offset: int, modulus: int, scale: int) -> Array:
    """The weights written into ``mnist_like``: a sawtooth of exact fractions."""
    index = np.arange(math.prod(shape))
    return (((index * step + offset) % modulus - modulus // 2) / scale).astype(f32).reshape(shape)


def _f32_to_bf16(a: Array) -> Array:
    import ml_dtypes

    return a.astype(ml_dtypes.bfloat16)


def _gelu(x: Array) -> Array:
    erf = np.vectorize(math.erf)(x.astype(f64) / math.sqrt(2))
    return (0.5 * x * (1 + erf)).astype(f32)


def _nchw_dilated(x: Array, kernel: Array) -> Array:
    y = _conv_2d_nhwc(x.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0), dilation=2)
    return y.transpose(0, 3, 1, 2)


def _layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    wide = x.astype(f64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    return (centred / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * scale + shift).astype(f32)


def _add_rows(table: Array, indices: Array, rows: Array) -> Array:
    y = table.astype(f64)
    np.add.at(y, indices, rows)
    return y.astype(f32)


def _put(x: Array, at: Array, value: Array) -> Array:
    y = x.copy()
    y[int(at) : int(at) + 3] = value
    return y


def _by_key(keys: Array, values: Array) -> tuple[Array, Array]:
    order = np.argsort(-keys)
    return keys[order], values[order]


def _replace(x: Array, part: Array) -> Array:
    y = x.copy()
    y[3:5, 4:6] = part
    return y


def _collatz_steps(value: int) -> int:
    steps = 0
    while value > 1:
        value = value * 3 + 1 if value % 2 else value // 2
        steps += 1
    return steps


def _accumulate(x: Array, outer: int, inner: int) -> Array:
    y = x
    for _ in range(outer):
        y = y * f32(0.5)
        for _ in range(inner):
            y = y + x
    return y


def _square_root(x: Array) -> tuple[Array, int]:
    guess, steps = x, 0
    while abs(guess * guess - x) > f32(1e-4) and steps < 50:
        guess, steps = (guess + x / guess) * f32(0.5), steps + 1
    return np.asarray(guess), steps


def _relax(grid: Array) -> Array:
    now = grid.copy()
    for _ in range(10):
        inside = (now[:-2, 1:-1] + now[2:, 1:-1] + (now[1:-1, :-2] + now[1:-1, 2:])) * f32(0.25)
        now[1:-1, 1:-1] = inside
    return now


def _integers(a: int, b: int) -> tuple[int, ...]:
    quotient = int(a / b)
    high = _wrapped(a % 2**32 >> b, 32)
    return _wrapped(a * b, 32), quotient, a - quotient * b, _wrapped(a << b, 32), high, a ^ b


def _longs(a: int, b: int) -> tuple[int, ...]:
    quotient, remainder = divmod(a % 2**64, b % 2**64)
    return _wrapped(a * b, 64), _wrapped(quotient, 64), _wrapped(remainder, 64), a >> b


def _predict(image: Array) -> Array:
    convolved = _conv_2d_nhwc(image, _ramp((3, 3, 1, 4), 37, 11, 64, 64)) + _ramp((4,), 5, 1, 8, 8)
    pooled = _windows(np.maximum(convolved, f32(0)), 2, 2).max(axis=(4, 5))
    logits = _matmul(pooled.reshape(2, 36), _ramp((36, 10), 29, 7, 128, 128)) + _ramp((10,), 3, 2, 16, 16)
    return _softmax(logits)


def _sequence(xs: Array, wx: Array, wh: Array) -> tuple[Array, Array]:
    h = c = np.zeros((2, 4), f32)
    for x in xs:
        h, c = _lstm(_matmul(x, wx) + _matmul(h, wh), c)
    return h, c


def _double_until(start: Array, limit: Array) -> Array:
    value = start
    while value[0] < limit:
        value = value + value + np.array([1, 0.5, 0.25, 0.125], f32)
    return value


class GlobalsCounter:
    def __init__(self) -> None:
        self._count = 10
        self._total = np.array([1, 2, 3, 4], f32)

    def add(self, step: int, values: Array) -> int:
        self._count += step
        self._total = self._total + values
        return self._count

    def get(self) -> tuple[int, Array]:
        return self._count, self._total


class StateMachine:
    def __init__(self) -> None:
        self._ring = np.zeros(4, i32)
        self._position = 0

    def push(self, value: Array) -> None:
        self._ring = self._ring.copy()
        self._ring[self._position] = value[0]
        self._position = (self._position + 1) % 4

    def read(self) -> tuple[Array, int]:
        return self._ring, self._position


class Dense:
    def __init__(self, parameters: Parameters) -> None:
        self._model = parameters["model"]

    def dense(self, x: Array) -> Array:
        return _matmul(x, self._model["weight"]) + self._model["bias"]


_FLOATS: Mapping[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "negate": np.negative,
    "absolute": np.abs,
}
_INTEGERS: Mapping[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "maximum_signed": np.maximum,
    "minimum_unsigned": lambda a, b: np.minimum(_unsigned(a), _unsigned(b)).view(a.dtype),
}
_MATMUL: Mapping[str, Function] = {"matmul": _matmul}
_PROGRAMS: Mapping[str, Mapping[str, Function]] = {
    "simple_mul": {"simple_mul": lambda a, b: a * b},
    **dict.fromkeys(("elementwise_f32", "elementwise_f16", "elementwise_bf16", "elementwise_f64"), _FLOATS),
    **dict.fromkeys(("elementwise_i8", "elementwise_i16", "elementwise_i32", "elementwise_i64"), _INTEGERS),
    "elementwise_i1": {
        "and": np.logical_and,
        "or": np.logical_or,
        "xor": np.logical_xor,
        "less": np.less,
        "choose": np.where,
    },
    "narrow_odd_sizes": {"add_bytes": np.add, "add_shorts": np.add, "and_bits": np.logical_and},
    "divide_integers": {
        "floor_divide": np.floor_divide,
        "remainder_signed": np.fmod,
        "divide_signed": lambda a, b: np.trunc(a.astype(f64) / b).astype(i32),
        "divide_unsigned": lambda a, b: (_unsigned(a) // _unsigned(b)).view(i32),
        "remainder_unsigned": lambda a, b: (_unsigned(a) % _unsigned(b)).view(i32),
        "ceiling_divide": lambda a, b: -(-a // b),
    },
    "shifts": {
        "left": np.left_shift,
        "right_signed": np.right_shift,
        "right_unsigned": lambda a, b: (_unsigned(a) >> _unsigned(b)).view(i32),
    },
    "bit_counts": {
        "absolute": np.abs,
        "leading_zeros": lambda a: np.array([32 - int(value).bit_length() for value in _unsigned(a)], i32),
    },
    "population_count": {"ones": lambda a: np.array([int(value).bit_count() for value in _unsigned(a)], i32)},
    "math_unary": {
        "exp": np.exp,
        "exp2": np.exp2,
        "expm1": np.expm1,
        "log": np.log,
        "log2": np.log2,
        "log1p": np.log1p,
        "sqrt": np.sqrt,
        "sin": np.sin,
        "cos": np.cos,
        "tan": np.tan,
        "atan": np.arctan,
        "tanh": np.tanh,
        "ceil": np.ceil,
        "floor": np.floor,
        "rsqrt": lambda a: 1 / np.sqrt(a),
        "erf": lambda a: np.array([math.erf(value) for value in a], f32),
    },
    "rounding": {
        "half_even": np.rint,
        "toward_zero": np.trunc,
        "half_away": lambda a: np.copysign(np.floor(np.abs(a) + f32(0.5)), a),
    },
    "math_binary": {
        "power": np.power,
        "atan2": np.arctan2,
        "copysign": np.copysign,
        "remainder": np.fmod,
        "fma": lambda a, b, c: (a.astype(f64) * b + c).astype(f32),
    },
    "conversions": {
        "i32_to_f32": lambda a: a.astype(f32),
        "u32_to_f32": lambda a: _unsigned(a).astype(f32),
        "f32_to_i32": lambda a: a.astype(i32),
        "f32_to_u32": lambda a: a.astype(np.uint32).view(i32),
        "i8_to_i32": lambda a: a.astype(i32),
        "u8_to_i32": lambda a: _unsigned(a).astype(i32),
        "i32_to_i8": lambda a: a.astype(np.int8),
        "i32_to_i16": lambda a: a.astype(np.int16),
        "i1_to_i32": lambda a: a.astype(i32),
    },
    "conversions_u8": {"u8_to_f32": lambda a: _unsigned(a).astype(f32)},
    "conversions_f16": {"f32_to_f16": lambda a: a.astype(np.float16), "f16_to_f32": lambda a: a.astype(f32)},
    "conversions_i64": {"i32_to_i64": lambda a: a.astype(i64), "i64_to_i32": lambda a: a.astype(i32)},
    "conversions_bf16": {"f32_to_bf16": _f32_to_bf16, "bf16_to_f32": lambda a: a.astype(f32)},
    "bitcasts": {
        "f32_to_i32": lambda a: a.view(i32),
        "i32_to_f32": lambda a: a.view(f32),
        "f32_to_bytes": lambda a: a.view(np.int8),
    },
    "fused_elementwise": {"gelu": _gelu, "clamp": lambda x: np.clip(x, f32(-0.75), f32(0.5))},
    "complex": {"multiply": np.multiply, "make": lambda re, im: (re + 1j * im).astype(np.complex64)},
    "matmul_f32": {"small": _matmul, "square": _matmul, "accumulate": lambda a, b, c: _matmul(a, b) + c},
    "matmul_f16": {"to_f32": _matmul, "to_f16": lambda a, b: _matmul(a, b, np.float16)},
    "matmul_i8": {"matmul": lambda a, b: a.astype(i32) @ b.astype(i32)},
    "matmul_i32": {"matmul": lambda a, b: a.astype(i32) @ b.astype(i32)},
    **dict.fromkeys(("matmul_large", "batch_matmul", "dynamic_matmul"), _MATMUL),
    "matmul_odd": {"tall": _matmul, "row": _matmul, "outer": _matmul},
    "matmul_transposed": {"left": lambda a, b: _matmul(a.T, b), "right": lambda a, b: _matmul(a, b.T)},
    "matvec": {"matvec": _matmul, "vecmat": _matmul, "dot": _matmul},
    "conv_1d": {"conv": lambda x, kernel: _conv_2d_nhwc(x[:, None], kernel[None])[:, 0]},
    "conv_2d": {
        "nhwc": _conv_2d_nhwc,
        "strided": lambda x, kernel: _conv_2d_nhwc(x, kernel, stride=2),
        "nchw_dilated": _nchw_dilated,
    },
    "conv_2d_padded": {"same": lambda x, kernel: _conv_2d_nhwc(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), kernel)},
    "conv_2d_depthwise": {
        "depthwise": lambda x, kernel: np.einsum(
            "nhwcij,ijc->nhwc", _windows(x, 3, 1).astype(f64), kernel.astype(f64)
        ).astype(f32)
    },
    "pooling": {
        "maximum": lambda x: _windows(x, 2, 2).max(axis=(4, 5)),
        "average": lambda x: _windows(x, 3, 1).astype(f64).mean(axis=(4, 5)).astype(f32),
    },
    "reduce_sum": {"rows": lambda x: _sum(x, 1), "columns": lambda x: _sum(x, 0), "all": _sum},
    "reduce_mean": {"mean": lambda x: x.astype(f64).mean(axis=1).astype(f32)},
    "reduce_extremes": {
        "maximum_f32": lambda x: x.max(axis=1),
        "minimum_f32": lambda x: x.min(axis=0),
        "maximum_i32": lambda x: x.max(axis=1),
        "minimum_unsigned": lambda x: _unsigned(x).min(axis=1).view(i32),
    },
    "reduce_others": {
        "product": lambda x: x.astype(f64).prod(axis=1).astype(f32),
        "sum_i32": lambda x: x.sum(axis=(0, 2), dtype=i32),
    },
    "reduce_booleans": {"all": lambda x: x.all(axis=1), "any": lambda x: x.any(axis=1)},
    "reduce_large": {"sum": _sum, "rows": lambda x: _sum(x, 1)},
    "argmax": {"argmax": lambda x: (x.max(axis=1), x.argmax(axis=1).astype(i32))},
    "softmax": {"softmax": _softmax},
    "layer_norm": {"layer_norm": _layer_norm},
    "running_sum": {"inclusive": lambda x: x.astype(f64).cumsum(axis=1).astype(f32)},
    "histogram": {"count": lambda x: np.bincount(x, minlength=8).astype(i32)},
    "gather": {"rows": lambda table, indices: table[indices], "reversed": lambda x: x[::-1]},
    "scatter": {"add_rows": _add_rows, "put": _put},
    "sort": {"ascending": lambda x: np.sort(x, axis=1), "by_key": _by_key},
    "transpose": {"two": np.transpose, "four": lambda x: x.transpose(2, 0, 3, 1)},
    "concatenate": {
        "rows": lambda x, y: np.concatenate([x, y]),
        "columns": lambda x, y, z: np.concatenate([x, y, z], axis=1),
    },
    "slice": {"part": lambda x: x[2:5, 5:9], "strided": lambda x: x[1:8:2, 0:7:3], "replace": _replace},
    "pad": {"pad": lambda x: np.pad(x, ((1, 2), (2, 3)), constant_values=-1.5)},
    "reshape": {
        "flatten": np.ravel,
        "expand": lambda x: x.reshape(2, 3, 4),
        "double_flat": lambda x: (x + x).reshape(2, 6),
    },
    "broadcast": {"outer_sum": np.add.outer, "rows": lambda x: np.tile(x, (4, 1))},
    "constants": {
        "splat": lambda: np.full((100, 10), 2.5, f32),
        "literal": lambda: np.array([[1, -2, 3], [-4, 5, -6]], i32),
        "added": lambda x: x + np.array([[1, 2, 3, 4], [0.5, 0.25, 0.125, -1000.5]], f32),
        "fills": lambda: (np.full(7, -3, np.int8), np.full(5, -300, np.int16), np.full(3, -9, i64)),
    },
    "unused_and_identity": {
        "identity": lambda x: x,
        "second": lambda x, y: y,
        "swap": lambda x, y: (y, x),
        "same_twice": lambda x: (-x, -x),
    },
    "many_results": {"spread": lambda x, n: (x + x, n + n, np.asarray(x[1]), x.reshape(2, 2), n)},
    "dynamic_add": {"add": lambda a, b: a + b},
    "dynamic_shapes": {
        "three": np.sqrt,
        "normalize": lambda x: (x.astype(f64) / x.astype(f64).sum(axis=1, keepdims=True)).astype(f32),
        "shape": lambda x: (x.shape[0], x.shape[1]),
        "iota": lambda n: np.arange(n, dtype=i32),
    },
    "dynamic_transpose": {"transpose": lambda x: x.T},
    "dynamic_slice": {
        "slice": lambda x, start, length: x[start : start + length],
        "join": lambda x, y: np.concatenate([x, y]),
    },
    "empty_tensors": {"sum": _sum, "double": lambda x: x + x, "static": lambda x: x * x},
    "collatz": {"steps": lambda start: np.array(_collatz_steps(int(start)), i32)},
    "collatz_scalar": {"steps": _collatz_steps},
    "nested_loops": {"accumulate": _accumulate},
    "branch_on_data": {
        "grow_or_shrink": lambda x: x * f32(2) if x[0] > 0 else x / f32(2),
        "by_scalar": lambda x, up: x + 1 if up else x,
    },
    "switch": {"choose": lambda which, x: x * i32({0: 2, 3: -1}.get(which, 1))},
    "newton": {"square_root": _square_root},
    "jacobi": {"relax": _relax},
    "multi_function": {
        "double": lambda a: a + a,
        "square_plus_double": lambda a: a * a + (a + a),
        "sum_and_difference": lambda a, b: (a + b, a - b),
    },
    "internal_calls": {
        "repeat": lambda n, a, b: (_wrapped(a * 3**n, 64), _wrapped(b - sum(a * 3**i for i in range(n)), 64), n),
        "mixed": lambda a, b, c: (a * (a * b + b) + b, c + 2 * a),
    },
    "assertion": {"reciprocal": lambda x: 1 / x},
    "scalars": {
        "add_i32": lambda a, b: _wrapped(a + b, 32),
        "muladd_i64": lambda a, b, c: _wrapped(a * b + c, 64),
        "muladd_f32": lambda a, b, c: float(f32(f32(a) * f32(b)) + f32(c)),
        "next_index": lambda a: a + 1,
        "compare": lambda a, b: (int(a < b), int(a % 2**32 < b % 2**32)),
        "scale": lambda x, factor: x * f32(factor),
        "nothing": lambda: None,
    },
    "scalar_math": {
        "integers": _integers,
        "longs": _longs,
        "floats": lambda a, b: (a + b, a / b, math.sqrt(b), math.exp(a)),
        "casts": lambda a, b: (int(a), float(b), b % 2**32, _wrapped(b, 8)),
    },
    "scalar_f64": {"combine": lambda a, b: a * b + b},
    "globals_initialized": {
        "add_table": lambda x: x + np.arange(1, 9, dtype=f32) ** 2,
        "scalars": lambda: (3, 5_000_000_000),
    },
    "mlp": {"forward": lambda x, w1, b1, w2: _matmul(np.maximum(_matmul(x, w1) + b1, f32(0)), w2)},
    "mnist_like": {"predict": _predict},
    "lstm_cell": {"cell": lambda x, h, c, wx, wh, bias: _lstm(_matmul(x, wx) + _matmul(h, wh) + bias, c)},
    "lstm_sequence": {"sequence": _sequence},
    "attention_like": {"attend": lambda q, k, v: _matmul(_softmax(_matmul(q, k.T) * f32(0.25)), v)},
    "async_mul": {"mul": lambda a, b: a * b},
    "async_loop": {"double_until": _double_until},
    "async_multi_function": {"add": np.add, "scale_and_sum": lambda x: (x * f32(2), _sum(x * f32(2), 1))},
}
_STATEFUL: Mapping[str, Callable[..., object]] = {
    "globals_counter": GlobalsCounter,
    "state_machine": StateMachine,
    "parameters": Dense,
}


def session(name: str, parameters: Parameters) -> Mapping[str, Function]:
    """The functions of one fresh session of a program, by exported name."""
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    instance = _STATEFUL[name](*([parameters] if parameters else []))
    return {key: getattr(instance, key) for key in dir(instance) if not key.startswith("_")}
