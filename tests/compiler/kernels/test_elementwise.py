"""Element-wise operations of every type against their definitions, with random and special values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pytest
from support.compiler.numpy_oracle import expected_of
from support.compiler.operation_table import ELEMENTWISE, KINDS, TYPES, Row, kind_of
from support.compiler.regions import EMULATED, NATIVE, Array, by_definition, function_of, run_region

import pumice
from pumice.compiler.ir.types import ScalarType
from pumice.compiler.kernels.scalars.scalars import storage_bits
from pumice.hal_reference.elementwise import is_float, total_order

pytestmark = pytest.mark.vulkan


_SIGNED: Final = KINDS["s"]
_UNSIGNED: Final = KINDS["u"]
_NARROW: Final = KINDS["n"]


def numbers(type: ScalarType, count: int, seed: int) -> Array:
    """Returns random numbers over the whole range of a type."""
    random = np.random.default_rng(seed)
    if type.kind == "bool":
        return random.integers(0, 2, count).astype(np.bool_)
    if type.is_integer:
        raw = random.integers(0, 1 << min(type.bits, 63), count, np.uint64) >> random.integers(
            0, type.bits, count, np.uint64
        )
        low = -(1 << (type.bits - 1)) if type.kind != "uint" else 0
        ends = [low, low + 1, 0, 1, (1 << (type.bits - (type.kind != "uint"))) - 1]
        signs = random.choice([-1, 1], count) if type.kind != "uint" else np.ones(count, np.int64)
        wide = np.concatenate(
            [raw.astype(np.int64) * signs, np.array(ends, np.uint64 if low == 0 else np.int64).astype(np.int64)]
        )
        if type.bits < 8:
            wide = wide & ((1 << type.bits) - 1)
            wide = np.where((wide >> (type.bits - 1)) & (low < 0), wide - (1 << type.bits), wide)
        return wide.astype(type.dtype)
    if type.kind == "complex":
        part = type.part.dtype
        pairs = random.standard_normal((count, 2)) * np.exp(random.uniform(-3, 3, (count, 1)))
        return pairs.astype(part).view(type.dtype).reshape(-1)
    if type.bits <= 8:
        return random.permutation(np.resize(np.arange(1 << type.bits), count)).astype(np.uint8).view(type.dtype)
    specials = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1.5, 2.5, -2.5, 1e4, 65504, 65519, 65520])
    limits = [1.0] if type.bits == 16 else [np.finfo(type.dtype).max, np.finfo(type.dtype).tiny]
    spread = random.standard_normal(count) * np.exp(random.uniform(-12, 12, count))
    with np.errstate(over="ignore"):
        return np.concatenate([spread, specials, np.array(limits)]).astype(type.dtype)


def region_of(operations: Sequence[tuple[str, str]], inputs: Sequence[str], length: int) -> str:
    """Returns a function that applies operations to all inputs; each has the element type of its result."""
    tensors = [f"tensor<{length}x{type}>" for type in inputs]
    results = [f"tensor<{length}x{type}>" for _, type in operations]
    arguments = ", ".join(f"%a{i}: {tensor}" for i, tensor in enumerate(tensors))
    names = ", ".join(f"%a{i}" for i in range(len(inputs)))
    lines = []
    for index, ((name, _), result) in enumerate(zip(operations, results, strict=True)):
        operation, _, attributes = name.partition(" ")
        lines.append(f'%{index} = "stablehlo.{operation}"({names}) {attributes} : ({", ".join(tensors)}) -> {result}')
    returned, types = ", ".join(f"%{index}" for index in range(len(operations))), ", ".join(results)
    return "\n".join([f"func.func @main({arguments}) -> ({types}) {{", *lines, f"return {returned} : {types}", "}"])


def ulps(actual: Array, expected: Array) -> Array:
    """Returns distances in values of the type; subnormals of f32 and f64 may be zeros."""
    if actual.dtype.kind == "c":
        return np.maximum(ulps(actual.real, expected.real), ulps(actual.imag, expected.imag))
    if not is_float(actual.dtype):
        return np.where(actual == expected, 0.0, np.inf)
    apart = np.abs(total_order(actual).astype(np.longdouble) - total_order(expected).astype(np.longdouble))
    apart = apart.astype(np.float64)
    same = (actual == expected) | (np.isnan(actual.astype(np.float64)) & np.isnan(expected.astype(np.float64)))
    tiny = 2.0**-126 if actual.dtype != np.float64 else 2.0**-1022
    flushed = (np.abs(expected.astype(np.float64)) < tiny) & (np.abs(actual.astype(np.float64)) <= tiny)
    return np.where(same | flushed, 0.0, apart)


def distances(actual: Array, expected: Array) -> Array:
    """Returns errors in last places; for complex numbers, relative to the modulus in the precision of their parts."""
    if actual.dtype.kind != "c":
        return ulps(actual, expected)
    with np.errstate(all="ignore"):
        apart = np.abs(actual - expected) / np.abs(expected) / np.finfo(actual.dtype).eps
    return np.where(ulps(actual, expected) == 0, 0.0, apart)


def check(
    gpu: pumice.Device,
    operations: Sequence[tuple[str, str]],
    inputs: Sequence[str],
    arguments: Sequence[Array],
    most: Sequence[float] | None = None,
) -> list[Array]:
    """Runs operations on the device; ``most`` bounds the distance to each definition, which is returned."""
    wide = any(type in ("i64", "ui64", "f16", "f64") for type in (*inputs, *(type for _, type in operations)))
    targets = (EMULATED, NATIVE) if wide else (EMULATED,)
    sizes: dict[int, list[int]] = {}
    for number, (_, result) in enumerate(operations):
        sizes.setdefault(storage_bits(ScalarType(result)), []).append(number)
    defined: dict[int, Array] = {}
    # Results of one size run together: an invocation computes as many elements as fill a word of the narrowest.
    for group in sizes.values():
        function = function_of(region_of([operations[number] for number in group], inputs, arguments[0].size))
        with np.errstate(all="ignore"):
            expected = by_definition(function, arguments)
            for target in targets:
                actual = run_region(gpu, function, arguments, target)
                for number, left, other in zip(group, actual, expected, strict=True):
                    apart = distances(left, other)
                    worst = int(np.argmax(apart))
                    operand_types = [array[worst] for array in arguments]
                    text = f"{operations[number][0]} of {operand_types}: got {left[worst]}, expected {other[worst]}"
                    assert apart[worst] <= (0 if most is None else most[number]), text
        defined.update(zip(group, expected, strict=True))
    return [defined[number] for number in range(len(operations))]


def check_definition(name: str, type: ScalarType, arguments: Sequence[Array], actual: Array, most: float) -> None:
    """Checks a definition's results against NumPy's."""
    with np.errstate(all="ignore"):
        wide = expected_of(name, type, arguments)
        if wide.dtype == object:
            same = [other is None or int(left) == other for left, other in zip(actual, wide, strict=True)]
            apart = np.where(same, 0.0, np.inf)
            expected = wide
        else:
            # An exact result in f64 is rounded once.
            expected = wide.astype(np.clongdouble if actual.dtype.kind == "c" else np.longdouble)
            expected = (
                expected.astype(np.float64) if is_float(actual.dtype) and actual.dtype != np.float64 else expected
            )
            expected = (expected.astype(np.float32) if type.dtype.name == "float8_e8m0fnu" else expected).astype(
                actual.dtype
            )
            apart = distances(actual, expected)
    worst = int(np.argmax(apart))
    inputs = [array[worst] for array in arguments]
    assert apart[worst] <= most, f"{name} of {inputs}: defined as {actual[worst]}, NumPy has {expected[worst]}"


def pairs(type: ScalarType, count: int) -> list[Array]:
    """Returns two operands: random pairs, and all pairs of the last few numbers, which are special."""
    left, right = numbers(type, count, 1), numbers(type, count, 2)
    ends = left[-17:]
    return [
        np.concatenate([left, np.repeat(ends, ends.size)]),
        np.concatenate([right, np.tile(ends, ends.size)]),
    ]


def variants(row: Row, type: ScalarType) -> list[tuple[str, str, str]]:
    """Returns the variants of an operation: its attributes, the type of its results, and its name in NumPy."""
    if row.name != "compare":
        part = str(type.part)
        result = {"abs": part, "real": part, "imag": part, "is_finite": "i1"}.get(row.name, str(type))
        return [(row.name, result, row.name)]
    cases = ("EQ", "NE") if type.kind == "complex" else ("EQ", "NE", "LT", "LE", "GT", "GE")
    directions = [
        (f"comparison_direction = #stablehlo<comparison_direction {case}>", f"compare {case}") for case in cases
    ]
    rows = [(f"compare {{{direction}}}", "i1", name) for direction, name in directions]
    if type.kind == "float":
        order = "compare_type = #stablehlo<comparison_type TOTALORDER>"
        rows += [(f"compare {{{direction}, {order}}}", "i1", "") for direction, _ in directions]
    return rows


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", TYPES)
def test_operations(gpu: pumice.Device, name: str) -> None:
    type = ScalarType(name)
    arguments = pairs(type, 300)
    for arity in (1, 2):
        rows = [row for row in ELEMENTWISE if row.arity == arity and name in row.types()]
        every = [(row, *variant) for row in rows for variant in variants(row, type)]
        most = [row.ulps.get(kind_of(name), 0.0) for row, *_ in every]
        operations = [(operation, result) for _, operation, result, _ in every]
        actual = check(gpu, operations, [name] * arity, arguments[:arity], most)
        for (row, _, _, known), result, limit in zip(every, actual, most, strict=True):
            if known:
                check_definition(known, type, arguments[: row.arity], result, limit)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", TYPES)
def test_conversions(gpu: pumice.Device, name: str) -> None:
    source = ScalarType(name)
    targets = [
        other
        for other in ("i1", *_SIGNED, *_UNSIGNED, "f32", "f64", *_NARROW, "complex<f32>", "complex<f64>")
        if not (source.kind == "complex" and ScalarType(other).kind != "complex")
        # ml_dtypes has no conversions of these, or rounds to f32 before.
        and not (
            "f8E8M0FNU" in (name, other) and ("f64" in (name, other) or max(source.bits, ScalarType(other).bits) <= 8)
        )
    ]
    check(gpu, [("convert", other) for other in targets], [name], [numbers(source, 300, 3)])


@pytest.mark.sample(10)
@pytest.mark.parametrize(("exponent", "mantissa"), [(5, 10), (8, 7), (4, 3), (8, 23), (2, 0), (11, 52)])
@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16"])
def test_reduced_precision(gpu: pumice.Device, name: str, exponent: int, mantissa: int) -> None:
    attributes = f"{{exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32}}"
    check(gpu, [(f"reduce_precision {attributes}", name)], [name], [numbers(ScalarType(name), 300, 4)])


@pytest.mark.parametrize("name", ["f16", "bf16", "f8E5M2", "f8E4M3FN"])
def test_narrow_floats_of_any_bits(gpu: pumice.Device, name: str) -> None:
    """Decodes every value to its f32, and moves it unchanged, also through branches and selections."""
    type = ScalarType(name)
    raw = np.arange(1 << type.bits, dtype=f"u{type.bits // 8}").view(type.dtype)
    text = f"""
        func.func @main(%a: tensor<{raw.size}x{name}>)
            -> (tensor<{raw.size}xf32>, tensor<{raw.size}x{name}>, tensor<{raw.size}x{name}>) {{
          %0 = stablehlo.convert %a : (tensor<{raw.size}x{name}>) -> tensor<{raw.size}xf32>
          %1 = stablehlo.reverse %a, dims = [0] : tensor<{raw.size}x{name}>
          %2 = stablehlo.slice %a [0:8] : (tensor<{raw.size}x{name}>) -> tensor<8x{name}>
          %3 = stablehlo.slice %a [8:{raw.size}] : (tensor<{raw.size}x{name}>) -> tensor<{raw.size - 8}x{name}>
          %4 = stablehlo.concatenate %2, %3, dim = 0
            : (tensor<8x{name}>, tensor<{raw.size - 8}x{name}>) -> tensor<{raw.size}x{name}>
          return %0, %1, %4 : tensor<{raw.size}xf32>, tensor<{raw.size}x{name}>, tensor<{raw.size}x{name}>
        }}
    """
    wide, turned, joined = run_region(gpu, function_of(text), [raw])
    expected = raw.astype(np.float32)
    assert np.array_equal(np.isnan(wide), np.isnan(expected))
    assert np.array_equal(wide[~np.isnan(wide)].view(np.uint32), expected[~np.isnan(wide)].view(np.uint32))
    assert np.array_equal(turned.view(np.uint8), raw[::-1].copy().view(np.uint8))
    assert np.array_equal(joined.view(np.uint8), raw.view(np.uint8))


def test_doubles_are_rounded_once(gpu: pumice.Device) -> None:
    """Uses values just beside the midpoint of two halves, where rounding to f32 first would be wrong."""
    halves = np.arange(0x0001, 0x7BFF, 7, np.uint16).view(np.float16).astype(np.float64)
    following = np.arange(0x0002, 0x7C00, 7, np.uint16).view(np.float16).astype(np.float64)
    middles = (halves + following) / 2
    values = np.concatenate([middles, middles * (1 + 2.0**-45), middles * (1 - 2.0**-45)])
    check(gpu, [("convert", "f16")], ["f64"], [np.concatenate([values, -values])])


def test_large_doubles_are_rounded(gpu: pumice.Device) -> None:
    """Uses halves, quarters and whole numbers of every size, which drivers may leave unrounded beyond 2**23."""
    sizes = 2.0 ** np.arange(55)[:, None]
    values = np.concatenate([(sizes + steps).ravel() for steps in (np.arange(-8, 8) / 4, np.arange(-4, 4) * 0.5001)])
    names = ["ceil", "floor", "round_nearest_afz", "round_nearest_even", "sine"]
    most = [3.0 if name == "sine" else 0.0 for name in names]
    check(gpu, [(name, "f64") for name in names], ["f64"], [np.concatenate([values, -values])], most)
    exponents = np.concatenate([values, -values])
    check(gpu, [("power", "f64")], ["f64"] * 2, [np.where(exponents > 0, -1.0, -1.5), exponents], [3.0])
