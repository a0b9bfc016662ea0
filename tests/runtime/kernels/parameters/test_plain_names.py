"""HLSL and Slang: members and buffers have the names and shapes of the source, whatever the compiler makes of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

import pumice
from pumice.spirv.sources import find
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

pytestmark = [pytest.mark.vulkan, pytest.mark.slow]

BLOCK = """struct Light { float3 at; float w[3]; };
struct Block {
    uint n; float w[3]; int2 pairs[2][2]; float2x3 turns[2]; int2x3 whole; Light lights[2]; column_major float2x3 last;
};
"""
# A float of every member in their order, by the source's own indices.
BODY = """
    uint k = 0;
    o[k++] = b.n;
    for (int i1 = 0; i1 < 3; i1++) o[k++] = b.w[i1];
    for (int i2 = 0; i2 < 8; i2++) o[k++] = b.pairs[i2 / 4][i2 / 2 % 2][i2 % 2];
    for (int i3 = 0; i3 < 12; i3++) o[k++] = b.turns[i3 / 6][i3 / 3 % 2][i3 % 3];
    for (int i4 = 0; i4 < 6; i4++) o[k++] = b.whole[i4 / 3][i4 % 3];
    for (int i5 = 0; i5 < 2; i5++) {
        o[k++] = b.lights[i5].at.y;
        for (int j = 0; j < 3; j++) o[k++] = b.lights[i5].w[j];
    }
    for (int i6 = 0; i6 < 6; i6++) o[k++] = b.last[i6 / 3][i6 % 3];
"""
VALUES = {
    "n": 7,
    "w": [1, 2, 3],
    "pairs": np.arange(8).reshape(2, 2, 2),
    "turns": 10 + np.arange(12).reshape(2, 2, 3),
    "whole": [[-1, -2, -3], [-4, -5, -6]],
    "lights": [{"at": [0, 5, 0], "w": [6, 7, 8]}, {"at": [0, 9, 0], "w": [10, 11, 12]}],
    "last": [[31, 32, 33], [34, 35, 36]],
}
EXPECTED = [7, 1, 2, 3, *range(8), *range(10, 22), *range(-1, -7, -1), *range(5, 13), *range(31, 37)]
ENTRY = '\n[shader("compute")] [numthreads(1, 1, 1)] void main() {'


@pytest.fixture
def device(driver: object) -> Iterator[pumice.Device]:
    """One device: how arrays are copied does not matter to what compilers make."""
    del driver
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture(params=["hlsl", "slang"])
def language(request: pytest.FixtureRequest) -> str:
    try:
        find.find_compiler(Language(request.param))
    except UnavailableError as error:
        pytest.skip(f"no compiler: {error.message[:80]}")
    return str(request.param)


@pytest.fixture(params=["the first compiler", "glslang"])
def hlsl(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "glslang":
        path = shutil.which("glslangValidator")
        if path is None:
            pytest.skip("no glslangValidator")
        monkeypatch.setenv("PUMICE_HLSLC", path)
    try:
        return find.find_compiler(Language.HLSL).version
    except UnavailableError as error:
        pytest.skip(f"no compiler: {error.message[:80]}")


def test_members_of_uniform_blocks(device: pumice.Device, language: str) -> None:
    text = f"{BLOCK} ConstantBuffer<Block> b; RWStructuredBuffer<float> o;{ENTRY}{BODY}}}"
    kernel = device.load_kernel(text, language=language, entry_point="main")
    assert kernel(VALUES, pumice.empty(len(EXPECTED)), groups=1).tolist() == EXPECTED


def test_members_of_storage_blocks(device: pumice.Device, language: str) -> None:
    text = f"{BLOCK} StructuredBuffer<Block> s; RWStructuredBuffer<float> o;{ENTRY} Block b = s[1]; {BODY}}}"
    kernel = device.load_kernel(text, language=language, entry_point="main")
    zeros = {name: np.zeros(np.shape(value)) for name, value in VALUES.items() if name != "lights"}
    zeros["lights"] = [{"at": [0] * 3, "w": [0] * 3}] * 2
    assert kernel([zeros, VALUES], pumice.empty(len(EXPECTED)), groups=1).tolist() == EXPECTED
    fields = kernel.dtype("s").fields
    assert fields is not None
    assert [fields[name][0].shape for name in ("w", "pairs", "lights")] == [(3,), (2, 2, 2), (2,)]


def test_members_of_push_constants(device: pumice.Device, language: str) -> None:
    pushed = "struct Pushed { float w[3]; float2x2 turns[2]; int n; }; [[vk::push_constant]] ConstantBuffer<Pushed> p;"
    body = "o[0] = p.w[1] + p.n; for (int i = 0; i < 8; i++) o[i + 1] = p.turns[i / 4][i / 2 % 2][i % 2];"
    kernel = device.load_kernel(
        f"{pushed} RWStructuredBuffer<float> o;{ENTRY}{body}}}", language=language, entry_point="main"
    )
    turns = np.arange(8).reshape(2, 2, 2)
    assert kernel(pumice.empty(9), w=[1, 2, 3], turns=turns, n=40, groups=1).tolist() == [42, *range(8)]
    with pytest.raises(pumice.InvalidArgumentError, match=r"w takes float\[3\], shape \(3,\); got shape \(2,\)"):
        kernel(pumice.empty(9), w=[1, 2], turns=turns, n=40, groups=1)


def test_a_matrix_of_another_shape_is_refused_by_its_rows(device: pumice.Device, language: str) -> None:
    text = f"cbuffer b {{ float3x4 m; }} RWStructuredBuffer<float> o;{ENTRY} o[0] = m[2][3]; }}"
    kernel = device.load_kernel(text, language=language, entry_point="main")
    with pytest.raises(pumice.InvalidArgumentError, match=r"3x4 matrix, shape \(3, 4\); got shape \(4, 3\)"):
        kernel(b={"m": np.zeros((4, 3))}, o=pumice.empty(1), groups=1)


def test_counters_of_append_and_consume_buffers(device: pumice.Device, hlsl: str) -> None:
    text = """StructuredBuffer<float> x : register(t0);
AppendStructuredBuffer<float> kept : register(u1);
ConsumeStructuredBuffer<uint> work : register(u2);
RWStructuredBuffer<float> y : register(u3);
[numthreads(64, 1, 1)] void main(uint3 i : SV_DispatchThreadID) {
    uint n, stride;
    x.GetDimensions(n, stride);
    if (i.x >= n) return;
    if (x[i.x] > 0.5) kept.Append(x[i.x]);
    y[i.x] = work.Consume();
}"""
    kernel = device.load_kernel(text, language="hlsl", entry_point="main")
    counter = np.uint32 if "glslang" in hlsl else np.int32
    x = np.random.default_rng(1).random(100, np.float32)
    kept, y, kept_counter, work_counter = kernel(
        x,
        np.zeros(100, np.float32),
        np.arange(200, dtype=np.uint32),
        pumice.empty(100),
        kept_counter=np.zeros(1, counter),
        work_counter=np.array([200], counter),
        groups=2,
    )
    count = int((x > 0.5).sum())
    assert (kept_counter.tolist(), work_counter.tolist()) == ([count], [100])
    assert sorted(kept[:count]) == sorted(x[x > 0.5]) and not kept[count:].any()
    assert sorted(y) == list(range(100, 200))
