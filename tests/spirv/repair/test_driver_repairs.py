"""Modules repaired for drivers with faults: valid, and right on the device at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.devices.shader_tools import needs_compiler, needs_tools

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.driver_faults import ALL_FAULTS, NO_FAULTS, DriverFault
from pumice.spirv.repair.driver_repairs import with_repairs
from pumice.spirv.repair.self_test import probes
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = [needs_compiler, needs_tools]

FEATURES = ("shaderInt8", "shaderInt16", "shaderInt64", "shaderFloat16", "shaderFloat64")
HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x = 64) in;
"""
FLOATS = (
    HEAD
    + """
layout(constant_id = 0) const float CHOSEN = 1;
layout(binding = 0) readonly buffer X {{ {element} xs[]; }};
layout(binding = 1) readonly buffer B {{ uint bounds[]; }};
layout(binding = 2) writeonly buffer R {{ {element} rs[]; }};
const float TABLE[3] = float[](0.0, 1.0, 2.0);
{type} by({type} x, {type} y) {{ return x * y; }}
void main() {{
  uint i = gl_GlobalInvocationID.x;
  if (i >= rs.length()) return;
  {type} x = {type}(xs[i]), r = {type}(7);
  uint bound = bounds[0];  // 1
  {{ {statement} }}
  rs[i] = {element}(r);
}}
"""
)
VALUES = np.array([3, 0, -0.0, -2, np.inf, -np.inf, np.nan, 1], np.float32)
ZERO = np.float32(0)

# Statements that set r, and r by NumPy.
STATEMENTS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "x / 0": ("r = x / {type}(0);", lambda x: x / ZERO),
    "0 / x": ("r = {type}(0) / x;", lambda x: ZERO / x),
    "x * 0": ("r = x * {type}(0);", lambda x: x * ZERO),
    "x * -0": ("r = x * {type}(-0.0);", lambda x: x * -ZERO),
    "x + 0": ("r = x + {type}(0);", lambda x: x + ZERO),
    "0 - x": ("r = {type}(0) - x;", lambda x: ZERO - x),
    "x * inf": ("r = x * {type}(uintBitsToFloat(0x7f800000u));", lambda x: x * np.float32(np.inf)),
    "a local": ("{type} z = {type}(0); if (bound == 7u) z = x; r = x / z;", lambda x: x / ZERO),
    "a selection": ("{type} z = bound == 1u ? {type}(0) : x; r = x * z;", lambda x: x * ZERO),
    "an argument": ("r = by(x, {type}(0));", lambda x: x * ZERO),
    "an unrolled loop": (
        "{type} s = {type}(1); for (int k = 0; k < 3; k++) s += x * {type}(k); r = s;",
        lambda x: (1 + x * ZERO) + x + x * 2,
    ),
    "a sum in a loop": (
        "{type} s = {type}(-0.0); for (uint k = 0; k < bound; k++) s += x * {type}(0); r = s;",
        lambda x: -ZERO + x * ZERO,
    ),
    "a converted integer": ("int k = 0; r = x / {type}(k);", lambda x: x / ZERO),
    "bits": ("r = x * {type}(uintBitsToFloat(0u));", lambda x: x * ZERO),
    "a vector": ("vec3 v = vec3(x) / vec3(1.0, 0.0, 2.0); r = {type}(v.y);", lambda x: x / ZERO),
    "a constant of the pipeline": ("r = x / {type}(CHOSEN);", lambda x: x / ZERO),
}
WIDTHS = {"float": ("float", np.float32), "float16_t": ("float", np.float32), "double": ("double", np.float64)}


def shader(name: str, type: str) -> bytes:
    return compile_glsl(
        FLOATS.format(type=type, element=WIDTHS[type][0], statement=STATEMENTS[name][0].format(type=type))
    )


@pytest.mark.sample(12)
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("type", WIDTHS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_special_constants(name: str, type: str) -> None:
    dtype = WIDTHS[type][1]
    with pumice.open_device() as device:
        needed = {"float16_t": "shaderFloat16", "double": "shaderFloat64"}.get(type)
        if needed is not None and needed not in device.vulkan.plan.features:
            pytest.skip(f"{device.name} lacks {needed}")
        values = VALUES.astype(dtype)
        with device.load_kernel(shader(name, type), specialization={"CHOSEN": 0.0}) as kernel:
            found = kernel(values, np.ones(1, np.uint32), pumice.empty(len(values), dtype))
    with np.errstate(all="ignore"):
        expected = STATEMENTS[name][1](values).astype(dtype)
    assert np.array_equal(found, expected, equal_nan=True), (found, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("type", WIDTHS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_modules_stay_valid(name: str, type: str) -> None:
    code = shader(name, type)
    changed = with_repairs(code, reflect(code), ALL_FAULTS)
    assert changed != code
    spirv_tools.validate(changed)
    assert with_repairs(code, reflect(code), NO_FAULTS) is code


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_packed_halves_are_rounded() -> None:
    code = compile_glsl(
        HEAD
        + """
layout(binding = 0) readonly buffer X { float xs[]; };
layout(binding = 1) writeonly buffer R { float rs[]; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < rs.length()) rs[i] = unpackHalf2x16(packHalf2x16(vec2(0, xs[i]))).y;
}
"""
    )
    spirv_tools.validate(with_repairs(code, reflect(code), ALL_FAULTS))
    values = np.linspace(1, 8, 99, dtype=np.float32)
    with pumice.open_device() as device, device.load_kernel(code) as kernel:
        found = kernel(values, pumice.empty(len(values), np.float32))
    # Vulkan leaves it to the driver whether it rounds to the nearest.
    assert isinstance(found, np.ndarray) and np.array_equal(found, found.astype(np.float16))
    np.testing.assert_allclose(found, values, 2**-10)


INTEGERS = (
    HEAD
    + """
layout(binding = 0) readonly buffer X {{ {small} xs[]; }};
layout(binding = 1) readonly buffer Y {{ {small} ys[]; }};
layout(binding = 2) writeonly buffer R {{ {large} rs[]; }};
void main() {{
  uint i = gl_GlobalInvocationID.x;
  if (i >= rs.length()) return;
  {large} x = {large}(xs[i]), y = {large}(ys[i]);
  rs[i] = {large}({expression});
}}
"""
)
XS = np.array([-6, -5, -7, -1, 6, 5, 0, -(1 << 31), (1 << 31) - 1], np.int32)
YS = np.array([-6, 5, 7, -5, -4, 3, 2, 7, -3], np.int32)
Case = tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]
CONVERSIONS: dict[str, Case] = {
    "less": ("x < {large}(0)", lambda x, y: x < 0),
    "not less": ("x >= {large}(1)", lambda x, y: x >= 1),
    "most": ("max(x, {large}(0))", lambda x, y: np.maximum(x, 0)),
    "least": ("min(x, {large}(-2))", lambda x, y: np.minimum(x, -2)),
    "absolute": ("abs(x)", lambda x, y: abs(x)),
    "sign": ("sign(x)", lambda x, y: np.sign(x)),
    "half": ("x / {large}(2)", lambda x, y: np.fix(x / 2).astype(x.dtype)),
    "quotient": ("x / y", lambda x, y: np.fix(x / y).astype(x.dtype)),
    "float": ("float(x) * 0.5", lambda x, y: np.fix(x.astype(np.float32) * np.float32(0.5)).astype(x.dtype)),
    "modulo": ("x % y", np.mod),
    "modulo of a constant": ("x % {large}(3)", lambda x, y: np.mod(x, 3)),
}
TYPES = {
    "int": ("int", "int", np.int32),
    "int64_t": ("int", "int64_t", np.int64),
    "i64vec3": ("ivec3", "i64vec3", np.int64),
    "ivec3": ("ivec3", "ivec3", np.int32),
}


@pytest.mark.sample(12)
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("type", [name for name in TYPES if "vec" not in name])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_signed_integers(name: str, type: str) -> None:
    """glslang writes ``SMod`` for ``%``, whose result has the divisor's sign."""
    small, large, dtype = TYPES[type]
    expression, meaning = CONVERSIONS[name]
    code = compile_glsl(INTEGERS.format(small=small, large=large, expression=expression.format(large=large)))
    with pumice.open_device() as device:
        if dtype is np.int64 and "shaderInt64" not in device.vulkan.plan.features:
            pytest.skip(f"{device.name} lacks shaderInt64")
        xs = XS if dtype is np.int64 else XS[:-2]
        ys = YS[: len(xs)]
        with device.load_kernel(code) as kernel:
            found = kernel(xs, ys, pumice.empty(len(xs), dtype))
    np.testing.assert_array_equal(found, meaning(xs.astype(dtype), ys.astype(dtype)).astype(dtype))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", ["modulo", "quotient"])
def test_modules_of_integers_stay_valid(name: str, type: str) -> None:
    small, large, _ = TYPES[type]
    code = compile_glsl(INTEGERS.format(small=small, large=large, expression=CONVERSIONS[name][0]))
    changed = with_repairs(code, reflect(code), ALL_FAULTS)
    assert (changed is code) == (name == "quotient" and "64" not in type)
    spirv_tools.validate(changed)
    assert "OpSMod" not in spirv_tools.disassemble(changed)


def test_other_modules_stay_as_they_are() -> None:
    code = compile_glsl(HEAD + "layout(binding = 0) buffer B { uint a[]; }; void main() { a[0] = a[1] * 3u; }")
    assert with_repairs(code, reflect(code), ALL_FAULTS) is code


def test_a_module_that_counts_workgroups_has_one_variable_of_them() -> None:
    body = "layout(binding = 0) buffer B { float a[]; }; void main() { a[gl_NumWorkGroups.x] = a[1] * 0.0; }"
    code = compile_glsl(HEAD + body)
    changed = spirv_tools.disassemble(with_repairs(code, reflect(code), ALL_FAULTS))
    assert changed.count("BuiltIn NumWorkgroups") == 1


def test_the_kernels_of_the_self_test_are_valid() -> None:
    faults = set()
    for probe in probes(FEATURES):
        spirv_tools.validate(probe.code)
        changed = with_repairs(probe.code, reflect(probe.code), {probe.fault})
        assert changed != probe.code
        spirv_tools.validate(changed)
        faults.add(probe.fault)
    assert faults == set(DriverFault)
    everywhere = {
        DriverFault.NARROW_ROUNDING,
        DriverFault.LOOP_EXITS,
        DriverFault.SIGNED_MODULO,
        DriverFault.SPECIAL_CONSTANTS,
    }
    assert {probe.fault for probe in probes(())} == everywhere


def test_wrong_results_are_told_from_right_ones() -> None:
    """Right results by NumPy, then each with a bit changed."""
    probe = next(probe for probe in probes(()) if probe.fault is DriverFault.SIGNED_MODULO)
    xs = np.array(probe.values, np.int64)
    rows = []
    for case in probe.cases:
        _, y = case.operands
        assert isinstance(y, int)
        meaning = {"SDiv": lambda y=y: np.fix(xs / y), "SRem": lambda y=y: np.fmod(xs, y), "SMod": lambda y=y: xs % y}
        rows.append(meaning[case.operation]().astype(np.int32))
    right = np.concatenate(rows)
    assert probe.wrong_cases(right.tobytes()) == []
    for index in range(0, len(right), 5):
        wrong = right.copy()
        wrong[index] ^= 1
        assert probe.wrong_cases(wrong.tobytes()) == [probe.cases[index // len(xs)]]
