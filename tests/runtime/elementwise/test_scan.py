"""`ScanKernel` against NumPy: axes, sizes, types, orders, and wrong input."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.generated import needs_glsl

import pumice
from pumice import Device, InvalidArgumentError, OutOfRangeError, ScanKernel
from pumice.runtime.elementwise.types import ELEMENTS

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver"), needs_glsl]

RNG = np.random.default_rng(13)
CUMSUM = ScanKernel("T x", "T y", "a + b", name="cumsum")
BEFORE = ScanKernel("T x", "T y", "a + b", neutral=0, exclusive=True, name="before")
LARGEST = ScanKernel("T x", "T y", "max(a, b)")
TYPES = [np.dtype(name) for name in ("bool", "int8", "float16", "int64")]
X = np.arange(6, dtype=np.int32)


@pytest.fixture
def device() -> Iterator[Device]:
    with pumice.open_device() as opened:
        yield opened
    for kernel in (CUMSUM, BEFORE):
        kernel.close()


class TestValues:
    @pytest.mark.sample(6)
    @pytest.mark.parametrize(
        ("shape", "axis"),
        [
            ((1,), None),
            ((), None),
            ((1024,), None),
            ((1025,), None),  # two workgroups, and the second has to know of the first
            ((70_001,), None),
            ((1_100_000,), None),  # and workgroups that scan the totals of workgroups of totals
            ((3, 5000), 1),
            ((5000, 3), 0),
            ((2, 2500, 3), 1),
            ((3, 4, 5), None),
            ((700, 3), 1),
            ((0,), None),
            ((0, 3), 1),
            ((3, 0), 1),
        ],
    )
    def test_shapes_and_axes(self, device: Device, shape: tuple[int, ...], axis: int | None) -> None:
        x = RNG.integers(-9, 9, shape, np.int32)
        expected = np.cumsum(x, axis=axis, dtype=np.int32)
        on_device = device.asarray(x)
        result = CUMSUM(on_device, axis=axis)
        assert isinstance(result, pumice.DeviceArray)
        np.testing.assert_array_equal(result.numpy(), expected)
        np.testing.assert_array_equal(BEFORE(on_device, axis=axis).numpy(), expected - x.reshape(expected.shape))

    @pytest.mark.parametrize("dtype", TYPES, ids=str)
    def test_types(self, device: Device, dtype: np.dtype[np.generic]) -> None:
        if ELEMENTS[dtype].feature not in ("", *device.profile.features):
            pytest.skip(f"{device.name} has no {dtype}")
        x = (RNG.random(1000) * 2).astype(dtype)
        kernel, expected = LARGEST, np.maximum.accumulate(x)
        if dtype.kind in "iu":
            kernel, expected = CUMSUM, np.cumsum(x, dtype=dtype)
        elif dtype.kind == "b":
            kernel, expected = ScanKernel("T x", "T y", "a != b"), np.logical_xor.accumulate(x)
        with contextlib.closing(kernel):
            np.testing.assert_array_equal(kernel(x, device=device), expected)

    def test_order_is_kept(self, device: Device) -> None:
        """Of an operation that does not commute: functions x -> p x + q, one after another."""
        kernel = ScanKernel(
            "uint p, uint q",
            "uint r",
            "uvec2(b.x * a.x, b.x * a.y + b.y)",
            input_expr="uvec2(p, q)",
            output_statement="r = item.x * 5u + item.y",
            scan_type="uvec2",
        )
        p, q = RNG.integers(0, 1 << 32, (2, 10_000), np.uint32)
        value, expected = 5, []
        for one, two in zip(p.tolist(), q.tolist(), strict=True):
            value = (one * value + two) % (1 << 32)
            expected.append(value)
        with contextlib.closing(kernel):
            np.testing.assert_array_equal(kernel(p, q, device=device), np.array(expected, np.uint32))

    def test_output_statement(self, device: Device) -> None:
        """Places of the kept elements, as a compaction needs them."""
        kernel = ScanKernel(
            "float[] x, float limit",
            "int place, int kept, float y",
            input_expr="x > limit ? 1 : 0",
            neutral="0",
            output_statement="place = prev_item; kept = item - prev_item; y = i + 0.5 * n",
        )
        x = RNG.random(5000).astype(np.float32)
        with contextlib.closing(kernel):
            place, kept, y = kernel(x, 0.25, device=device)
        np.testing.assert_array_equal(kept, x > 0.25)
        np.testing.assert_array_equal(place, np.cumsum(x > 0.25) - (x > 0.25))
        np.testing.assert_array_equal(y, np.arange(5000) + 2500)

    def test_results_that_are_given(self, device: Device) -> None:
        out = np.zeros((2, 3), np.int32)
        assert CUMSUM(X.reshape(2, 3), axis=1, out=out, device=device) is out
        np.testing.assert_array_equal(out, [[0, 1, 3], [3, 7, 12]])


class TestWrong:
    @pytest.mark.parametrize(
        ("texts", "named", "message"),
        [
            (("", "T y"), {}, "in_params is empty"),
            (("T x", ""), {}, "out_params is empty"),
            (("T x", "raw T y"), {}, "not raw"),
            (("raw T x", "T y"), {}, "input_expr is missing, and x is raw"),
            (("T x", "T y"), {"exclusive": True}, "neutral is missing"),
            (("T x", "T y"), {"output_statement": "y = prev_item"}, "neutral is missing"),
            (("T x", "T y"), {"output_statement": "y = item", "exclusive": True}, "exclusive is for scans without"),
            (("T x", "T y", "a + b;"), {}, "scan_expr is one expression"),
        ],
    )
    def test_texts(self, texts: tuple[str, ...], named: dict[str, object], message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            ScanKernel(*texts, **named)  # type: ignore[arg-type]

    @pytest.mark.parametrize("part", ["scan_expr", "input_expr", "output_statement", "neutral"])
    def test_expressions(self, device: Device, part: str) -> None:
        texts = {"scan_expr": "a + b", "output_statement": "y = prev_item", "neutral": "0"}
        texts[part] = "y = missing + prev_item" if part == "output_statement" else "missing"
        with pytest.raises(InvalidArgumentError, match="'missing' : undeclared identifier") as info:
            ScanKernel("T x", "T y", **texts)(X, device=device)  # type: ignore[arg-type]
        assert info.value.location == f"{part}:1"
        texts[part] = "y = (1 +\n(2" if part in ("post_map_expr", "output_statement") else "(1 +\n(2"
        with pytest.raises(InvalidArgumentError, match="syntax error") as info:
            ScanKernel("T x", "T y", **texts)(X, device=device)  # type: ignore[arg-type]
        assert info.value.location == f"after {part}:2"

    def test_arguments(self, device: Device) -> None:
        with pytest.raises(OutOfRangeError, match=r"cumsum: there is no axis 1 in shape \(6,\)"):
            CUMSUM(X, axis=1, device=device)
        for axis in ((0,), "0", True, 0.0):
            with pytest.raises(InvalidArgumentError, match="axis is an int or None"):
                CUMSUM(X, axis=axis, device=device)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match=r"y has shape \(2,\), and the result \(6,\)"):
            CUMSUM(X, out=X[:2].copy(), device=device)
