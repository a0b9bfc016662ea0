"""`ElementwiseKernel` against NumPy: types, broadcasting, sizes, raw arrays, results, and wrong input."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

import numpy as np
import pytest
from support.devices.generated import needs_glsl

import pumice
from pumice import Device, ElementwiseKernel, InvalidArgumentError, PumiceError
from pumice.runtime.elementwise.types import ELEMENTS

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver"), needs_glsl]


class Number(enum.IntEnum):
    SEVEN = 7


RNG = np.random.default_rng(7)
AXPY = ElementwiseKernel("float a, float[] x, float[] y", "float[] z", "z = a * x + y", "axpy")
SUM = ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")


@pytest.fixture
def device() -> Iterator[Device]:
    with pumice.open_device() as opened:
        yield opened


def has(device: Device, dtype: np.dtype[np.generic]) -> bool:
    return ELEMENTS[dtype].feature in ("", *device.profile.features)


class TestValues:
    @pytest.mark.sample(6)
    @pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
    def test_types(self, device: Device, dtype: np.dtype[np.generic]) -> None:
        if not has(device, dtype):
            pytest.skip(f"{device.name} has no {dtype}")
        x, y = ((RNG.random((37, 3)) * 200 - 100 * (dtype.kind in "if")).astype(dtype) for _ in range(2))
        if dtype.kind == "b":
            kernel, expected = ElementwiseKernel("T x, T y", "T z", "z = x != y"), x ^ y
        else:
            with np.errstate(over="ignore"):
                kernel, expected = ElementwiseKernel("T x, T y", "T z", "z = x * y"), x * y
        with contextlib.closing(kernel):
            result = kernel(x, y, device=device)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)

    @pytest.mark.features("storageBuffer8BitAccess")
    def test_conversions_and_several_results(self, device: Device) -> None:
        kernel = ElementwiseKernel(
            "float32 x, unsigned char y",
            "int32 whole, float16 half_, bool big",
            "whole = int(x) * 2; half_ = x; big = y > 9u",
        )
        x, y = np.array([1.5, -2.5, 3.25], np.float32), np.array([9, 10, 255], np.uint8)
        with contextlib.closing(kernel):
            whole, half, big = kernel(x, y, device=device)
        assert (whole.dtype, half.dtype, big.dtype) == (np.int32, np.float16, np.bool_)
        np.testing.assert_array_equal(whole, [2, -4, 6])
        np.testing.assert_array_equal(half, x.astype(np.float16))
        np.testing.assert_array_equal(big, [False, True, True])

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ((5,), (5,)),
            ((), (4,)),
            ((3, 1, 5), (4, 1)),
            ((1, 1), (2, 3)),
            ((2, 3, 4), (2, 1, 4)),
            ((2, 1, 4, 1), (3, 1, 5)),
            ((1,), ()),
            ((), ()),
            ((0,), (1,)),
            ((3, 0), (1, 1)),
        ],
    )
    def test_broadcasting(self, device: Device, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        x, y = np.asarray(RNG.random(left), np.float32), np.asarray(RNG.random(right), np.float32)
        for a, b in ((x, y), (y, x)):
            result = SUM(a, b, device=device)
            assert isinstance(result, np.ndarray) and result.shape == (a + b).shape
            np.testing.assert_array_equal(result, a + b)

    def test_orders_of_memory_and_views(self, device: Device) -> None:
        x = RNG.random((6, 8)).astype(np.float32)
        np.testing.assert_array_equal(SUM(x.T, x[::-1].T[:, :1], device=device), x.T + x[::-1].T[:, :1])
        on_device = device.asarray(x)
        np.testing.assert_array_equal(SUM(on_device[2:4], on_device[4:]).numpy(), x[2:4] + x[4:])

    @pytest.mark.features("shaderInt64")
    def test_numbers(self, device: Device) -> None:
        x = np.arange(5, dtype=np.float32)
        np.testing.assert_array_equal(AXPY(2, x, y=x, device=device), 3 * x)
        np.testing.assert_array_equal(AXPY(np.float64(0.5), x, x, device=device), 1.5 * x)
        np.testing.assert_array_equal(SUM(x, 1, device=device), x + 1)
        np.testing.assert_array_equal(SUM(x, Number.SEVEN, device=device), x + 7)
        np.testing.assert_array_equal(SUM(np.int64(3), np.arange(3), device=device), np.arange(3) + 3)
        flags = ElementwiseKernel("bool on, int8 d, float x", "float y", "y = on ? x + d : x")
        with contextlib.closing(flags):
            np.testing.assert_array_equal(flags(True, -3, x, device=device), x - 3)

    @pytest.mark.features("shaderFloat64")
    def test_more_numbers_than_push_constants_hold(self, device: Device) -> None:
        names = [f"a{i}" for i in range(60)]
        kernel = ElementwiseKernel(
            ", ".join(f"{'double' if i % 3 == 0 else 'float'} {name}" for i, name in enumerate(names)) + ", float[] x",
            "float y",
            "y = x + float(" + " + ".join(names) + ")",
        )
        with contextlib.closing(kernel):
            result = kernel(*range(60), np.zeros(3, np.float32), device=device)
        np.testing.assert_array_equal(result, [1770] * 3)

    @pytest.mark.features("storageBuffer8BitAccess")
    def test_past_one_dispatch(self, device: Device) -> None:
        limit = device.profile.limits.max_compute_work_group_count[0]
        size = min(limit * 128 + 77, 1 << 25)
        x = device.asarray(np.arange(size, dtype=np.uint8))
        np.testing.assert_array_equal(SUM(x, x).numpy(), np.arange(size, dtype=np.uint8) * 2)

    @pytest.mark.features("shaderInt64")
    def test_index_preamble_and_raw_arrays(self, device: Device) -> None:
        reverse = ElementwiseKernel(
            "raw T x, int32 offset",
            "T y",
            "y = twice(x[_ind.size() - 1 - i + offset])",
            preamble="#define twice(v) (2 * (v))",
        )
        x = np.arange(10, dtype=np.float32)
        with contextlib.closing(reverse):
            np.testing.assert_array_equal(reverse(x, 0, size=10, device=device), 2 * x[::-1])
            np.testing.assert_array_equal(reverse(x, 2, size=(4, 2), device=device), 2 * x[9:1:-1].reshape(4, 2))
        length = ElementwiseKernel("raw float x, T y", "T z", "z = y + x.size() + n")
        with contextlib.closing(length):
            np.testing.assert_array_equal(length(x, np.arange(3), device=device), np.arange(3) + 13)

    def test_pointers_as_in_pyopencl(self, device: Device) -> None:
        kernel = ElementwiseKernel("float a, const float *x, float* y", "y[i] = a * x[i] + y[i]")
        x, y = np.arange(300, dtype=np.float32), np.ones(300, np.float32)
        on_device = device.asarray(y)
        with contextlib.closing(kernel):
            assert kernel(2, device.asarray(x), on_device) is on_device
            np.testing.assert_array_equal(on_device.numpy(), 2 * x + 1)
            assert kernel(2, x, y, device=device) is y
        np.testing.assert_array_equal(y, 2 * x + 1)


class TestResults:
    def test_where_they_are(self, device: Device) -> None:
        x = np.ones(4, np.float32)
        assert isinstance(SUM(x, x, device=device), np.ndarray)
        result = SUM(device.asarray(x), x)
        assert isinstance(result, pumice.DeviceArray) and result.device is device

    def test_given(self, device: Device) -> None:
        x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
        assert SUM(x, x, out, device=device) is out and out[3] == 6
        assert SUM(x, x, out=out[::-1], device=device)[3] == 6 and out[0] == 6
        assert SUM(x=x, y=x, z=out, device=device) is out
        on_device = device.zeros(4)
        assert SUM(x, x, out=on_device) is on_device
        np.testing.assert_array_equal(on_device.numpy(), 2 * x)
        # A result that is given has its value at first, as in C.
        accumulate = ElementwiseKernel("float x", "float z", "z += x")
        with contextlib.closing(accumulate):
            assert accumulate(x, on_device) is on_device
            np.testing.assert_array_equal(on_device.numpy(), 3 * x)
            # In place, and an array that is both.
            np.testing.assert_array_equal(accumulate(on_device, on_device).numpy(), 6 * x)

    def test_kernels_are_kept_by_type_and_not_by_shape(self, device: Device) -> None:
        for size in (1, 2, 300, 1000):
            SUM(np.ones(size, np.float32), np.ones(size, np.float32), device=device)
        assert len(SUM._kernels[device]) == 2  # one element is broadcast, or it is not
        SUM(np.ones(3, np.int32), np.ones(3, np.int32), device=device)
        assert len(SUM._kernels[device]) == 3

    def test_devices_that_close(self) -> None:
        for _ in range(2):
            with pumice.open_device() as device:
                assert SUM(np.ones(3, np.float32), 1, device=device)[2] == 2
        assert [one.is_closed for one in SUM._kernels] == [True]


X = np.arange(4, dtype=np.float32)


class TestWrong:
    @pytest.mark.parametrize(
        ("texts", "message", "location"),
        [
            (("flaot x", "float y", "y = x"), r"mean float\?\n  flaot x\n  \^\^\^\^\^", "in_params:1:1"),
            (("float x,\n  double z[3]", "T y", "y = x"), r"got '\['\n    double z\[3\]\n +\^", "in_params:2:11"),
            (("float x", "float x", "x = 1"), "x is declared twice", "out_params:1:7"),
            (("float x,, float y", "float z", "z = x"), "nothing between the commas", "in_params:1:9"),
            (("x", "float z", "z = x"), "expected a type before x", "in_params:1:1"),
            (("float", "float z", "z = x"), "a name after the type", "in_params:1:1"),
            (("float i", "float z", "z = i"), "i cannot be the name", "in_params:1:7"),
            (("float _x", "float z", "z = 1"), "_x cannot be the name", "in_params:1:7"),
            (("float sample", "float z", "z = 1"), "sample cannot be the name", "in_params:1:7"),
            (("T T", "float z", "z = 1"), "T cannot be the name", "in_params:1:3"),
            (("float[][] x", "float z", "z = 1"), r"one \[\] or \* at most", "in_params:1:8"),
            (("complex64 x", "float z", "z = 1"), "'complex64' is no type of elements", "in_params:1:1"),
            ((3, "float z", "z = 1"), "in_params is a text .* got int", None),
            (("float x", "float z", ""), "operation is empty", None),
            (("float x", "", "x = 1"), "there is no result", None),
            (("float x", "float z", "z = x", "a b"), "name is an identifier, got 'a b'", None),
            (("float x", "float z", "z = x\0"), "NUL", None),
        ],
    )
    def test_texts(self, texts: tuple[str, ...], message: str, location: str | None) -> None:
        with pytest.raises(InvalidArgumentError, match=message) as info:
            ElementwiseKernel(*texts)
        assert info.value.location == location

    def test_operations(self, device: Device) -> None:
        for operation, place, shown in (
            ("z = q * x", "operation:1", "     1 | z = q * x\n       |     ^\n"),
            ("float t = x;\nz = t +* 2;", "operation:2", "     2 | z = t +* 2;"),
            ("z = undefined_function(x)", "operation:1", "undefined_function"),
        ):
            with pytest.raises(InvalidArgumentError) as info:
                ElementwiseKernel("float x", "float z", operation)(X, device=device)
            assert info.value.location == place and shown in info.value.message
        with pytest.raises(InvalidArgumentError) as info:
            ElementwiseKernel("float x", "float z", "z = f(x)", preamble="float f(float x) {\n  retrn x;\n}")(
                X, device=device
            )
        assert info.value.location == "preamble:2"

    @pytest.mark.parametrize(
        ("arguments", "named", "message"),
        [
            ((1.0, X), {}, "axpy: y missing; it takes a, x, y, and for results z"),
            ((1.0, X, X, X, X), {}, "5 arguments"),
            ((1.0, X, X), {"x": X}, "x is given twice"),
            ((1.0, X, X), {"w": X}, "there is no parameter w"),
            ((1.0, 2.0, X), {}, "x is an array of float32, got the number 2.0"),
            ((1.0, X.astype(np.float64), X), {}, r"x got dtype float64; .* \.astype\(np\.float32\)"),
            ((1.0, X, X[:3]), {}, r"shapes do not go together: x \(4,\), y \(3,\)"),
            ((1.0, X, X, X[:2]), {}, r"z has shape \(2,\), and the result \(4,\)"),
            ((1.0, X, X), {"out": X[:2].copy()}, r"z has shape \(2,\)"),
            ((1.0, X, X), {"out": (X, X)}, r"out= has 2 array\(s\) for 1 result"),
            ((1.0, X, X), {"out": 3}, "z is a result, for an array to write into; got int"),
            ((1.0, X, X), {"out": np.broadcast_to(X[:1], 4)}, "read-only"),
            ((1.0, X, X), {"size": 4}, "size= is for calls whose arrays are all raw"),
            ((None, X, X), {}, "a is an array or a number, got NoneType"),
            (("1", X, X), {}, "a is an array or a number, got str"),
            ((1j, X, X), {}, "a is not an array of float32: .*complex"),
            ((1.0, X, [[1], [2, 3]]), {}, "y is not an array of float32"),
            ((1.0, X, np.array(["a"])), {}, "y got dtype <U1; expected numbers"),
        ],
    )
    def test_arguments(
        self, device: Device, arguments: tuple[object, ...], named: dict[str, object], message: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            AXPY(*arguments, device=device, **named)  # type: ignore[arg-type]

    @pytest.mark.features("storageBuffer8BitAccess")
    def test_types_that_differ(self, device: Device) -> None:
        with pytest.raises(InvalidArgumentError, match="y got dtype int32, but T is float32 by the arguments before"):
            SUM(X, X.astype(np.int32), device=device)
        with pytest.raises(InvalidArgumentError, match=r"x got dtype .*; expected one of bool, int8"):
            SUM(X.astype(np.longdouble), 1, device=device)
        small = ElementwiseKernel("int8 a, float x", "float z", "z = x + a")
        for number, message in ((300, "from -128 to 127; got 300"), (1.5, "a is int8, got 1.5: convert it")):
            with pytest.raises(PumiceError, match=message):
                small(number, X, device=device)
        with pytest.raises(InvalidArgumentError, match="no argument tells what T is, the type of z"):
            ElementwiseKernel("float x", "T z", "z = x")(X, device=device)
        with pytest.raises(InvalidArgumentError, match="give size="):
            ElementwiseKernel("raw float x", "float z", "z = x[i]")(X, device=device)
        with pytest.raises(InvalidArgumentError, match="z is raw: pass an array for it"):
            ElementwiseKernel("float x", "raw float z", "z[i] = x")(X, device=device)
        with pytest.raises(InvalidArgumentError, match=r"device is an open pumice\.Device, got str"):
            SUM(X, X, device="vulkan")  # type: ignore[arg-type]
        with pytest.raises(PumiceError, match="closed"):
            array = device.asarray(X)
            array.close()
            SUM(array, X)

    def test_two_devices(self, device: Device) -> None:
        with pumice.open_device() as other, pytest.raises(InvalidArgumentError, match="arrays of two devices"):
            SUM(device.asarray(X), other.asarray(X))

    def test_the_reference_device_runs_no_kernels(self) -> None:
        with pumice.open_device("reference") as reference, pytest.raises(PumiceError, match="no kernels"):
            SUM(X, X, device=reference)
