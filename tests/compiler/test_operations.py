"""Every operation of the specification that is not element-wise, by type, on Vulkan and on the reference device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from support.compiler.modules import load_main
from support.compiler.numpy_oracle import wrapped
from support.compiler.operation_cases import ARGUMENTS, CASES, Array, Case, Given, numbers_of
from support.compiler.operation_page import PAGE, page
from support.compiler.operation_table import REFUSED, TYPES

import pumice
from pumice.compiler.ir.source import CompileError
from pumice.compiler.ir.types import ScalarType

RANDOM_WORDS = (0x6B200159, 0x99BA4EFE)
RANDOM_PAIRS = (0x99BA4EFE6B200159, 0xC0DE3F32508EFB2C)
"""Threefry 2x32 with 20 rounds, of counters 0 and 1 with a key of zeros."""


def carried(element: str) -> str:
    """The type in which elements enter and leave a program: buffer views have none of fewer than 8 bits."""
    type = ScalarType(element)
    if type.kind == "float" and type.bits < 32:
        return "f32"
    return ("ui32" if type.kind == "uint" else "i32") if type.is_integer and type.bits < 8 else element


def words(type: str) -> Mapping[str, str]:
    """Words to fill into cases."""
    scalar = ScalarType(type)
    literal = {"bool": "true", "float": "{}.0", "complex": "({}.0, 0.0)"}.get(scalar.kind, "{}")
    numbers = {name: literal.format(value) for name, value in (("zero", 0), ("one", 1), ("two", 2), ("four", 4))}
    if scalar.kind == "bool":
        numbers["zero"] = "false"
    if type == "i2":
        numbers |= {"two": "-2", "four": "0"}
    return {"T": type, "P": str(scalar.part), "B": f"ui{scalar.bits}", **numbers}


def program(type: str, cases: Sequence[Case]) -> str:
    """A function for each case, and one that calls them all."""
    fill = words(type)
    inputs = {name: shape.format(**fill) for name, shape in ARGUMENTS.items()}
    lines, outputs, functions = [], [], []
    listed = ", ".join(f"%{name}: tensor<{shape}>" for name, shape in inputs.items())
    public = ", ".join(f"%{name}.given: tensor<{through(shape)}>" for name, shape in inputs.items())
    for name, shape in inputs.items():
        lines.append(converted(f"%{name}", f"%{name}.given", through(shape), shape))
    names = ", ".join(f"%{name}" for name in inputs)
    types = ", ".join(f"tensor<{shape}>" for shape in inputs.values())
    for number, case in enumerate(cases):
        result = case.result.format(**fill)
        body = case.body.format(**fill)
        head = f"func.func private @case{number}({listed}) -> tensor<{result}>"
        functions.append(f"{head} {{\n{body}\nreturn %r : tensor<{result}>\n}}")
        lines.append(f"%r{number} = call @case{number}({names}) : ({types}) -> tensor<{result}>")
        lines.append(converted(f"%r{number}.given", f"%r{number}", result, through(result)))
        outputs.append(through(result))
    returned = ", ".join(f"%r{number}.given" for number in range(len(cases)))
    results = ", ".join(f"tensor<{each}>" for each in outputs)
    turned = f"""func.func private @turned(%m: tensor<4x6x{type}>) -> tensor<4x6x{type}> {{
      %r = stablehlo.reverse %m, dims = [1] : tensor<4x6x{type}>
      return %r : tensor<4x6x{type}>
    }}"""
    body = "\n".join(lines)
    main = f"func.func public @main({public}) -> ({results}) {{\n{body}\nreturn {returned} : {results}\n}}"
    return "\n".join(["module @cases {", main, turned, *functions, "}"])


def element_of(shape: str) -> str:
    """The element type in ``4x6xf32``."""
    return shape.rpartition("x")[2] if "complex" not in shape else shape[shape.index("complex") :]


def through(shape: str) -> str:
    """A shape with the elements in which it enters or leaves."""
    element = element_of(shape)
    return shape.removesuffix(element) + carried(element)


def converted(name: str, value: str, before: str, after: str) -> str:
    """A line that converts a value."""
    if before == after:
        return f"{name} = stablehlo.optimization_barrier {value} : tensor<{after}>"
    return f"{name} = stablehlo.convert {value} : (tensor<{before}>) -> tensor<{after}>"


def expected_of(case: Case, type: str, given: Given) -> tuple[Array, ScalarType]:
    """Returns a case's result in its own type, and that type."""
    element = ScalarType(element_of(case.result.format(**words(type))))
    found = np.asarray(case.expected(given))
    if element.is_integer:
        numbers = [wrapped(int(value), element) for value in found.reshape(-1)]
        return np.array(numbers, object).reshape(found.shape), element
    return found.astype(element.dtype), element


@pytest.mark.vulkan
@pytest.mark.sample(3)
@pytest.mark.parametrize("type", TYPES)
def test_cases(type: str) -> None:
    cases = [case for case in CASES if type in case.types()]
    given = dict(numbers_of(type))
    dtype = ScalarType(type).dtype
    arguments = []
    for name, shape in ARGUMENTS.items():
        there = ScalarType(carried(element_of(shape.format(**words(type))))).dtype
        arguments.append(np.asarray(given[name]).astype(there))
    width = ScalarType(type).bits
    if width <= 64 and dtype.kind not in "bc":
        bits = given["m"].astype(dtype).view(f"u{dtype.itemsize}")
        given["bits of m"] = bits & ((1 << width) - 1)
        random = RANDOM_PAIRS if width == 64 else RANDOM_WORDS
        bits = np.array([word & ((1 << width) - 1) for word in random], f"u{dtype.itemsize}")
        given["random bits"] = bits if ScalarType(type).is_integer else bits.view(dtype)
    module = pumice.compile(program(type, cases), targets=("vulkan", "reference"), file_name=type)
    for uri in ("vulkan", "reference"):
        with pumice.open_device(uri) as device, pumice.Session(device=device) as session:
            results = load_main(session, module)(*arguments)
        for case, found in zip(cases, results, strict=True):
            expected, element = expected_of(case, type, given)
            where = f"{case.name} of {type} on {uri}"
            if element.kind == "complex" and case.ulps:
                limit = case.ulps * np.finfo(element.part.dtype).eps * np.abs(expected).max()
                assert np.abs(found - expected).max() <= limit, where
            else:
                wide = expected.astype(found.dtype) if found.dtype != expected.dtype else expected
                np.testing.assert_array_equal(found, wide, where)


ONE_DEVICE = """
func.func @main() -> (tensor<ui32>, tensor<ui32>) {
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.replica_id : tensor<ui32>
  %2 = stablehlo.after_all : !stablehlo.token
  %3 = stablehlo.after_all %2, %2 : !stablehlo.token
  return %0, %1 : tensor<ui32>, tensor<ui32>
}
"""


def test_one_device(session: pumice.Session) -> None:
    assert load_main(session, ONE_DEVICE)() == [0, 0]


def test_custom_calls(session: pumice.Session) -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.custom_call @{}(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(load_main(session, text.format("Sharding"))(x), [x])
    with pytest.raises(CompileError, match=r"2:12: stablehlo\.custom_call.*unheard_of"):
        pumice.compile(text.format("unheard_of"))


def test_quantized(session: pumice.Session) -> None:
    type = "tensor<6x!quant.uniform<i8:f32, 0.5:-3>>"
    text = f"""func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {{
      %0 = stablehlo.uniform_quantize %x : (tensor<6xf32>) -> {type}
      %1 = stablehlo.uniform_dequantize %0 : ({type}) -> tensor<6xf32>
      return %1 : tensor<6xf32>
    }}"""
    x = np.array([0, 0.3, -1.26, 7.74, 1e6, -1e6], np.float32)
    expected = (np.clip(np.rint(x / 0.5) - 3, -128, 127) + 3) * 0.5
    np.testing.assert_array_equal(load_main(session, text)(x), [expected])


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = "stablehlo.{name}"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }}"""
    with pytest.raises(CompileError, match=rf":2:12: stablehlo\.{name} expects"):
        pumice.compile(text)


def test_the_page_is_what_the_tables_give() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tests/support/compiler/operation_page.py"
