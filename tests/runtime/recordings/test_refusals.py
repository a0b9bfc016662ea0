"""What cannot be recorded, or run, is refused with advice, and leaves the device usable."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pumice
from pumice.hal.command_buffer import CommandBuffer
from pumice.status import ClosedError, FailedPreconditionError, InvalidArgumentError

pytestmark = pytest.mark.vulkan


@pytest.fixture
def x(device: pumice.Device) -> pumice.DeviceArray:
    return device.asarray(np.ones(100, np.float32))


@pytest.fixture
def y(device: pumice.Device) -> pumice.DeviceArray:
    return device.zeros(100)


def test_reading_a_result_while_it_is_recorded(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    with device.record() as step:
        assert x.numpy()[0] == 1  # no call writes it
        add(x, y, dt=1, n=100)
        for read in (y.numpy, y.wait, y[5:].numpy, lambda: np.asarray(y), y.map, lambda: float(y[0].item())):
            with pytest.raises(FailedPreconditionError, match=r"read it after run\(\)"):
                read()
    step.run()
    assert y.numpy()[0] == 1


def test_a_numpy_array_for_results(device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray) -> None:
    with device.record(), pytest.raises(InvalidArgumentError, match="out= is a NumPy array.*device.empty"):
        add(x, out=np.zeros(100, np.float32), dt=1, n=100)


def test_timing_and_waiting_inside(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    with device.record() as other:
        add(x, y, dt=1, n=100)
    with device.record():
        with pytest.raises(FailedPreconditionError, match=r"add.time\(\) cannot be recorded"):
            add.time(x, y, dt=1, n=100)
        with pytest.raises(FailedPreconditionError, match=r"time\(\) cannot be recorded"):
            other.time()
        with pytest.raises(FailedPreconditionError, match=r"run_async\(\) cannot be recorded"):
            other.run_async().send(None)
        device.wait()


def test_a_recording_inside_of_another(device: pumice.Device) -> None:
    with device.record(), pytest.raises(FailedPreconditionError, match="made already"):
        device.record().__enter__()
    with pumice.open_device("reference") as reference:
        with device.record() as here, reference.record() as there:
            device.zeros(4)
            reference.zeros(4)
            reference.zeros(4)
        assert (len(here.steps), len(there.steps)) == (1, 2)


def test_an_error_inside_ends_the_recording(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    step = device.record("step")
    with pytest.raises(FailedPreconditionError, match="not recorded yet"):
        step.run()
    with pytest.raises(ZeroDivisionError), step:
        add(x, y, dt=1, n=100)
        with pytest.raises(FailedPreconditionError, match="is being recorded"):
            step.run()
        _ = 1 / 0
    with pytest.raises(FailedPreconditionError, match="left by an error; record it again"):
        step.run()
    with pytest.raises(FailedPreconditionError, match="recorded before"), step:
        pass
    add(x, y, dt=2, n=100)  # calls run again
    assert y.numpy()[0] == 2


def test_a_refused_call_inside_is_not_recorded(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    with device.record() as step:
        with pytest.raises(InvalidArgumentError):
            add(x, y.view(np.int32), dt=1, n=100)
        with pytest.raises(InvalidArgumentError):
            add(x, y, dt=1)
        add(x, y, dt=1, n=100)
    assert len(step.steps) == 1
    step.run()
    assert y.numpy()[0] == 1


def test_what_was_closed(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    with device.record("step") as step:
        add(x, y, dt=1, n=100)
    step.run(times=100)
    x.close()
    with pytest.raises(ClosedError, match="step cannot run: the argument of add for binding 0 .X. was closed"):
        step.run()
    step.update(X=device.asarray(np.full(100, 2, np.float32)))
    step.run()
    assert y.numpy()[0] == 102
    add.close()
    with pytest.raises(ClosedError, match="add"):
        step.run()
    step.close()
    step.close()
    with pytest.raises(ClosedError, match="step was closed"):
        step.run()
    with pytest.raises(ClosedError, match="step was closed"):
        step.update(dt=1)


def test_closing_while_runs_are_under_way(device: pumice.Device, add: pumice.Kernel) -> None:
    x, y = device.asarray(np.ones(1_000_000, np.float32)), device.zeros(1_000_000)
    with device.record() as step:
        add(x, y, dt=1, n=1_000_000)
    step.run(times=20)
    step.close()
    x.close()
    assert y.numpy()[-1] == 20


def test_arrays_live_as_long_as_the_recording(device: pumice.Device, add: pumice.Kernel) -> None:
    y = device.zeros(100)
    with device.record() as step:
        add(device.asarray(np.ones(100, np.float32)), y, dt=1, n=100)
        add(np.ones(100, np.float32), y, dt=1, n=100)
    for _ in range(5):  # the memory of what is freed goes to others
        device.asarray(np.full(100, 9, np.float32))
    step.run()
    assert y.numpy()[0] == 2
    del step
    device.zeros(4)


def test_kernels_live_as_long_as_the_recording(device: pumice.Device, add: pumice.Kernel) -> None:
    y, code = device.zeros(100), add.made_from.code

    def recorded() -> pumice.Recording:
        kernel = device.load_kernel(code)
        with device.record() as step:
            kernel(np.ones(100, np.float32), y, dt=1, n=100)
        return step

    step = recorded()
    gc.collect()
    device.zeros(4)  # a call closes what was collected
    step.run()
    step.run(dt=2)
    assert y.numpy()[0] == 3


def test_a_closed_device() -> None:
    device = pumice.open_device()
    with device.record("step") as step:
        a = device.zeros(4)
    step.run()
    device.close()
    for use in (step.run, step.time, lambda: step.update(dt=1), lambda: device.record().__enter__()):
        with pytest.raises(ClosedError):
            use()
    step.close()
    assert a.is_closed


@pytest.mark.parametrize("times", [-1, 1.5, "3"])
def test_wrong_numbers_of_runs(device: pumice.Device, times: int) -> None:
    with device.record() as step:
        pass
    with pytest.raises(InvalidArgumentError, match="times is the number of runs"):
        step.run(times=times)
    step.run(times=0)
    step.run()


def test_programs_are_not_recorded(device: pumice.Device) -> None:
    pytest.importorskip("jax", reason="pumice.jit traces with JAX")
    double = pumice.jit(lambda a: a + a, device=device)
    values = np.ones(4, np.float32)
    for _ in range(2):
        with device.record() as step:
            with pytest.raises(FailedPreconditionError, match="a call of the program .* cannot be recorded"):
                double(values)
            device.zeros(4)
        assert len(step.steps) == 1
        np.testing.assert_array_equal(double(values).numpy(), np.full(4, 2))
    with pumice.open_device("reference") as reference, reference.record():
        np.testing.assert_array_equal(double(values).numpy(), np.full(4, 2))  # on a device that is not recorded


def test_many_threads_run_and_change_one_recording(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    with device.record() as step:
        add(x, y, dt=1, n=100)
    barrier = threading.Barrier(4)

    def runs(number: int) -> None:
        barrier.wait()
        for _ in range(25):
            step.run(dt=number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(runs, range(4)))
    assert y.numpy()[0] == 25 * 6


def test_an_error_while_commands_are_recorded_again(
    device: pumice.Device, add: pumice.Kernel, x: pumice.DeviceArray, y: pumice.DeviceArray
) -> None:
    other = device.load_kernel(add.made_from.code)
    with device.record() as step:
        add(x, y, dt=1, n=100)
        other(x, y, dt=1, n=100)
    other.close()
    for _ in range(2):
        with pytest.raises(ClosedError, match="closed"):
            step.run(Y=device.zeros(100))
        with pytest.raises(ClosedError, match="closed"):
            step.time()


def test_an_interrupted_run_leaves_its_values_to_the_device(
    device: pumice.Device, add: pumice.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory of values is not used again while a copy from it may be under way."""
    count = 200_000
    x, y = device.asarray(np.ones(count, np.float32)), device.zeros(count)
    with device.record() as step:
        for _ in range(4):
            add(x, y, dt=0, n=count)
    submit = type(device).submit

    def interrupted(device: pumice.Device, commands: Sequence[CommandBuffer]) -> int:
        submit(device, commands)
        raise KeyboardInterrupt

    step.run(dt=1)
    for number in range(2, 8):
        with monkeypatch.context() as patched:
            patched.setattr(type(device), "submit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                step.run(dt=number)
    step.run(dt=100)
    assert y.numpy()[[0, -1]].tolist() == 2 * [4 * (sum(range(8)) + 100)]
