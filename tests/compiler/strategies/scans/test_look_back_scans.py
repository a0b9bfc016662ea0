"""Scans in one pass, compared with NumPy, and with themselves when other workgroups publish little or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.compiler.regions import Array, called

import pumice
from pumice.compiler.analysis.scans import LOOK_BACK
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.dispatch.outline import entry_of
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import Program
from pumice.compiler.strategies.choice import candidates_of
from pumice.compiler.strategies.scans import look_back_scans
from pumice.compiler.strategies.scans.look_back_scans import LookBackScans
from pumice.compiler.targets.vulkan import kernel_region

ROWS = """
    func.func @main(%a: tensor<{rows}x{length}x{element}>) -> tensor<{rows}x{length}x{element}> {{
      %s = stablehlo.constant dense<{start}> : tensor<{element}>
      %n = stablehlo.negate %a : tensor<{rows}x{length}x{element}>
      %r = "stablehlo.reduce_window"(%n, %s) ({{
      ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
        %0 = stablehlo.{operation} %x, %y : tensor<{element}>
        stablehlo.return %0 : tensor<{element}>
      }}) {{window_dimensions = array<i64: 1, {length}>, padding = dense<[[0, 0], {padding}]> : tensor<2x2xi64>{more}}}
        : (tensor<{rows}x{length}x{element}>, tensor<{element}>) -> tensor<{rows}x{length}x{element}>
      %m = stablehlo.negate %r : tensor<{rows}x{length}x{element}>
      return %m : tensor<{rows}x{length}x{element}>
    }}
"""
DTYPES = {"f16": "float16", "f32": "float32", "i8": "int8", "i32": "int32", "i64": "int64"}


def text_of(
    rows: int, length: int, element: str, operation: str = "add", start: str = "0", way: str = "", more: str = ""
) -> str:
    far, near = (length, -1) if "exclusive" in way else (length - 1, 0)
    padding = [near, far] if "reverse" in way else [far, near]
    return ROWS.format(
        rows=rows, length=length, element=element, operation=operation, start=start, padding=padding, more=more
    )


def wanted_of(value: Array, join: Callable[..., Array], start: float, way: str) -> Array:
    """Scans with NumPy."""
    ordered = -(value[:, ::-1] if "reverse" in way else value)
    actual = join(ordered, axis=1, dtype=value.dtype)
    if "exclusive" in way:
        actual = np.concatenate([np.full_like(actual[:, :1], start), actual[:, :-1]], 1)
    return -(actual[:, ::-1] if "reverse" in way else actual)


def target_for(gpu: pumice.Device, **facts: Any) -> Target:
    """Returns the device's target with a family that scans in one pass."""
    return replace(target_of(gpu.profile), family="nvidia", **facts)


def strategies_of(text: str, target: Target) -> list[object]:
    """Returns the strategy of each kernel of a program."""
    program = compile_text(text, "program", target, "ll_seq").program
    assert isinstance(program, Program)
    functions = [entry_of(executable)[1] for executable in program.executables]
    return [candidates_of(kernel_region(function, target))[0] for function in functions]


CASES = {
    "one row": (1, 65_536, "f32", "add", "0.0", np.add.accumulate),
    "rows": (3, 16_384, "i32", "add", "0", np.add.accumulate),
    "a tile that is not whole": (2, 20_016, "i32", "minimum", "2147483647", np.minimum.accumulate),
    "two words": (1, 10_000, "i64", "add", "0", np.add.accumulate),
    "halves": (1, 8_192, "f16", "maximum", "0xFC00", np.maximum.accumulate),
    "bytes": (2, 16_384, "i8", "add", "0", np.add.accumulate),
}


@pytest.mark.sample(4)
@pytest.mark.vulkan
@pytest.mark.parametrize("way", ["inclusive forward", "exclusive reverse"])
@pytest.mark.parametrize("name", CASES)
def test_one_pass_agrees_with_numpy(gpu: pumice.Device, name: str, way: str) -> None:
    rows, length, element, operation, start, join = CASES[name]
    text = text_of(rows, length, element, operation, start, way)
    for most in (128, 512):
        target = target_for(gpu, max_workgroup_invocations=most)
        (chosen,) = strategies_of(text, target)
        assert isinstance(chosen, LookBackScans)
        value = np.random.default_rng(0).integers(-9, 9, (rows, length)).astype(DTYPES[element])
        first = -np.inf if start == "0xFC00" else float(start)
        np.testing.assert_array_equal(
            called(gpu, text, value, target=target, times=3)[0], wanted_of(value, join, first, way)
        )


@pytest.mark.vulkan
@pytest.mark.parametrize("published", [(0,), (1,), ()], ids=["parts", "prefixes", "nothing"])
def test_what_others_publish_changes_no_bit(
    gpu: pumice.Device, monkeypatch: pytest.MonkeyPatch, published: tuple[int, ...]
) -> None:
    text, target = text_of(2, 32_768, "f32", start="0.0"), target_for(gpu)
    value = np.random.default_rng(0).normal(size=(2, 32_768)).astype(np.float32)
    wanted = called(gpu, text, value, target=target, times=3)[0]
    np.testing.assert_allclose(wanted, np.cumsum(value, 1, np.float64), atol=1e-3)
    publish = look_back_scans._Writer._publish

    def seldom(self: Any, number: Any, which: int, values: Any) -> None:
        if which in published:
            publish(self, number, which, values)

    monkeypatch.setattr(look_back_scans._Writer, "_publish", seldom)
    assert called(gpu, text, value, target=target, times=3)[0].tobytes() == wanted.tobytes()


@pytest.mark.vulkan
def test_each_round_of_a_loop_counts_from_zero(gpu: pumice.Device) -> None:
    type = "tensor<1x8192xi32>"
    scan = text_of(1, 8192, "i32").replace("@main", "private @scan")
    text = f"""
    func.func @main(%a: {type}) -> {type} {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.while(%n = %zero, %v = %a) : tensor<i32>, {type}
        cond {{
          %four = stablehlo.constant dense<4> : tensor<i32>
          %more = stablehlo.compare LT, %n, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %more : tensor<i1>
        }} do {{
          %one = stablehlo.constant dense<1> : tensor<i32>
          %next = stablehlo.add %n, %one : tensor<i32>
          %once = func.call @scan(%v) : ({type}) -> {type}
          %twice = func.call @scan(%once) : ({type}) -> {type}
          stablehlo.return %next, %twice : tensor<i32>, {type}
        }}
      return %r#1 : {type}
    }}
    {scan}
    """
    value = np.random.default_rng(0).integers(-9, 9, (1, 8192)).astype(np.int32)
    wanted = value
    for _ in range(8):
        wanted = np.cumsum(wanted, 1, np.int32)
    np.testing.assert_array_equal(called(gpu, text, value, target=target_for(gpu), times=3)[0], wanted)


@pytest.mark.parametrize("facts", [{}, {"family": "nvidia", "kinds": ("vulkan", "reference")}], ids=["any", "both"])
def test_other_devices_scan_in_parts(facts: dict[str, Any]) -> None:
    assert not any(
        isinstance(value, LookBackScans) for value in strategies_of(text_of(1, 8192, "i32"), Target(**facts))
    )


@pytest.mark.parametrize("stage", ["regions", "hl_seq", "ll_seq", "targets"])
def test_scratch_memory_is_written_at_every_stage(stage: str) -> None:
    text, target = text_of(2, 8192, "i32"), Target(family="nvidia")
    (chosen,) = strategies_of(text, target)
    assert isinstance(chosen, LookBackScans)
    program = compile_text(text, "program", target, stage).program
    assert isinstance(program, Program)
    printed = program.text()
    assert compile_text(printed, "program", target).module == compile_text(text, "program", target).module


def test_a_program_asks_for_no_scratch_memory() -> None:
    text = text_of(1, 8192, "i32", more=f", {LOOK_BACK} = 5")
    assert not any(isinstance(value, LookBackScans) for value in strategies_of(text, Target()))
