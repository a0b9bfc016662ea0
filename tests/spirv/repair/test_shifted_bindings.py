"""Kernels whose bindings start before the data; tests/runtime/modules/hal/test_executable_abi.py runs some."""

from __future__ import annotations

import pytest
from support.devices.shader_tools import needs_compiler, needs_tools

from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.repair.shifted_bindings import with_shifted_bindings
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import UnimplementedError

pytestmark = [needs_compiler, needs_tools]

SOURCE = """#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) {block}
layout(set = 0, binding = 1) buffer B {{ uint b[]; }};
void main() {{ b[gl_GlobalInvocationID.x] = {value}; }}
"""
KINDS = {
    "an array": ("readonly buffer A { uint a[8]; };", "a[gl_LocalInvocationID.x]"),
    "a constant index": ("readonly buffer A { uint a[]; };", "a[3]"),
    "a length": ("readonly buffer A { uint a[]; };", "a.length()"),
    "vectors": ("buffer A { uvec4 a[]; };", "a[b[0]].y"),
}


def shader(block: str, value: str) -> bytes:
    return compile_glsl(SOURCE.format(block=block, value=value))


@pytest.mark.parametrize("kind", KINDS)
def test_modules_stay_valid(kind: str) -> None:
    code = shader(*KINDS[kind])
    changed = with_shifted_bindings(code, {(0, 0): 64, (0, 1): 0})
    assert changed != code
    spirv_tools.validate(changed)


@pytest.mark.parametrize(
    "block, value, shift, message",
    [
        ("buffer A { uvec4 a[]; };", "a[1].x", 8, "binding 0 is no array of elements of which whole ones fit into 8"),
        ("uniform A { uvec4 a[8]; };", "a[1].x", 64, "no array of elements"),
        ("buffer A { uint first; uint a[]; };", "first", 64, "no array of elements"),
    ],
)
def test_other_bindings_are_refused(block: str, value: str, shift: int, message: str) -> None:
    with pytest.raises(UnimplementedError, match=message):
        with_shifted_bindings(shader(block, value), {(0, 0): shift})
