"""Recordings do at each run what their calls would do, and nothing before."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

import pumice
from pumice import shaders

pytestmark = pytest.mark.vulkan


def ones(device: pumice.Device, count: int = 100) -> pumice.DeviceArray:
    return device.asarray(np.ones(count, np.float32))


def test_nothing_runs_before_run(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = ones(device), device.zeros(100)
    submitted = device.submitted
    with device.record() as step:
        assert add(x, y, dt=0.5, n=60) is y
    assert device.submitted == submitted
    np.testing.assert_array_equal(y.numpy(), np.zeros(100))
    step.run()
    step.run(times=300)
    expected = np.where(np.arange(100) < 60, 150.5, 0)
    np.testing.assert_array_equal(y.numpy(), expected)


def test_later_calls_see_what_earlier_ones_write(device: pumice.Device, add: pumice.Kernel) -> None:
    count = 100_000
    x, y, z = ones(device, count), device.zeros(count), device.zeros(count)
    with device.record() as step:
        for _ in range(12):
            add(x, y, dt=1, n=count)
            add(y, z, dt=1, n=count)
    step.run(times=2)
    np.testing.assert_array_equal(z.numpy(), np.full(count, sum(range(1, 25)), np.float32))


def test_a_run_is_one_submission_whose_results_are_waited_for(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = ones(device), device.zeros(100)
    with device.record() as step:
        for _ in range(25):
            add(x, y, dt=1, n=100)
    before = device.submitted
    step.run()
    assert device.submitted == before + 1
    assert (y.ready, x.ready <= before) == (device.submitted, True)
    step.run(times=200)
    assert device.submitted == before + 2
    assert y.numpy()[0] == 201 * 25


def test_arguments_of_the_host_are_those_of_the_recording(device: pumice.Device, add: pumice.Kernel) -> None:
    x = np.ones(100, np.float32)
    y = np.full(100, 5, np.float32)
    with device.record() as step:
        result = add(x, y, dt=1, n=100)
        other = add(x, pumice.empty(100, np.float32), dt=1, n=0)
    assert isinstance(result, pumice.DeviceArray) and isinstance(other, pumice.DeviceArray)
    x[:] = y[:] = 0  # too late
    step.run(times=3)
    # As by calls, each of which gets y anew.
    np.testing.assert_array_equal(result.numpy(), np.full(100, 6))


def test_copies_fills_and_new_arrays_are_recorded(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = ones(device), device.zeros(100)
    with device.record() as step:
        made = device.asarray(np.arange(100, dtype=np.float32))
        total = device.zeros(100)
        add(made, total, dt=1, n=100)
        y.copy_from(total)
        x[:10] = 7
        x[10:20] = np.full(10, 8, np.float32)
        add(x, made, dt=1, n=100)
    assert x.numpy()[0] == 1
    for _ in range(2):
        step.run()
        np.testing.assert_array_equal(y.numpy(), np.arange(100))
        np.testing.assert_array_equal(x.numpy(), [7] * 10 + [8] * 10 + [1] * 80)
        np.testing.assert_array_equal(made.numpy(), np.arange(100) + x.numpy())


def test_copies_are_recorded_on_the_reference_device() -> None:
    with pumice.open_device("reference") as device:
        a, b = device.asarray(np.arange(4, dtype=np.float32)), device.zeros(4)
        with device.record() as step:
            b.copy_from(a)
            a[:2] = 9
        assert not b.numpy().any()
        step.run()
        np.testing.assert_array_equal(b.numpy(), [0, 1, 2, 3])
        step.run(times=2)
        np.testing.assert_array_equal(b.numpy(), [9, 9, 2, 3])

        async def wait() -> None:
            await step.run_async()

        asyncio.run(wait())
        with pytest.raises(pumice.status.UnimplementedError, match="no timestamps"):
            step.time()


def test_unaligned_views_are_copied_at_each_run(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = device.asarray(np.arange(101, dtype=np.float32)), device.zeros(101)
    with device.record() as step:
        result = add(x[1:], y[1:], dt=1, n=100)
    step.run()
    x[1] = 50
    step.run()
    np.testing.assert_array_equal(result.numpy(), [51, *(2 * np.arange(2, 101))])
    assert y.numpy()[0] == 0


def test_images_are_recorded(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform readonly image2D source;
layout(binding = 1, r32f) uniform image2D target;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    imageStore(target, p, imageLoad(source, p) + imageLoad(target, p));
}
"""
    )
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    source, target = device.asimage(data, "r32float"), device.asimage(np.zeros_like(data), "r32float")
    with device.record() as step:
        kernel(source, target)
        with pytest.raises(pumice.status.FailedPreconditionError, match="copy of an image"):
            kernel(data, target)
        with pytest.raises(pumice.status.FailedPreconditionError, match="read it after run"):
            target.numpy()
    step.run(times=3)
    np.testing.assert_array_equal(target.numpy(), 3 * data)


def test_elementwise_kernels_and_reductions_are_recorded(device: pumice.Device) -> None:
    double = pumice.ElementwiseKernel("float x", "float y", "y = 2 * x", "double_")
    x = ones(device, 1000)
    with device.record() as step:
        y = double(x)
    step.run()
    np.testing.assert_array_equal(y.numpy(), np.full(1000, 2))
    x.copy_from(np.full(1000, 4, np.float32))
    step.run()
    np.testing.assert_array_equal(y.numpy(), np.full(1000, 8))


def test_calls_of_other_threads_and_tasks_are_not_recorded(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y, z = ones(device), device.zeros(100), device.zeros(100)

    async def other(begun: asyncio.Event, ended: asyncio.Event) -> None:
        await begun.wait()
        add(x, z, dt=1, n=100)
        ended.set()

    async def main() -> pumice.Recording:
        begun, ended = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(other(begun, ended))
        with device.record() as step:
            begun.set()
            await ended.wait()
            thread = threading.Thread(target=add, args=(x, z), kwargs={"dt": 1, "n": 100})
            thread.start()
            thread.join()
            add(x, y, dt=1, n=100)
        await task
        return step

    step = asyncio.run(main())
    assert (y.numpy()[0], z.numpy()[0]) == (0, 2)
    step.run()
    assert (y.numpy()[0], z.numpy()[0]) == (1, 2)
    assert len(step.steps) == 1


def test_a_recording_runs_in_another(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y, z = ones(device), device.zeros(100), device.zeros(100)
    with device.record("inner") as inner:
        add(x, y, dt=1, n=100)
    with device.record("outer") as outer:
        inner.run(times=3)
        inner.run(dt=10)
        add(y, z, dt=1, n=100)
    inner.close()  # the outer one has calls of its own
    assert y.numpy()[0] == 0
    outer.run(times=2)
    assert (y.numpy()[0], z.numpy()[0]) == (26, 13 + 26)


def test_time_measures_each_dispatch(device: pumice.Device, add: pumice.Kernel, count: pumice.Kernel) -> None:
    x, y, hits = ones(device), device.zeros(100), device.zeros(8, np.uint32)
    with device.record() as step:
        add(x, y, dt=1, n=100)
        count(hits, groups=device.asarray(np.array([3, 2, 1], np.uint32)))
    timings = step.time(dt=3)
    assert [(timing.name, timing.groups) for timing in timings] == [("add", (2, 1, 1)), ("count", None)]
    assert all(timing.duration_ns >= 0 for timing in timings)
    np.testing.assert_array_equal(y.numpy(), np.full(100, 3))
    np.testing.assert_array_equal(hits.numpy(), [2 * 2] * 3 + [0] * 5)
    step.run()
    np.testing.assert_array_equal(y.numpy(), np.full(100, 4))


def test_runs_and_results_are_awaited(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = ones(device), device.zeros(100)
    with device.record() as step:
        add(x, y, dt=1, n=100)

    async def main() -> None:
        await step.run_async(times=10)
        assert device.has_reached(device.submitted)
        await step.run_async(dt=5)
        result = await add(x, y, dt=1, n=100)
        assert result is y
        assert device.has_reached(y.ready)

    asyncio.run(main())
    assert y.numpy()[0] == 16


@pytest.mark.features("shaderInt64", "bufferDeviceAddress")
def test_arrays_by_address_are_recorded(device: pumice.Device) -> None:
    kernel = device.load_kernel(
        """
#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430) buffer Values { float v[]; };
layout(push_constant) uniform Push { Values values; uint n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) values.v[i] += 1; }
"""
    )
    x = ones(device, 64)
    with device.record() as step:
        kernel(values=x, n=64, groups=1)
    step.run(times=2)
    np.testing.assert_array_equal(x.numpy(), np.full(64, 3))
    step.run(n=1)
    assert x.numpy().tolist() == [4.0] + [3.0] * 63


def test_loops_that_a_driver_cuts_are_reported(device: pumice.Device) -> None:
    """A verdict on a run reaches whoever reads its results."""
    kernel = device.load_kernel(
        """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Y { uint y[]; };
layout(push_constant) uniform Push { uint n; };
void main() { uint s = 0; for (uint i = 0; i < n; i++) s += i ^ (s >> 3); y[0] = s; }
"""
    )
    if kernel.pipeline.report is None:
        pytest.skip("the driver does not cut loops")
    y = device.zeros(1, np.uint32)
    with device.record() as step:
        kernel(y, n=10, groups=1)
    step.run()
    y.numpy()
    step.run(n=1_000_000)
    with pytest.raises(pumice.status.DataLossError, match="loop"):
        y.numpy()
    step.run()
    y.numpy()


def test_results_equal_those_of_calls(device: pumice.Device) -> None:
    """25 calls of a shipped kernel, with random arrays and shapes, by calls and recorded."""
    mul = device.load_kernel(shaders.path("mul"))
    generator = np.random.default_rng(5)
    pool = [generator.random(256, np.float32) + 0.5 for _ in range(6)]
    picks = generator.integers(0, 6, (25, 3))
    by_calls = [device.asarray(a) for a in pool]
    recorded = [device.asarray(a) for a in pool]
    for a, b, c in picks:
        mul(by_calls[a], by_calls[b], by_calls[c])
    with device.record() as step:
        for a, b, c in picks:
            mul(recorded[a], recorded[b], recorded[c])
    step.run()
    for expected, got in zip(by_calls, recorded, strict=True):
        np.testing.assert_array_equal(got.numpy(), expected.numpy())
