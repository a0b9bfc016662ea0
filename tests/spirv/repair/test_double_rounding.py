"""Doubles rounded by Floor and Ceil, against NumPy on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.devices.features import require_cut_loops
from support.devices.shader_tools import needs_compiler, needs_tools

import pumice
from pumice.hal_vulkan import Device
from pumice.hal_vulkan.pipelines.prepared_shader import prepare_shader
from pumice.hal_vulkan.pipelines.self_test import driver_faults
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.double_rounding import with_exact_rounding
from pumice.spirv.repair.driver_faults import ALL_FAULTS, DriverFault
from pumice.spirv.repair.driver_repairs import with_repairs
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import DataLossError

pytestmark = [needs_compiler, needs_tools]

HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
layout(constant_id = 0) const double SCALE = 1;
"""
SOURCE = """
layout(scalar, binding = 0) readonly buffer A {{ {double} as[]; }};
layout(scalar, binding = 1) readonly buffer B {{ {double} bs[]; }};
layout(scalar, binding = 2) writeonly buffer R {{ {double} rs[]; }};
void main() {{
  uint i = gl_GlobalInvocationID.x;
  if (i >= rs.length()) return;
  {double} a = as[i], b = bs[i];
  rs[i] = {expression};
}}
"""
LOOP = """
layout(binding = 0) readonly buffer Passes { uint passes; };
layout(binding = 1) writeonly buffer R { double rs[]; };
void main() {
  double sum = 0;
  for (uint i = 0; i < passes; i++) sum += roundEven(i * SCALE);
  rs[gl_GlobalInvocationID.x] = sum;
}
"""
# Expressions that go wrong, what NumPy makes of them, and what operands are less than.
Case = tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray], float]
CASES: dict[str, Case] = {
    "trunc": ("trunc(a)", lambda a, b: np.trunc(a), np.inf),
    "round": ("round(a)", lambda a, b: np.rint(a), np.inf),
    "round even": ("roundEven(a)", lambda a, b: np.rint(a), np.inf),
    "remainder": ("mod(a, b)", lambda a, b: a - b * np.trunc(a / b), np.inf),
    "int": ("{double}({int}(a))", lambda a, b: a.astype(np.int32).astype(np.float64), 2.0**31),
    "wider int": ("{double}({long}({int}(a)))", lambda a, b: a.astype(np.int32).astype(np.float64), 2.0**31),
    "long": ("{double}({long}(a))", lambda a, b: a.astype(np.int64).astype(np.float64), 2.0**63),
}
RIGHT = ["floor(a) + ceil(b)", "fract(a)", "{double}({int}(i))", "a * dot({double}({uint}(b)), a)"]
WIDTHS = (1, 3)


def module(expression: str, width: int = 1, *, is_remainder: bool = False) -> bytes:
    """A kernel that computes an expression of doubles, or of vectors of them."""
    names = {"double": "dvec", "int": "i32vec", "uint": "u32vec", "long": "i64vec"}
    types = {"double": "double", "int": "int", "uint": "uint", "long": "int64_t"}
    if width > 1:
        types = {name: f"{vector}{width}" for name, vector in names.items()}
    code = compile_glsl(HEAD + SOURCE.format(expression=expression.format(**types), **types))
    if is_remainder:  # GLSL has no name for it
        code = spirv_tools.assemble(spirv_tools.disassemble(code).replace("OpFMod", "OpFRem"), "vulkan1.2")
    return code


def operands(limit: float) -> np.ndarray:
    """Doubles of every exponent, integers and halves with their neighbours, powers of two, and special ones."""
    source = np.random.default_rng(7)
    halves = np.concatenate([np.arange(-4000, 4000) / 2, 2.0 ** np.arange(54) + 0.5, 2.0 ** np.arange(54) - 0.5])
    near = [np.nextafter(halves, end) for end in (-np.inf, np.inf)]
    every = source.integers(0, 1 << 64, 70_000, np.uint64).view(np.float64)
    large = np.ldexp(source.uniform(-1, 1, 30_000), source.integers(-2, 60, 30_000))
    tiny = np.finfo(np.float64).smallest_subnormal
    found = np.concatenate([halves, -halves, *near, every, large, [np.inf, -np.inf, np.nan, 0.0, -0.0, tiny, -tiny]])
    if limit < np.inf:
        found = found[np.abs(found) < limit]  # no NaN either
    return source.permutation(found)[: len(found) // 12 * 12]


def opened(**options: bool) -> pumice.Device:
    """A device that rounds doubles wrong, or skips the test."""
    device = pumice.open_device(**options)
    if DriverFault.DOUBLE_ROUNDING not in driver_faults(device.vulkan):
        device.close()
        pytest.skip("this driver rounds doubles right")
    return device


@pytest.mark.sample(6)
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_results(name: str, width: int) -> None:
    expression, meaning, limit = CASES[name]
    code = module(expression, width, is_remainder=name == "remainder")
    a = operands(limit)
    b = np.random.default_rng(8).permutation(a)
    with np.errstate(all="ignore"):
        b[::2] = a[::2] * np.random.default_rng(9).choice([0.5, 0.3, -2, 1 / 7, 1e-3, 1e-9], len(b[::2]))
        expected = meaning(a, b)
    shape = (-1, width) if width > 1 else (-1,)
    with opened() as device, device.load_kernel(code) as kernel:
        groups = -(-len(a) // width // 64)
        found = kernel(
            a.reshape(shape), b.reshape(shape), pumice.empty(a.reshape(shape).shape, np.float64), groups=groups
        )
    same = found.reshape(-1).view(np.uint64) == expected.view(np.uint64)
    wrong = np.flatnonzero(~same & ~(np.isnan(found.reshape(-1)) & np.isnan(expected)))
    assert not len(wrong), (a[wrong[:4]], b[wrong[:4]], found.reshape(-1)[wrong[:4]], expected[wrong[:4]])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_the_module_is_valid(name: str, width: int) -> None:
    code = module(CASES[name][0], width, is_remainder=name == "remainder")
    changed = with_exact_rounding(code, reflect(code))
    assert changed != code
    spirv_tools.validate(changed, options=["--scalar-block-layout"])
    assert with_exact_rounding(changed, reflect(changed)) is changed


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("expression", RIGHT)
def test_other_modules_stay_as_they_are(expression: str, width: int) -> None:
    code = module(expression, width)
    assert with_exact_rounding(code, reflect(code)) is code


def test_other_floats_stay_as_they_are() -> None:
    body = "layout(binding = 0) buffer B { float b; double d; }; void main() { b = roundEven(b) + trunc(b); d += b; }"
    code = compile_glsl(f"#version 450\n{body}")
    assert with_exact_rounding(code, reflect(code)) is code


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("options", [{"sanitize": True}, {"robust": True}, {"loop_guard": False}], ids=repr)
def test_with_other_passes_and_specialized(options: dict[str, bool]) -> None:
    with opened(**options) as device, device.load_kernel(HEAD + LOOP, specialization={"SCALE": 0.25}) as kernel:
        found = kernel(np.array([1000], np.uint32), pumice.empty(64, np.float64))
        np.testing.assert_array_equal(found, np.rint(np.arange(1000) * 0.25).sum())
        if options.get("loop_guard", True):
            require_cut_loops(device.vulkan.driver)
            with pytest.raises(DataLossError):
                kernel(np.array([100_000], np.uint32), pumice.empty(64, np.float64))


@pytest.mark.vulkan
@pytest.mark.features("shaderFloat64")
def test_modules_on_disk_are_of_the_plan(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    code = module("trunc(a)")
    if "shaderFloat64" not in device.plan.features:
        pytest.skip(f"{device.name} lacks shaderFloat64")
    natives = []
    for repairs in (True, False, True):
        monkeypatch.setattr(device, "plan", replace(device.plan, repairs=repairs))
        natives.append(prepare_shader(device, code).native)
    assert natives == [with_repairs(code, reflect(code), ALL_FAULTS), code, natives[0]]
