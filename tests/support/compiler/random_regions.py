"""Random regions of operations that move, combine and reduce elements: valid StableHLO text from a seed."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

MAX_ELEMENTS = 2000
TYPES = ("f32", "i32", "i8", "f16", "i64", "ui16")


class Named(NamedTuple):
    """A value of the text and its shape."""

    name: str
    shape: tuple[int, ...]


class RandomRegion:
    """A function ``main`` of two tensors of one shape, a scalar, and an index.

    Attributes:
        shape: of the first two arguments.
        type: of all elements.
        text: the function.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.type = self._random.choice(TYPES)
        self.shape = tuple(self._random.randint(1, 5) for _ in range(self._random.randint(0, 4)))
        self._values = [Named("%a", self.shape), Named("%b", self.shape), Named("%z", ())]
        self._lines: list[str] = []
        steps = (
            *(self._binary, self._selected, self._transposed, self._reversed, self._padded, self._sliced),
            *(self._reshaped, self._broadcast, self._joined, self._reduced, self._sliced_at, self._updated),
            self._product,
        )
        for _ in range(self._random.randint(3, 14)):
            self._random.choice(steps)(self._random.choice(self._values))
        made = self._values[3:] or self._values[:1]
        results = [*self._random.sample(made, min(len(made), 2)), made[-1]]
        types = ", ".join(self._tensor(value.shape) for value in results)
        names = ", ".join(value.name for value in results)
        arguments = ", ".join(f"{value.name}: {self._tensor(value.shape)}" for value in self._values[:3])
        body = "\n".join(self._lines)
        self.text = (
            f"func.func @main({arguments}, %i: tensor<i32>) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}"
        )

    def _tensor(self, shape: tuple[int, ...], type: str = "") -> str:
        return f"tensor<{''.join(f'{length}x' for length in shape)}{type or self.type}>"

    def _add(self, text: str, operands: list[str], shape: tuple[int, ...]) -> None:
        """Adds an operation; the types of its operands and result follow its text."""
        if math.prod(shape) <= MAX_ELEMENTS and min(shape, default=0) >= 0:
            name = f"%{len(self._values)}v"
            self._lines.append(f"{name} = stablehlo.{text} : ({', '.join(operands)}) -> {self._tensor(shape)}")
            self._values.append(Named(name, shape))

    def _like(self, value: Named) -> Named:
        return self._random.choice([other for other in self._values if other.shape == value.shape])

    def _binary(self, value: Named) -> None:
        operation = self._random.choice(["add", "subtract", "maximum", "minimum"])
        tensor = self._tensor(value.shape)
        self._add(f"{operation} {value.name}, {self._like(value).name}", [tensor, tensor], value.shape)

    def _selected(self, value: Named) -> None:
        other, flags = self._like(value), f"%{len(self._values)}c"
        tensor, booleans = self._tensor(value.shape), self._tensor(value.shape, "i1")
        case = self._random.choice(["LT", "GE", "EQ"])
        compared = f"{value.name}, {other.name} : ({tensor}, {tensor}) -> {booleans}"
        self._lines.append(f"{flags} = stablehlo.compare {case}, {compared}")
        self._add(f"select {flags}, {value.name}, {other.name}", [booleans, tensor, tensor], value.shape)

    def _transposed(self, value: Named) -> None:
        order = list(range(len(value.shape)))
        self._random.shuffle(order)
        shape = tuple(value.shape[axis] for axis in order)
        self._add(f"transpose {value.name}, dims = {order}", [self._tensor(value.shape)], shape)

    def _reversed(self, value: Named) -> None:
        axes = [axis for axis in range(len(value.shape)) if self._random.random() < 0.5]
        self._add(f"reverse {value.name}, dims = {axes}", [self._tensor(value.shape)], value.shape)

    def _padded(self, value: Named) -> None:
        low, high = ([self._random.randint(-1, 2) for _ in value.shape] for _ in range(2))
        interior = [self._random.randint(0, 2) for _ in value.shape]
        shape = tuple(
            length + before + after + max(length - 1, 0) * between
            for length, before, after, between in zip(value.shape, low, high, interior, strict=True)
        )
        text = f"pad {value.name}, %z, low = {low}, high = {high}, interior = {interior}"
        self._add(text, [self._tensor(value.shape), self._tensor(())], shape)

    def _sliced(self, value: Named) -> None:
        ends = [sorted(self._random.randint(0, length) for _ in range(2)) for length in value.shape]
        strides = [self._random.randint(1, 2) for _ in value.shape]
        shape = tuple(-(-(stop - start) // step) for (start, stop), step in zip(ends, strides, strict=True))
        ranges = ", ".join(f"{start}:{stop}:{step}" for (start, stop), step in zip(ends, strides, strict=True))
        self._add(f"slice {value.name} [{ranges}]", [self._tensor(value.shape)], shape)

    def _reshaped(self, value: Named) -> None:
        shape = list(value.shape)
        at = self._random.randint(0, len(shape))
        shape[at : at + 2] = [math.prod(shape[at : at + 2])]
        self._add(f"reshape {value.name}", [self._tensor(value.shape)], tuple(shape))

    def _broadcast(self, value: Named) -> None:
        at = self._random.randint(0, len(value.shape))
        shape = (*value.shape[:at], self._random.randint(1, 3), *value.shape[at:])
        dimensions = [axis for axis in range(len(shape)) if axis != at]
        if len(shape) <= 6:
            self._add(f"broadcast_in_dim {value.name}, dims = {dimensions}", [self._tensor(value.shape)], shape)

    def _joined(self, value: Named) -> None:
        if not value.shape:
            return
        axis = self._random.randrange(len(value.shape))

        def rest(shape: tuple[int, ...]) -> tuple[int, ...]:
            return (*shape[:axis], -1, *shape[axis + 1 :])

        fitting = [other for other in self._values if rest(other.shape) == rest(value.shape)]
        pieces = [value, *(self._random.choice(fitting) for _ in range(self._random.randint(1, 2)) if fitting)]
        pieces = [piece for piece in pieces if len(piece.shape) == len(value.shape)]
        shape = list(value.shape)
        shape[axis] = sum(piece.shape[axis] for piece in pieces)
        names = ", ".join(piece.name for piece in pieces)
        self._add(f"concatenate {names}, dim = {axis}", [self._tensor(piece.shape) for piece in pieces], tuple(shape))

    def _reduced(self, value: Named) -> None:
        axes = [axis for axis in range(len(value.shape)) if self._random.random() < 0.5]
        shape = tuple(length for axis, length in enumerate(value.shape) if axis not in axes)
        body = self._random.choice(["add", "maximum"])
        text = f"reduce({value.name} init: %z) applies stablehlo.{body} across dimensions = {axes}"
        self._add(text, [self._tensor(value.shape), self._tensor(())], shape)

    def _sliced_at(self, value: Named) -> None:
        sizes = tuple(self._random.randint(0, length) for length in value.shape)
        starts = "".join(", %i" for _ in sizes)
        types = [self._tensor(value.shape), *("tensor<i32>" for _ in sizes)]
        self._add(f"dynamic_slice {value.name}{starts}, sizes = {list(sizes)}", types, sizes)

    def _updated(self, value: Named) -> None:
        fitting = [
            other
            for other in self._values
            if len(other.shape) == len(value.shape)
            and all(one <= length for one, length in zip(other.shape, value.shape, strict=True))
        ]
        update = self._random.choice(fitting)
        starts = "".join(", %i" for _ in value.shape)
        types = [self._tensor(value.shape), self._tensor(update.shape), *("tensor<i32>" for _ in value.shape)]
        self._add(f"dynamic_update_slice {value.name}, {update.name}{starts}", types, value.shape)

    def _product(self, value: Named) -> None:
        fitting = [other for other in self._values if other.shape[:1] == value.shape[-1:] and other.shape]
        if not fitting or len(value.shape) > 3:
            return
        right = self._random.choice(fitting)
        text = f"dot_general {value.name}, {right.name}, contracting_dims = [{len(value.shape) - 1}] x [0]"
        shape = value.shape[:-1] + right.shape[1:]
        self._add(text, [self._tensor(value.shape), self._tensor(right.shape)], shape)
