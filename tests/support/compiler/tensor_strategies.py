"""Random tensor programs for hypothesis, with a bound of how far two implementations may be apart.

Every value has its magnitude and its error as two right implementations may differ, both from the operations that made
it. Sums, products, comparisons and moves of exact values are exact: rounding is set by the type. What rounds in an
order of its own, or by a formula of its own (transcendental functions, sums of many, contractions), adds to the error,
and only exact values are compared, rounded or ordered, so that a small difference never becomes a large one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

UNITS: Final = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Half a unit in the last place of 1: the rounding of one operation. Every tolerance is a multiple of it."""

ULPS: Final = 8
"""How many roundings a transcendental function may be off."""

LARGEST: Final = {"f64": 1e12, "f32": 1e6, "f16": 1e3, "bf16": 1e6}
"""Programs keep below it, so that nothing overflows and a sum of squares fits."""

DTYPES: Final = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i64": np.int64,
    "i8": np.int8,
    "ui8": np.uint8,
    "ui32": np.uint32,
    "i1": np.bool_,
}
FLOATS: Final = tuple(UNITS)
INTEGERS: Final = ("i32", "i64", "i8", "ui8", "ui32")
MAX_ELEMENTS: Final = 400


@dataclass(frozen=True)
class Named:
    """A value of the program.

    Attributes:
        name: in the text.
        type: of its elements.
        shape: its lengths.
        size: no element is further from zero.
        error: how far two implementations may be apart; 0 where they have to agree bit by bit.
    """

    name: str
    type: str
    shape: Shape
    size: float
    error: float = 0.0

    @property
    def tensor(self) -> str:
        """Its type in the text."""
        return tensor(self.shape, self.type)


def tensor(shape: Shape, type: str) -> str:
    """A type in the text."""
    return f"tensor<{''.join(f'{length}x' for length in shape)}{type}>"


@dataclass
class Program:
    """A program, with arguments and what its results may be off.

    Attributes:
        text: the function ``main``.
        arguments: for it.
        errors: of each result, absolute.
    """

    text: str
    arguments: list[Array]
    errors: list[float]

    def __repr__(self) -> str:
        return f"{self.text}\narguments: {self.arguments}\nerrors: {self.errors}"


@dataclass
class _Writer:
    """Writes operations; each step adds one or more to the values that later steps may take."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    values: list[Named]
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(
        self, text: str, operands: Sequence[Named], type: str, shape: Shape, size: float, error: float = 0.0
    ) -> Named | None:
        """Adds an operation in the form that ends with operands' and result's types, if its values stay small."""
        if math.prod(shape) > MAX_ELEMENTS or size > LARGEST.get(type, math.inf) or error > 0.05 * max(size, 1.0):
            return None
        types = ", ".join(operand.tensor for operand in operands)
        return self.line(f"stablehlo.{text} : ({types}) -> {tensor(shape, type)}", type, shape, size, error)

    def line(self, text: str, type: str, shape: Shape, size: float, error: float = 0.0) -> Named:
        """Adds an operation's text."""
        value = Named(f"%v{self.count}", type, shape, size, error)
        self.count += 1
        self.lines.append(f"  {value.name} = {text}")
        self.values.append(value)
        return value

    def constant(self, number: float, type: str, shape: Shape = ()) -> Named:
        """Adds a constant."""
        shown = (
            str(bool(number)).lower() if type == "i1" else repr(float(number)) if type in UNITS else str(int(number))
        )
        return self.line(f"stablehlo.constant dense<{shown}> : {tensor(shape, type)}", type, shape, abs(number))

    def value(self, *types: str, exact: bool = False, rank: int = 0) -> Named | None:
        """A value of one of some types, if there is one."""
        fitting = [
            value
            for value in self.values
            if (not types or value.type in types) and not (exact and value.error) and len(value.shape) >= rank
        ]
        return self.draw(st.sampled_from(fitting)) if fitting else None

    def like(self, value: Named, exact: bool = False) -> Named:
        """A value of the same type and shape, often the same."""
        fitting = [
            other
            for other in self.values
            if (other.type, other.shape) == (value.type, value.shape) and not (exact and other.error)
        ]
        return self.draw(st.sampled_from(fitting)) if fitting else value

    # -- steps ---------------------------------------------------------------------------------------

    def binary(self) -> None:
        value = self.value(*FLOATS, *INTEGERS)
        if value is None:
            return
        other = self.like(value)
        name = self.draw(st.sampled_from(["add", "subtract", "maximum", "minimum", "multiply"]))
        size, error = value.size + other.size, value.error + other.error
        if name == "multiply":
            size, error = value.size * other.size, value.error * other.size + other.error * value.size
        elif name in ("maximum", "minimum"):
            size = max(value.size, other.size)
        if error:
            error += size * UNITS[value.type]
        if value.type not in UNITS and (name == "subtract" or size >= 127):
            size = 2.0**64  # it may have wrapped
        self.add(f"{name} {value.name}, {other.name}", [value, other], value.type, value.shape, size, error)

    def divided(self) -> None:
        value = self.value(*FLOATS, *INTEGERS, exact=True)
        if value is None:
            return
        other = self.like(value, exact=True)
        if value.type in UNITS:
            divisor = self.constant(self.draw(st.sampled_from([3, 7, -5])), value.type, value.shape)
            self.add(f"divide {value.name}, {divisor.name}", [value, divisor], value.type, value.shape, value.size)
        else:
            names = ["divide", "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical"]
            name = self.draw(st.sampled_from(names))
            self.add(f"{name} {value.name}, {other.name}", [value, other], value.type, value.shape, 2.0**64)

    def bits(self) -> None:
        value = self.value(*INTEGERS, "i1")
        if value is not None:
            other = self.like(value)
            name = self.draw(st.sampled_from(["and", "or", "xor"]))
            size = 1.0 if value.type == "i1" else 2.0**64
            self.add(f"{name} {value.name}, {other.name}", [value, other], value.type, value.shape, size)

    def unary(self) -> None:
        value = self.value(*FLOATS, *INTEGERS)
        if value is None:
            return
        if value.type in UNITS:
            unit = UNITS[value.type]
            bounded = dict.fromkeys(("tanh", "sine", "cosine", "logistic"), (1.0, value.error + ULPS * unit))
            moved = {"negate": (value.size, value.error), "abs": (value.size, value.error)}
            rounded = {} if value.error else dict.fromkeys(("floor", "ceil", "sign"), (value.size + 1, 0.0))
            grown = {}
            if value.size <= 4:
                size = math.exp(value.size)
                grown = {"exponential": (size, size * (value.error + ULPS * unit))}
            choices = {**moved, **bounded, **rounded, **grown}
        else:
            names = ["not", "popcnt", "negate"] if value.type.startswith("u") else ["not", "popcnt", "negate", "sign"]
            choices = dict.fromkeys(names, (2.0**64, 0.0))
        name = self.draw(st.sampled_from(list(choices)))
        self.add(f"{name} {value.name}", [value], value.type, value.shape, *choices[name])

    def compared(self) -> None:
        value = self.value(*FLOATS, *INTEGERS, exact=True)
        if value is not None:
            other = self.like(value, exact=True)
            case = self.draw(st.sampled_from(["LT", "LE", "EQ", "NE", "GE", "GT"]))
            self.add(f"compare {case}, {value.name}, {other.name}", [value, other], "i1", value.shape, 1)

    def selected(self) -> None:
        flags = self.value("i1")
        if flags is None:
            return
        fitting = [value for value in self.values if value.shape == flags.shape]
        value = self.draw(st.sampled_from(fitting))
        other = self.like(value)
        size, error = max(value.size, other.size), max(value.error, other.error)
        text = f"select {flags.name}, {value.name}, {other.name}"
        self.add(text, [flags, value, other], value.type, value.shape, size, error)

    def converted(self) -> None:
        value = self.value()
        if value is None:
            return
        to = [*FLOATS, *([] if value.type in UNITS else INTEGERS)]
        type = self.draw(st.sampled_from(to))
        error = value.error + (value.size * UNITS[type] if value.error else 0.0)
        size = 2.0**64 if type in INTEGERS else value.size
        self.add(f"convert {value.name}", [value], type, value.shape, size, error)

    def transposed(self) -> None:
        value = self.value(rank=1)
        if value is not None:
            order = self.draw(st.permutations(range(len(value.shape))))
            shape = tuple(value.shape[axis] for axis in order)
            self.add(
                f"transpose {value.name}, dims = {list(order)}", [value], value.type, shape, value.size, value.error
            )

    def reshaped(self) -> None:
        value = self.value(rank=1)
        if value is not None:
            at = self.draw(st.integers(0, len(value.shape) - 1))
            shape = (*value.shape[:at], math.prod(value.shape[at:]))
            self.add(f"reshape {value.name}", [value], value.type, shape, value.size, value.error)

    def broadcast(self) -> None:
        value = self.value()
        if value is not None and len(value.shape) < 4:
            at = self.draw(st.integers(0, len(value.shape)))
            shape = (*value.shape[:at], self.draw(st.integers(1, 3)), *value.shape[at:])
            dims = [axis for axis in range(len(shape)) if axis != at]
            text = f"broadcast_in_dim {value.name}, dims = {dims}"
            self.add(text, [value], value.type, shape, value.size, value.error)

    def sliced(self) -> None:
        value = self.value(rank=1)
        if value is None:
            return
        starts = [self.draw(st.integers(0, length)) for length in value.shape]
        stops = [self.draw(st.integers(start, length)) for start, length in zip(starts, value.shape, strict=True)]
        strides = [self.draw(st.integers(1, 2)) for _ in value.shape]
        ranges = [f"{a}:{b}:{c}" for a, b, c in zip(starts, stops, strides, strict=True)]
        shape = tuple(-(-(b - a) // c) for a, b, c in zip(starts, stops, strides, strict=True))
        text = f"slice {value.name} [{', '.join(ranges)}]"
        self.add(text, [value], value.type, shape, value.size, value.error)

    def padded(self) -> None:
        value = self.value(rank=1)
        if value is None:
            return
        fill = self.constant(self.draw(st.integers(0, 1)), value.type)
        lists = [[self.draw(st.integers(low, 2)) for _ in value.shape] for low in (-1, -1, 0)]
        shape = tuple(
            length + low + high + max(length - 1, 0) * inner
            for length, low, high, inner in zip(value.shape, *lists, strict=True)
        )
        if min(shape) >= 0:
            text = f"pad {value.name}, {fill.name}, low = {lists[0]}, high = {lists[1]}, interior = {lists[2]}"
            self.add(text, [value, fill], value.type, shape, max(value.size, 1), value.error)

    def joined(self) -> None:
        value = self.value(rank=1)
        if value is not None:
            axis = self.draw(st.integers(0, len(value.shape) - 1))
            other = self.like(value)
            shape = (*value.shape[:axis], 2 * value.shape[axis], *value.shape[axis + 1 :])
            size, error = max(value.size, other.size), max(value.error, other.error)
            text = f"concatenate {value.name}, {other.name}, dim = {axis}"
            self.add(text, [value, other], value.type, shape, size, error)

    def reversed(self) -> None:
        value = self.value(rank=1)
        if value is not None:
            text = f"reverse {value.name}, dims = [{len(value.shape) - 1}]"
            self.add(text, [value], value.type, value.shape, value.size, value.error)

    def reduced(self) -> None:
        value = self.value(rank=1)
        if value is None:
            return
        body = self.draw(st.sampled_from(["or", "and"] if value.type == "i1" else ["maximum", "add", "minimum"]))
        axes = [axis for axis in range(len(value.shape)) if self.draw(st.booleans())]
        start = self.constant(0, value.type)
        count = math.prod(value.shape[axis] for axis in axes) if axes else 1
        size, error = value.size, value.error
        if body == "add":
            size = value.size * max(count, 1)
            if value.type in UNITS and count > 1:
                error = value.error * count + size * UNITS[value.type] * count
        shape = tuple(length for axis, length in enumerate(value.shape) if axis not in axes)
        text = f"reduce({value.name} init: {start.name}) applies stablehlo.{body} across dimensions = {axes}"
        self.add(text, [value, start], value.type, shape, size, error)

    def product(self) -> None:
        value = self.value(*FLOATS, *INTEGERS, rank=1)
        if value is None:
            return
        length = value.shape[-1]
        fitting = [other for other in self.values if other.type == value.type and other.shape[:1] == (length,)]
        if not fitting:
            return
        other = self.draw(st.sampled_from(fitting))
        size = value.size * other.size * max(length, 1)
        error = 0.0
        if value.type in UNITS:
            error = length * (value.error * other.size + other.error * value.size) + size * UNITS[value.type] * length
        text = f"dot_general {value.name}, {other.name}, contracting_dims = [{len(value.shape) - 1}] x [0]"
        self.add(text, [value, other], value.type, value.shape[:-1] + other.shape[1:], size, error)

    def gathered(self) -> None:
        value, index = self.value(rank=1), self.value("i32", "i64", "ui8", exact=True)
        if value is not None and index is not None and 0 not in value.shape:
            sizes = [1, *value.shape[1:]]
            offset = [axis + len(index.shape) for axis in range(len(value.shape) - 1)]
            numbers = (
                f"#stablehlo.gather<offset_dims = {offset}, collapsed_slice_dims = [0], start_index_map = [0], "
                f"index_vector_dim = {len(index.shape)}>"
            )
            shape = index.shape + value.shape[1:]
            if math.prod(shape) <= MAX_ELEMENTS and len(shape) <= 5:
                text = (
                    f'"stablehlo.gather"({value.name}, {index.name}) {{dimension_numbers = {numbers}, slice_sizes = '
                    f"array<i64: {', '.join(map(str, sizes))}>}} : ({value.tensor}, {index.tensor}) -> "
                )
                self.line(text + tensor(shape, value.type), value.type, shape, value.size, value.error)

    def sorted(self) -> None:
        value = self.value(*FLOATS, *INTEGERS, exact=True, rank=1)
        if value is None:
            return
        axis = self.draw(st.integers(0, len(value.shape) - 1))
        case, scalar = self.draw(st.sampled_from(["LT", "GT"])), tensor((), value.type)
        text = (
            f'"stablehlo.sort"({value.name}) ({{\n  ^bb0(%p: {scalar}, %q: {scalar}):\n'
            f"    %o = stablehlo.compare {case}, %p, %q : ({scalar}, {scalar}) -> tensor<i1>\n"
            f"    stablehlo.return %o : tensor<i1>\n  }}) {{dimension = {axis} : i64}} : ({value.tensor}) -> "
            f"{value.tensor}"
        )
        self.line(text, value.type, value.shape, value.size)

    def windowed(self) -> None:
        value = self.value(*FLOATS, *INTEGERS, rank=1)
        if value is None or 0 in value.shape:
            return
        size, start, scalar = self.draw(st.integers(1, 3)), self.constant(0, value.type), tensor((), value.type)
        length = value.shape[-1] - size + 1
        if length < 1:
            return
        window = ", ".join(["1"] * (len(value.shape) - 1) + [str(size)])
        text = (
            f'"stablehlo.reduce_window"({value.name}, {start.name}) ({{\n  ^bb0(%p: {scalar}, %q: {scalar}):\n'
            f"    %o = stablehlo.maximum %p, %q : {scalar}\n    stablehlo.return %o : {scalar}\n  }}) "
            f"{{window_dimensions = array<i64: {window}>}} : ({value.tensor}, {scalar}) -> "
        )
        shape = (*value.shape[:-1], length)
        self.line(text + tensor(shape, value.type), value.type, shape, value.size, value.error)

    def chosen(self) -> None:
        """A branch on whether a flag is set anywhere."""
        flags = self.value("i1")
        value = self.value(*FLOATS, *INTEGERS)
        if flags is None or value is None or value.size > LARGEST.get(value.type, math.inf) / 2:
            return
        start, axes = self.constant(0, "i1"), list(range(len(flags.shape)))
        text = f"reduce({flags.name} init: {start.name}) applies stablehlo.or across dimensions = {axes}"
        any_set = self.add(text, [flags, start], "i1", (), 1)
        other = self.like(value)
        size, error = 2 * max(value.size, other.size), 2 * max(value.error, other.error)
        error += size * UNITS[value.type] if error else 0.0
        if any_set is not None:
            text = (
                f'"stablehlo.if"({any_set.name}) ({{\n'
                f"    %o = stablehlo.add {value.name}, {value.name} : {value.tensor}\n"
                f"    stablehlo.return %o : {value.tensor}\n  }}, {{\n"
                f"    stablehlo.return {other.name} : {value.tensor}\n"
                f"  }}) : (tensor<i1>) -> {value.tensor}"
            )
            self.line(text, value.type, value.shape, size, error)

    def looped(self) -> None:
        """A loop of a known number of rounds, or of one that a value says."""
        value = self.value(*FLOATS, *INTEGERS)
        limit = self.value("i32", exact=True)
        if value is None:
            return
        other = self.like(value)
        rounds = self.draw(st.integers(0, 4))
        zero, one, bound = (self.constant(number, "i32") for number in (0, 1, rounds))
        if limit is not None and not limit.shape and self.draw(st.booleans()):
            clamped = self.add(f"minimum {limit.name}, {bound.name}", [limit, bound], "i32", (), 2.0**32)
            bound = clamped if clamped is not None else bound
        operation = self.draw(st.sampled_from(["maximum", "minimum", "subtract"]))
        size, error = max(value.size, other.size), max(value.error, other.error)
        if operation == "subtract":
            size, error = value.size + rounds * other.size, value.error + rounds * other.error
            if size > LARGEST.get(value.type, math.inf):
                return
            error += rounds * size * UNITS[value.type] if error else 0.0
        text = (
            f"stablehlo.while(%k = {zero.name}, %c = {value.name}) : tensor<i32>, {value.tensor}\n"
            f"  cond {{\n    %o = stablehlo.compare LT, %k, {bound.name} : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            f"    stablehlo.return %o : tensor<i1>\n  }} do {{\n"
            f"    %o = stablehlo.{operation} %c, {other.name} : {value.tensor}\n"
            f"    %n = stablehlo.add %k, {one.name} : tensor<i32>\n"
            f"    stablehlo.return %n, %o : tensor<i32>, {value.tensor}\n  }}"
        )
        made = Named(f"%v{self.count}#1", value.type, value.shape, size, error)
        self.lines.append(f"  %v{self.count}:2 = {text}")
        self.count += 1
        self.values.append(made)


_STEPS: Final = (
    *("binary", "unary", "compared", "selected", "converted", "transposed", "reshaped", "broadcast", "sliced"),
    *("padded", "joined", "reversed", "reduced", "product", "bits", "divided", "gathered", "sorted", "windowed"),
    *("chosen", "looped"),
)


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any], steps: int = 10) -> Program:
    """A program of up to some steps of two or three arguments, whose last values are the results."""
    shape = tuple(draw(st.lists(st.integers(0, 5).map(lambda length: (length + 2) % 6), max_size=3)))
    values, arguments = [], []
    for index, types in enumerate((FLOATS, INTEGERS, ("i32", "i64"))):
        type = draw(st.sampled_from(types))
        own = shape if index < 2 else ()
        count = math.prod(own)
        if type in UNITS:
            numbers = draw(st.lists(st.integers(-4, 4), min_size=count, max_size=count))
            scale = draw(st.sampled_from([1, 4]))
            arguments.append((np.array(numbers, np.float64) / scale).astype(DTYPES[type]).reshape(own))
            values.append(Named(f"%a{index}", type, own, 4.0))
        else:
            limits = np.iinfo(DTYPES[type])
            low, high = int(limits.min), int(limits.max)
            elements = st.one_of(st.integers(max(low, -4), 4), st.sampled_from([low, high, high // 3]))
            numbers = draw(st.lists(elements, min_size=count, max_size=count))
            arguments.append(np.array(numbers, DTYPES[type]).reshape(own))
            values.append(Named(f"%a{index}", type, own, 2.0**64 if max(map(abs, numbers), default=0) > 4 else 4.0))
    writer = _Writer(draw, values)
    for _ in range(draw(st.integers(1, steps))):
        getattr(writer, draw(st.sampled_from(_STEPS)))()
    made = [value for value in writer.values if value.name.startswith("%v")] or writer.values[:1]
    results = made[-3:]
    types_text = ", ".join(value.tensor for value in results)
    taken = ", ".join(f"{value.name}: {value.tensor}" for value in values[:3])
    body = "\n".join(writer.lines)
    names = ", ".join(value.name for value in results)
    text = f"func.func @main({taken}) -> ({types_text}) {{\n{body}\n  return {names} : {types_text}\n}}\n"
    return Program(text, arguments, [value.error for value in results])
