"""Compiled programs with special values as constants, on Vulkan against the reference device and NumPy."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import pumice
from pumice.hal_vulkan.instance.profile import DeviceProfile
from pumice.status import UnimplementedError

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

PROFILES = Path(__file__).parents[1] / "data" / "profiles"
TYPES = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui32": np.uint32,
    "ui64": np.uint64,
}
OPERATIONS = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "compare"]
SHIFTS = ["shift_left", "shift_right_logical", "shift_right_arithmetic", "and", "xor"]
CASES = [
    (type, operation)
    for type, dtype in TYPES.items()
    for operation in (OPERATIONS if np.issubdtype(dtype, np.floating) else [*OPERATIONS, *SHIFTS])
]


def values_of(dtype: type[np.generic]) -> np.ndarray:
    if issubclass(dtype, np.floating):
        facts = np.finfo(dtype)
        return np.array([0, -0.0, 1, -1, 2, -3, 0.5, np.inf, -np.inf, np.nan, facts.max, facts.tiny], dtype)
    limits = np.iinfo(dtype)
    width = limits.bits
    listed = [0, 1, 2, 3, -1, -2, -7, width - 1, width, limits.max, limits.min, limits.max - 1]
    return np.array([value for value in listed if limits.min <= value <= limits.max], dtype)


def literal(value: np.generic) -> str:
    data = np.asarray(value)
    return (
        f'"0x{int.from_bytes(data.tobytes(), "little"):0{2 * data.itemsize}X}"' if data.dtype.kind == "f" else str(data)
    )


def program(type: str, operation: str, constants: np.ndarray) -> str:
    """Returns a program with a result for each constant on either side."""
    count = len(constants)
    tensor = f"tensor<{count}x{type}>"
    result = f"tensor<{count}xi1>" if operation == "compare" else tensor
    lines, names = [], []
    for index, constant in enumerate(constants):
        lines.append(f"%c{index} = stablehlo.constant dense<{literal(constant)}> : {tensor}")
        directions = ("EQ", "NE", "LT", "GE") if operation == "compare" else ("",)
        for side, direction in itertools.product(("l", "r"), directions):
            x, y = (f"%c{index}", "%x") if side == "l" else ("%x", f"%c{index}")
            name = f"%{side}{direction}{index}"
            names.append(name)
            if direction:
                lines.append(f"{name} = stablehlo.compare {direction}, {x}, {y} : ({tensor}, {tensor}) -> {result}")
            else:
                lines.append(f"{name} = stablehlo.{operation} {x}, {y} : {tensor}")
    results = ", ".join([result] * len(names))
    body = "\n  ".join(lines)
    return f"""func.func public @main(%x: {tensor}) -> ({results}) {{
  {body}
  return {", ".join(names)} : {results}
}}"""


def results(module: bytes, device: pumice.Device | str, *arguments: np.ndarray) -> list[np.ndarray]:
    with pumice.Session(device=device) as session:
        found = session.call(session.load(module).name + ".main", *arguments)
        listed = found if isinstance(found, tuple | list) else [found]
        return [np.array(item.numpy()) for item in listed]


@pytest.mark.sample(12)
@pytest.mark.parametrize(("type", "operation"), CASES)
def test_each_operation_with_each_special_constant(type: str, operation: str) -> None:
    """Bit for bit, save NaNs; the reference device computes by NumPy. Division of integers by zero is not defined."""
    values = values_of(TYPES[type])
    is_float = values.dtype.kind == "f"
    # Devices may flush subnormals, or not; and overflow of f16 is rounded in f32.
    constants = values
    if operation in ("divide", "remainder") and not is_float:
        constants = values[values != 0]
        values = np.resize(constants, len(constants))
    with pumice.open_device() as device:
        features = device.vulkan.plan.features
        if type == "f64" and "shaderFloat64" not in features:
            pytest.skip(f"{device.name} lacks shaderFloat64")
        for profile in (None, device.vulkan.profile):
            if profile is None:
                module = pumice.compile(program(type, operation, constants), targets=("vulkan", "reference"))
                expected = results(module, "reference", values)
            else:
                module = pumice.compile(program(type, operation, constants), device=profile)
            found = results(module, device, values)
            for index, (right, got) in enumerate(zip(expected, found, strict=True)):
                close = operation in ("divide", "remainder") and is_float
                same = np.isclose(got, right, rtol=1e-3, equal_nan=True) if close else got == right
                if is_float and operation != "compare":
                    nan = np.isnan(right) & np.isnan(got)
                    zeros = (right == 0) & (got == 0)
                    signs = np.signbit(right) == np.signbit(got)
                    same = nan | (same & (~zeros | signs | (operation in ("maximum", "minimum"))))
                assert same.all(), (index, constants[index // (len(expected) // len(constants))], values, got, right)


X = np.array([3, 0, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("divide %a, %z", "x / 0"),
        ("divide %z, %a", "0 / x"),
        ("multiply %a, %z", "x * 0"),
        ("subtract %a, %a", "x - x"),
    ],
)
def test_a_result_is_written(text: str, expected: str) -> None:
    """Where the storage holds something else."""
    with np.errstate(all="ignore"):
        zero = np.float32(0)
        wanted = {"x / 0": X / zero, "0 / x": zero / X, "x * 0": X * zero, "x - x": X - X}[expected]
    module = pumice.compile(
        f"""func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r = stablehlo.{text} : tensor<4xf32>
  return %r : tensor<4xf32>
}}"""
    )
    with pumice.open_device() as device, pumice.Session(device=device) as session:
        function = session.lookup(session.load(module).name + ".main")
        out = session.device.asarray(np.full(4, 7, np.float32))
        np.testing.assert_array_equal(function(X, out=out).numpy(), wanted)


NARROW = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
A, B = np.array([-6, -5, -7, -1, 6, 5, 0, -100], np.int8), np.array([-6, -5, 7, -5, -4, 3, 9, 7], np.int8)
CONVERTED = {
    "%r = stablehlo.divide %a, %b : T": lambda a, b: np.sign(a) * np.sign(b) * (abs(a) // abs(b)),
    "%r = stablehlo.remainder %a, %b : T": np.fmod,
    "%r = stablehlo.divide %a, %two : T": lambda a, b: np.sign(a) * (abs(a) // 2),
    "%r = stablehlo.remainder %a, %two : T": lambda a, b: np.fmod(a, 2),
    "%r = stablehlo.abs %a : T": lambda a, b: abs(a),
    "%r = stablehlo.sign %a : T": lambda a, b: np.sign(a),
    "%r = stablehlo.maximum %a, %zero : T": lambda a, b: np.maximum(a, 0),
    "%c = stablehlo.compare LT, %a, %zero : (T, T) -> tensor<8xi1>\n"
    "%r = stablehlo.convert %c : (tensor<8xi1>) -> T": lambda a, b: (a < 0).astype(np.int64),
    "%f = stablehlo.convert %a : (T) -> tensor<8xf32>\n%r = stablehlo.convert %f : (tensor<8xf32>) -> T": lambda a, b: (
        a
    ),
}


@pytest.mark.parametrize("type", NARROW)
def test_wide_integers_converted_from_narrow_ones(type: str) -> None:
    with pumice.open_device() as device:
        for text, meaning in CONVERTED.items():
            source = f"""func.func public @main(%x: tensor<8x{type}>, %y: tensor<8x{type}>) -> T {{
  %zero = stablehlo.constant dense<0> : T
  %two = stablehlo.constant dense<2> : T
  %a = stablehlo.convert %x : (tensor<8x{type}>) -> T
  %b = stablehlo.convert %y : (tensor<8x{type}>) -> T
  {text}
  return %r : T
}}""".replace("T", "tensor<8xi64>").replace("Ltensor<8xi64>", "LT")
            module = pumice.compile(source, device=device.vulkan.profile)
            (found,) = results(module, device, A.astype(NARROW[type]), B.astype(NARROW[type]))
            np.testing.assert_array_equal(found, meaning(A.astype(np.int64), B.astype(np.int64)), text)


CUMULATIVE = """func.func public @main(%x: tensor<17xi32>) -> tensor<17xi32> {
  %most = stablehlo.constant dense<2147483647> : tensor<i32>
  %r = "stablehlo.reduce_window"(%x, %most) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.minimum %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) {window_dimensions = array<i64: 17>, padding = dense<[[16, 0]]> : tensor<1x2xi64>}
    : (tensor<17xi32>, tensor<i32>) -> tensor<17xi32>
  return %r : tensor<17xi32>
}"""


@pytest.mark.parametrize("name", ["nvidia_rtx_4060", "amd_rx_5500_xt_radv", "lavapipe_mesa_22_3_6"])
def test_a_module_for_other_subgroups_is_refused_or_right(name: str) -> None:
    profile = DeviceProfile.from_json(json.loads((PROFILES / f"{name}.json").read_text()))
    module = pumice.compile(CUMULATIVE, device=profile)
    x = np.array([3, 4, 5, 3, 4, 5, 6, 2, -1, 5, 6, 7, 8, 3, 2, 1, 0], np.int32)
    with pumice.open_device() as device:
        subgroup = device.vulkan.profile.subgroup
        try:
            (found,) = results(module, device, x)
        except UnimplementedError as error:
            assert f"compiled for subgroups of {profile.subgroup.size} " in error.message
            assert not subgroup.min_size <= profile.subgroup.size <= subgroup.max_size
        else:
            np.testing.assert_array_equal(found, np.minimum.accumulate(x))
