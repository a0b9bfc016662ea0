"""Rows whose length depends on the call: short and long ones give NumPy's results, too long ones an error."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from support.compiler.modules import load_main
from support.compiler.regions import Array
from support.compiler.stages import check_stages

import pumice
from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import GraphFile, ModuleFile, Program
from pumice.status import InvalidArgumentError

SIZES = (1, 1000, 200_000, 1 << 20, 5 << 20, 1000)
ARGMAX = """
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    %more = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %same = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %before = stablehlo.compare LT, %i, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %and = stablehlo.and %same, %before : tensor<i1>
    %or = stablehlo.or %more, %and : tensor<i1>
    %value = stablehlo.select %more, %a, %b : tensor<i1>, tensor<f32>
    %place = stablehlo.select %or, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %value, %place : tensor<f32>, tensor<i32>
"""


def program(name: str, rows: str) -> str:
    """A computation over rows of unknown length.

    Args:
        name: one of ``WANTED``.
        rows: the type's text before the row's length: nothing, or ``?x`` and the like.
    """
    axis = rows.count("x")
    whole, left = f"tensor<{rows}?xf32>", f"tensor<{rows}f32>"
    ints, numbers = f"tensor<{rows}?xi32>", f"tensor<{rows}i32>"
    shape = f"tensor<{axis + 1}xi32>"
    lines = [
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>",
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
        "%first = stablehlo.constant dense<0> : tensor<i32>",
    ]
    for each in range(axis + 1):
        lines.append(f"%d{each} = stablehlo.get_dimension_size %x, dim = {each} : ({whole}) -> tensor<i32>")
        lines.append(f"%l{each} = stablehlo.reshape %d{each} : (tensor<i32>) -> tensor<1xi32>")
    lengths, ones = ", ".join(f"%l{each}" for each in range(axis + 1)), ", ".join(["tensor<1xi32>"] * (axis + 1))
    lines.append(f"%shape = stablehlo.concatenate {lengths}, dim = 0 : ({ones}) -> {shape}")

    def reduced(result: str, given: str, start: str, how: str) -> str:
        return (
            f"{result} = stablehlo.reduce({given} init: {start}) applies stablehlo.{how} across dimensions = [{axis}]"
            f" : ({whole}, tensor<f32>) -> {left}"
        )

    def spread(result: str, given: str) -> str:
        dims = list(range(axis))
        return (
            f"{result} = stablehlo.dynamic_broadcast_in_dim {given}, %shape, dims = {dims} : ({left}, {shape})"
            f" -> {whole}"
        )

    result = left
    if name in ("sum", "mean"):
        lines.append(reduced("%sum", "%x", "%zero", "add"))
        if name == "mean":
            lines.append(f"%count = stablehlo.convert %d{axis} : (tensor<i32>) -> tensor<f32>")
            rest = f"tensor<{axis}xi32>"
            shown = "%l0" if axis else "%none"
            lines += [] if axis else [f"%none = stablehlo.constant dense<> : {rest}"]
            lines.append(
                f"%counts = stablehlo.dynamic_broadcast_in_dim %count, {shown}, dims = [] : (tensor<f32>, {rest})"
                f" -> {left}"
            )
            lines.append(f"%result = stablehlo.divide %sum, %counts : {left}")
        else:
            lines.append(f"%result = stablehlo.add %sum, %sum : {left}")
    elif name == "max":
        lines.append(reduced("%result", "%x", "%low", "maximum"))
    elif name == "argmax":
        lines.append(f"%places = stablehlo.dynamic_iota %shape, dim = {axis} : ({shape}) -> {ints}")
        types = f"({whole}, {ints}, tensor<f32>, tensor<i32>) -> ({left}, {numbers})"
        reduction = f'%most, %result = "stablehlo.reduce"(%x, %places, %low, %first) ({{{ARGMAX}}})'
        lines.append(f"{reduction} {{dimensions = array<i64: {axis}>}} : {types}")
        result = numbers
    else:
        lines.append(reduced("%most", "%x", "%low", "maximum"))
        lines += [spread("%mosts", "%most"), f"%less = stablehlo.subtract %x, %mosts : {whole}"]
        lines += [f"%e = stablehlo.exponential %less : {whole}", reduced("%sum", "%e", "%zero", "add")]
        if name == "logsumexp":
            lines.append(f"%log = stablehlo.log %sum : {left}")
            lines.append(f"%result = stablehlo.add %log, %most : {left}")
        else:
            lines += [spread("%sums", "%sum"), f"%result = stablehlo.divide %e, %sums : {whole}"]
            result = whole
    body = "\n".join(lines)
    return f"func.func @main(%x: {whole}) -> {result} {{\n{body}\nreturn %result : {result}\n}}"


def softmax(x: Array) -> Array:
    shares: Array = np.exp(x - x.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


WANTED: dict[str, Callable[[Array], Array]] = {
    "sum": lambda x: 2 * x.sum(-1),
    "max": lambda x: x.max(-1),
    "mean": lambda x: x.mean(-1),
    "argmax": lambda x: x.argmax(-1),
    "softmax": softmax,
    "logsumexp": lambda x: np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1),
}


@pytest.mark.sample(4)
@pytest.mark.vulkan
@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("rows", ["", "?x"], ids=["one row", "rows"])
def test_rows_of_every_length_give_what_numpy_gives(gpu: pumice.Device, rows: str, name: str) -> None:
    with pumice.Session(device=gpu) as session:
        main = load_main(session, pumice.compile(program(name, rows), device=gpu.profile))
        for size in SIZES:
            shape = ((3 if size <= 1000 else 1,) if rows else ()) + (size,)
            x = np.random.default_rng(size).random(shape, np.float32)
            np.testing.assert_allclose(main(x)[0], WANTED[name](x.astype(np.float64)), 1e-5)


@pytest.mark.sample(1)
@pytest.mark.vulkan
@pytest.mark.parametrize(("rows", "shape"), [("64x", (64, 150_001)), ("?x", (1, 5 << 20))], ids=["64 rows", "rows"])
def test_modules_for_any_device_take_long_rows(gpu: pumice.Device, rows: str, shape: tuple[int, int]) -> None:
    """The smallest device has small workgroups; those of a known number of rows are counted at compile time."""
    with pumice.Session(device=gpu) as session:
        profile = gpu.profile if rows == "64x" else None
        main = load_main(session, pumice.compile(program("softmax", rows), device=profile))
        for length in (shape[1], 3):
            x = np.random.default_rng(length).random((shape[0], length), np.float32)
            np.testing.assert_allclose(main(x)[0], softmax(x.astype(np.float64)), 1e-4)


@pytest.mark.vulkan
def test_rows_beyond_all_loops_are_refused(gpu: pumice.Device) -> None:
    """Without a row nothing is computed, but the kernels' limits are checked all the same."""
    most = 60_000 // 3 * 256 * 8
    with pumice.Session(device=gpu) as session:
        main = load_main(session, pumice.compile(program("softmax", "?x"), device=gpu.profile))
        assert main(np.empty((0, most - 1), np.float32))[0].shape == (0, most - 1)
        wanted = "expected at most 60000 iterations of loops in a kernel, got .*, where d0 is dimension 0 of argument 0"
        with pytest.raises(InvalidArgumentError, match=wanted):
            main(np.empty((0, most + 4096), np.float32))


def test_modules_of_both_devices_run_long_rows_on_either() -> None:
    module = pumice.compile(program("sum", "?x"), targets=("vulkan", "reference"))
    x = np.ones((1, 600_000), np.float32)
    with pumice.Session(device="reference") as session:
        np.testing.assert_allclose(load_main(session, module)(x), [[1_200_000]])


@pytest.mark.slow
def test_stages_name_the_kernel_of_long_rows() -> None:
    """Every stage's text compiles further, and is refused where the kernel of long rows is missing."""
    texts: dict[str, str] = {}

    def reached(stage: str, reached: Program | GraphFile | ModuleFile) -> None:
        texts[stage] = reached.text()

    text = program("softmax", "?x")
    check_stages(text)
    compile_text(text, "program.mlir", Target(), reached=reached)
    wrong = re.sub(r'longer = "[^"]*"', 'longer = "other"', texts["targets"])
    with pytest.raises(CompileError, match=r"an entry point of the program with 2 buffers, got other"):
        compile_text(wrong, "program.mlir", Target(), from_="targets")
