"""Formats of storage images that a kernel reads without naming one: which they get, and what the kernel computes."""

from __future__ import annotations

import numpy as np
import pytest

import pumice
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.formats import with_formats
from pumice.spirv.sources import find
from pumice.spirv.sources.compile import compile_source
from pumice.spirv.sources.language import Language
from pumice.status import UnavailableError

SOURCE = """RWBuffer<float> a; RWBuffer<float4> b; RWBuffer<int> c; RWTexture2D<float4> d; RWTexture2D<float2> e;
RWTexture2D<float> written; RWTexture2D<float> f; RWTexture2D<float> many[2];
[shader("compute")] [numthreads(4, 1, 1)] void main(uint3 i : SV_DispatchThreadID) {
    a[i.x] += 1; b[i.x] *= 2; c[i.x] -= 1; d[i.xy] = d[i.xy].wzyx; e[i.xy] = e[i.xy].yx + 1; written[i.xy] = i.x;
    f[i.xy] = f[i.xy] * 3;
}"""
FORMATS = {"a": "r32f", "b": "rgba32f", "c": "r32i", "d": "rgba32f", "e": "rg32f", "written": "unknown", "f": "r32f"}


@pytest.fixture(scope="module")
def code() -> bytes:
    try:
        find.find_compiler(Language.SLANG)
    except UnavailableError as error:
        pytest.skip(f"no compiler: {error.message[:80]}")
    return compile_source(SOURCE, Language.SLANG, entry_point="main")


@pytest.mark.slow
class TestFormats:
    def test_formats_are_those_of_the_components(self, code: bytes) -> None:
        named = reflect(with_formats(code)).entry_point()
        assert {b.name: b.image.format for b in named.bindings if b.image is not None} == FORMATS

    def test_what_names_its_formats_stays(self, code: bytes) -> None:
        named = with_formats(code)
        assert with_formats(named) == named

    @pytest.mark.vulkan
    @pytest.mark.usefixtures("driver")
    def test_values(self, code: bytes) -> None:
        numbers = np.arange(16, dtype=np.float32)
        given = {
            "a": numbers[:4],
            "b": numbers.reshape(4, 4),
            "c": np.arange(4, dtype=np.int32),
            "d": numbers.reshape(1, 4, 4),
            "e": numbers[:8].reshape(1, 4, 2),
            "f": numbers[:4].reshape(1, 4),
        }
        with pumice.open_device() as device, device.load_kernel(code) as kernel:
            a, b, c, d, e, written, f = kernel(**given, written=np.zeros((1, 4), np.float32), groups=1)
        np.testing.assert_array_equal(a, given["a"] + 1)
        np.testing.assert_array_equal(b, given["b"] * 2)
        np.testing.assert_array_equal(c, given["c"] - 1)
        np.testing.assert_array_equal(d, given["d"][..., ::-1])
        np.testing.assert_array_equal(e, given["e"][..., ::-1] + 1)
        np.testing.assert_array_equal(written, [[0, 1, 2, 3]])
        np.testing.assert_array_equal(f, given["f"] * 3)
