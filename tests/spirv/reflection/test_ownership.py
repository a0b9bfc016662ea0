"""Outputs that no invocation owns, and inputs that are spread over invocations, in shaders written each way."""

from __future__ import annotations

import pytest
from support.devices.shader_tools import needs_compiler

from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources.glsl import compile_glsl

pytestmark = needs_compiler

HEAD = """#version 450
layout(local_size_x = LOCAL) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer Y { uint y[]; };
shared uint s[64];
void put(uint at, uint v) { y[at] = v; }
void next(inout uint at) { at += 1; }
void main() {
    uint g = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x, w = gl_WorkGroupID.x, t = 0;
"""
OWN = {
    "copy": "y[g] = x[g];",
    "built from parts": "put(w * 64 + gl_LocalInvocationIndex, x[g]);",
    "with a stride": "for (uint i = g; i < y.length(); i += gl_NumWorkGroups.x * 64) y[i] = x[i];",
    "through local memory": "uint p[2]; p[0] = g; p[1] = 3; next(p[0]); y[p[0] * 4] = x[g];",
    "by a condition": "y[x[g] > 3 ? g : g + 1] = 1;",
    "by rows and columns": "uint row = g / x.length(), column = g % x.length(); y[row * 8 + column] = x[column + g];",
    "besides an atomic": "atomicAdd(y[0], x[g]); y[g + 1] = 2;",
}
SHARED = {
    "a sum": "atomicAdd(y[0], x[g]);",
    "bins": "atomicAdd(y[x[g]], 1);",
    "an atomic at its own place": "atomicMax(y[g], x[g]);",
    "partial results": "s[l] = x[g]; barrier(); if (l == 0) y[w] = s[0];",
    "partial results by division": "s[l] = x[g]; barrier(); if (l == 0) y[g / 64] = s[0];",
    "partial results by shift": "s[l] = x[g]; barrier(); if (l == 0) y[g >> 6] = s[0];",
    "round and round": "y[g % 64] = x[g];",
    "a scatter": "y[x[g]] = 1;",
    "appended": "if (x[g] > 3) put(atomicAdd(y[0], 1) + 1, x[g]);",
    "a row for each workgroup": "for (uint i = l; i < 100; i += 64) t += x[w * 100 + i]; atomicAdd(y[w], t);",
}


def bindings(body: str, local: int = 64) -> list[tuple[bool, bool]]:
    code = compile_glsl(HEAD.replace("LOCAL", str(local)) + body + "}")
    (entry,) = reflect(code).entry_points
    return [(binding.shared_output, binding.spread_input) for binding in entry.bindings]


@pytest.mark.parametrize("body", OWN.values(), ids=OWN)
def test_own_places(body: str) -> None:
    x, y = bindings(body)
    assert (x, y[0]) == ((False, True), False)


@pytest.mark.parametrize("body", SHARED.values(), ids=SHARED)
def test_places_of_no_invocation(body: str) -> None:
    x, y = bindings(body)
    assert (x, y[0]) == ((False, True), True)


def test_a_workgroup_of_one_is_its_invocation() -> None:
    body = "y[w] = x[w];"
    assert bindings(body) == [(False, True), (True, False)]
    assert bindings(body, local=1) == [(False, True), (False, False)]


def test_what_every_invocation_reads_is_not_spread() -> None:
    assert bindings("for (uint i = l; i < x.length(); i += 64) t += x[i]; y[0] = t;")[0] == (False, False)
