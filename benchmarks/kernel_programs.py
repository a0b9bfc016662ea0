"""The programs of generated_kernels.py, as StableHLO, with what each computes in NumPy. Not a benchmark.

``CASES`` has them by name. A program's text is written by ``Body``, a line an operation.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
from kernel_body import Body, Shape, type_of
from kernel_case import ANY, CONVOLUTION, MATMUL, MEMORY, Array, Case, Goal
from kernel_models import digits, lstm, transformer

__all__ = ["CASES", "Case", "Goal"]


# -- memory ------------------------------------------------------------------------------------------


def _chain(count: int, element: str = "f32") -> Case:
    body = Body(*(((count,), element),) * 3)
    product = body.op("multiply", "%a0", "%a1")
    total = body.op("add", product, "%a2")
    text = body.function(body.op("maximum", total, body.fill("0.0", total)))
    tolerance = 1e-3 if element == "f16" else 1e-4
    return Case(text, body.arguments, MEMORY, 3 * count, lambda a, b, c: np.maximum(a * b + c, 0), tolerance=tolerance)


def _gelu(count: int) -> Case:
    body = Body(((count,), "f32"))
    x = "%a0"
    cube = body.op("multiply", body.op("multiply", x, x), body.op("multiply", x, body.fill("0.044715", x)))
    inner = body.op("multiply", body.op("add", x, cube), body.fill("0.797884583", x))
    gate = body.op("add", body.op("tanh", inner), body.fill("1.0", x))
    text = body.function(body.op("multiply", body.op("multiply", x, gate), body.fill("0.5", x)))

    def gelu(x: Array) -> Array:
        return 0.5 * x * (1 + np.tanh(np.float32(0.797884583) * (x + np.float32(0.044715) * x**3)))

    return Case(text, body.arguments, Goal(0.8), 0, gelu)


def _transpose(shape: Shape, order: Sequence[int], element: str = "f32") -> Case:
    body = Body((shape, element))
    text = body.function(body.transpose("%a0", order))
    return Case(text, body.arguments, MEMORY, 0, lambda a: np.transpose(a, order))


def _sum(rows: int, columns: int, dims: tuple[int, ...], element: str = "f32") -> Case:
    body = Body(((rows, columns), element))
    text = body.function(body.reduce("%a0", "add", "0.0", dims))
    tolerance = 1e-2 if element == "f16" else 1e-4
    return Case(
        text, body.arguments, MEMORY, rows * columns, lambda a: np.sum(a, dims, np.float64), tolerance=tolerance
    )


def _softmax(rows: int, columns: int) -> Case:
    body = Body(((rows, columns), "f32"))

    def softmax(a: Array) -> Array:
        powers = np.exp(a - a.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    return Case(body.function(body.softmax("%a0")), body.arguments, MEMORY, 0, softmax)


def _layernorm(rows: int, columns: int) -> Case:
    body = Body(((rows, columns), "f32"), ((columns,), "f32"), ((columns,), "f32"))

    def layernorm(x: Array, scale: Array, shift: Array) -> Array:
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift

    return Case(body.function(body.layernorm("%a0", "%a1", "%a2")), body.arguments, MEMORY, 0, layernorm)


# -- contractions ------------------------------------------------------------------------------------


def _matmul(m: int, n: int, k: int, element: str) -> Case:
    body = Body(((m, k), element), ((k, n), element))

    def matmul(a: Array, b: Array) -> Array:
        return a.astype(np.float32, copy=False) @ b.astype(np.float32, copy=False)

    text = body.function(body.dot("%a0", "%a1", (1, 0)))
    tolerance = 1e-4 if element == "f32" else 2e-2
    flops = 2 * m * n * k
    return Case(text, body.arguments, MATMUL, flops, matmul, tolerance=tolerance, is_library=element == "f32")


def _matvec(size: int) -> Case:
    body = Body(((size, size), "f32"), ((size,), "f32"))
    text = body.function(body.dot("%a0", "%a1", (1, 0)))
    return Case(text, body.arguments, Goal(1.0, bandwidth=0.8), 2 * size * size, np.matmul, is_library=True)


def _layers(batch: int, widths: Sequence[int], is_open: bool = False) -> Case:
    """Layers with tanh; open ones are for batches of any size, which is that of no layer."""
    body = Body(((batch, widths[0]), "f32"), *((pair, "f32") for pair in itertools.pairwise(widths)))
    x = "%a0"
    for number in range(1, len(widths)):
        x = body.op("tanh", body.dot(x, f"%a{number}", (1, 0)))

    def layers(x: Array, *weights: Array) -> Array:
        return functools.reduce(lambda x, weight: np.tanh(x @ weight), weights, x)

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array:
        return (rng.standard_normal(shape) / math.sqrt(shape[0] if number else 1)).astype(np.float32)

    text = body.function(x)
    text = text.replace(f"tensor<{batch}x", "tensor<?x") if is_open else text
    flops = sum(2 * batch * one * other for one, other in itertools.pairwise(widths))
    return Case(text, body.arguments, ANY, flops, layers, values, tolerance=1e-3)


def _attention(heads: int, length: int, width: int) -> Case:
    body = Body(*(((heads, length, width), "f32"),) * 3)

    def attention(q: Array, k: Array, v: Array) -> Array:
        scores = q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(width))
        powers = np.exp(scores - scores.max(2, keepdims=True))
        return powers / powers.sum(2, keepdims=True) @ v

    text = body.function(body.attention("%a0", "%a1", "%a2"))
    return Case(text, body.arguments, ANY, 4 * heads * length * length * width, attention)


def _convolution(size: int, channels: int, filters: int, window: int = 3, depthwise: bool = False) -> Case:
    image = (1, size, size, channels)
    weights = (window, window, 1 if depthwise else channels, filters)
    body = Body((image, "f32"), (weights, "f32"))
    pad = window // 2
    line = body.convolved("%a0", "%a1", pad, channels if depthwise else 1)

    def convolution(x: Array, w: Array) -> Array:
        padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        total = np.zeros((1, size, size, filters), np.float32)
        for i in range(window):
            for j in range(window):
                part = padded[:, i : i + size, j : j + size]
                total += part * w[i, j, 0] if depthwise else part @ w[i, j]
        return total

    flops = 2 * size * size * filters * window * window * weights[2]
    text = body.function(body.value(line, (1, size, size, filters), "f32"))
    return Case(text, body.arguments, CONVOLUTION, flops, convolution)


# -- the others --------------------------------------------------------------------------------------


def _scatter_add(rows: int, width: int, updates: int) -> Case:
    text = f"""
func.func @main(%a0: tensor<{rows}x{width}xf32>, %a1: tensor<{updates}x1xi32>, %a2: tensor<{updates}x{width}xf32>)
    -> tensor<{rows}x{width}xf32> {{
  %0 = "stablehlo.scatter"(%a0, %a1, %a2) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) {{
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    indices_are_sorted = false, unique_indices = false
  }} : (tensor<{rows}x{width}xf32>, tensor<{updates}x1xi32>, tensor<{updates}x{width}xf32>)
    -> tensor<{rows}x{width}xf32>
  return %0 : tensor<{rows}x{width}xf32>
}}
"""

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array | None:
        return rng.integers(0, rows, shape, np.int32) if number == 1 else None

    def scatter(table: Array, places: Array, given: Array) -> Array:
        total = table.astype(np.float64)
        np.add.at(total, places[:, 0], given)
        return total

    arguments = (((rows, width), "f32"), ((updates, 1), "i32"), ((updates, width), "f32"))
    return Case(text, arguments, ANY, 0, scatter, values)


def _gather(rows: int, width: int, count: int) -> Case:
    text = f"""
func.func @main(%a0: tensor<{rows}x{width}xf32>, %a1: tensor<{count}x1xi32>) -> tensor<{count}x{width}xf32> {{
  %0 = "stablehlo.gather"(%a0, %a1) {{
    dimension_numbers = #stablehlo.gather<
      offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, {width}>, indices_are_sorted = false
  }} : (tensor<{rows}x{width}xf32>, tensor<{count}x1xi32>) -> tensor<{count}x{width}xf32>
  return %0 : tensor<{count}x{width}xf32>
}}
"""

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array | None:
        return rng.integers(0, rows, shape, np.int32) if number == 1 else None

    arguments = (((rows, width), "f32"), ((count, 1), "i32"))
    return Case(text, arguments, ANY, 0, lambda table, places: table[places[:, 0]], values)


def _sort(shape: Shape) -> Case:
    type, last = type_of(shape, "f32"), len(shape) - 1
    text = f"""
func.func @main(%a0: {type}) -> {type} {{
  %0 = "stablehlo.sort"(%a0) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}) {{dimension = {last} : i64, is_stable = true}} : ({type}) -> {type}
  return %0 : {type}
}}
"""
    return Case(text, ((shape, "f32"),), ANY, 0, np.sort, is_library=True)


def _scatter_points(places: int, updates: int) -> Case:
    text = f"""
func.func @main(%a0: tensor<{places}xf32>, %a1: tensor<{updates}x1xi32>, %a2: tensor<{updates}xf32>)
    -> tensor<{places}xf32> {{
  %0 = "stablehlo.scatter"(%a0, %a1, %a2) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) {{
    scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    indices_are_sorted = false, unique_indices = false
  }} : (tensor<{places}xf32>, tensor<{updates}x1xi32>, tensor<{updates}xf32>) -> tensor<{places}xf32>
  return %0 : tensor<{places}xf32>
}}
"""

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array | None:
        return rng.integers(0, places, shape, np.int32) if number == 1 else None

    def scatter(table: Array, indices: Array, given: Array) -> Array:
        total = table.astype(np.float64)
        np.add.at(total, indices[:, 0], given)
        return total

    arguments = (((places,), "f32"), ((updates, 1), "i32"), ((updates,), "f32"))
    return Case(text, arguments, ANY, 0, scatter, values)


def _pooling(side: int, channels: int, size: int, stride: int) -> Case:
    given, left = type_of((1, side, side, channels), "f32"), (side - size) // stride + 1
    type = type_of((1, left, left, channels), "f32")
    text = f"""
func.func @main(%a0: {given}) -> {type} {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a0, %low) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }}) {{window_dimensions = array<i64: 1, {size}, {size}, 1>, window_strides = array<i64: 1, {stride}, {stride}, 1>}}
    : ({given}, tensor<f32>) -> {type}
  return %0 : {type}
}}
"""

    def pooled(value: Array) -> Array:
        windows = np.lib.stride_tricks.sliding_window_view(value, (size, size), (1, 2))
        return windows[:, ::stride, ::stride].max((-1, -2))

    return Case(text, (((1, side, side, channels), "f32"),), ANY, 0, pooled)


def _cumulative_sums(shape: Shape, axis: int, element: str = "f32") -> Case:
    given = type_of(shape, element)
    sizes = ", ".join(str(length if each == axis else 1) for each, length in enumerate(shape))
    padding = [[length - 1 if each == axis else 0, 0] for each, length in enumerate(shape)]
    text = f"""
func.func @main(%a0: {given}) -> {given} {{
  %zero = stablehlo.constant dense<0.0> : tensor<{element}>
  %0 = "stablehlo.reduce_window"(%a0, %zero) ({{
  ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
    %1 = stablehlo.add %x, %y : tensor<{element}>
    stablehlo.return %1 : tensor<{element}>
  }}) {{window_dimensions = array<i64: {sizes}>, padding = dense<{padding}> : tensor<{len(shape)}x2xi64>}}
    : ({given}, tensor<{element}>) -> {given}
  return %0 : {given}
}}
"""

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array:
        return rng.integers(-2, 3, shape).astype(np.float16 if element == "f16" else np.float32)

    return Case(text, ((shape, element),), ANY, 0, lambda value: np.cumsum(value, axis, np.float32), values)


def _associative_scan(shape: Shape, axis: int) -> Case:
    """Sums of pairs, scanned in the same way, which take turns with what is before them."""
    body = Body((shape, "f32"))

    def piece(value: str, start: int, end: int, step: int = 1) -> str:
        given = body.shapes[value]
        whole = [f"0:{length}" for length in given]
        whole[axis] = f"{start}:{end}:{step}"
        made = tuple(-(-(end - start) // step) if at == axis else length for at, length in enumerate(given))
        return body.value(f"stablehlo.slice {value} [{', '.join(whole)}] : ({body.type(value)}) -> {{}}", made, "f32")

    def apart(value: str, length: int, low: int) -> str:
        given, here = body.shapes[value], [int(at == axis) for at in range(len(shape))]
        made = tuple(length if at == axis else each for at, each in enumerate(given))
        edges = [[edge * each for each in here] for edge in (low, length - low - 2 * given[axis] + 1)]
        line = f"stablehlo.pad {value}, {zero}, low = {edges[0]}, high = {edges[1]}, interior = {here}"
        return body.value(f"{line} : ({body.type(value)}, tensor<f32>) -> {{}}", made, "f32")

    def scanned(value: str) -> str:
        length = body.shapes[value][axis]
        if length < 2:
            return value
        odd = scanned(body.op("add", piece(value, 0, length - 1, 2), piece(value, 1, length, 2)))
        first, half = piece(value, 0, 1), length // 2
        if length > 2:
            before = odd if length % 2 else piece(odd, 0, half - 1)
            rest = body.op("add", before, piece(value, 2, length, 2))
            made = tuple(-(-length // 2) if at == axis else each for at, each in enumerate(body.shapes[value]))
            types = f"{body.type(first)}, {body.type(rest)}"
            first = body.value(f"stablehlo.concatenate {first}, {rest}, dim = {axis} : ({types}) -> {{}}", made, "f32")
        return body.op("add", apart(first, length, 0), apart(odd, length, 1))

    zero = body.constant("0.0")
    text = body.function(scanned("%a0"))

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array:
        return rng.integers(-2, 3, shape).astype(np.float32)

    return Case(text, body.arguments, ANY, 0, lambda value: np.cumsum(value, axis, np.float32), values)


CASES: dict[str, Case] = {
    "elementwise 16 Mi": _chain(1 << 24),
    "gelu 16 Mi": _gelu(1 << 24),
    "elementwise 16 Mi f16": _chain(1 << 24, "f16"),
    "transpose 4096": _transpose((4096, 4096), (1, 0)),
    "transpose 4096 f16": _transpose((4096, 4096), (1, 0), "f16"),
    "transpose 4096 i8": _transpose((4096, 4096), (1, 0), "i8"),
    "transpose of rows 64x512x512": _transpose((64, 512, 512), (1, 0, 2)),
    "transpose of heads 512x64x64x8": _transpose((512, 64, 64, 8), (0, 2, 1, 3)),
    "transpose in batches 64x512x512": _transpose((64, 512, 512), (0, 2, 1)),
    "sum of rows 4096": _sum(4096, 4096, (1,)),
    "sum of rows 4096 f16": _sum(4096, 4096, (1,), "f16"),
    "sum of columns 4096": _sum(4096, 4096, (0,)),
    "sum of all 4096": _sum(4096, 4096, (0, 1)),
    "softmax 4096": _softmax(4096, 4096),
    "layernorm 4096": _layernorm(4096, 4096),
    "matvec 4096": _matvec(4096),
    **{
        f"matmul {size} {type}": _matmul(size, size, size, type)
        for type in ("f32", "f16")
        for size in (256, 512, 1024, 2048)
    },
    "layers 500x512": _layers(500, (512, 1024, 512, 256)),
    "layers ?x512": _layers(500, (512, 1024, 512, 256), is_open=True),
    "attention 16x512x64": _attention(16, 512, 64),
    "conv 3x3 112x32": _convolution(112, 32, 32),
    "conv 3x3 56x64": _convolution(56, 64, 64),
    "conv 3x3 28x128": _convolution(28, 128, 128),
    "conv 1x1 56x128": _convolution(56, 128, 128, 1),
    "depthwise 112x64": _convolution(112, 64, 64, depthwise=True),
    "depthwise 56x128": _convolution(56, 128, 128, depthwise=True),
    "depthwise 28x256": _convolution(28, 256, 256, depthwise=True),
    "scatter-add 16384 rows": _scatter_add(4096, 64, 16384),
    "scatter-add 256 rows": _scatter_add(4096, 64, 256),
    "scatter-add 1 Mi points": _scatter_points(65536, 1 << 20),
    "scatter-add 32 Ki points": _scatter_points(4096, 1 << 15),
    "gather 65536 rows": _gather(4096, 64, 65536),
    "sort 1 Mi": _sort((1 << 20,)),
    "sort 1024x64": _sort((1024, 64)),
    "pooling 3x3 112x64": _pooling(112, 64, 3, 2),
    "pooling 2x2 224x32": _pooling(224, 32, 2, 2),
    "cumulative sums of rows 2048x2048": _cumulative_sums((2048, 2048), 1),
    "cumulative sums of rows 2048x2048 f16": _cumulative_sums((2048, 2048), 1, "f16"),
    "cumulative sums of columns 2048x2048": _cumulative_sums((2048, 2048), 0),
    "cumulative sums of 1 Mi": _cumulative_sums((1 << 20,), 0),
    "cumulative sums of 1 Mi f16": _cumulative_sums((1 << 20,), 0, "f16"),
    "associative scan of 1 Mi": _associative_scan((1 << 20,), 0),
    "associative scan of columns 4096x64": _associative_scan((4096, 64), 0),
    "MNIST-like": digits(),
    "transformer block": transformer(128, 256, 4, 1024),
    "LSTM 32x8x128": lstm(32, 8, 128),
}
"""All programs, in the order of the table."""
