"""HLSL as FXC and dxc take it: each construct that Slang refuses gives the values that dxc's code would."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import pumice
from pumice.spirv.sources import find
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

pytestmark = [pytest.mark.vulkan, pytest.mark.slow]

# Declarations, the body of `main`, and the values that it stores in `o`, from its first element.
CASES: dict[str, tuple[str, str, list[float]]] = {
    "two loops with one variable": (
        "",
        "float s = 0; for (uint i = 0; i < 4; ++i) s += i; for (uint i = 0; i < 3; ++i) s *= 2; o[0] = s;",
        [48],
    ),
    "a variable of a loop after it": (
        "",
        "[unroll] for (uint i = 0; i < 4; ++i) o[i] = i; o[0] = i; for (i = 1; i < 3; ++i) o[i] = 7;"
        "for (uint i = 9; i < 10; ++i) o[3] = i;",
        [4, 7, 7, 9],
    ),
    "a variable of a loop within a loop, after it": (
        "",
        "for (uint j = 0; j < 2; ++j) { for (uint i = 0; i < 4; ++i) if (i > j) break; o[j] = i; }",
        [1, 2],
    ),
    "casts that truncate": (
        "struct Pair { float x; int2 yz; };",
        "float4 v = float4(1.5, 2.5, 3.5, 4.5); float3 a = (float3)v; int2 b = (int2)v; float c = (float)v; uint d = v;"
        "float2 e = a; Pair p = (Pair)0; o[0] = a.z; o[1] = b.y; o[2] = c; o[3] = d; o[4] = e.y; o[5] = p.yz.y;",
        [3.5, 2, 1.5, 1, 2.5, 0],
    ),
    "arguments that truncate": (
        "float f(float2 v) { return v.x + 10 * v.y; } float f(float3 v, int i) { return v[i]; }",
        "float4 v = float4(1, 2, 3, 4); o[0] = f(v); o[1] = f(v, 2);",
        [21, 3],
    ),
    "unsigned": (
        "StructuredBuffer<unsigned int> x; struct S { unsigned a; };",
        "unsigned int a = x[0]; unsigned b = 3; S s; s.a = 1; o[0] = a / 2 + b + s.a; o[1] = (unsigned)2.5;",
        [7, 2],
    ),
    "types with the names of their variables": (
        "struct Scene { float a; float2 b; }; ConstantBuffer<Scene> Scene; float f(Scene s) { return s.a; }",
        "Scene copy = Scene; o[0] = Scene.a; o[1] = copy.b.y; o[2] = f(Scene);",
        [5, 7, 5],
    ),
    "counters of structured buffers": (
        "RWStructuredBuffer<float> list;",
        "o[0] = list.IncrementCounter(); o[1] = list.IncrementCounter(); o[2] = list.DecrementCounter();"
        "list[list.IncrementCounter()] = 6; o[3] = list[6];",
        [5, 6, 6, 6],
    ),
    "global constants": (
        "const float half_of = 0.5; static const uint table[] = { 1, 2, 3 }; namespace N { const int three = 3; }",
        "o[0] = half_of; o[1] = table[2]; o[2] = N::three;",
        [0.5, 3, 3],
    ),
    "a function with the name of the kernel": (
        "float main(float x) { return 2 * x; }",
        "o[0] = main(4);",
        [8],
    ),
    "enumerations": (
        "enum Kind { first, second = 5, third }; namespace Size { enum Size { width = 8 }; }",
        "int k = third; Kind again = first; o[0] = k; o[1] = again == first ? Size::width : 0; o[2] = Kind::second;"
        "uint w = third + 1;"
        "switch (k) { case second: o[3] = 1; break; case third: o[3] = w; break; }",
        [6, 8, 5, 7],
    ),
    "old names of types": (
        "using Number = uint; typedef dword Word;",
        "Number n = 3; Word w = 4; DWORD d = 5; min16uint m = 6; o[0] = n + w + d + m;",
        [18],
    ),
    "constants of an old kind": (
        "tbuffer Old : register(t3) { float first; float second; };",
        "o[0] = first + second;",
        [5],
    ),
    "absolute values": (
        "",
        "uint3 big = uint3(0xfffffffe, 3, 0); int2 less = int2(-5, 6); o[0] = abs(big).x == 0xfffffffe;"
        "o[1] = abs(less).x; o[2] = abs(less.y); o[3] = abs(big.x) >> 30;",
        [1, 5, 6, 3],
    ),
    "hints where Slang has none": (
        "",
        "[branch] switch (id.x) { case 0: o[0] = 3; break; default: o[0] = 4; } [flatten] if (id.x < 1) o[1] = 5;",
        [3, 5],
    ),
    "methods that change members": (
        "struct Sum { float total; float parts[2]; float2 at; void add(float x) { total += x; parts[1] = x; at.y = x; }"
        "void twice(float x) { add(x); this.add(x); } float mean() { float total_of = total; return total_of / 2; } };"
        "Sum made() { Sum s; s.total = 8; s.parts[0] = s.parts[1] = 0; s.at = 0; return s; }",
        "Sum s = made(); s.twice(3); o[0] = s.total; o[1] = s.parts[1] + s.at.y; o[2] = made().mean();",
        [14, 6, 4],
    ),
    "methods outside of their structures": (
        "struct Pair { float a; float b; float sum(); void set(float x, float y); static Pair of(float x); };"
        "float Pair::sum() { return a + b; } void Pair::set(float x, float y) { a = x; b = y; }"
        "Pair Pair::of(float x) { Pair p; p.a = x; p.b = x; return p; }",
        "Pair p = Pair::of(2); o[0] = p.sum(); p.set(3, 4); o[1] = p.sum();",
        [4, 7],
    ),
    "declarations in another order": (
        "struct Later; float f(Later s, float const x); struct Later { float a; };"
        "template<typename T> T unused(T x) { return x.missing; }"
        "float f(Later s, uint const pass) { return s.a + pass; }"
        "[[vk::constant_id(3)]] const uint setting = 4;",
        "Later s; s.a = 2; o[0] = f(s, 3u); o[1] = setting;",
        [5, 4],
    ),
    "structures without names": (
        "groupshared struct { float2 at; float w; } shared_values[4]; typedef struct { float a; } Named;",
        "shared_values[2].w = 5; Named n; n.a = 2; struct { int k; } local; local.k = 3; o[0] = shared_values[2].w;"
        "o[1] = n.a + local.k;",
        [5, 5],
    ),
    "results of atomics in the other integer": (
        "groupshared int count; groupshared uint most;",
        "uint a; int b; count = 5; most = 7; InterlockedAdd(count, 2, a); InterlockedMax(most, 9, b); o[0] = a;"
        "o[1] = b;"
        "InterlockedCompareExchange(count, 7, 1, a); o[2] = a; o[3] = count; o[4] = most;",
        [5, 7, 7, 1, 9],
    ),
    "exponents": ("", "float e; float m = frexp(12.0, e); o[0] = m; o[1] = e;", [0.75, 4]),
}
ARGUMENTS: dict[str, dict[str, object]] = {
    "unsigned": {"x": np.array([7], np.uint32)},
    "types with the names of their variables": {"Scene": {"a": 5, "b": [6, 7]}},
    "counters of structured buffers": {"list": np.zeros(8, np.float32), "list_counter": np.array([5], np.int32)},
    "constants of an old kind": {"Old": {"first": 2, "second": 3}},
}


@pytest.fixture
def device(driver: object) -> Iterator[pumice.Device]:
    """One device: how arrays are copied does not matter to what compilers make."""
    del driver
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture
def _compiler() -> None:
    try:
        find.find_compiler(Language.HLSL)
    except UnavailableError as error:
        pytest.skip(f"no compiler: {error.message[:80]}")


@pytest.mark.usefixtures("_compiler")
@pytest.mark.parametrize("name", CASES)
def test_values(device: pumice.Device, name: str) -> None:
    declarations, body, expected = CASES[name]
    text = f"""#define STORE RWStructuredBuffer<float> o
STORE;
{declarations}
[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{ {body} }}
"""
    kernel = device.load_kernel(text, language="hlsl", entry_point="main")
    o = device.asarray(np.zeros(len(expected), np.float32))
    kernel(o=o, groups=1, **ARGUMENTS.get(name, {}))
    assert o.numpy().tolist() == expected


@pytest.mark.usefixtures("_compiler")
def test_what_no_compiler_takes_is_said_of_the_source(device: pumice.Device) -> None:
    text = "RWStructuredBuffer<float> o;\n[numthreads(1, 1, 1)] void main() {\n  o[0] = missing;\n}\n"
    with pytest.raises(pumice.InvalidArgumentError, match=r"missing[\s\S]*dxc") as info:
        device.load_kernel(text, language="hlsl", entry_point="main")
    assert info.value.location is not None and info.value.location.startswith("<source>:3:")
