"""Bounds of results: whatever operands within theirs give, by the expression that is really run, is within."""

from __future__ import annotations

import random

import pytest

from pumice.vm.translation.expressions import Literal
from pumice.vm.translation.operations import OPERATIONS
from pumice.vm.translation.ranges import FULL, Range, fits, refined, result_range
from pumice.vm.types import numerics

_EDGES = (0, 1, -1, 2, 7, 31, 63, 255, 256, 1 << 15, 1 << 30, -(1 << 30), (1 << 31) - 1, -(1 << 31))
_WIDE_EDGES = (*_EDGES, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63))
_UNARY = ("not", "abs", "ctlz", "cmp.nz", "trunc", "ext")
_INTEGER = [name for name in OPERATIONS if ".i32" in name or ".i64" in name]


def _kinds(mnemonic: str) -> list[str]:
    """The kinds of an operation's operands, as far as they are integers."""
    kind = "I" if ".i64" in mnemonic and not mnemonic.startswith("ext.i32") else "i"
    if mnemonic.startswith("fma"):
        return [kind] * 3
    if mnemonic.startswith("select"):
        return ["i", kind, kind]
    if mnemonic.startswith(("shl", "shr")):
        return [kind, "i"]
    return [kind] * (1 if mnemonic.startswith(_UNARY) else 2)


def _bounds(rng: random.Random, kind: str) -> Range:
    edges = _EDGES if kind == "i" else _WIDE_EDGES
    if rng.random() < 0.2:
        return FULL[kind]
    low, high = sorted((rng.choice(edges), rng.choice(edges) if rng.random() < 0.6 else rng.randint(*FULL[kind])))
    return (low, low) if rng.random() < 0.2 else (low, high)


def _value(rng: random.Random, bounds: Range) -> int:
    near = [one for one in _WIDE_EDGES if bounds[0] <= one <= bounds[1]]
    return rng.choice((bounds[0], bounds[1], rng.randint(*bounds), rng.choice(near or [bounds[0]])))


@pytest.mark.sample(25)
@pytest.mark.parametrize(
    "mnemonic", [one for one in _INTEGER if not one.startswith(("bitcast", "cast", "list", "buffer"))]
)
def test_results_are_within_their_bounds(mnemonic: str) -> None:
    rng = random.Random(mnemonic)
    names = dict(vars(numerics))
    build = OPERATIONS[mnemonic].build
    for _ in range(300):
        bounds = [_bounds(rng, kind) for kind in _kinds(mnemonic)]
        found = result_range(mnemonic, bounds)
        if found is None:
            continue
        for _ in range(5):
            values = [_value(rng, one) for one in bounds]
            if mnemonic.startswith(("div", "rem")) and not values[1]:
                continue
            result = int(eval(build(*map(Literal, values)).python(), dict(names)))
            assert found[0] <= result <= found[1], (values, bounds)


@pytest.mark.parametrize("comparison", ["<", ">=", "==", "!="])
def test_what_a_comparison_says_is_true(comparison: str) -> None:
    rng = random.Random(comparison)
    holds = {"<": int.__lt__, ">=": int.__ge__, "==": int.__eq__, "!=": int.__ne__}[comparison]
    narrowed = 0
    for _ in range(3000):
        left, right = _bounds(rng, "i"), _bounds(rng, "i")
        found = refined(comparison, left, right)
        narrowed += found != (left, right)
        for _ in range(5):
            a, b = _value(rng, left), _value(rng, right)
            if holds(a, b):
                assert found[0][0] <= a <= found[0][1]
                assert found[1][0] <= b <= found[1][1]
    assert narrowed


def test_fits() -> None:
    assert fits(FULL["i"], 32) and fits(FULL["I"], 64)
    assert not fits((0, 1 << 31), 32) and not fits((-(1 << 31) - 1, 0), 32)
