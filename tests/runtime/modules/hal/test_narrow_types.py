"""A warning comes with the programs that misread narrow types, and with no others: each is run and compared."""

from __future__ import annotations

import logging

import ml_dtypes
import numpy as np
import pytest
from support.peer import compile_module

import pumice

pytestmark = [pytest.mark.vulkan, pytest.mark.peer]

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16, "f32": np.float32}
WITH_16_BIT = "--iree-vulkan-target=rdna3"


def program(kind: str, element: str) -> str:
    is_float = "f" in element
    add = "arith.addf" if is_float else "arith.addi"
    zero = f"arith.constant 0{'.0' if is_float else ''} : {element}"
    if kind == "add":
        whole = f"tensor<9x{element}>"
        return (
            f"func.func @f(%x: {whole}, %y: {whole}) -> {whole} {{ %z = {add} %x, %y : {whole} return %z : {whole} }}"
        )
    left, right, out = (f"tensor<{shape}x{element}>" for shape in ("16x7", "7x16", "16x16"))
    return f"""func.func @f(%x: {left}, %y: {right}) -> {out} {{
      %c = {zero} %e = tensor.empty() : {out} %i = linalg.fill ins(%c : {element}) outs(%e : {out}) -> {out}
      %s = linalg.matmul ins(%x, %y : {left}, {right}) outs(%i : {out}) -> {out} return %s : {out} }}"""


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("kind", "element", "flags"),
    [
        ("add", "f16", ()),
        ("add", "i8", ()),
        ("matmul", "f16", ()),
        ("matmul", "f16", (WITH_16_BIT,)),
        ("matmul", "bf16", ()),
        ("matmul", "i16", ()),
        ("matmul", "f32", ()),
    ],
)
def test_the_warning_comes_where_results_are_wrong(
    kind: str, element: str, flags: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    data = compile_module(program(kind, element), *flags).read_bytes()
    shapes = [(9,), (9,)] if kind == "add" else [(16, 7), (7, 16)]
    source = np.random.default_rng(1)
    x, y = (source.integers(-5, 6, shape).astype(DTYPES[element]) for shape in shapes)
    with caplog.at_level(logging.WARNING, "pumice"), pumice.Session("vulkan") as session:
        session.append_module_from_memory(data)
        found = np.asarray(session.call("module.f", x, y), np.float64)
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    is_right = np.array_equal(found, wide_x + wide_y if kind == "add" else wide_x @ wide_y)
    warnings = [one.getMessage() for one in caplog.records if "wider elements" in one.getMessage()]
    assert len(warnings) == (not is_right)
    if flags or element == "f32":
        assert is_right
    if warnings:
        assert f"_{element} read {element} as wider elements" in warnings[0]
        assert WITH_16_BIT in warnings[0]
