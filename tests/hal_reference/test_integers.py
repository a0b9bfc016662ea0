"""Integer operations by the definitions, compared with Python's arithmetic: extremes, with dimensions and without."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.compiler.regions import by_definition, function_of

TYPES = {"i64": np.int64, "ui64": np.uint64, "i32": np.int32, "ui8": np.uint8}


def truncated(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


OPERATIONS: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, bits: a + b,
    "subtract": lambda a, b, bits: a - b,
    "multiply": lambda a, b, bits: a * b,
    "divide": lambda a, b, bits: truncated(a, b),
    "remainder": lambda a, b, bits: a if b == 0 else a - b * truncated(a, b),
    "shift_left": lambda a, b, bits: a << b if 0 <= b < bits else 0,
    "shift_right_logical": lambda a, b, bits: a % (1 << bits) >> b if 0 <= b < bits else 0,
    "shift_right_arithmetic": lambda a, b, bits: (
        ((a + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1) >> (b if 0 <= b < bits else bits)
    ),
}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_integers_are_pythons(name: str, type: str) -> None:
    dtype = TYPES[type]
    limits = np.iinfo(dtype)
    numbers = [int(limits.min), int(limits.max), int(limits.max) // 3, 0, 1, 7]
    numbers += [] if type.startswith("u") else [-1, -5]
    pairs = [(number, other) for number in numbers for other in numbers]
    left, right = (np.array(value, dtype) for value in zip(*pairs, strict=True))
    wanted = [OPERATIONS[name](a, b, limits.bits) % (1 << limits.bits) for a, b in pairs]
    expected = np.array(wanted, np.uint64).astype(f"u{dtype(0).itemsize}").view(dtype)

    def given(shape: str, *arguments: np.ndarray) -> np.ndarray:
        text = f"func.func @main(%a: tensor<{shape}{type}>, %b: tensor<{shape}{type}>) -> tensor<{shape}{type}> {{\n"
        text += f"  %0 = stablehlo.{name} %a, %b : tensor<{shape}{type}>\n  return %0 : tensor<{shape}{type}>\n}}"
        return by_definition(function_of(text), arguments)[0]

    np.testing.assert_array_equal(given(f"{len(pairs)}x", left, right), expected)
    for index in range(len(pairs)):
        assert given("", left[index], right[index]) == expected[index], pairs[index]
