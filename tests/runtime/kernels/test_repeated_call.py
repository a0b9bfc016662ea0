"""Repeated calls with the same arrays, which skip checks and recording: they behave as first calls do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pumice
from pumice import shaders
from pumice.status import ClosedError, DeviceLostError, InvalidArgumentError, NotFoundError, ResourceExhaustedError

pytestmark = pytest.mark.vulkan

TIMES = 5
"""Calls, of which the last ones repeat the first."""


@pytest.fixture
def device() -> Iterator[pumice.Device]:
    with pumice.open_device() as opened:
        yield opened


@pytest.fixture
def mul(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(shaders.path("mul"))


def arrays(device: pumice.Device, seed: int = 0, count: int = 100) -> list[pumice.DeviceArray]:
    generator = np.random.default_rng(seed)
    return [device.asarray(generator.standard_normal(count, np.float32)) for _ in range(3)]


def repeat(mul: pumice.Kernel, given: list[pumice.DeviceArray]) -> None:
    for _ in range(TIMES):
        mul(*given)


def test_results_follow_what_the_arrays_hold(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b, c = arrays(device)
    for number in range(TIMES):
        a.copy_from(np.full(100, number, np.float32))
        assert mul(a, b, c) is c
        np.testing.assert_array_equal(c.numpy(), number * b.numpy())


def test_they_wait_for_and_mark_views(device: pumice.Device, mul: pumice.Kernel) -> None:
    whole = device.asarray(np.arange(256, dtype=np.float32))
    part, b, c = whole[:64], device.asarray(np.full(64, 2, np.float32)), device.empty(64)
    for number in range(TIMES):
        mul(part, b, c)
        mul(c, b, part)
        np.testing.assert_array_equal(whole.numpy()[:64], np.arange(64) * 4.0 ** (number + 1))


@pytest.mark.parametrize("position", [0, 1, 2])
def test_closed_arrays_are_refused(device: pumice.Device, mul: pumice.Kernel, position: int) -> None:
    given = arrays(device)
    repeat(mul, given)
    given[position].close()
    with pytest.raises(ClosedError):
        mul(*given)


def test_closed_views_are_refused(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b, c = arrays(device)
    given = [a[:64], b[:64], c[:64]]
    repeat(mul, given)
    given[1].close()
    with pytest.raises(ClosedError):
        mul(*given)
    mul(a, b, c)


IMAGES = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D source;
layout(binding = 1, rgba32f) uniform writeonly image2D result;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    imageStore(result, at, 2 * texelFetch(source, at, 0));
}
"""


@pytest.fixture
def double(device: pumice.Device) -> pumice.Kernel:
    return device.load_kernel(IMAGES)


def images(device: pumice.Device) -> list[pumice.DeviceImage]:
    return [device.asimage(np.full((8, 8, 4), value, np.float32)) for value in (1, 0)]


def test_calls_with_images_are_repeated(device: pumice.Device, double: pumice.Kernel) -> None:
    source, result = images(device)
    for number in range(TIMES):
        source.copy_from(np.full((8, 8, 4), number, np.float32))
        assert double(source, result) is result
        np.testing.assert_array_equal(result.numpy(), np.full((8, 8, 4), 2 * number))
    for _ in range(2):
        double(source, result)
    assert double._dispatcher.repeat((source, result)) is result
    assert double._dispatcher.repeat((result, source)) is None
    double(result, source)
    np.testing.assert_array_equal(source.numpy(), 2 * result.numpy())


@pytest.mark.parametrize("position", [0, 1])
def test_closed_images_are_refused(device: pumice.Device, double: pumice.Kernel, position: int) -> None:
    pair = images(device)
    for _ in range(TIMES):
        double(*pair)
    pair[position].close()
    with pytest.raises(ClosedError):
        double(*pair)


def test_a_closed_sampler_is_refused(device: pumice.Device, double: pumice.Kernel) -> None:
    source, result = images(device)
    sampler = device.sampler()
    sampled = source.with_sampler(sampler)
    for _ in range(TIMES):
        double(sampled, result)
    sampler.close()
    with pytest.raises(ClosedError):
        double(sampled, result)


def test_arrays_survive_what_is_closed_beside_them(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b, c = arrays(device)
    for number in range(TIMES):
        a.copy_from(np.full(100, number, np.float32))
        with device.empty(10):
            mul(a, b, c)
        device.asarray(np.zeros(5))  # dropped without a close
        np.testing.assert_array_equal(c.numpy(), number * b.numpy())


def test_commands_that_were_recorded_for_others_are_not_run(device: pumice.Device, mul: pumice.Kernel) -> None:
    first = arrays(device)
    repeat(mul, first)
    others = [arrays(device, seed) for seed in range(100)]  # more than the kernel keeps recordings of
    for _ in range(2):
        for given in others:
            mul(*given)
    before = [given[2].numpy() for given in others]
    first[0].copy_from(np.full(100, 3, np.float32))
    np.testing.assert_array_equal(mul(*first).numpy(), 3 * first[1].numpy())  # type: ignore[union-attr]
    for given, held in zip(others, before, strict=True):
        np.testing.assert_array_equal(given[2].numpy(), held)


def test_other_arguments_are_other_calls(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b, c = arrays(device)
    repeat(mul, [a, b, c])
    zeros = np.zeros(100, np.float32)
    result = mul(a, zeros, c)
    assert result is c and not c.numpy().any()
    mul(a, b, out=c)
    np.testing.assert_array_equal(c.numpy(), a.numpy() * b.numpy())
    c.copy_from(zeros)
    mul(a, b, c, groups=1)
    np.testing.assert_array_equal(c.numpy()[:64], (a.numpy() * b.numpy())[:64])
    assert not c.numpy()[64:].any()
    with pytest.raises(NotFoundError):
        mul(a, b, c, scale=2)
    with pytest.raises(InvalidArgumentError):
        mul(a, b)


def test_a_closed_kernel_or_device_refuses_them(device: pumice.Device, mul: pumice.Kernel) -> None:
    given = arrays(device)
    repeat(mul, given)
    mul.close()
    with pytest.raises(ClosedError):
        mul(*given)
    other = device.load_kernel(shaders.path("mul"))
    repeat(other, given)
    device.close()
    with pytest.raises(ClosedError):
        other(*given)


def test_a_lost_device_refuses_them(device: pumice.Device, mul: pumice.Kernel) -> None:
    given = arrays(device)
    repeat(mul, given)
    real, device.vulkan.fn.vkQueueSubmit = device.vulkan.fn.vkQueueSubmit, lambda *_: -4
    with pytest.raises(DeviceLostError):
        mul(*given)
    device.vulkan.fn.vkQueueSubmit = real
    with pytest.raises(DeviceLostError):
        mul(*given)


def test_a_refused_submission_is_taken_back(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b, c = arrays(device)
    repeat(mul, [a, b, c])
    submitted = device.submitted
    real, device.vulkan.fn.vkQueueSubmit = device.vulkan.fn.vkQueueSubmit, lambda *_: -1
    with pytest.raises(ResourceExhaustedError):
        mul(a, b, c)
    device.vulkan.fn.vkQueueSubmit = real
    assert device.submitted == submitted
    np.testing.assert_array_equal(mul(a, b, c).numpy(), a.numpy() * b.numpy())  # type: ignore[union-attr]


def run_in_threads(work: Callable[[int], None], count: int) -> None:
    """Runs ``work(number)`` in threads that take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count)))
    finally:
        sys.setswitchinterval(before)


def test_threads_repeat_calls_of_one_kernel(device: pumice.Device, mul: pumice.Kernel) -> None:
    sets = [arrays(device, seed) for seed in range(6)]

    def work(number: int) -> None:
        a, b, c = sets[number]
        for turn in range(40):
            a.copy_from(np.full(100, turn, np.float32))
            np.testing.assert_array_equal(mul(a, b, c).numpy(), turn * b.numpy())  # type: ignore[union-attr]

    run_in_threads(work, len(sets))


def test_threads_take_recordings_from_each_other(device: pumice.Device, mul: pumice.Kernel) -> None:
    """The threads' arrays together are more than the kernel keeps recordings of."""
    sets = [[arrays(device, 100 * number + seed, 64) for seed in range(90)] for number in range(3)]
    expected = [[a.numpy() * b.numpy() for a, b, _ in mine] for mine in sets]

    def work(number: int) -> None:
        for _ in range(4):
            for (a, b, c), product in zip(sets[number], expected[number], strict=True):
                for _ in range(2):
                    mul(a, b, c)
                np.testing.assert_array_equal(c.numpy(), product)

    run_in_threads(work, len(sets))


def test_threads_share_an_array(device: pumice.Device, mul: pumice.Kernel) -> None:
    """Every thread waits for its own calls, which write parts of one array."""
    whole, ones = device.zeros(4 * 64), device.asarray(np.ones(64, np.float32))
    parts = [whole[64 * number : 64 * (number + 1)] for number in range(4)]

    def work(number: int) -> None:
        for turn in range(40):
            values = device.asarray(np.full(64, turn, np.float32))
            mul(values, ones, parts[number])
            np.testing.assert_array_equal(parts[number].numpy(), np.full(64, turn))

    run_in_threads(work, len(parts))
    np.testing.assert_array_equal(whole.numpy(), np.full(4 * 64, 39))


SAXPY = """#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 32) in;
layout(buffer_reference, std430) buffer Floats { float v[]; };
layout(push_constant) uniform Push { Floats x; Floats y; };
void main() { y.v[gl_GlobalInvocationID.x] += x.v[gl_GlobalInvocationID.x]; }
"""


@pytest.mark.parametrize("calls", [0, 1, TIMES])
@pytest.mark.parametrize("position", [0, 2])
def test_an_array_that_another_thread_closes_meanwhile_is_refused(
    device: pumice.Device, mul: pumice.Kernel, monkeypatch: pytest.MonkeyPatch, calls: int, position: int
) -> None:
    """After its checks, before its submission; its memory is not given to others, which the kernel would overwrite."""
    given = arrays(device)
    mul(*arrays(device, 1))
    for _ in range(calls):
        mul(*given)
    others = closes_at_submission(device, mul, given[position], monkeypatch)
    with pytest.raises(ClosedError):
        mul(*given)
    assert_unchanged(device, others)


def test_an_array_behind_a_pointer_that_another_thread_closes_meanwhile_is_refused(
    device: pumice.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = device.load_kernel(SAXPY)
    x, y = arrays(device)[:2]
    kernel(x=x, y=y, groups=1)
    others = closes_at_submission(device, kernel, y, monkeypatch)
    with pytest.raises(ClosedError):
        kernel(x=x, y=y, groups=1)
    assert_unchanged(device, others)


def closes_at_submission(
    device: pumice.Device, kernel: pumice.Kernel, array: pumice.DeviceArray, monkeypatch: pytest.MonkeyPatch
) -> list[pumice.DeviceArray]:
    """Closes an array at the kernel's next call, and makes others of its size, which take its memory if they can."""
    others: list[pumice.DeviceArray] = []

    def close(method: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object) -> object:
            if not others:
                device.wait()
                array.close()
                others.extend(device.asarray(np.full(100, 9, np.float32)) for _ in range(8))
            return method(*args)

        return wrapped

    dispatcher = kernel._dispatcher
    monkeypatch.setattr(dispatcher, "_submit", close(dispatcher._submit))
    monkeypatch.setattr(device.hal.compute_queue, "resubmit", close(device.hal.compute_queue.resubmit))
    return others


def assert_unchanged(device: pumice.Device, others: list[pumice.DeviceArray]) -> None:
    device.wait()
    for other in others:
        np.testing.assert_array_equal(other.numpy(), np.full(100, 9, np.float32))
