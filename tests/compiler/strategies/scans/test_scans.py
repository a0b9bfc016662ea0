"""Scans of rows and columns, compared with the cumulative functions of NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.compiler.regions import EMULATED, Array, called, dispatch_regions, region_of, run_region
from support.profiles import PROFILE_NAMES, recorded_profile

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.strategies.choice import candidates_of, compile_region
from pumice.compiler.strategies.scans.column_scans import ColumnScans
from pumice.compiler.strategies.scans.row_scans import RowScans

DTYPES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "i32": "int32", "i64": "int64"}
BODIES = {"add": np.add, "maximum": np.maximum, "multiply": np.multiply}


def scan(type: str, axis: int, operation: str = "add", start: str = "0", way: str = "inclusive forward") -> str:
    """Returns a program of windows that reach to an end of a dimension."""
    *lengths, element = type.split("x")
    length, rank = int(lengths[axis]), len(lengths)
    far, near = (length, -1) if "exclusive" in way else (length - 1, 0)
    padding = [[0, 0]] * axis + [[near, far] if "reverse" in way else [far, near]] + [[0, 0]] * (rank - axis - 1)
    sizes = ", ".join(str(length if dimension == axis else 1) for dimension in range(rank))
    return f"""
        func.func @main(%a: tensor<{type}>) -> tensor<{type}> {{
          %s = stablehlo.constant dense<{start}> : tensor<{element}>
          %r = "stablehlo.reduce_window"(%a, %s) ({{
          ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
            %0 = stablehlo.{operation} %x, %y : tensor<{element}>
            stablehlo.return %0 : tensor<{element}>
          }}) {{window_dimensions = array<i64: {sizes}>, padding = dense<{padding}> : tensor<{rank}x2xi64>}}
            : (tensor<{type}>, tensor<{element}>) -> tensor<{type}>
          return %r : tensor<{type}>
        }}
    """


def by_numpy(value: Array, axis: int, operation: str, start: float, way: str) -> Array:
    """Scans with NumPy."""
    ordered = np.flip(value, axis) if "reverse" in way else value
    actual = BODIES[operation].accumulate(ordered, axis, dtype=value.dtype if value.dtype.kind == "i" else np.float64)
    if "exclusive" in way:
        before = np.full_like(np.take(actual, [0], axis), start)
        actual = np.concatenate([before, np.take(actual, range(value.shape[axis] - 1), axis)], axis)
    return np.flip(actual, axis) if "reverse" in way else actual


def values_of(type: str, operation: str) -> Array:
    *lengths, element = type.split("x")
    random = np.random.default_rng(0)
    chosen = [-1, 1] if operation == "multiply" else range(-3, 4)
    return random.choice(chosen, [int(length) for length in lengths]).astype(DTYPES[element])


CASES = {
    "rows": ("5x256xf32", 1, "add", "0.0"),
    "an odd number": ("3x331xf32", 1, "add", "-0.0"),
    "several tiles": ("3x2080xi32", 1, "maximum", "-2147483648"),
    "doubles": ("5x96xf64", 1, "multiply", "1.0"),
    "long integers": ("67x40xi64", 1, "add", "0"),
    "bytes": ("9x160xi8", 1, "add", "0"),
    "columns": ("37x24xf32", 0, "add", "0.0"),
    "columns of bytes": ("3x40x12xi8", 1, "maximum", "-128"),
    "columns of an odd number": ("40x3xf64", 0, "add", "0.0"),
}
WAYS = ["inclusive forward", "exclusive forward", "inclusive reverse", "exclusive reverse"]


@pytest.mark.sample(5)
@pytest.mark.vulkan
@pytest.mark.parametrize("has_subgroups", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_scans_agree_with_numpy(gpu: pumice.Device, name: str, has_subgroups: bool) -> None:
    type, axis, operation, start = CASES[name]
    value = values_of(type, operation)
    target = replace(target_of(gpu.profile), int64=False) if has_subgroups else EMULATED
    for way in WAYS[:: 3 - 2 * has_subgroups]:
        text = scan(type, axis, operation, start, way)
        wanted = by_numpy(value, axis, operation, float(start), way).astype(value.dtype)
        chosen, *_ = candidates_of(region_of(text, target))
        assert isinstance(chosen, (RowScans, ColumnScans))
        (actual,) = run_region(gpu, text, [value], target, chosen)
        np.testing.assert_array_equal(actual, wanted, err_msg=f"{way}: {chosen}")


@pytest.mark.vulkan
def test_invocations_beyond_a_subgroup_share_memory(gpu: pumice.Device) -> None:
    value = values_of("3x2048xf32", "add")
    text, target = scan("3x2048xf32", 1, start="0.0"), replace(target_of(gpu.profile), int64=False)
    for strategy in (RowScans(64, 2, 4), RowScans(128, 1, 16), RowScans(1, 64, 8)):
        (actual,) = run_region(gpu, text, [value], target, strategy)
        np.testing.assert_array_equal(actual, np.cumsum(value, 1), err_msg=str(strategy))


LONG = {
    "one row": ("40001xf32", 0, "0.0"),
    "halves": ("9000xf16", 0, "0.0"),
    "bytes that fill no words": ("5x33xi8", 1, "0"),
    "long columns": ("3000x3xi32", 0, "0"),
}


@pytest.mark.sample(2)
@pytest.mark.vulkan
@pytest.mark.parametrize("way", ["inclusive forward", "exclusive reverse"])
@pytest.mark.parametrize("name", LONG)
def test_long_scans_agree_with_numpy(gpu: pumice.Device, name: str, way: str) -> None:
    type, axis, start = LONG[name]
    value = values_of(type, "add")
    (actual,) = called(gpu, scan(type, axis, "add", start, way), value)
    np.testing.assert_array_equal(actual, by_numpy(value, axis, "add", float(start), way).astype(value.dtype))


@pytest.mark.parametrize(("type", "count"), [("2048x2048xf32", 1), ("1048576xf32", 3)])
def test_scans_are_one_dispatch_or_three(type: str, count: int) -> None:
    assert len(dispatch_regions(scan(type, type.count("x") - 1, start="0.0"), EMULATED)) == count


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_kernel_keeps_to_the_limits_of_its_device(name: str) -> None:
    target = target_of(recorded_profile(name))
    for type, axis in (("300x2048xf32", 1), ("2048x300xi32", 0)):
        region = region_of(scan(type, axis), target)
        (chosen, *_) = candidates_of(region)
        assert isinstance(chosen, (RowScans, ColumnScans))
        kernel = compile_region(region, chosen)
        assert math.prod(kernel.workgroup_size) <= target.max_workgroup_invocations


def test_an_initial_value_that_counts_is_no_scan() -> None:
    # The padding is the initial value as well, which a scan would add once.
    (region,) = dispatch_regions(scan("5x64xf32", 1, start="1.0"), EMULATED)[-1:]
    assert not any(isinstance(value, RowScans) for value in candidates_of(region_of(region)))
