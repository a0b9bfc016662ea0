"""The text of a function of StableHLO, written line by line. Not a benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = tuple[int, ...]


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
        return type_of(self.shapes[value], self.elements[value])

    def value(self, line: str, shape: Shape, element: str) -> str:
        """Defines a value; ``line`` has ``{}`` for its type."""
        name = self.name(f"%v{len(self.shapes)}", shape, element)
        self.lines.append(f"{name} = {line.replace('{}', type_of(shape, element))}")
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

    def softmax(self, x: str) -> str:
        """Shares of the innermost dimension."""
        shape = self.shapes[x]
        rows, last = tuple(range(len(shape) - 1)), len(shape) - 1
        most = self.broadcast(self.reduce(x, "maximum", "0xFF800000", (last,)), shape, rows)
        powers = self.op("exponential", self.op("subtract", x, most))
        return self.op("divide", powers, self.broadcast(self.reduce(powers, "add", "0.0", (last,)), shape, rows))

    def layernorm(self, x: str, scale: str, shift: str) -> str:
        """The innermost dimension, normalised, scaled and shifted."""
        shape = self.shapes[x]
        rows, last = tuple(range(len(shape) - 1)), len(shape) - 1

        def mean(value: str) -> str:
            total = self.reduce(value, "add", "0.0", (last,))
            return self.broadcast(self.op("divide", total, self.fill(f"{shape[-1]}.0", total)), shape, rows)

        centred = self.op("subtract", x, mean(x))
        variance = mean(self.op("multiply", centred, centred))
        normal = self.op("multiply", centred, self.op("rsqrt", self.op("add", variance, self.fill("1.0e-5", variance))))
        scaled = self.op("multiply", normal, self.broadcast(scale, shape, (last,)))
        return self.op("add", scaled, self.broadcast(shift, shape, (last,)))

    def attention(self, q: str, k: str, v: str) -> str:
        """Dot-product attention; all dimensions but the last two go together."""
        batch = len(self.shapes[q]) - 2
        scores = self.dot(q, k, (batch + 1, batch + 1), batch)
        scaled = self.op("multiply", scores, self.fill(repr(1 / math.sqrt(self.shapes[q][-1])), scores))
        return self.dot(self.softmax(scaled), v, (batch + 1, batch), batch)

    def convolved(self, image: str, weights: str, pad: int = 0, groups: int = 1) -> str:
        """The line of a convolution, for ``value``."""
        return (
            f"stablehlo.convolution({image}, {weights}) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
            f"window = {{stride = [1, 1], pad = [[{pad}, {pad}], [{pad}, {pad}]], lhs_dilate = [1, 1], "
            f"rhs_dilate = [1, 1]}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : "
            f"({self.type(image)}, {self.type(weights)}) -> {{}}"
        )

    def function(self, *results: str) -> str:
        """The function that gives these values."""
        given = ", ".join(f"%a{number}: {type_of(*each)}" for number, each in enumerate(self.arguments))
        types = ", ".join(self.type(each) for each in results)
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"func.func @main({given}) -> ({types}) {{\n{body}\n  return {', '.join(results)} : {types}\n}}\n"


def type_of(shape: Shape, element: str) -> str:
    """A tensor type as text."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"
