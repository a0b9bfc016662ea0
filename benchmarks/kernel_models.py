"""Whole models among the programs of generated_kernels.py. Not a benchmark."""

from __future__ import annotations

import math

import numpy as np
from kernel_body import Body, Shape
from kernel_case import ANY, Array, Case


def digits() -> Case:
    """Two convolutions, each with the larger of 2 x 2 places, and a layer that gives the shares of ten digits."""
    body = Body(((1, 28, 28, 1), "f32"), ((5, 5, 1, 8), "f32"), ((5, 5, 8, 16), "f32"), ((256, 10), "f32"))

    def layer(x: str, weights: str) -> str:
        _, height, width, _ = body.shapes[x]
        size, filters = body.shapes[weights][0], body.shapes[weights][-1]
        maps = (1, height - size + 1, width - size + 1, filters)
        filtered = body.value(body.convolved(x, weights), maps, "f32")
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
    return Case(body.function(body.softmax(scores)), body.arguments, ANY, tolerance=1e-3)


def transformer(length: int, width: int, heads: int, inner: int) -> Case:
    """A block with normalisation before, attention of several heads, and a network of two layers."""
    square, wide = ((width, width), "f32"), ((width,), "f32")
    body = Body(
        *(((length, width), "f32"), square, square, square, square, wide, wide, wide, wide),
        *(((width, inner), "f32"), ((inner,), "f32"), ((inner, width), "f32"), wide),
    )
    x = "%a0"
    normal = body.layernorm(x, "%a5", "%a6")

    def split(weights: str) -> str:
        projected = body.reshape(body.dot(normal, weights, (1, 0)), (length, heads, width // heads))
        return body.transpose(projected, (1, 0, 2))

    given = body.attention(split("%a1"), split("%a2"), split("%a3"))
    joined = body.reshape(body.transpose(given, (1, 0, 2)), (length, width))
    x = body.op("add", x, body.dot(joined, "%a4", (1, 0)))
    hidden = body.dot(body.layernorm(x, "%a7", "%a8"), "%a9", (1, 0))
    hidden = body.op("add", hidden, body.broadcast("%a10", body.shapes[hidden], (1,)))
    hidden = body.op("maximum", hidden, body.fill("0.0", hidden))
    last = body.dot(hidden, "%a11", (1, 0))
    last = body.op("add", last, body.broadcast("%a12", body.shapes[last], (1,)))
    flops = 2 * length * width * (4 * width + 2 * inner) + 4 * length * length * width

    def values(rng: np.random.Generator, number: int, shape: Shape) -> Array | None:
        return (rng.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32) if number else None

    return Case(body.function(body.op("add", x, last)), body.arguments, ANY, flops, values=values, tolerance=1e-3)


def lstm(steps: int, batch: int, width: int) -> Case:
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
