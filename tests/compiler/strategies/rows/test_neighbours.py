"""Element-wise chains and moves by 128 bits, compared with the element generator and the definitions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.regions import (
    arguments_of,
    by_definition,
    function,
    function_of,
    region_of,
    run_kernel,
    run_region,
)

import pumice
from pumice.compiler.strategies.choice import compile_region
from pumice.compiler.strategies.movement.elements import Elements
from pumice.compiler.strategies.rows.neighbours import Neighbours
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import read_binary


def sum_of(type: str) -> str:
    return function(
        f"%a: tensor<{type}>, %b: tensor<{type}>",
        type,
        f"%0 = stablehlo.multiply %a, %b : tensor<{type}>\n%r = stablehlo.add %0, %b : tensor<{type}>",
    )


def alone(operation: str, result: str, *types: str) -> str:
    """Returns a function of one operation, whose operands are its arguments."""
    name, *rest = operation.split(" ", 1)
    names = [f"%{letter}" for letter in "abc"[: len(types)]]
    arguments = ", ".join(f"{argument}: tensor<{type}>" for argument, type in zip(names, types, strict=True))
    signature = f"({', '.join(f'tensor<{type}>' for type in types)}) -> tensor<{result}>"
    return function(arguments, result, f"%r = stablehlo.{name} {' '.join(rest)} : {signature}")


CASES = {
    **{type: sum_of(type) for type in ("64x4xf32", "67x3xf32", "260xf64", "130xi64", "72x5xf16", "77xbf16", "515xi8")},
    "complex": sum_of("130xcomplex<f32>"),
    "comparison": alone("compare GT, %a, %b", "33x5xi1", "33x5xf32", "33x5xf32"),
    "wider": alone("convert %a", "8x36xf32", "8x36xf16"),
    "narrower": alone("convert %a", "9x36xi8", "9x36xf32"),
    "rows": function(
        "%a: tensor<8x12xf32>, %b: tensor<12xf32>, %c: tensor<8xf32>",
        "8x12xf32",
        """%0 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<12xf32>) -> tensor<8x12xf32>
        %1 = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<8xf32>) -> tensor<8x12xf32>
        %2 = stablehlo.iota dim = 1 : tensor<8x12xf32>
        %3 = stablehlo.add %0, %1 : tensor<8x12xf32>
        %4 = stablehlo.multiply %3, %2 : tensor<8x12xf32>
        %r = stablehlo.add %4, %a : tensor<8x12xf32>""",
    ),
    "transposed": alone("transpose %a, dims = [1, 2, 0]", "6x20x8xf32", "8x6x20xf32"),
    "outer dimensions exchanged": alone("transpose %a, dims = [1, 0, 2]", "6x8x20xf16", "8x6x20xf16"),
    "joined": alone("concatenate %a, %b, %c, dim = 1", "5x19xf32", "5x8xf32", "5x4xf32", "5x7xf32"),
    "padded": alone("pad %a, %b, low = [3, -2], high = [-2, 5], interior = [1, 1]", "12x20xf32", "6x9xf32", "f32"),
    "reversed": function(
        "%a: tensor<6x20xf32>", "6x20xf32", "%r = stablehlo.reverse %a, dims = [0, 1] : tensor<6x20xf32>"
    ),
    "a slice": alone("slice %a [1:9:2, 3:19]", "4x16xf32", "9x20xf32"),
    "every third": alone("slice %a [0:9, 0:60:3]", "9x20xf32", "9x60xf32"),
    **{
        f"sums of {kept}": function(
            f"%a: tensor<{given}>",
            result,
            f"""%s = stablehlo.constant dense<{2 if "i" in result else 2.0}> : tensor<{result.split("x")[-1]}>
            %0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = {axes} :
              (tensor<{given}>, tensor<{result.split("x")[-1]}>) -> tensor<{result}>
            %r = stablehlo.negate %0 : tensor<{result}>""",
        )
        for kept, given, result, axes in (
            ("columns", "70x36xf32", "36xf32", [0]),
            ("few columns", "300x10xf32", "10xf32", [0]),
            ("the outer and the inner", "5x9x24xi32", "5x24xi32", [1]),
            ("columns of bytes", "9x80xi8", "80xi8", [0]),
            ("columns of halves", "140x40xf16", "40xf16", [0]),
        )
    },
    "quotients of numbers of places": function(
        "%a: tensor<40xi32>",
        "40xi32",
        """%0 = stablehlo.iota dim = 0 : tensor<40xi32>
        %c = stablehlo.constant dense<-7> : tensor<40xi32>
        %1 = stablehlo.add %0, %c : tensor<40xi32>
        %d = stablehlo.constant dense<4> : tensor<40xi32>
        %2 = stablehlo.divide %1, %d : tensor<40xi32>
        %3 = stablehlo.remainder %1, %d : tensor<40xi32>
        %4 = stablehlo.multiply %2, %a : tensor<40xi32>
        %r = stablehlo.add %3, %4 : tensor<40xi32>""",
    ),
}


def moves(seed: int) -> str:
    """Returns a chain of operations that move elements."""
    random = np.random.default_rng(seed)
    shape = [int(random.integers(2, 7)), 4 * int(random.integers(1, 6)), int(random.choice([1, 4, 5, 8]))]
    lines, value, first = [], "%a", list(shape)

    def type(lengths: list[int]) -> str:
        return f"tensor<{'x'.join(map(str, lengths))}xf32>"

    for number in range(4):
        before, name = list(shape), f"%{number}"
        match random.integers(5):
            case 0:
                order = [int(axis) for axis in random.permutation(len(shape))]
                shape = [shape[axis] for axis in order]
                text = f"stablehlo.transpose {value}, dims = {order} : ({type(before)}) -> {type(shape)}"
            case 1:
                shape = [shape[0] * shape[1], *shape[2:]] if len(shape) > 2 else [*shape, 1]
                text = f"stablehlo.reshape {value} : ({type(before)}) -> {type(shape)}"
            case 2:
                starts = [int(random.integers(0, (length + 1) // 2)) for length in shape]
                shape = [length - start for length, start in zip(shape, starts, strict=True)]
                ranges = ", ".join(f"{start}:{length}" for start, length in zip(starts, before, strict=True))
                text = f"stablehlo.slice {value} [{ranges}] : ({type(before)}) -> {type(shape)}"
            case 3:
                axes = [axis for axis in range(len(shape)) if random.integers(2)]
                text = f"stablehlo.reverse {value}, dims = {axes} : {type(shape)}"
            case _:
                low, high = ([int(random.integers(0, 5)) for _ in shape] for _ in range(2))
                shape = [sum(lengths) for lengths in zip(shape, low, high, strict=True)]
                zero = f"%z{number}"
                lines.append(f"{zero} = stablehlo.constant dense<0.5> : tensor<f32>")
                text = (
                    f"stablehlo.pad {value}, {zero}, low = {low}, high = {high}, interior = {[0] * len(shape)} : "
                    f"({type(before)}, tensor<f32>) -> {type(shape)}"
                )
        lines.append(f"{name} = {text}")
        value = name
    lines.append(f"%r = stablehlo.negate {value} : {type(shape)}")
    return function(f"%a: {type(first)}", type(shape)[7:-1], "\n".join(lines))


@pytest.mark.sample(12)
@pytest.mark.vulkan
@pytest.mark.parametrize("text", [*CASES.values(), *map(moves, range(24))], ids=[*CASES, *map(str, range(24))])
def test_neighbours_are_what_each_is_alone(gpu: pumice.Device, text: str) -> None:
    operation, region = function_of(text), region_of(text)
    arguments = arguments_of(operation)
    candidates = [Neighbours(elements, 64) for elements in (2, 4, 8, 16)]
    taken = [candidate for candidate in candidates if candidate.takes(region)]
    assert taken
    (wanted,) = by_definition(operation, arguments)
    for strategy in (Elements(), taken[0], taken[-1]):
        (actual,) = run_region(gpu, text, arguments, strategy=strategy)
        assert actual.tobytes() == wanted.tobytes(), strategy


def interleaved(shape: tuple[int, ...], axis: int, element: str, times: int = 1) -> str:
    """Returns steps of ``lax.associative_scan``: elements of two values alternate along a dimension."""
    first, lines, value = "x".join(map(str, (*shape, element))), [], "%a"
    here = [int(dimension == axis) for dimension in range(len(shape))]
    none = [0] * len(shape)
    for step in range(times):
        small, shape = shape, tuple(length << dimension for length, dimension in zip(shape, here, strict=True))
        types = ["x".join(map(str, (*dimension, element))) for dimension in (small, shape)]
        lines.append(f"%n{step} = stablehlo.negate {value} : tensor<{types[0]}>")
        for name, source, low, high in (("p", value, none, here), ("q", f"%n{step}", here, none)):
            lines.append(
                f"%{name}{step} = stablehlo.pad {source}, %z, low = {low}, high = {high}, interior = {here}"
                f" : (tensor<{types[0]}>, tensor<{element}>) -> tensor<{types[1]}>"
            )
        lines.append(f"%r{step} = stablehlo.add %p{step}, %q{step} : tensor<{types[1]}>")
        value = f"%r{step}"
    start = f"%z = stablehlo.constant dense<1> : tensor<{element}>"
    lines.append(f"%r = stablehlo.not {value} : tensor<{types[1]}>")
    return function(f"%a: tensor<{first}>", types[1], "\n".join([start, *lines]))


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        (interleaved((5, 8), 0, "i32"), Neighbours(4, 64, 2)),
        (interleaved((3, 6, 2, 4), 1, "i32"), Neighbours(8, 32, 2)),
        (interleaved((16, 8), 0, "i16", 2), Neighbours(8, 64, 4)),
        (interleaved((3, 12, 4), 1, "i64", 3), Neighbours(2, 64, 8)),
    ],
    ids=["rows", "inner", "narrow", "three times"],
)
def test_rows_that_take_turns_are_told_apart_while_compiling(
    gpu: pumice.Device, text: str, strategy: Neighbours
) -> None:
    operation, region = function_of(text), region_of(text)
    arguments = arguments_of(operation)
    assert strategy.takes(region)
    assert not strategy.takes(region_of(sum_of("64x4xi32")))
    kernel = compile_region(region, strategy)
    (actual,) = run_kernel(gpu, kernel, region.block, arguments, region.target)
    assert actual.tobytes() == by_definition(operation, arguments)[0].tobytes()
    branches = [opcode for opcode, _, _ in read_binary(kernel.code) if opcode == Op.SelectionMerge]
    assert len(branches) <= 1, "only whether an invocation has elements is asked while it runs"


@pytest.mark.parametrize(
    ("name", "loads"), {"64x4xf32": 2, "72x5xf16": 2, "rows": 2, "wider": 1, "transposed": 0}.items()
)
def test_neighbours_are_loaded_together(name: str, loads: int) -> None:
    elements = 8 if name in ("72x5xf16", "wider") else 4
    code = read_binary(compile_region(region_of(CASES[name]), Neighbours(elements, 64)).code)
    vectors = [code.words[at + 1] for opcode, at, _ in code if opcode == Op.TypeVector and code.words[at + 3] == 4]
    load_positions = [at for opcode, at, _ in code if opcode == Op.Load and code.words[at + 1] in vectors]
    assert len(load_positions) == loads
