"""Bindings of HLSL's resources: registers, free numbers, counters, and collisions, with every compiler."""

from __future__ import annotations

import shutil

import pytest

from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources import find
from pumice.spirv.sources.compile import compile_source
from pumice.spirv.sources.language import Language
from pumice.status import InvalidArgumentError, UnavailableError

pytestmark = pytest.mark.slow

ENTRY = "\n[numthreads(1, 1, 1)] void main(uint3 i : SV_DispatchThreadID) {"


@pytest.fixture(params=["the first compiler", "glslang"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "glslang":
        path = shutil.which("glslangValidator")
        if path is None:
            pytest.skip("no glslangValidator")
        monkeypatch.setenv("PUMICE_HLSLC", path)
    try:
        return find.find_compiler(Language.HLSL).version
    except UnavailableError as error:
        pytest.skip(f"no compiler: {error.message[:80]}")


def bindings(text: str, entry_point: str = "main") -> dict[str, tuple[int, int]]:
    code = compile_source(text, Language.HLSL, entry_point=entry_point)
    return {b.name: (b.set, b.binding) for b in reflect(code).entry_point(entry_point).bindings}


def test_resources_without_registers_get_free_bindings_in_order(compiler: str) -> None:
    text = """StructuredBuffer<float> x; RWStructuredBuffer<float> y; ByteAddressBuffer z; cbuffer C { float c; };"""
    assert bindings(f"{text}{ENTRY} y[0] = x[0] + z.Load(0) + c; }}") == {
        "x": (0, 0),
        "y": (0, 1),
        "z": (0, 2),
        "C": (0, 3),
    }


def test_free_bindings_leave_out_those_of_registers(compiler: str) -> None:
    text = """RWStructuredBuffer<float> y : register(u1); StructuredBuffer<float> a; StructuredBuffer<float> b;
StructuredBuffer<float> c : register(t3); StructuredBuffer<float> d : register(t0, space1);"""
    found = bindings(f"{text}{ENTRY} y[0] = a[0] + b[0] + c[0] + d[0]; }}")
    assert found["y"] == (0, 1) and found["c"] == (0, 3) and found["d"] == (1, 0)
    assert {found["a"], found["b"]} == {(0, 0), (0, 2)}


def test_kinds_of_registers_that_share_a_number_are_apart(compiler: str) -> None:
    text = """Texture2D<float4> t : register(t0); RWStructuredBuffer<float> u : register(u0);
SamplerState s : register(s0); cbuffer B : register(b0) { float b; }; StructuredBuffer<float> v : register(t1);"""
    assert bindings(f"{text}{ENTRY} u[0] = b + v[0] + t.SampleLevel(s, 0, 0).x; }}") == {
        "t": (0, 0),
        "v": (0, 1),
        "u": (0, 100),
        "s": (0, 200),
        "B": (0, 300),
    }


def test_registers_of_macros_are_apart_too(compiler: str) -> None:
    text = "#define SLOT(kind, n) register(kind##n)\nStructuredBuffer<float> x : SLOT(t, 0);"
    text += "RWStructuredBuffer<float> y : SLOT(u, 0);"
    assert bindings(f"{text}{ENTRY} y[0] = x[0]; }}") == {"x": (0, 0), "y": (0, 100)}


def test_bindings_of_vulkan_stay(compiler: str) -> None:
    text = """[[vk::binding(4)]] RWStructuredBuffer<float> y; [[vk::binding(1, 1)]] StructuredBuffer<float> a;
StructuredBuffer<float> b : register(t0); RWStructuredBuffer<float> c : register(u0);"""
    assert bindings(f"{text}{ENTRY} y[0] = a[0] + b[0]; c[0] = 1; }}") == {
        "y": (0, 4),
        "a": (1, 1),
        "b": (0, 0),
        "c": (0, 100),
    }


def test_counters_take_free_bindings(compiler: str) -> None:
    text = """RWStructuredBuffer<float> y : register(u0); AppendStructuredBuffer<float> kept : register(u1);
RWStructuredBuffer<float> z : register(u2); ConsumeStructuredBuffer<float> work : register(u0, space1);"""
    found = bindings(f"{text}{ENTRY} y[0] = 1; z[0] = 2; kept.Append(work.Consume()); }}")
    assert len(set(found.values())) == len(found) == 6
    assert (found["kept"], found["z"], found["work"]) == ((0, 1), (0, 2), (1, 0))
    assert {"kept_counter", "work_counter"} <= found.keys()


def test_a_collision_is_an_error_with_both_names(compiler: str) -> None:
    text = "RWStructuredBuffer<float> first : register(u2); RWStructuredBuffer<float> second : register(u2);"
    with pytest.raises(InvalidArgumentError, match=r"first and second have the same register, u2.*different registers"):
        bindings(f"{text}{ENTRY} first[0] = 1; second[0] = 2; }}")
    # Entry points of one file may use the same register for different resources.
    assert bindings(f"{text}{ENTRY} second[0] = 2; }}") == {"second": (0, 2)}
    text = "[[vk::binding(0)]] RWStructuredBuffer<float> first; StructuredBuffer<float> second : register(t0);"
    with pytest.raises(InvalidArgumentError, match=r"first and second have the same binding, 0 of set 0"):
        bindings(f"{text}{ENTRY} first[0] = second[0]; }}")


def test_aliases_with_bindings_of_vulkan_are_meant(compiler: str) -> None:
    text = "[[vk::binding(0)]] RWStructuredBuffer<float> f; [[vk::binding(0)]] RWStructuredBuffer<uint> u;"
    assert set(bindings(f"{text}{ENTRY} f[0] = u[1]; }}").values()) == {(0, 0)}
