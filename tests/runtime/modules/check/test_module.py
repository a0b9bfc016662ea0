"""The native module check against NumPy, on memory that the host sees and on memory that it does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from pumice.hal_vulkan import Buffer, BufferView, Device, ElementType, EncodingType, MemoryTypeFlags
from pumice.runtime.modules.check import values as check_values
from pumice.runtime.modules.check.module import CheckLog, CheckRecorder, check_module
from pumice.runtime.modules.check.report import CheckFailure
from pumice.runtime.modules.check.values import HostView
from pumice.runtime.values.format import format_value
from pumice.status import ClosedError, InvalidArgumentError

Array = npt.NDArray[np.generic]

TYPES = [one for one in ElementType if one.dtype is not None]
FLOATS = [one for one in TYPES if one.is_float]
COMPLEX = [one for one in TYPES if one.is_complex]
INTEGERS = [one for one in TYPES if one.is_integer]
CONVENTIONS = {
    "expect_true": {"0i_v"},
    "expect_false": {"0i_v"},
    "expect_all_true": {"0rr_v", "0r_v"},
    "expect_eq": {"0rrr_v", "0rr_v"},
    "expect_almost_eq": {"0rrrff_v", "0rrr_v", "0rr_v"},
}


def named(one: ElementType) -> str:
    return one.name.lower()


class Check:
    """The module's functions as imports call them, by name and calling convention, and buffer views to give them."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.recorder = CheckRecorder()
        self.buffers: list[Buffer] = []
        module = check_module(self.recorder)
        state = module.new_state()
        self._functions: dict[tuple[str, str], Callable[..., object]] = {
            (name, overload.convention.text): overload.bind(state)
            for name, overloads in module.exports.items()
            for overload in overloads
        }

    def view(
        self, array: Array, element_type: ElementType, encoding: EncodingType = EncodingType.DENSE_ROW_MAJOR
    ) -> BufferView:
        return self.view_of(element_type.pack(array), array.shape, element_type, encoding)

    def view_of(
        self,
        data: bytes,
        shape: tuple[int, ...],
        element_type: ElementType,
        encoding: EncodingType = EncodingType.DENSE_ROW_MAJOR,
    ) -> BufferView:
        """In memory of the device's own: on the staging path the host does not see it."""
        buffer = self.device.create_buffer(max(len(data), 1), memory_type=MemoryTypeFlags.DEVICE_LOCAL)
        self.buffers.append(buffer)
        assert buffer.host_visible is not self.device.plan.staging
        if buffer.host_visible:
            buffer.write(data)
        elif data:
            with self.device.create_semaphore() as semaphore:
                self.device.compute_queue.update(buffer, data, signals=((semaphore, 1),))
                semaphore.wait(1, 30.0)
        return BufferView(buffer, shape, element_type, encoding)

    def __call__(self, name: str, convention: str, *arguments: object) -> CheckLog:
        assert self._functions[name, convention](*arguments) is None
        log = self.recorder.take()
        assert log.expectation_count == 1
        return log

    def failure(self, name: str, convention: str, *arguments: object) -> CheckFailure:
        log = self(name, convention, *arguments)
        assert log.failure_count == 1
        (failure,) = log.failures
        assert failure.expectation == name
        return failure

    def holds(self, name: str, convention: str, *arguments: object) -> bool:
        return self(name, convention, *arguments).failure_count == 0


@pytest.fixture
def check(any_device: Device) -> Check:
    return Check(any_device)


def values(element_type: ElementType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Any bit patterns of the type; booleans are 0 and 1."""
    count = int(np.prod(shape))
    data = np.random.default_rng(seed).integers(0, 256, element_type.storage_bytes(count), np.uint8)
    if element_type.is_boolean:
        data &= 1
    return element_type.unpack(data.tobytes(), shape)


def test_exports() -> None:
    module = check_module(CheckRecorder())
    assert {
        name: {overload.convention.text for overload in overloads} for name, overloads in module.exports.items()
    } == CONVENTIONS


# -- scalars -------------------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.parametrize("operand", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_scalars(device: Device, operand: int) -> None:
    check = Check(device)
    assert check.holds("expect_true", "0i_v", operand) is bool(operand)
    assert check.holds("expect_false", "0i_v", operand) is not bool(operand)
    name = "expect_false" if operand else "expect_true"
    assert f"got {operand}" in check.failure(name, "0i_v", operand).summary


# -- expect_eq -----------------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.parametrize("element_type", TYPES, ids=named)
def test_equality_is_of_bits(check: Check, element_type: ElementType) -> None:
    shape = (3, 5)
    array = values(element_type, shape)
    view = check.view(array, element_type)
    assert check.holds("expect_eq", "0rrr_v", check.device, view, check.view(array.copy(), element_type))
    assert check.holds("expect_eq", "0rr_v", view, view)
    # Another bit pattern in three places.
    other = array.copy().reshape(-1)
    bits = other.view(np.uint8).reshape(other.size, -1)
    places = [1, 7, 14]
    bits[places, 0] ^= 1
    failure = check.failure("expect_eq", "0rrr_v", check.device, view, check.view(other.reshape(shape), element_type))
    assert failure.differing == 3
    assert [one.index for one in failure.differences] == [np.unravel_index(i, shape) for i in places]
    assert failure.lhs == format_value(array, element_type=element_type)
    assert failure.rhs == format_value(other.reshape(shape), element_type=element_type)
    for one, place in zip(failure.differences, places, strict=True):
        assert one.tolerance is None
        if element_type.is_opaque:
            assert one.lhs == array.reshape(-1)[place].tobytes().hex().upper()
        else:
            assert (one.lhs, one.rhs) == (str(array.reshape(-1)[place]), str(other[place]))
        if element_type.is_integer:
            assert one.difference == abs(int(array.reshape(-1)[place]) - int(other[place]))


@pytest.mark.vulkan
def test_equality_tells_zeros_apart_and_takes_a_nan_as_itself(check: Check) -> None:
    left = np.array([0.0, np.nan, np.inf], np.float32)
    same = check.view(left, ElementType.FLOAT_32)
    assert check.holds("expect_eq", "0rrr_v", check.device, same, check.view(left, ElementType.FLOAT_32))
    right = np.array([-0.0, np.nan, np.inf], np.float32)
    failure = check.failure("expect_eq", "0rrr_v", check.device, same, check.view(right, ElementType.FLOAT_32))
    assert [(one.index, one.lhs, one.rhs) for one in failure.differences] == [((0,), "0.0", "-0.0")]


@pytest.mark.vulkan
def test_what_fills_up_the_last_byte_does_not_count(check: Check) -> None:
    left = check.view_of(b"\x21\x03", (3,), ElementType.UINT_4)
    right = check.view_of(b"\x21\xf3", (3,), ElementType.UINT_4)
    assert check.holds("expect_eq", "0rrr_v", check.device, left, right)
    right = check.view_of(b"\x21\xf4", (3,), ElementType.UINT_4)
    failure = check.failure("expect_eq", "0rrr_v", check.device, left, right)
    assert [(one.index, one.lhs, one.rhs, one.difference) for one in failure.differences] == [((2,), "3", "4", 1.0)]


@pytest.mark.vulkan
@pytest.mark.parametrize("name", ["expect_eq", "expect_almost_eq"])
def test_types_and_shapes_have_to_be_the_same(check: Check, name: str) -> None:
    array = np.arange(6, dtype=np.float32)
    view = check.view(array, ElementType.FLOAT_32)

    def failure(other: BufferView) -> CheckFailure:
        return check.failure(name, "0rrr_v", check.device, view, other)

    shapes = failure(check.view(array.reshape(2, 3), ElementType.FLOAT_32))
    assert shapes.summary == "shapes differ: [6] and [2x3]"
    assert (shapes.lhs, shapes.rhs) == ("6xf32=0 1 2 3 4 5", "2x3xf32=[0 1 2][3 4 5]")
    assert (shapes.differing, shapes.differences) == (None, ())
    types = failure(check.view(array.astype(np.float16), ElementType.FLOAT_16))
    assert types.summary == "element types differ: f32 and f16"
    both = failure(check.view(array[:5].astype(np.int32), ElementType.INT_32))
    assert both.summary == "element types differ: f32 and i32; shapes differ: [6] and [5]"
    encodings = failure(check.view(array, ElementType.FLOAT_32, EncodingType.OPAQUE))
    assert encodings.summary == "encodings differ: DENSE_ROW_MAJOR and OPAQUE"
    assert "24 bytes" in (encodings.rhs or "")


@pytest.mark.vulkan
def test_opaque_encodings_are_compared_by_bytes(check: Check) -> None:
    views = [check.view_of(data, (2,), ElementType.FLOAT_32, EncodingType.OPAQUE) for data in (b"ab", b"ab", b"ac")]
    assert check.holds("expect_eq", "0rrr_v", check.device, views[0], views[1])
    failure = check.failure("expect_eq", "0rrr_v", check.device, views[0], views[2])
    assert (failure.summary, failure.differences) == ("the bytes differ", ())


# -- expect_almost_eq ----------------------------------------------------------------------------------


def floats(element_type: ElementType) -> tuple[Array, Array]:
    """Every pair of some values, with NaNs and infinities where the type has them, and many that are close."""
    special = [0.0, -0.0, 1.0, -1.0, 1.5, 2.0, 300.0, 1e-3, 0.1, 0.1001, np.nan, np.inf, -np.inf]
    pairs = np.array(list(itertools.product(special, special)))
    random = np.random.default_rng(3)
    near = random.uniform(0.5, 4, (400, 1)) * (1 + random.uniform(-0.2, 0.2, (400, 2)))
    both = np.concatenate([pairs, near])
    with np.errstate(all="ignore"):
        if element_type.is_complex:
            both = both + 1j * both[::-1]
        left, right = both.astype(element_type.dtype).T
    return np.ascontiguousarray(left), np.ascontiguousarray(right)


def is_close(left: Array, right: Array, atol: float, rtol: float) -> npt.NDArray[np.bool_]:
    """NumPy's word on it: its rule is the one that the expectation states."""
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return np.isclose(left.astype(wide), right.astype(wide), rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.vulkan
@pytest.mark.parametrize("element_type", FLOATS + COMPLEX, ids=named)
def test_nearness_is_numpys(device: Device, element_type: ElementType) -> None:
    check = Check(device)
    check.recorder.max_differences = 10_000
    left, right = floats(element_type)
    views = check.view(left, element_type), check.view(right, element_type)
    wide = complex if element_type.is_complex else float
    for atol, rtol in ((0.0, 0.0), (1e-4, 0.0), (0.0, 0.1), (0.25, 0.01), (float("inf"), 0.0)):
        far = ~is_close(left, right, atol, rtol)
        assert far.any() or atol == float("inf")
        log = check("expect_almost_eq", "0rrrff_v", device, *views, atol, rtol)
        assert log.failure_count == far.any()
        for failure in log.failures:
            assert failure.differing == np.count_nonzero(far)
            assert [one.index[0] for one in failure.differences] == np.flatnonzero(far).tolist()
            for one in failure.differences:
                a, b = wide(left[one.index]), wide(right[one.index])
                with np.errstate(all="ignore"):
                    distance = float(np.abs(np.subtract(a, b)))
                tolerance = atol + rtol * abs(b) if np.isfinite(b) else None
                assert one.difference == (None if np.isnan(distance) else pytest.approx(distance))
                assert one.tolerance == (None if tolerance is None else pytest.approx(tolerance))
        assert check.holds("expect_almost_eq", "0rrrff_v", device, views[0], views[0], atol, rtol)


@pytest.mark.vulkan
def test_the_largest_difference_is_named(check: Check) -> None:
    left = np.zeros((4, 8), np.float32)
    right = np.linspace(0, 1, 32, dtype=np.float32).reshape(4, 8)
    right[1, 3], right[2, 2], right[3, 3] = 50, np.nan, np.inf
    check.recorder.max_differences = 2
    arguments = (check.view(left, ElementType.FLOAT_32), check.view(right, ElementType.FLOAT_32), 0.5, 0.0)
    failure = check.failure("expect_almost_eq", "0rrrff_v", check.device, *arguments)
    assert failure.differing == np.count_nonzero(~is_close(left, right, 0.5, 0))
    assert len(failure.differences) == 2
    assert failure.largest is not None
    assert (failure.largest.index, failure.largest.difference) == ((1, 3), 50.0)
    text = failure.format()
    assert f"and {failure.differing - 2} more" in text
    assert "largest difference is at [1,3]: 0.0 and 50.0, difference 50, tolerance 0.5" in text


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("element_type", "atol"),
    [
        (ElementType.FLOAT_32, 1e-4),
        (ElementType.FLOAT_64, 1e-4),
        (ElementType.FLOAT_16, 1e-3),
        (ElementType.BFLOAT_16, 1e-3),
    ],
)
def test_fixed_tolerances(check: Check, element_type: ElementType, atol: float) -> None:
    zero = check.view(np.zeros(1, element_type.dtype), element_type)
    near = check.view(np.full(1, atol * 0.9, element_type.dtype), element_type)
    far = check.view(np.full(1, atol * 1.1, element_type.dtype), element_type)
    for convention, arguments in (("0rrr_v", (check.device, zero)), ("0rr_v", (zero,))):
        assert check.holds("expect_almost_eq", convention, *arguments, near)
        assert not check.holds("expect_almost_eq", convention, *arguments, far)


@pytest.mark.vulkan
def test_only_floats_are_almost_equal(device: Device) -> None:
    check = Check(device)
    for element_type in (*INTEGERS, ElementType.BOOL_8, ElementType.OPAQUE_32):
        view = check.view(values(element_type, (4,)), element_type)
        with pytest.raises(InvalidArgumentError, match="expected floats or complex numbers, got 4x"):
            check("expect_almost_eq", "0rrrff_v", device, view, view, 0.0, 0.0)


# -- expect_all_true -----------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_all_true(check: Check) -> None:
    for element_type in (one for one in TYPES if not one.is_opaque):
        array = np.ones((2, 5), element_type.dtype)
        for convention, first in (("0rr_v", (check.device,)), ("0r_v", ())):
            assert check.holds("expect_all_true", convention, *first, check.view(array, element_type))
        if element_type is ElementType.FLOAT_8_E8M0_FNU:
            continue  # it has no zero
        array[0, 3] = array[1, 4] = 0
        failure = check.failure("expect_all_true", "0rr_v", check.device, check.view(array, element_type))
        assert failure.differing == 2
        assert [one.index for one in failure.differences] == list(zip(*np.nonzero(array == 0), strict=True))
        assert [one.lhs for one in failure.differences] == [str(array[0, 3])] * 2
        assert failure.lhs == format_value(array, element_type=element_type)
        assert f"value: {failure.lhs}" in failure.format()


@pytest.mark.vulkan
def test_of_floats_only_zeros_are_not_true(check: Check) -> None:
    array = np.array([np.nan, np.inf, 1e-40, -0.0], np.float32)
    failure = check.failure("expect_all_true", "0rr_v", check.device, check.view(array, ElementType.FLOAT_32))
    assert [one.index for one in failure.differences] == [(3,)]


@pytest.mark.vulkan
def test_opaque_elements_are_neither_true_nor_false(check: Check) -> None:
    view = check.view(values(ElementType.OPAQUE_16, (3,)), ElementType.OPAQUE_16)
    with pytest.raises(InvalidArgumentError, match=r"got 3x\*16"):
        check("expect_all_true", "0rr_v", check.device, view)


# -- size and shape ------------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1)])
def test_scalars_and_empty_tensors(check: Check, shape: tuple[int, ...]) -> None:
    zeros, ones = np.zeros(shape, np.float32), np.ones(shape, np.float32)
    left, right = check.view(zeros, ElementType.FLOAT_32), check.view(ones, ElementType.FLOAT_32)
    for name, convention, rest in (("expect_eq", "0rrr_v", ()), ("expect_almost_eq", "0rrrff_v", (0.1, 0.0))):
        log = check(name, convention, check.device, left, right, *rest)
        assert log.failure_count == zeros.size
        for failure in log.failures:
            assert [one.index for one in failure.differences] == [(0,) * len(shape)]
    assert check("expect_all_true", "0rr_v", check.device, left).failure_count == zeros.size


@pytest.mark.vulkan
def test_parts_make_no_difference(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    left = random.integers(0, 4, (23, 5)).astype(np.float32)
    right = np.where(random.random((23, 5)) < 0.7, left, left + random.random((23, 5))).astype(np.float32)
    views = check.view(left, ElementType.FLOAT_32), check.view(right, ElementType.FLOAT_32)

    def all_of_them() -> list[CheckFailure]:
        return [
            check.failure("expect_eq", "0rrr_v", check.device, *views),
            check.failure("expect_almost_eq", "0rrrff_v", check.device, *views, 0.25, 0.0),
            check.failure("expect_all_true", "0rr_v", check.device, views[0]),
        ]

    whole = all_of_them()
    assert whole[0].differing == np.count_nonzero(left != right)
    for chunk in (1, 7, 114, 115, 116):
        monkeypatch.setattr(check_values, "_CHUNK", chunk)
        assert all_of_them() == whole


@pytest.mark.vulkan
@pytest.mark.parametrize("shape", [(1000,), (100, 100), (2, 3, 50), (10, 4, 8), (5, 1, 1, 70), (64,), (65,), (8, 8, 1)])
def test_large_tensors_are_cut_short(device: Device, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    full = format_value(array, max_elements=None)
    with device.create_buffer(array.nbytes) as buffer:
        value = HostView(BufferView(buffer, shape, ElementType.INT_32), array.tobytes())
        for most in (0, 1, 8, 64):
            text = value.format(most)
            if array.size <= most:
                assert text == full
                continue
            assert text.endswith("...")
            assert full.startswith(text[:-3])
            shown = len(text.partition("=")[2][:-3].replace("[", " ").replace("]", " ").split())
            assert max(most, 1) // 2 <= shown <= max(most, 1)


# -- recording -----------------------------------------------------------------------------------------


@pytest.mark.vulkan
def test_failures_beyond_the_limit_are_counted(device: Device) -> None:
    check = Check(device)
    check.recorder.max_failures, check.recorder.max_differences = 3, 0
    functions = check_module(check.recorder)
    expect = functions.find_export("expect_true")[0].bind(functions.new_state())
    for operand in [0] * 5 + [1] * 2:
        expect(operand)
    log = check.recorder.take()
    assert (len(log.failures), log.failure_count, log.expectation_count) == (3, 5, 7)
    assert check.recorder.take() == CheckLog((), 0, 0)
    pair = [check.view(np.array([n], np.int32), ElementType.INT_32) for n in (1, 2)]
    failure = check.failure("expect_eq", "0rrr_v", device, *pair)
    assert (failure.differing, failure.differences) == (1, ())


@pytest.mark.vulkan
@pytest.mark.parametrize("wrong", [None, 3, b"", "view"])
def test_what_is_no_view_is_an_error(device: Device, wrong: object) -> None:
    check = Check(device)
    view = check.view(np.zeros(1, np.float32), ElementType.FLOAT_32)
    got = "null" if wrong is None else type(wrong).__name__
    for name, convention, arguments in (
        ("expect_all_true", "0rr_v", (device, wrong)),
        ("expect_eq", "0rrr_v", (device, wrong, view)),
        ("expect_eq", "0rrr_v", (device, view, wrong)),
        ("expect_almost_eq", "0rrrff_v", (device, view, wrong, 0.0, 0.0)),
        ("expect_almost_eq", "0rrr_v", (device, wrong, view)),
    ):
        with pytest.raises(InvalidArgumentError, match=f"{name} .*expected a !hal.buffer_view, got {got}"):
            check(name, convention, *arguments)


@pytest.mark.vulkan
def test_a_view_of_a_closed_buffer_is_an_error(device: Device) -> None:
    check = Check(device)
    view = check.view(np.zeros(1, np.float32), ElementType.FLOAT_32)
    view.buffer.close()
    with pytest.raises(ClosedError):
        check("expect_eq", "0rrr_v", device, view, view)
