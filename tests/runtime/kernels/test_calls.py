"""Repeated and concurrent calls: their results, their order, and the memory that they keep."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pumice
from pumice import shaders
from pumice.waits.wait_mode import waits

pytestmark = pytest.mark.vulkan


def arrays(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal(count, np.float32), generator.standard_normal(count, np.float32)


# -- results of repeated and concurrent calls ----------------------------------------------------------


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_calls_run_in_the_order_given(device: pumice.Device, order: list[tuple[int, int, int]]) -> None:
    kernel = device.load_kernel(shaders.source_path("mul"))
    model = [np.full(5, 1 + i / 8, np.float32) for i in range(6)]
    held = [device.asarray(m) for m in model]
    for a, b, c in order:
        if c in (a, b):
            continue  # the same memory as input and output of one call is a race of the caller's
        kernel(held[a], held[b], held[c])
        with np.errstate(over="ignore"):
            model[c] = model[a] * model[b]
    for array, expected in zip(held, model, strict=True):
        np.testing.assert_array_equal(array.numpy(), expected)
    kernel.close()


def test_a_repeated_call_makes_nothing(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b = arrays(10)
    x, y, z = device.asarray(a), device.asarray(b), device.empty(10)
    for _ in range(20):
        mul(x, y, z).wait()  # type: ignore[union-attr]
    mul(a, b, pumice.empty(10))
    before = pumice.live_objects()
    for _ in range(200):
        mul(x, y, z).wait()  # type: ignore[union-attr]
        mul(a, b, pumice.empty(10))
    device.hal.wait_idle()
    device.hal.retire()
    assert pumice.live_objects().get("allocation") == before.get("allocation")
    assert pumice.live_objects().get("descriptor pool") == before.get("descriptor pool")


def test_a_repeated_call_with_numpy_arrays_keeps_its_staging(device: pumice.Device, mul: pumice.Kernel) -> None:
    """What is made and closed has the next submission check all its resources again."""
    a, b = arrays(10)
    x, out = device.asarray(a), np.empty(10, np.float32)

    def call() -> None:
        np.testing.assert_array_equal(mul(a, b, pumice.empty(10)), a * b)
        np.testing.assert_array_equal(mul(a, b, out=out), a * b)
        mul(x, b, x).wait().copy_from(a)  # type: ignore[union-attr]

    def settled() -> dict[str, int]:
        device.hal.wait_idle()
        device.hal.retire()
        return pumice.live_objects()

    call()
    live, closed = settled(), device.hal.close_epoch
    for _ in range(20):
        call()
    assert settled() == live
    # copy_from goes through a buffer of its own where the host does not see the array.
    assert device.hal.close_epoch - closed == (20 if device.staging else 0)


def test_a_call_with_numpy_arrays_takes_few_python_calls(device: pumice.Device, mul: pumice.Kernel) -> None:
    a, b = arrays(10)
    out = pumice.empty(10)
    for _ in range(3):
        mul(a, b, out)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    gc.collect()  # finalisers of other tests' objects are calls too
    with waits("block"):  # polling makes any number of calls
        sys.setprofile(count)
        try:
            mul(a, b, out)
        finally:
            sys.setprofile(None)
    assert calls <= (90 if device.staging else 50)


def test_staging_is_bounded_and_goes_with_the_kernel(device: pumice.Device) -> None:
    kernel = device.load_kernel(shaders.source_path("mul"))
    device.hal.trim()
    before = pumice.live_objects().get("allocation", 0)

    def kept() -> int:
        device.hal.wait_idle()
        device.hal.retire()
        return pumice.live_objects().get("allocation", 0) - before

    for count in range(1, 150):
        a, b = arrays(count)
        np.testing.assert_array_equal(kernel(a, b, pumice.empty(count)), a * b)
    assert 0 < kept() <= 64 * (6 if device.staging else 3)
    for count in (3 << 20, 1 << 20):
        a, b = arrays(count)
        np.testing.assert_array_equal(kernel(a, b, pumice.empty(count)), a * b)
    assert kernel._dispatcher._staging._nbytes <= 16 << 20
    device.hal.trim()
    assert kept() == 0
    a, b = arrays(5)
    kernel(a, b, pumice.empty(5))
    kernel.close()
    assert kept() == 0


def test_threads_have_staging_each(device: pumice.Device, mul: pumice.Kernel) -> None:
    failures: list[str] = []
    start = threading.Barrier(6)
    zero = device.zeros(8)

    def work(seed: int) -> None:
        start.wait()
        for step in range(60):
            a, b = arrays(8 + step % 2, seed * 1000 + step)
            result = mul(a, b, pumice.empty(len(a)))
            mixed = mul(a[:8], b[:8], out=device.empty(8)) if step % 3 else mul(zero, b[:8], pumice.empty(8))
            if not np.array_equal(result, a * b) or not np.array_equal(mixed, (a * b)[:8] if step % 3 else 0 * b[:8]):
                failures.append(f"thread {seed} step {step}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_staging_of_calls_that_nobody_waits_for_is_not_overwritten(device: pumice.Device, mul: pumice.Kernel) -> None:
    ones = device.asarray(np.ones(4096, np.float32))
    results = [mul(ones, np.full(4096, i, np.float32), pumice.empty(4096)) for i in range(100)]
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(4096, i))


def test_an_interrupted_call_leaves_its_staging_to_nobody(
    device: pumice.Device, mul: pumice.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = arrays(7)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    queue = device.hal.compute_queue
    for owner, methods in ((queue, ("submit", "resubmit")), (device, ("reach",))):
        mul(a, b, pumice.empty(7))
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            for method in methods:
                patch.setattr(owner, method, interrupted)
            mul(b, b, pumice.empty(7))
        np.testing.assert_array_equal(mul(a, b, pumice.empty(7)), a * b)


def test_more_buffers_than_recordings(device: pumice.Device, mul: pumice.Kernel) -> None:
    held = [device.asarray(np.full(3, i, np.float32)) for i in range(150)]
    z = device.empty(3)
    for i in range(600):
        mul(held[i % 150], held[i * 7 % 150], z)
        if i % 97 == 0:
            np.testing.assert_array_equal(z.numpy(), [(i % 150) * (i * 7 % 150)] * 3)


def test_threads_share_a_kernel(device: pumice.Device, mul: pumice.Kernel) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        for step in range(40):
            a, b = arrays(50 + seed, seed * 100 + step)
            if not np.array_equal(mul(a, b, pumice.empty(a.shape)), a * b):
                failures.append(f"thread {seed} step {step}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_time(mul: pumice.Kernel) -> None:
    a, b = arrays(1000)
    result, timing = mul.time(a, b, pumice.empty(1000))
    np.testing.assert_array_equal(result, a * b)
    assert timing.duration_ns > 0
    assert timing.name == "mul"
    assert timing.device_type in ("CPU", "DISCRETE", "INTEGRATED", "VIRTUAL", "OTHER")
