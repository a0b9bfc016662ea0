"""`ReductionKernel` against NumPy: axes, sizes, types, several arrays and results, and wrong input."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.generated import needs_glsl

import pumice
from pumice import Device, InvalidArgumentError, OutOfRangeError, PumiceError, ReductionKernel
from pumice.runtime.elementwise.types import ELEMENTS

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver"), needs_glsl]

RNG = np.random.default_rng(11)
TOTAL = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
LEAST = ReductionKernel("T x", "T y", "x", "min(a, b)", name="least")
TYPES = [np.dtype(name) for name in ("bool", "int8", "float16", "int64")]
X = np.arange(6, dtype=np.float32)


@pytest.fixture
def device() -> Iterator[Device]:
    with pumice.open_device() as opened:
        yield opened
    for kernel in (TOTAL, LEAST):
        kernel.close()


class TestValues:
    @pytest.mark.sample(6)
    @pytest.mark.parametrize(
        ("shape", "axis"),
        [
            ((1,), None),
            ((), None),
            ((70_001,), None),  # several workgroups, and on lavapipe more than a loop may have
            ((1_100_000,), None),
            ((3, 70_001), 1),
            ((70_001, 3), 0),
            ((2_000, 7), 1),  # a short row is combined by one invocation
            ((7, 2_000), 0),
            ((4, 5, 6), (0, 2)),
            ((4, 5, 6), -2),
            ((4, 5, 6), ()),
            ((0,), None),
            ((3, 0, 2), 1),
            ((300, 0), 1),
            ((0, 4), 1),
        ],
    )
    def test_shapes_and_axes(self, device: Device, shape: tuple[int, ...], axis: int | tuple[int, ...] | None) -> None:
        x = RNG.integers(-9, 9, shape, np.int32)
        for keepdims in (False, True) if len(shape) == 3 else (False,):
            expected = np.sum(x, axis=axis, keepdims=keepdims, dtype=np.int32)
            result = TOTAL(x, axis=axis, keepdims=keepdims, device=device)
            assert isinstance(result, np.ndarray) and (result.shape, result.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(result, expected)

    @pytest.mark.parametrize("dtype", TYPES, ids=str)
    def test_types(self, device: Device, dtype: np.dtype[np.generic]) -> None:
        if ELEMENTS[dtype].feature not in ("", *device.profile.features):
            pytest.skip(f"{device.name} has no {dtype}")
        x = (RNG.random((3, 700)) * 5).astype(dtype)
        kernel, expected = (TOTAL, x.sum(axis=1, dtype=dtype)) if dtype.kind in "iu" else (LEAST, x.min(axis=1))
        if dtype.kind == "b":
            kernel, expected = ReductionKernel("T x", "T y", "x", "a && b", identity=True), x.all(axis=1)
        with contextlib.closing(kernel):
            np.testing.assert_array_equal(kernel(x, axis=1, device=device), expected)

    def test_floats_are_added_in_a_tree(self, device: Device) -> None:
        x = RNG.random(1_000_003).astype(np.float32)
        result = TOTAL(device.asarray(x))
        assert isinstance(result, pumice.DeviceArray) and result.shape == ()
        np.testing.assert_allclose(result.numpy(), x.sum(dtype=np.float64), rtol=1e-6)

    @pytest.mark.features("shaderFloat64")
    def test_several_arrays_and_results(self, device: Device) -> None:
        kernel = ReductionKernel(
            "T x, T y, float w",
            "T dot, double mean",
            "w * x * y",
            "a + b",
            "dot = a; mean = a / double(n)",
            0,
        )
        x, y = RNG.random((40, 1, 500)).astype(np.float32), RNG.random((3, 500)).astype(np.float32)
        with contextlib.closing(kernel):
            dot, mean = kernel(x, y, 0.5, axis=2, device=device)
        np.testing.assert_allclose(dot, (0.5 * x * y).sum(axis=2), rtol=1e-5)
        np.testing.assert_allclose(mean, (0.5 * x.astype(np.float64) * y).mean(axis=2), rtol=1e-5)

    def test_a_type_of_the_preamble(self, device: Device) -> None:
        preamble = """struct Best { float value; int at; };
Best best(Best a, Best b) {
    bool first = a.value > b.value || (a.value == b.value && a.at < b.at);
    if (first) return a;
    return b;
}
"""
        kernel = ReductionKernel(
            *("float x", "int y", "Best(x, i)", "best(a, b)", "y = a.at", "Best(-1e38, 0)"),
            reduce_type="Best",
            preamble=preamble,
        )
        x = RNG.integers(0, 1000, (3, 40_000)).astype(np.float32)
        with contextlib.closing(kernel):
            np.testing.assert_array_equal(kernel(x, axis=1, device=device), x.argmax(axis=1))
            assert kernel(x, device=device) == x.argmax()

    @pytest.mark.features("storageBuffer8BitAccess")
    def test_wider_types_and_sizes_as_in_cupy(self, device: Device) -> None:
        x = RNG.integers(0, 255, (5, 9), np.uint8)
        total = ReductionKernel("uint8 x", "float32 y", "x", "a + b", "y = float(a)", "0", reduce_type="uint64")
        mean = ReductionKernel("T x", "float y", "x", "a + b", "y = a / (_in_ind.size() / _out_ind.size())", "0")
        with contextlib.closing(total), contextlib.closing(mean):
            assert total(x, device=device) == x.sum(dtype=np.uint64)
            np.testing.assert_allclose(mean(x, axis=0, device=device), x.mean(axis=0), rtol=1e-6)

    def test_results_that_are_given(self, device: Device) -> None:
        out = np.zeros((2,), np.float32)
        assert TOTAL(X.reshape(2, 3), axis=1, out=out, device=device) is out
        np.testing.assert_array_equal(out, [3, 12])
        given = device.zeros((1, 3))
        assert TOTAL(X.reshape(2, 3), given, axis=0, keepdims=True) is given
        np.testing.assert_array_equal(given.numpy(), [[3, 5, 7]])


class TestWrong:
    @pytest.mark.parametrize(
        ("texts", "message"),
        [
            (("T x", "", "x", "a + b"), "out_params is empty"),
            (("T x", "raw T y", "x", "a + b"), "not raw"),
            (("T x", "T y", "", "a + b"), "map_expr is an expression, got an empty text"),
            (("T x", "T y", "x", "a + b;"), "reduce_expr is one expression, without semicolons"),
            (("T x", "T y", "x", 3), "reduce_expr is a text, got int"),
            (("T x", "T y", "x", "a + b", "y = a", ""), "identity is an expression"),
            (("T x", "T y", "x", "a + b", "y = a", "0", "1st"), "name is an identifier"),
        ],
    )
    def test_texts(self, texts: tuple[str, ...], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            ReductionKernel(*texts)

    @pytest.mark.parametrize("part", ["map_expr", "reduce_expr", "post_map_expr", "identity"])
    def test_expressions(self, device: Device, part: str) -> None:
        texts = {"map_expr": "x", "reduce_expr": "a + b", "post_map_expr": "y = a", "identity": "0"}
        texts[part] = "y = missing" if part == "post_map_expr" else "missing"
        with pytest.raises(InvalidArgumentError, match="'missing' : undeclared identifier") as info:
            ReductionKernel("T x", "T y", **texts)(X, device=device)
        assert info.value.location == f"{part}:1"
        texts[part] = "y = (1 +\n(2" if part in ("post_map_expr", "output_statement") else "(1 +\n(2"
        with pytest.raises(InvalidArgumentError, match="syntax error") as info:
            ReductionKernel("T x", "T y", **texts)(X, device=device)
        assert info.value.location == f"after {part}:2"

    def test_arguments(self, device: Device) -> None:
        for axis in (1, -2):
            with pytest.raises(OutOfRangeError, match=rf"total: there is no axis {axis} in shape \(6,\)"):
                TOTAL(X, axis=axis, device=device)
        for wrong, message in (((0, 0), "names one twice"), ("0", "axis is an int"), (1.5, "axis is an int")):
            with pytest.raises(InvalidArgumentError, match=message):
                TOTAL(X, axis=wrong, device=device)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="has nothing along the axis to combine, and the kernel has no"):
            LEAST(X[:0], device=device)
        with pytest.raises(InvalidArgumentError, match=r"y has shape \(2,\), and the result \(\)"):
            TOTAL(X, X[:2].copy(), device=device)
        with pytest.raises(InvalidArgumentError, match="no array determines"):
            TOTAL(3.0, device=device)
        with pytest.raises(PumiceError, match="shapes do not go together"):
            ReductionKernel("T x, T z", "T y", "x * z", "a + b")(X, X[:4], device=device)
