"""The results of each program, computed in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

__all__ = ["session"]

Array = np.ndarray
Function = Callable[..., object]
Parameters = Mapping[str, Mapping[str, Array]]

_functions: dict[str, Function] = {}
_classes: dict[str, type] = {}

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64


def _program(name: str) -> Callable[[Function], Function]:
    """Registers a function of the exported name, or a class of such, as the expectation of a program."""

    def register(thing: Function) -> Function:
        if isinstance(thing, type):
            _classes[name] = thing
        else:
            _functions[name] = thing
        return thing

    return register


def session(name: str, parameters: Parameters) -> Mapping[str, Function]:
    """The functions of one fresh session of a program, by exported name."""
    if name in _functions:
        return {_functions[name].__name__: _functions[name]}
    instance = _classes[name](parameters) if parameters else _classes[name]()
    # An export may have a name that Python keeps for itself: its method's name ends in an underscore.
    return {key.rstrip("_"): getattr(instance, key) for key in dir(instance) if not key.startswith("_")}


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


@_program("simple_mul")
def simple_mul(a: Array, b: Array) -> Array:
    return a * b


class _Floats:
    add, subtract, multiply, divide = (staticmethod(u) for u in (np.add, np.subtract, np.multiply, np.divide))
    maximum, minimum, negate, absolute = (staticmethod(u) for u in (np.maximum, np.minimum, np.negative, np.abs))


for _name in ("elementwise_f32", "elementwise_f16", "elementwise_bf16", "elementwise_f64"):
    _program(_name)(_Floats)


class _Integers:
    add, subtract, multiply = (staticmethod(u) for u in (np.add, np.subtract, np.multiply))
    and_, or_, xor = (staticmethod(u) for u in (np.bitwise_and, np.bitwise_or, np.bitwise_xor))
    maximum_signed = staticmethod(np.maximum)

    def minimum_unsigned(self, a: Array, b: Array) -> Array:
        return np.minimum(_unsigned(a), _unsigned(b)).view(a.dtype)


for _name in ("elementwise_i8", "elementwise_i16", "elementwise_i32", "elementwise_i64"):
    _program(_name)(_Integers)


@_program("elementwise_i1")
class ElementwiseI1:
    and_, or_, xor = (staticmethod(u) for u in (np.logical_and, np.logical_or, np.logical_xor))
    less, choose = staticmethod(np.less), staticmethod(np.where)


@_program("narrow_odd_sizes")
class NarrowOddSizes:
    add_bytes = add_shorts = staticmethod(np.add)
    and_bits = staticmethod(np.logical_and)


@_program("divide_integers")
class DivideIntegers:
    floor_divide = staticmethod(np.floor_divide)
    # The sign of the remainder is the dividend's.
    remainder_signed = staticmethod(np.fmod)

    def divide_signed(self, a: Array, b: Array) -> Array:
        return np.trunc(a.astype(f64) / b).astype(i32)

    def divide_unsigned(self, a: Array, b: Array) -> Array:
        return (_unsigned(a) // _unsigned(b)).view(i32)

    def remainder_unsigned(self, a: Array, b: Array) -> Array:
        return (_unsigned(a) % _unsigned(b)).view(i32)

    def ceiling_divide(self, a: Array, b: Array) -> Array:
        return -(-a // b)


@_program("shifts")
class Shifts:
    left, right_signed = staticmethod(np.left_shift), staticmethod(np.right_shift)

    def right_unsigned(self, a: Array, b: Array) -> Array:
        return (_unsigned(a) >> _unsigned(b)).view(i32)


@_program("bit_counts")
class BitCounts:
    absolute = staticmethod(np.abs)

    def leading_zeros(self, a: Array) -> Array:
        return np.array([32 - int(value).bit_length() for value in _unsigned(a)], i32)


@_program("population_count")
def ones(a: Array) -> Array:
    return np.array([int(value).bit_count() for value in _unsigned(a)], i32)


@_program("math_unary")
class MathUnary:
    exp, exp2, expm1 = (staticmethod(u) for u in (np.exp, np.exp2, np.expm1))
    log, log2, log1p, sqrt = (staticmethod(u) for u in (np.log, np.log2, np.log1p, np.sqrt))
    sin, cos, tan, atan, tanh = (staticmethod(u) for u in (np.sin, np.cos, np.tan, np.arctan, np.tanh))
    ceil, floor = staticmethod(np.ceil), staticmethod(np.floor)

    def rsqrt(self, a: Array) -> Array:
        return 1 / np.sqrt(a)

    def erf(self, a: Array) -> Array:
        return np.array([math.erf(value) for value in a], f32)


@_program("rounding")
class Rounding:
    half_even, toward_zero = staticmethod(np.rint), staticmethod(np.trunc)

    def half_away(self, a: Array) -> Array:
        return np.copysign(np.floor(np.abs(a) + f32(0.5)), a)


@_program("math_binary")
class MathBinary:
    power, atan2, copysign, remainder = (staticmethod(u) for u in (np.power, np.arctan2, np.copysign, np.fmod))

    def fma(self, a: Array, b: Array, c: Array) -> Array:
        return (a.astype(f64) * b + c).astype(f32)


@_program("conversions")
class Conversions:
    def i32_to_f32(self, a: Array) -> Array:
        return a.astype(f32)

    def u32_to_f32(self, a: Array) -> Array:
        return _unsigned(a).astype(f32)

    def f32_to_i32(self, a: Array) -> Array:
        return a.astype(i32)

    def f32_to_u32(self, a: Array) -> Array:
        return a.astype(np.uint32).view(i32)

    def i8_to_i32(self, a: Array) -> Array:
        return a.astype(i32)

    def u8_to_i32(self, a: Array) -> Array:
        return _unsigned(a).astype(i32)

    def i32_to_i8(self, a: Array) -> Array:
        return a.astype(np.int8)

    def i32_to_i16(self, a: Array) -> Array:
        return a.astype(np.int16)

    def i1_to_i32(self, a: Array) -> Array:
        return a.astype(i32)


@_program("conversions_u8")
def u8_to_f32(a: Array) -> Array:
    return _unsigned(a).astype(f32)


@_program("conversions_f16")
class ConversionsF16:
    def f32_to_f16(self, a: Array) -> Array:
        return a.astype(np.float16)

    def f16_to_f32(self, a: Array) -> Array:
        return a.astype(f32)


@_program("conversions_i64")
class ConversionsI64:
    def i32_to_i64(self, a: Array) -> Array:
        return a.astype(i64)

    def i64_to_i32(self, a: Array) -> Array:
        return a.astype(i32)


@_program("conversions_bf16")
class ConversionsBf16:
    def f32_to_bf16(self, a: Array) -> Array:
        import ml_dtypes

        return a.astype(ml_dtypes.bfloat16)

    def bf16_to_f32(self, a: Array) -> Array:
        return a.astype(f32)


@_program("bitcasts")
class Bitcasts:
    def f32_to_i32(self, a: Array) -> Array:
        return a.view(i32)

    def i32_to_f32(self, a: Array) -> Array:
        return a.view(f32)

    def f32_to_bytes(self, a: Array) -> Array:
        return a.view(np.int8)


@_program("fused_elementwise")
class FusedElementwise:
    def gelu(self, x: Array) -> Array:
        erf = np.vectorize(math.erf)(x.astype(f64) / math.sqrt(2))
        return (0.5 * x * (1 + erf)).astype(f32)

    def clamp(self, x: Array) -> Array:
        return np.clip(x, f32(-0.75), f32(0.5))


@_program("complex")
class Complex:
    multiply = staticmethod(np.multiply)

    def make(self, re: Array, im: Array) -> Array:
        return (re + 1j * im).astype(np.complex64)


@_program("matmul_f32")
class MatmulF32:
    small = square = staticmethod(_matmul)

    def accumulate(self, a: Array, b: Array, c: Array) -> Array:
        return _matmul(a, b) + c


@_program("matmul_f16")
class MatmulF16:
    to_f32 = staticmethod(_matmul)

    def to_f16(self, a: Array, b: Array) -> Array:
        return _matmul(a, b, np.float16)


@_program("matmul_i8")
@_program("matmul_i32")
def matmul(a: Array, b: Array) -> Array:
    return a.astype(i32) @ b.astype(i32)


class _Matmul:
    matmul = staticmethod(_matmul)


for _name in ("matmul_large", "batch_matmul", "dynamic_matmul"):
    _program(_name)(_Matmul)


@_program("matmul_odd")
class MatmulOdd:
    tall = row = outer = staticmethod(_matmul)


@_program("matmul_transposed")
class MatmulTransposed:
    def left(self, a: Array, b: Array) -> Array:
        return _matmul(a.T, b)

    def right(self, a: Array, b: Array) -> Array:
        return _matmul(a, b.T)


@_program("matvec")
class Matvec:
    matvec = vecmat = dot = staticmethod(_matmul)


@_program("conv_1d")
def conv(x: Array, kernel: Array) -> Array:
    return _conv_2d_nhwc(x[:, None], kernel[None])[:, 0]


@_program("conv_2d")
class Conv2d:
    nhwc = staticmethod(_conv_2d_nhwc)

    def strided(self, x: Array, kernel: Array) -> Array:
        return _conv_2d_nhwc(x, kernel, stride=2)

    def nchw_dilated(self, x: Array, kernel: Array) -> Array:
        y = _conv_2d_nhwc(x.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0), dilation=2)
        return y.transpose(0, 3, 1, 2)


@_program("conv_2d_padded")
def same(x: Array, kernel: Array) -> Array:
    return _conv_2d_nhwc(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), kernel)


@_program("conv_2d_depthwise")
def depthwise(x: Array, kernel: Array) -> Array:
    return np.einsum("nhwcij,ijc->nhwc", _windows(x, 3, 1).astype(f64), kernel.astype(f64)).astype(f32)


@_program("pooling")
class Pooling:
    def maximum(self, x: Array) -> Array:
        return _windows(x, 2, 2).max(axis=(4, 5))

    def average(self, x: Array) -> Array:
        return _windows(x, 3, 1).astype(f64).mean(axis=(4, 5)).astype(f32)


@_program("reduce_sum")
class ReduceSum:
    def rows(self, x: Array) -> Array:
        return _sum(x, 1)

    def columns(self, x: Array) -> Array:
        return _sum(x, 0)

    def all(self, x: Array) -> Array:
        return _sum(x)


@_program("reduce_mean")
def mean(x: Array) -> Array:
    return x.astype(f64).mean(axis=1).astype(f32)


@_program("reduce_extremes")
class ReduceExtremes:
    def maximum_f32(self, x: Array) -> Array:
        return x.max(axis=1)

    def minimum_f32(self, x: Array) -> Array:
        return x.min(axis=0)

    def maximum_i32(self, x: Array) -> Array:
        return x.max(axis=1)

    def minimum_unsigned(self, x: Array) -> Array:
        return _unsigned(x).min(axis=1).view(i32)


@_program("reduce_others")
class ReduceOthers:
    def product(self, x: Array) -> Array:
        return x.astype(f64).prod(axis=1).astype(f32)

    def sum_i32(self, x: Array) -> Array:
        return x.sum(axis=(0, 2), dtype=i32)


@_program("reduce_booleans")
class ReduceBooleans:
    def all(self, x: Array) -> Array:
        return x.all(axis=1)

    def any(self, x: Array) -> Array:
        return x.any(axis=1)


@_program("reduce_large")
class ReduceLarge:
    sum = staticmethod(_sum)

    def rows(self, x: Array) -> Array:
        return _sum(x, 1)


@_program("argmax")
def argmax(x: Array) -> tuple[Array, Array]:
    return x.max(axis=1), x.argmax(axis=1).astype(i32)


@_program("softmax")
def softmax(x: Array) -> Array:
    return _softmax(x)


@_program("layer_norm")
def layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    wide = x.astype(f64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    return (centred / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * scale + shift).astype(f32)


@_program("running_sum")
def inclusive(x: Array) -> Array:
    return x.astype(f64).cumsum(axis=1).astype(f32)


@_program("histogram")
def count(x: Array) -> Array:
    return np.bincount(x, minlength=8).astype(i32)


@_program("gather")
class Gather:
    def rows(self, table: Array, indices: Array) -> Array:
        return table[indices]

    def reversed(self, x: Array) -> Array:
        return x[::-1]


@_program("scatter")
class Scatter:
    def add_rows(self, table: Array, indices: Array, rows: Array) -> Array:
        y = table.astype(f64)
        np.add.at(y, indices, rows)
        return y.astype(f32)

    def put(self, x: Array, at: Array, value: Array) -> Array:
        y = x.copy()
        y[int(at) : int(at) + 3] = value
        return y


@_program("sort")
class Sort:
    def ascending(self, x: Array) -> Array:
        return np.sort(x, axis=1)

    def by_key(self, keys: Array, values: Array) -> tuple[Array, Array]:
        order = np.argsort(-keys)
        return keys[order], values[order]


@_program("transpose")
class Transpose:
    two = staticmethod(np.transpose)

    def four(self, x: Array) -> Array:
        return x.transpose(2, 0, 3, 1)


@_program("concatenate")
class Concatenate:
    def rows(self, x: Array, y: Array) -> Array:
        return np.concatenate([x, y])

    def columns(self, x: Array, y: Array, z: Array) -> Array:
        return np.concatenate([x, y, z], axis=1)


@_program("slice")
class Slice:
    def part(self, x: Array) -> Array:
        return x[2:5, 5:9]

    def strided(self, x: Array) -> Array:
        return x[1:8:2, 0:7:3]

    def replace(self, x: Array, part: Array) -> Array:
        y = x.copy()
        y[3:5, 4:6] = part
        return y


@_program("pad")
def pad(x: Array) -> Array:
    return np.pad(x, ((1, 2), (2, 3)), constant_values=-1.5)


@_program("reshape")
class Reshape:
    flatten = staticmethod(np.ravel)

    def expand(self, x: Array) -> Array:
        return x.reshape(2, 3, 4)

    def double_flat(self, x: Array) -> Array:
        return (x + x).reshape(2, 6)


@_program("broadcast")
class Broadcast:
    outer_sum = staticmethod(np.add.outer)

    def rows(self, x: Array) -> Array:
        return np.tile(x, (4, 1))


@_program("constants")
class Constants:
    def splat(self) -> Array:
        return np.full((100, 10), 2.5, f32)

    def literal(self) -> Array:
        return np.array([[1, -2, 3], [-4, 5, -6]], i32)

    def added(self, x: Array) -> Array:
        return x + np.array([[1, 2, 3, 4], [0.5, 0.25, 0.125, -1000.5]], f32)

    def fills(self) -> tuple[Array, Array, Array]:
        return np.full(7, -3, np.int8), np.full(5, -300, np.int16), np.full(3, -9, i64)


@_program("unused_and_identity")
class UnusedAndIdentity:
    def identity(self, x: Array) -> Array:
        return x

    def second(self, x: Array, y: Array) -> Array:
        return y

    def swap(self, x: Array, y: Array) -> tuple[Array, Array]:
        return y, x

    def same_twice(self, x: Array) -> tuple[Array, Array]:
        return -x, -x


@_program("many_results")
def spread(x: Array, n: int) -> tuple[object, ...]:
    return x + x, n + n, np.asarray(x[1]), x.reshape(2, 2), n


@_program("dynamic_add")
def add(a: Array, b: Array) -> Array:
    return a + b


@_program("dynamic_shapes")
class DynamicShapes:
    three = staticmethod(np.sqrt)

    def normalize(self, x: Array) -> Array:
        return (x.astype(f64) / x.astype(f64).sum(axis=1, keepdims=True)).astype(f32)

    def shape(self, x: Array) -> tuple[int, int]:
        return x.shape[0], x.shape[1]

    def iota(self, n: int) -> Array:
        return np.arange(n, dtype=i32)


@_program("dynamic_transpose")
def transpose(x: Array) -> Array:
    return x.T


@_program("dynamic_slice")
class DynamicSlice:
    def slice(self, x: Array, start: int, length: int) -> Array:
        return x[start : start + length]

    def join(self, x: Array, y: Array) -> Array:
        return np.concatenate([x, y])


@_program("empty_tensors")
class EmptyTensors:
    sum = staticmethod(_sum)

    def double(self, x: Array) -> Array:
        return x + x

    def static(self, x: Array) -> Array:
        return x * x


def _collatz_steps(value: int) -> int:
    steps = 0
    while value > 1:
        value = value * 3 + 1 if value % 2 else value // 2
        steps += 1
    return steps


@_program("collatz")
class Collatz:
    def steps(self, start: Array) -> Array:
        return np.array(_collatz_steps(int(start)), i32)


@_program("collatz_scalar")
class CollatzScalar:
    steps = staticmethod(_collatz_steps)


@_program("nested_loops")
def accumulate(x: Array, outer: int, inner: int) -> Array:
    y = x
    for _ in range(outer):
        y = y * f32(0.5)
        for _ in range(inner):
            y = y + x
    return y


@_program("branch_on_data")
class BranchOnData:
    def grow_or_shrink(self, x: Array) -> Array:
        return x * f32(2) if x[0] > 0 else x / f32(2)

    def by_scalar(self, x: Array, up: bool) -> Array:
        return x + 1 if up else x


@_program("switch")
def choose(which: int, x: Array) -> Array:
    return x * i32({0: 2, 3: -1}.get(which, 1))


@_program("newton")
def square_root(x: Array) -> tuple[Array, int]:
    guess, steps = x, 0
    while abs(guess * guess - x) > f32(1e-4) and steps < 50:
        guess, steps = (guess + x / guess) * f32(0.5), steps + 1
    return np.asarray(guess), steps


@_program("jacobi")
def relax(grid: Array) -> Array:
    now = grid.copy()
    for _ in range(10):
        inside = (now[:-2, 1:-1] + now[2:, 1:-1] + (now[1:-1, :-2] + now[1:-1, 2:])) * f32(0.25)
        now[1:-1, 1:-1] = inside
    return now


@_program("multi_function")
class MultiFunction:
    def double(self, a: Array) -> Array:
        return a + a

    def square_plus_double(self, a: Array) -> Array:
        return a * a + (a + a)

    def sum_and_difference(self, a: Array, b: Array) -> tuple[Array, Array]:
        return a + b, a - b


@_program("internal_calls")
class InternalCalls:
    def repeat(self, n: int, a: int, b: int) -> tuple[int, int, int]:
        return _wrapped(a * 3**n, 64), _wrapped(b - sum(a * 3**i for i in range(n)), 64), n

    def mixed(self, a: int, b: float, c: int) -> tuple[float, int]:
        return a * (a * b + b) + b, c + 2 * a


@_program("assertion")
def reciprocal(x: float) -> float:
    return 1 / x


@_program("scalars")
class Scalars:
    def add_i32(self, a: int, b: int) -> int:
        return _wrapped(a + b, 32)

    def muladd_i64(self, a: int, b: int, c: int) -> int:
        return _wrapped(a * b + c, 64)

    def muladd_f32(self, a: float, b: float, c: float) -> float:
        return float(f32(f32(a) * f32(b)) + f32(c))

    def next_index(self, a: int) -> int:
        return a + 1

    def compare(self, a: int, b: int) -> tuple[int, int]:
        return int(a < b), int(a % 2**32 < b % 2**32)

    def scale(self, x: Array, factor: float) -> Array:
        return x * f32(factor)

    def nothing(self) -> None:
        return None


@_program("scalar_math")
class ScalarMath:
    def integers(self, a: int, b: int) -> tuple[int, ...]:
        quotient = int(a / b)
        high = _wrapped(a % 2**32 >> b, 32)
        return _wrapped(a * b, 32), quotient, a - quotient * b, _wrapped(a << b, 32), high, a ^ b

    def longs(self, a: int, b: int) -> tuple[int, ...]:
        quotient, remainder = divmod(a % 2**64, b % 2**64)
        return _wrapped(a * b, 64), _wrapped(quotient, 64), _wrapped(remainder, 64), a >> b

    def floats(self, a: float, b: float) -> tuple[float, ...]:
        return a + b, a / b, math.sqrt(b), math.exp(a)

    def casts(self, a: float, b: int) -> tuple[object, ...]:
        return int(a), float(b), b % 2**32, _wrapped(b, 8)


@_program("scalar_f64")
def combine(a: float, b: float) -> float:
    return a * b + b


@_program("globals_counter")
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


@_program("globals_initialized")
class GlobalsInitialized:
    def add_table(self, x: Array) -> Array:
        return x + np.arange(1, 9, dtype=f32) ** 2

    def scalars(self) -> tuple[int, int]:
        return 3, 5_000_000_000


@_program("state_machine")
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


@_program("parameters")
class Dense:
    def __init__(self, parameters: Parameters) -> None:
        self._model = parameters["model"]

    def dense(self, x: Array) -> Array:
        return _matmul(x, self._model["weight"]) + self._model["bias"]


@_program("mlp")
def forward(x: Array, w1: Array, b1: Array, w2: Array) -> Array:
    return _matmul(np.maximum(_matmul(x, w1) + b1, f32(0)), w2)


@_program("mnist_like")
def predict(image: Array) -> Array:
    convolved = _conv_2d_nhwc(image, _ramp((3, 3, 1, 4), 37, 11, 64, 64)) + _ramp((4,), 5, 1, 8, 8)
    pooled = _windows(np.maximum(convolved, f32(0)), 2, 2).max(axis=(4, 5))
    logits = _matmul(pooled.reshape(2, 36), _ramp((36, 10), 29, 7, 128, 128)) + _ramp((10,), 3, 2, 16, 16)
    return _softmax(logits)


@_program("lstm_cell")
def cell(x: Array, h: Array, c: Array, wx: Array, wh: Array, bias: Array) -> tuple[Array, Array]:
    return _lstm(_matmul(x, wx) + _matmul(h, wh) + bias, c)


@_program("lstm_sequence")
def sequence(xs: Array, wx: Array, wh: Array) -> tuple[Array, Array]:
    h = c = np.zeros((2, 4), f32)
    for x in xs:
        h, c = _lstm(_matmul(x, wx) + _matmul(h, wh), c)
    return h, c


@_program("attention_like")
def attend(q: Array, k: Array, v: Array) -> Array:
    return _matmul(_softmax(_matmul(q, k.T) * f32(0.25)), v)


@_program("async_mul")
def mul(a: Array, b: Array) -> Array:
    return a * b


@_program("async_loop")
def double_until(start: Array, limit: Array) -> Array:
    value = start
    while value[0] < limit:
        value = value + value + np.array([1, 0.5, 0.25, 0.125], f32)
    return value


@_program("async_multi_function")
class AsyncMultiFunction:
    add = staticmethod(np.add)

    def scale_and_sum(self, x: Array) -> tuple[Array, Array]:
        return x * f32(2), _sum(x * f32(2), 1)
