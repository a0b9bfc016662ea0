"""Radix sorts, compared with NumPy's stable sorts."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from support.compiler.regions import called

import pumice
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.passes.canonical.legacy import IN_MEMORY
from pumice.compiler.passes.decomposition import digit_sorts
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import Program

DTYPES = {
    "i8": "int8",
    "ui8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "ui32": "uint32",
    "f16": "float16",
    "f32": "float32",
    "bf16": ml_dtypes.bfloat16,
    "i64": "int64",
    "f64": "float64",
}


def text_of(shape: str, elements: list[str], compared: str) -> str:
    """Returns a stable sort along the longest dimension of ``shape``; ``compared`` computes ``%r`` from ``%x0``,
    ``%y0``, ….
    """
    types = [f"tensor<{shape}x{element}>" for element in elements]
    lengths = [int(value) for value in shape.split("x")]
    arguments = ", ".join(f"%a{number}: {type}" for number, type in enumerate(types))
    scalars = ", ".join(f"%x{n}: tensor<{value}>, %y{n}: tensor<{value}>" for n, value in enumerate(elements))
    operand_names, result_names = (", ".join(f"%{letter}{number}" for number in range(len(types))) for letter in "ar")
    results = ", ".join(f"%s#{number}" for number in range(len(types)))
    return f"""
        func.func @main({arguments}) -> ({", ".join(types)}) {{
          %s:{len(types)} = "stablehlo.sort"({operand_names}) ({{
          ^bb0({scalars}):
            {compared}
            stablehlo.return %r : tensor<i1>
          }}) {{dimension = {lengths.index(max(lengths))} : i64, is_stable = true}}
            : ({", ".join(types)}) -> ({", ".join(types)})
          return {results} : {", ".join(types)}
        }}
    """


def compare(element: str, direction: str = "LT", kind: str = "", number: int = 0, swapped: bool = False) -> str:
    kind = kind or ("FLOAT" if "f" in element else "UNSIGNED" if element.startswith("ui") else "SIGNED")
    pair = f"%y{number}, %x{number}" if swapped else f"%x{number}, %y{number}"
    return f"%r = stablehlo.compare {direction}, {pair}, {kind} : (tensor<{element}>, tensor<{element}>) -> tensor<i1>"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes short rows sorted by digits as well, in several chunks."""
    monkeypatch.setattr(digit_sorts, "MIN_LENGTH", 16)
    monkeypatch.setattr(digit_sorts, "CHUNKS", 20)


def is_by_digits(text: str, target: Target) -> bool:
    """Returns whether a program is sorted by digits."""
    program = compile_text(text, "program", target, "canonical").program
    assert isinstance(program, Program)
    return digit_sorts.GIVEN in program.text()


CASES = {
    "bytes": ("1000", ["i8"], compare("i8")),
    "bytes without sign": ("777", ["ui8", "i32"], compare("ui8")),
    "short integers": ("4099", ["i16"], compare("i16", "GT")),
    "integers": ("5000", ["i32"], compare("i32")),
    "a whole chunk": ("2560", ["i32", "f64"], compare("i32")),
    "integers without sign": ("1x3001", ["ui32", "i32"], compare("ui32", "GT")),
    "other way round": ("1500", ["i32", "i32"], compare("i32", "GT", swapped=True)),
    "halves": ("3001x1", ["f16", "i32"], compare("f16", "LT", "TOTALORDER")),
    "brain floats": ("2000", ["bf16"], compare("bf16", "GT")),
    "floats": ("5001", ["f32", "i32"], compare("f32")),
    "the second": ("999", ["i64", "f32", "i8"], compare("f32", "GT", number=1)),
}


@pytest.mark.sample(4)
@pytest.mark.vulkan
@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", CASES)
def test_elements_are_where_a_stable_sort_has_them(gpu: pumice.Device, name: str) -> None:
    shape, elements, compared = CASES[name]
    text = text_of(shape, elements, compared)
    assert is_by_digits(text, target_of(gpu.profile))
    random, count = np.random.default_rng(0), max(int(array) for array in shape.split("x"))
    arguments = [random.integers(-99, 99, count).astype(DTYPES[element]) for element in elements]
    key = arguments["x1" in compared].astype(np.float64)
    # Zeros of both signs are equal, unless the comparison says otherwise.
    if key.dtype == np.float64 and "f" in elements["x1" in compared]:
        arguments["x1" in compared][key == 0] *= random.choice([-1, 1], int((key == 0).sum())).astype(key.dtype)
        key = arguments["x1" in compared].astype(np.float64)
        if "TOTALORDER" in compared:
            key = np.where(np.signbit(key) & (key == 0), -0.5, key)
    order = np.argsort(-key if ("GT" in compared) != ("%y0, %x0" in compared) else key, kind="stable")
    inputs = [argument.reshape([int(length) for length in shape.split("x")]) for argument in arguments]
    for actual, value in zip(called(gpu, text, *inputs), arguments, strict=True):
        assert actual.reshape(-1).tobytes() == value[order].tobytes()


@pytest.mark.vulkan
@pytest.mark.usefixtures("short")
def test_all_floats_have_a_place_in_the_total_order(gpu: pumice.Device) -> None:
    # From -NaN to NaN, in the order of their bits: each of 65,536 halves once.
    halves = np.random.default_rng(0).permutation(1 << 16).astype(np.uint16)
    text = text_of("65536", ["f16"], compare("f16", "LT", "TOTALORDER"))
    (actual,) = called(gpu, text, halves.view(np.float16))
    wanted = np.concatenate([np.arange(0xFFFF, 0x7FFF, -1), np.arange(0x8000)]).astype(np.uint16)
    np.testing.assert_array_equal(actual.view(np.uint16), wanted)


COMPUTED = """
    %z = stablehlo.constant dense<7> : tensor<i32>
    %u = stablehlo.and %x0, %z : tensor<i32>
    %v = stablehlo.and %y0, %z : tensor<i32>
    %r = stablehlo.compare LT, %u, %v, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
"""


@pytest.mark.vulkan
@pytest.mark.usefixtures("short")
def test_a_key_may_be_computed(gpu: pumice.Device) -> None:
    text, value = text_of("1000", ["i32"], COMPUTED), np.random.default_rng(0).integers(0, 999, 1000, np.int32)
    assert is_by_digits(text, target_of(gpu.profile))
    np.testing.assert_array_equal(called(gpu, text, value)[0], value[np.argsort(value & 7, kind="stable")])


@pytest.mark.vulkan
@pytest.mark.usefixtures("short")
def test_a_key_may_be_computed_in_many_ways(gpu: pumice.Device) -> None:
    """Computes the key in steps that use the previous step twice: there are too many paths to the element to follow
    all.
    """
    steps = [
        f"%{side}{number + 1} = stablehlo.add %{side}{number}, %{side}{number} : tensor<i32>"
        for side in "xy"
        for number in range(30)
    ]
    actual = "%r = stablehlo.compare LT, %x30, %y30, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"
    text = text_of("100", ["i32"], "\n".join([*steps, actual]))
    assert is_by_digits(text, target_of(gpu.profile))


@pytest.mark.parametrize(
    ("shape", "elements", "compared"),
    [
        ("4x1000", ["f32"], compare("f32")),
        ("1000", ["i64"], compare("i64")),
        ("1000", ["f32"], compare("f32", "LE")),
        ("1000", ["i32"], COMPUTED.replace("%v = stablehlo.and %y0, %z", "%v = stablehlo.or %y0, %z")),
        ("1000", ["i32", "i32"], compare("i32").replace("%x0, %y0", "%x0, %x1")),
        ("1000", ["i32"], "%r = stablehlo.constant dense<false> : tensor<i1>"),
    ],
    ids=["rows", "long integers", "not strict", "sides apart", "other operands", "no comparison"],
)
def test_other_sorts_are_merges(shape: str, elements: list[str], compared: str) -> None:
    assert not is_by_digits(text_of(shape, elements, compared), Target(family="cpu"))


def test_few_elements_and_other_devices_merge() -> None:
    long, short = (text_of(str(length), ["f32"], compare("f32")) for length in (1 << 18, 1 << 12))
    cpu = Target(family="cpu")
    assert is_by_digits(long, cpu)
    assert not is_by_digits(short, cpu)
    assert not is_by_digits(long, Target())
    assert not is_by_digits(long, replace(cpu, kinds=("vulkan", "reference")))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("stage", ["regions", "ll_seq", "targets"])
def test_passes_are_written_at_every_stage(stage: str) -> None:
    text, target = text_of("1000", ["i8", "i32"], compare("i8")), Target(family="cpu")
    program = compile_text(text, "program", target, stage).program
    assert isinstance(program, Program)
    assert compile_text(program.text(), "program", target).module == compile_text(text, "program", target).module


@pytest.mark.usefixtures("short")
def test_passes_share_their_kernels() -> None:
    text = text_of("1000", ["ui32", "i32"], compare("ui32"))
    program = compile_text(text, "program", Target(family="cpu"), "hl_seq").program
    assert isinstance(program, Program)
    assert program.text().count("iree_hl_seq.dispatch ") == 4 * len(program.executables)


def test_a_program_keeps_no_constants_in_memory() -> None:
    def added(attributes: str) -> bytes:
        text = f"""
            func.func @main(%a: tensor<i32>) -> tensor<i32> {{
              %c = stablehlo.constant {attributes} dense<7> : tensor<i32>
              %r = stablehlo.add %a, %c : tensor<i32>
              return %r : tensor<i32>
            }}
        """
        return compile_text(text, "program", Target()).module

    assert added(f"{{{IN_MEMORY} = true}}") == added("")


def test_a_program_gives_no_places() -> None:
    def sort(operands: str, types: str, more: str) -> bytes:
        text = f"""
            func.func @main(%a: tensor<16xi32>, %b: tensor<3xi32>) -> tensor<16xi32> {{
              %s = "stablehlo.sort"({operands}) ({{
              ^bb0(%x0: tensor<i32>, %y0: tensor<i32>):
                {compare("i32")}
                stablehlo.return %r : tensor<i1>
              }}) {{dimension = 0 : i64{more}}} : ({types}) -> tensor<16xi32>
              return %s : tensor<16xi32>
            }}
        """
        return compile_text(text, "program", Target()).module

    plain = sort("%a", "tensor<16xi32>", "")
    assert sort("%a, %b", "tensor<16xi32>, tensor<3xi32>", f", {digit_sorts.GIVEN} = 1 : i64") == plain


@pytest.mark.vulkan
@pytest.mark.usefixtures("short")
def test_the_definition_of_a_pass_is_a_sort() -> None:
    text, value = text_of("1000", ["i16"], compare("i16")), np.random.default_rng(0).integers(-99, 99, 1000, np.int16)
    program = compile_text(text, "program", Target(family="cpu"), "regions").program
    assert isinstance(program, Program)
    with pumice.open_device("reference") as reference:
        (actual,) = called(reference, program.text(), value, target=Target(kinds=("reference",)))
    np.testing.assert_array_equal(actual, np.sort(value))
