"""Kernel calls and arrays leave memory and live objects where they were.

The long form (``PUMICE_SOAK=1``) makes 50,000 calls at least.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.flat import hold_flat
from support.soak import SOAK

import pumice
from pumice import shaders

pytestmark = [pytest.mark.vulkan, pytest.mark.sample(3)]

_CALLS = 25_000 if SOAK else 1_000
A = np.arange(16, dtype=np.float32)


@pytest.fixture(params=["mapped", "staging"])
def device(request: pytest.FixtureRequest) -> Iterator[pumice.Device]:
    with pumice.open_device(staging=request.param == "staging", persistent_cache=False) as opened:
        yield opened


def _kernels(device: pumice.Device) -> Callable[[int], object]:
    kernel = device.load_kernel(shaders.path("mul"))
    held = [device.asarray(A + i) for i in range(100)]
    out = device.empty(16)

    def call(step: int) -> None:
        if step % 10 == 0:
            kernel(A, A, pumice.empty(16))  # NumPy in and out
        elif step % 10 == 1:
            kernel(held[step % 100], A, pumice.empty(16))  # a new array on the device
        elif step % 10 == 2:
            part = A[: 1 + step // 10 % 16]  # of many sizes
            kernel(part, part, pumice.empty(len(part)))
        else:
            kernel(held[step % 100], held[step * 7 % 100], out)
        if step % 50 == 9:
            expected = held[step % 100].numpy() * held[step * 7 % 100].numpy()
            np.testing.assert_array_equal(out.numpy(), expected)

    return call


def _arrays(device: pumice.Device) -> Callable[[int], object]:
    def call(step: int) -> None:
        array = device.asarray(np.full(64 + step % 50, step, np.float32))
        part = array[5:20]
        copied = array.copy().copy_from(array)
        np.testing.assert_array_equal(part.numpy(), np.full(15, step))
        if array.buffer.host_visible:
            array.map()
        np.from_dlpack(copied)
        if step % 2:
            array.close()
        device.zeros(10).astype(np.int32)

    return call


def _failed_calls(device: pumice.Device) -> Callable[[int], object]:
    kernel = device.load_kernel(shaders.path("mul"))
    saxpy = device.load_kernel(shaders.path("examples/saxpy"))
    array = device.asarray(A)
    closed = device.empty(16)
    closed.close()
    failing: list[Callable[[], object]] = [
        lambda: kernel(A, A),
        lambda: kernel(A, A[:0], pumice.empty(16)),
        lambda: kernel(A, "x", pumice.empty(16)),  # type: ignore[arg-type]
        lambda: kernel(A, closed, pumice.empty(16)),
        lambda: kernel(A, A, pumice.empty(16), groups=1 << 40),
        lambda: kernel(array, A, pumice.empty(16), groups=1 << 40),
        lambda: saxpy(A, A, a=float("nan"), b=1),
        lambda: saxpy(A, A, a=10**400),
        lambda: device.asarray(["a", [1]]),  # type: ignore[list-item]
        lambda: array[True],
        lambda: array.copy_from(A[:3]),
    ]

    def call(step: int) -> None:
        with contextlib.suppress(pumice.PumiceError):
            failing[step % len(failing)]()
            pytest.fail("did not fail")

    return call


@pytest.mark.parametrize("make", [_kernels, _arrays, _failed_calls])
def test_calls_leave_nothing(device: pumice.Device, make: Callable[[pumice.Device], Callable[[int], object]]) -> None:
    call = make(device)

    def block() -> None:
        for step in range(_CALLS):
            call(step)

    def idle() -> None:
        device.hal.wait_idle()
        device.hal.retire()

    hold_flat(block, idle, exact=True)


def test_kernels_that_come_and_go(device: pumice.Device) -> None:
    def block() -> None:
        for _ in range(_CALLS // 20):
            kernel = device.load_kernel(shaders.path("mul"))
            np.testing.assert_array_equal(kernel(A, A, pumice.empty(16)), A * A)

    def idle() -> None:
        device.hal.wait_idle()
        device.hal.retire()

    hold_flat(block, idle)
