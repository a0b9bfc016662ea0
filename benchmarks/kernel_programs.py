"""The programs of generated_kernels.py, as StableHLO, with what each computes in NumPy. Not a benchmark.

``CASES`` has them by name. A program's text is written by ``Body``, a line an operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CASES", "Case", "Goal"]

ROOT = Path(__file__).resolve().parent.parent
Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_NUMPY = {"f32": np.float32, "f16": np.float16, "i32": np.int32}


@dataclass(frozen=True)
class Goal:
    """What is aimed at on a CPU device; on a GPU the ratio is 1.0 everywhere.

    Attributes:
        ratio: of our time to that of iree-compile's module, at most.
        bandwidth: share of the measured bandwidth, at least.
        arithmetic: share of the measured arithmetic, at least.
    """

    ratio: float
    bandwidth: float | None = None
    arithmetic: float | None = None


MEMORY = Goal(0.8, bandwidth=0.8)
MATMUL = Goal(0.6, arithmetic=0.4)
CONVOLUTION = Goal(0.6)
ANY = Goal(1.0)


@dataclass(frozen=True)
class Case:
    """A program of one function, and its arguments.

    Attributes:
        text: StableHLO; its only public function is called.
        arguments: shape and element type of each.
        goal: what is aimed at.
        flops: floating-point operations, a multiply-add being two; 0 where they say nothing.
        definition: the results in NumPy, or None where the two sides are held against each other alone.
        values: of an argument, by its number and shape, where they are not normally distributed.
        tolerance: of results, relative to the largest.
        is_library: whether the definition is a call of a library that is written for speed.
    """

    text: str
    arguments: tuple[tuple[Shape, str], ...]
    goal: Goal
    flops: float = 0
    definition: Callable[..., Array] | None = None
    values: Callable[[np.random.Generator, int, Shape], Array | None] = field(default=lambda rng, number, shape: None)
    tolerance: float = 1e-4
    is_library: bool = False

    def arrays(self) -> list[Array]:
        """The arguments of a call, the same in every process."""
        rng = np.random.default_rng(1)
        made = []
        for number, (shape, type) in enumerate(self.arguments):
            chosen = self.values(rng, number, shape)
            made.append(rng.standard_normal(shape, np.float32).astype(_NUMPY[type]) if chosen is None else chosen)
        return made


class Body:
    """The lines of a function, and the types of its values, by name."""

    def __init__(self, *arguments: tuple[Shape, str]) -> None:
        self.arguments = arguments
        self.lines: list[str] = []
        self.shapes: dict[str, Shape] = {}
        self.elements: dict[str, str] = {}
        for number, (shape, element) in enumerate(arguments):
            self.name(f"%a{number}", shape, element)

    def name(self, name: str, shape: Shape, element: str) -> str:
        """A value that is defined elsewhere."""
        self.shapes[name], self.elements[name] = shape, element
        return name

    def type(self, value: str) -> str:
        """A value's type as text."""
        return _type(self.shapes[value], self.elements[value])

    def value(self, line: str, shape: Shape, element: str) -> str:
        """Defines a value; ``line`` has ``{}`` for its type."""
        name = self.name(f"%v{len(self.shapes)}", shape, element)
        self.lines.append(f"{name} = {line.replace('{}', _type(shape, element))}")
        return name

    def constant(self, number: str, element: str = "f32") -> str:
        """A number."""
        return self.value(f"stablehlo.constant dense<{number}> : {{}}", (), element)

    def op(self, name: str, *values: str) -> str:
        """An element-wise operation."""
        return self.value(
            f"stablehlo.{name} {', '.join(values)} : {{}}", self.shapes[values[0]], self.elements[values[0]]
        )

    def broadcast(self, value: str, shape: Shape, dims: Sequence[int]) -> str:
        """Dimensions of a value at ``dims`` of a larger shape."""
        line = f"stablehlo.broadcast_in_dim {value}, dims = {list(dims)} : ({self.type(value)}) -> {{}}"
        return self.value(line, shape, self.elements[value])

    def fill(self, number: str, like: str) -> str:
        """A number in the shape of a value."""
        return self.broadcast(self.constant(number, self.elements[like]), self.shapes[like], ())

    def reduce(self, value: str, how: str, start: str, dims: Sequence[int]) -> str:
        """A reduction."""
        init = self.constant(start, self.elements[value])
        left = tuple(n for d, n in enumerate(self.shapes[value]) if d not in dims)
        line = (
            f"stablehlo.reduce({value} init: {init}) applies stablehlo.{how} across dimensions = {list(dims)} : "
            f"({self.type(value)}, {self.type(init)}) -> {{}}"
        )
        return self.value(line, left, self.elements[value])

    def dot(self, a: str, b: str, contracting: tuple[int, int], batch: int = 0) -> str:
        """A contraction of one dimension; the first ``batch`` dimensions of both go together."""
        together = list(range(batch))
        batching = f"batching_dims = {together} x {together}, " if batch else ""
        ours, theirs = self.shapes[a], self.shapes[b]
        shape = (
            *ours[:batch],
            *(n for d, n in enumerate(ours) if d >= batch and d != contracting[0]),
            *(n for d, n in enumerate(theirs) if d >= batch and d != contracting[1]),
        )
        line = (
            f"stablehlo.dot_general {a}, {b}, {batching}contracting_dims = [{contracting[0]}] x [{contracting[1]}] : "
            f"({self.type(a)}, {self.type(b)}) -> {{}}"
        )
        return self.value(line, shape, self.elements[a])

    def reshape(self, value: str, shape: Shape) -> str:
        """The same elements in another shape."""
        return self.value(f"stablehlo.reshape {value} : ({self.type(value)}) -> {{}}", shape, self.elements[value])

    def transpose(self, value: str, order: Sequence[int]) -> str:
        """Dimensions in another order."""
        line = f"stablehlo.transpose {value}, dims = {list(order)} : ({self.type(value)}) -> {{}}"
        return self.value(line, tuple(self.shapes[value][each] for each in order), self.elements[value])

    def function(self, *results: str) -> str:
        """The function that gives these values."""
        given = ", ".join(f"%a{number}: {_type(*each)}" for number, each in enumerate(self.arguments))
        types = ", ".join(self.type(each) for each in results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"func.func @main({given}) -> ({types}) {{\n{body}\n  return {', '.join(results)} : {types}\n}}\n"


def _type(shape: Shape, element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


# -- memory ------------------------------------------------------------------------------------------


def _chain(count: int) -> Case:
    body = Body(*(((count,), "f32"),) * 3)
    product = body.op("multiply", "%a0", "%a1")
    total = body.op("add", product, "%a2")
    text = body.function(body.op("maximum", total, body.fill("0.0", total)))
    return Case(text, body.arguments, MEMORY, 3 * count, lambda a, b, c: np.maximum(a * b + c, 0))


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


def _transpose(rows: int, columns: int) -> Case:
    body = Body(((rows, columns), "f32"))
    return Case(body.function(body.transpose("%a0", (1, 0))), body.arguments, MEMORY, 0, np.transpose)


def _sum(rows: int, columns: int, dims: tuple[int, ...]) -> Case:
    body = Body(((rows, columns), "f32"))
    text = body.function(body.reduce("%a0", "add", "0.0", dims))
    return Case(text, body.arguments, MEMORY, rows * columns, lambda a: np.sum(a, dims, np.float64))


def _softmax_of(body: Body, x: str) -> str:
    shape = body.shapes[x]
    rows, last = tuple(range(len(shape) - 1)), len(shape) - 1
    most = body.broadcast(body.reduce(x, "maximum", "0xFF800000", (last,)), shape, rows)
    powers = body.op("exponential", body.op("subtract", x, most))
    return body.op("divide", powers, body.broadcast(body.reduce(powers, "add", "0.0", (last,)), shape, rows))


def _softmax(rows: int, columns: int) -> Case:
    body = Body(((rows, columns), "f32"))

    def softmax(a: Array) -> Array:
        powers = np.exp(a - a.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    return Case(body.function(_softmax_of(body, "%a0")), body.arguments, MEMORY, 0, softmax)


def _layernorm_of(body: Body, x: str, scale: str, shift: str) -> str:
    shape = body.shapes[x]
    rows, last = tuple(range(len(shape) - 1)), len(shape) - 1

    def mean(value: str) -> str:
        total = body.reduce(value, "add", "0.0", (last,))
        return body.broadcast(body.op("divide", total, body.fill(f"{shape[-1]}.0", total)), shape, rows)

    centred = body.op("subtract", x, mean(x))
    variance = mean(body.op("multiply", centred, centred))
    normal = body.op("multiply", centred, body.op("rsqrt", body.op("add", variance, body.fill("1.0e-5", variance))))
    scaled = body.op("multiply", normal, body.broadcast(scale, shape, (last,)))
    return body.op("add", scaled, body.broadcast(shift, shape, (last,)))


def _layernorm(rows: int, columns: int) -> Case:
    body = Body(((rows, columns), "f32"), ((columns,), "f32"), ((columns,), "f32"))

    def layernorm(x: Array, scale: Array, shift: Array) -> Array:
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift

    return Case(body.function(_layernorm_of(body, "%a0", "%a1", "%a2")), body.arguments, MEMORY, 0, layernorm)


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


def _attention_of(body: Body, q: str, k: str, v: str) -> str:
    batch = len(body.shapes[q]) - 2
    scores = body.dot(q, k, (batch + 1, batch + 1), batch)
    scaled = body.op("multiply", scores, body.fill(repr(1 / math.sqrt(body.shapes[q][-1])), scores))
    return body.dot(_softmax_of(body, scaled), v, (batch + 1, batch), batch)


def _attention(heads: int, length: int, width: int) -> Case:
    body = Body(*(((heads, length, width), "f32"),) * 3)

    def attention(q: Array, k: Array, v: Array) -> Array:
        scores = q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(width))
        powers = np.exp(scores - scores.max(2, keepdims=True))
        return powers / powers.sum(2, keepdims=True) @ v

    text = body.function(_attention_of(body, "%a0", "%a1", "%a2"))
    return Case(text, body.arguments, ANY, 4 * heads * length * length * width, attention)


def _convolved(body: Body, image: str, weights: str, pad: int = 0, groups: int = 1) -> str:
    """The line of a convolution."""
    return (
        f"stablehlo.convolution({image}, {weights}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        f"window = {{stride = [1, 1], pad = [[{pad}, {pad}], [{pad}, {pad}]], lhs_dilate = [1, 1], "
        f"rhs_dilate = [1, 1]}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : "
        f"({body.type(image)}, {body.type(weights)}) -> {{}}"
    )


def _convolution(size: int, channels: int, filters: int, window: int = 3, depthwise: bool = False) -> Case:
    image = (1, size, size, channels)
    weights = (window, window, 1 if depthwise else channels, filters)
    body = Body((image, "f32"), (weights, "f32"))
    pad = window // 2
    line = _convolved(body, "%a0", "%a1", pad, channels if depthwise else 1)

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
    type, last = _type(shape, "f32"), len(shape) - 1
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
    given, left = _type((1, side, side, channels), "f32"), (side - size) // stride + 1
    type = _type((1, left, left, channels), "f32")
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
    given = _type(shape, element)
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


def _digits() -> Case:
    """Two convolutions, each with the larger of 2 x 2 places, and a layer that gives the shares of ten digits."""
    body = Body(((1, 28, 28, 1), "f32"), ((5, 5, 1, 8), "f32"), ((5, 5, 8, 16), "f32"), ((256, 10), "f32"))

    def layer(x: str, weights: str) -> str:
        _, height, width, _ = body.shapes[x]
        size, filters = body.shapes[weights][0], body.shapes[weights][-1]
        maps = (1, height - size + 1, width - size + 1, filters)
        filtered = body.value(_convolved(body, x, weights), maps, "f32")
        shown = body.op("maximum", filtered, body.fill("0.0", filtered))
        low = body.constant("0xFF800000")
        line = f""""stablehlo.reduce_window"({shown}, {low}) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %most = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %most : tensor<f32>
  }}) {{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}}
    : ({body.type(shown)}, tensor<f32>) -> {{}}"""
        return body.value(line, (1, maps[1] // 2, maps[2] // 2, filters), "f32")

    pooled = layer(layer("%a0", "%a1"), "%a2")
    scores = body.dot(body.reshape(pooled, (1, 256)), "%a3", (1, 0))
    return Case(body.function(_softmax_of(body, scores)), body.arguments, ANY, tolerance=1e-3)


def _transformer(length: int, width: int, heads: int, inner: int) -> Case:
    """A block with normalisation before, attention of several heads, and a network of two layers."""
    square, wide = ((width, width), "f32"), ((width,), "f32")
    body = Body(
        *(((length, width), "f32"), square, square, square, square, wide, wide, wide, wide),
        *(((width, inner), "f32"), ((inner,), "f32"), ((inner, width), "f32"), wide),
    )
    x = "%a0"
    normal = _layernorm_of(body, x, "%a5", "%a6")

    def split(weights: str) -> str:
        projected = body.reshape(body.dot(normal, weights, (1, 0)), (length, heads, width // heads))
        return body.transpose(projected, (1, 0, 2))

    given = _attention_of(body, split("%a1"), split("%a2"), split("%a3"))
    joined = body.reshape(body.transpose(given, (1, 0, 2)), (length, width))
    x = body.op("add", x, body.dot(joined, "%a4", (1, 0)))
    hidden = body.dot(_layernorm_of(body, x, "%a7", "%a8"), "%a9", (1, 0))
    hidden = body.op("add", hidden, body.broadcast("%a10", body.shapes[hidden], (1,)))
    hidden = body.op("maximum", hidden, body.fill("0.0", hidden))
    last = body.dot(hidden, "%a11", (1, 0))
    last = body.op("add", last, body.broadcast("%a12", body.shapes[last], (1,)))
    flops = 2 * length * width * (4 * width + 2 * inner) + 4 * length * length * width

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array | None:
        return (rng.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32) if number else None

    return Case(body.function(body.op("add", x, last)), body.arguments, ANY, flops, values=values, tolerance=1e-3)


def _lstm(steps: int, batch: int, width: int) -> Case:
    """A cell over a sequence, in a loop whose trips are known."""
    sequence, state = f"tensor<{steps}x{batch}x{width}xf32>", f"tensor<{batch}x{width}xf32>"
    body = Body(((batch, width), "f32"), ((batch, width), "f32"), *(((width, 4 * width), "f32"),) * 2)
    x, h, c = (body.name(name, (batch, width), "f32") for name in ("%x", "%h", "%c"))
    gates = body.op("add", body.dot(x, "%a2", (1, 0)), body.dot(h, "%a3", (1, 0)))

    def gate(number: int) -> str:
        low, high = number * width, (number + 1) * width
        line = f"stablehlo.slice {gates} [0:{batch}, {low}:{high}] : ({body.type(gates)}) -> {{}}"
        return body.value(line, (batch, width), "f32")

    opened, kept, given = (body.op("logistic", gate(number)) for number in (0, 1, 3))
    cell = body.op("add", body.op("multiply", kept, c), body.op("multiply", opened, body.op("tanh", gate(2))))
    out = body.op("multiply", given, body.op("tanh", cell))
    lines = "\n".join(f"    {line}" for line in body.lines)
    row = f"tensor<1x{batch}x{width}xf32>"
    text = f"""
func.func @main(%all: {sequence}, %h0: {state}, %c0: {state}, %a2: {body.type("%a2")}, %a3: {body.type("%a3")})
    -> ({state}, {state}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %h = %h0, %c = %c0) : tensor<i32>, {state}, {state}
  cond {{
    %limit = stablehlo.constant dense<{steps}> : tensor<i32>
    %more = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    %row = stablehlo.dynamic_slice %all, %i, %zero, %zero, sizes = [1, {batch}, {width}]
      : ({sequence}, tensor<i32>, tensor<i32>, tensor<i32>) -> {row}
    %x = stablehlo.reshape %row : ({row}) -> {state}
{lines}
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, {out}, {cell} : tensor<i32>, {state}, {state}
  }}
  return %0#1, %0#2 : {state}, {state}
}}
"""
    arguments = (
        *(((steps, batch, width), "f32"), ((batch, width), "f32"), ((batch, width), "f32")),
        *(((width, 4 * width), "f32"),) * 2,
    )

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array | None:
        return (rng.standard_normal(shape) / math.sqrt(width)).astype(np.float32) if number > 2 else None

    return Case(text, arguments, ANY, steps * 16 * batch * width * width, values=values, tolerance=1e-3)


CASES: dict[str, Case] = {
    "elementwise 16 Mi": _chain(1 << 24),
    "gelu 16 Mi": _gelu(1 << 24),
    "transpose 4096": _transpose(4096, 4096),
    "sum of rows 4096": _sum(4096, 4096, (1,)),
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
    "MNIST-like": _digits(),
    "transformer block": _transformer(128, 256, 4, 1024),
    "LSTM 32x8x128": _lstm(32, 8, 128),
}
"""All programs, in the order of the table."""
