"""What is known of sums changes no result: random expressions on a device beside NumPy's unsigned integers."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pumice
from pumice.spirv.binary.builder import Builder
from pumice.spirv.binary.expression import Id
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.offsets import neighbours, quotient
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks.tools import validate

Expression = Callable[[Any, Any], Any]

SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 31, 100, 4095, 4096, 2**16)
LARGE = (2**29 - 1, 2**29, 2**30, 2**31 - 1, 2**31, *(2**32 - each for each in (9, 8, 5, 4, 3, 2, 1)))
WORDS = np.array((*SMALL, *LARGE), np.uint32)
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 24, 31, 32, 1000, 4096, 2**31, 2**32 - 16, 2**32 - 4, 2**32 - 1)
SUMS = (operator.add, operator.sub, operator.mul)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge)


def expression(source: random.Random) -> Expression:
    """A random chain of operations on two numbers, as a function of expressions or of arrays."""
    steps: list[Expression] = []
    for _ in range(source.randrange(1, 6)):
        number = source.choice(NUMBERS)
        kind = source.randrange(6)
        join = source.choice(SUMS)
        if kind == 0:
            steps.append(lambda x, y, join=join: join(x, y))
        elif kind == 1:
            steps.append(lambda x, y, join=join, number=number: join(number, x))
        elif kind == 2 and number:
            steps.append(lambda x, y, number=number: x // number)
        elif kind == 3 and number:
            steps.append(lambda x, y, number=number: x % number)
        else:
            steps.append(lambda x, y, join=join, number=number: join(x, number))
    compare, limit = source.choice((None, *COMPARISONS)), source.choice(NUMBERS)
    is_left = source.random() < 0.5

    def found(x: Any, y: Any) -> Any:
        for step in steps:
            x = step(x, y)
        if compare is None:
            return x
        is_true = compare(x, limit) if is_left else compare(limit, x)
        return is_true.select(x.builder.word(1), 0) if isinstance(is_true, Id) else is_true.astype(np.uint32)

    return found


def behind(source: random.Random) -> Expression:
    """Which element of a word and which word of a quad an element is that lies behind some others in its row."""
    before, lane = 8 * source.randrange(1, 40), source.randrange(8)
    lanes, words = source.choice((2, 4)), source.choice((2, 4))
    return lambda x, y: (x * 8 + lane - before) // lanes % words * 8 + (x * 8 + lane - before) % lanes


@pytest.fixture(scope="module")
def gpu() -> Iterator[pumice.Device]:
    with pumice.open_device("vulkan") as device:
        yield device


@pytest.mark.vulkan
@pytest.mark.parametrize("seed", range(4))
def test_random_expressions_are_those_of_numpy(gpu: pumice.Device, seed: int) -> None:
    source = random.Random(seed)
    expressions = [expression(source) for _ in range(150)] + [behind(source) for _ in range(50)]
    factors = [source.choice((1, 3, 4, 8, 24, 2**20)) for _ in expressions]
    places = [source.choice((0, 1, 3, 5, 2**32 - 2)) for _ in expressions]
    builder = Builder()
    given, result = builder.buffer(0, "given", False), builder.buffer(1, "result", True)
    number = builder.built_in("WorkgroupId")[0]
    word = builder.load(given, number)
    other = builder.load(given, builder.word(len(WORDS) - 1) - number)
    for at, (each, factor, place) in enumerate(zip(expressions, factors, places, strict=True)):
        found = each(word * factor + place, other * 4 + 3)
        builder.store(result, number * len(expressions) + at, found.here)
    code = builder.finish("main", (1, 1, 1))
    validate(code, target_env="vulkan1.1")
    with gpu.load_kernel(code) as kernel:
        words = np.asarray(
            kernel(WORDS, pumice.empty(len(WORDS) * len(expressions), np.uint32), groups=(len(WORDS), 1, 1))
        )
    with np.errstate(over="ignore"):
        for at, (each, factor, place) in enumerate(zip(expressions, factors, places, strict=True)):
            wanted = each(WORDS * np.uint32(factor) + np.uint32(place), WORDS[::-1] * np.uint32(4) + np.uint32(3))
            np.testing.assert_array_equal(words.reshape(len(WORDS), -1)[:, at], wanted, str((seed, at)))


def test_neighbours_share_what_they_have_in_common() -> None:
    """Rows and columns, quads of words and bounds are computed once for eight neighbours."""
    builder = Builder()
    given, result = builder.buffer(0, "given", False), builder.buffer(1, "result", True)
    base = builder.load(given, builder.built_in("WorkgroupId")[0])
    for number in neighbours(base, 8):
        row, column = number // 24, number % 24
        place = row * 32 + column
        inside = place < 1000
        builder.store(result, quotient(place, 4), inside.select(row, 0))
    code = builder.finish("main", (1, 1, 1))
    found = [opcode for opcode, _, _ in read_binary(code)]
    assert (found.count(Op.UMod), found.count(Op.ULessThan)) == (1, 1)
    # By 24, and by four.
    assert found.count(Op.UDiv) == 2
