"""Exponents of ldexp that are not of 32 bits, against NumPy on the device."""

from __future__ import annotations

import numpy as np
import pytest
from support.devices.features import require_features, type_features
from support.devices.shader_tools import needs_compiler, needs_tools

import pumice
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.exponents import with_plain_exponents
from pumice.spirv.sources.glsl import compile_glsl

# glslang converts exponents by itself, so the assembly is changed to take them as they are.
SOURCE = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(binding = 0) readonly buffer S {{ {vector} s[]; }};
layout(binding = 1) readonly buffer E {{ {exponent} e[]; }};
layout(binding = 2) writeonly buffer R {{ {vector} r[]; }};
void main() {{
  uint i = gl_GlobalInvocationID.x;
  {exponent} e = e[i];
  r[i] = ldexp(s[i], {plain}(e));
}}
"""


def module(vector: str, exponent: str, plain: str) -> bytes:
    """A kernel whose Ldexp takes its exponent in its own type."""
    code = compile_glsl(SOURCE.format(vector=vector, exponent=exponent, plain=plain))
    lines = spirv_tools.disassemble(code).splitlines()
    converted = next(line for line in lines if "OpSConvert" in line)
    result, given = converted.split()[0], converted.split()[-1]
    kept = [line for line in lines if line is not converted]
    return spirv_tools.assemble("\n".join(line.replace(f" {result}", f" {given}") for line in kept), "vulkan1.2")


@needs_compiler
@needs_tools
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("vector", "exponent", "plain", "dtype", "width"),
    [
        ("float", "int16_t", "int", np.int16, 1),
        ("float", "int8_t", "int", np.int8, 1),
        ("float", "int64_t", "int", np.int64, 1),
        ("vec4", "i64vec4", "ivec4", np.int64, 4),
        ("vec2", "i16vec2", "ivec2", np.int16, 2),
    ],
)
def test_results(vector: str, exponent: str, plain: str, dtype: type, width: int) -> None:
    code = module(vector, exponent, plain)
    spirv_tools.validate(code)
    changed = with_plain_exponents(code, reflect(code))
    assert changed != code
    spirv_tools.validate(changed)
    assert with_plain_exponents(changed, reflect(changed)) == changed
    exponents = np.array([0, 1, -1, 5, -7, 100, -100, 120], dtype).reshape(-1, width)
    if dtype is np.int64:
        exponents[-1, -1] = -(1 << 40)
    values = np.linspace(-2, 3, exponents.size, dtype=np.float32).reshape(exponents.shape)
    with pumice.open_device() as device:
        require_features(device.vulkan, *type_features(dtype))
        with device.load_kernel(code) as kernel:
            result = kernel(values, exponents, pumice.empty(values.shape), groups=len(values))
    expected = np.ldexp(values.astype(np.float64), np.clip(exponents.astype(np.int64), -1000, 1000)).astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-37)


@needs_compiler
def test_other_modules_stay_as_they_are() -> None:
    for source in ("void main() {}", "layout(binding = 0) buffer B { float b; }; void main() { b = ldexp(b, 3); }"):
        code = compile_glsl(f"#version 450\n{source}")
        assert with_plain_exponents(code, reflect(code)) is code
