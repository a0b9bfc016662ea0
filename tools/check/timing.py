"""Cases about time: waits of the host, and the device's clock."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator

from ... import shaders
from ...hal.clock import elapsed_ticks, signed_ticks
from ...hal.fence import wait_any
from ...hal_vulkan.commands.command_buffer import CommandBuffer
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel
from ...status import DeadlineExceededError
from ...waits.wait_mode import WAIT_MODES, WaitMode, waits
from .case import Case, Figures, SkipCase

_SECONDS = 20.0
_ROUNDS = 200
_MEASURABLE_NS = 2e6
_MOST_ITERATIONS = 60_000  # software drivers end longer loops


# -- waits -------------------------------------------------------------------------------------------


def _signals(mode: WaitMode) -> Callable[[Device], Figures]:
    def run(device: Device) -> Figures:
        """Waits for two hundred signals of the queue, one after another."""
        times = []
        with device.vulkan.create_semaphore() as semaphore, waits(mode):
            for value in range(1, _ROUNDS + 1):
                begin = time.perf_counter()
                device.vulkan.compute_queue.submit((), signals=((semaphore, value),))
                semaphore.wait(value, _SECONDS)
                times.append(time.perf_counter() - begin)
                reached = semaphore.query()
                assert reached >= value, f"waited for {value}, and the semaphore is at {reached}"
        return {"signal and wait, us": statistics.median(times) * 1e6}

    return run


def _deadline(device: Device) -> Figures:
    """Checks that a wait without a signal ends at its deadline, in each mode."""
    late = []
    for mode in WAIT_MODES:
        with device.vulkan.create_semaphore() as semaphore, waits(mode):
            begin = time.monotonic()
            try:
                semaphore.wait(1, 0.05)
            except DeadlineExceededError:
                late.append(time.monotonic() - begin - 0.05)
            else:
                raise AssertionError(f"{mode}: a wait for a value that nobody signals returned")
            assert -0.01 <= late[-1] < 1, f"{mode}: the deadline came {late[-1]:.3f} s late"
            semaphore.signal(1)
            semaphore.wait(1, _SECONDS)
    return {"most that a deadline was late, ms": max(late) * 1e3}


def _gate(device: Device) -> None:
    """Checks that work that waits for the host runs when the host signals, and not earlier."""
    queue = device.vulkan.compute_queue
    with device.vulkan.create_semaphore() as gate, device.vulkan.create_semaphore() as done:
        queue.submit((), waits=((gate, 1),), signals=((done, 1),))
        time.sleep(0.05)
        assert done.query() == 0, "work ran before what it waits for"
        gate.signal(1)
        done.wait(1, _SECONDS)


def _chain(device: Device) -> None:
    """Runs a hundred submissions that each wait for the previous one, the first for the host."""
    queue = device.vulkan.compute_queue
    with device.vulkan.create_semaphore() as semaphore:
        for value in range(1, 101):
            queue.submit((), waits=((semaphore, value),), signals=((semaphore, value + 1),))
        semaphore.signal(1)
        semaphore.wait(101, _SECONDS)


def _any(device: Device) -> None:
    """Checks that a wait for one of two semaphores reports which one."""
    with device.vulkan.create_semaphore() as never, device.vulkan.create_semaphore() as semaphore:
        device.vulkan.compute_queue.submit((), signals=((semaphore, 1),))
        assert wait_any([(never, 1), (semaphore, 1)], _SECONDS) == 1


def _threads(device: Device) -> None:
    """Waits in eight threads for values of one semaphore, which passes all of them."""
    with device.vulkan.create_semaphore() as semaphore:
        reached: list[int] = []

        def wait(value: int) -> None:
            semaphore.wait(value, _SECONDS)
            reached.append(value)

        threads = [threading.Thread(target=wait, args=(value,)) for value in range(1, 9)]
        for thread in threads:
            thread.start()
        for value in range(1, 9):
            device.vulkan.compute_queue.submit((), signals=((semaphore, value),))
        for thread in threads:
            thread.join(_SECONDS)
        assert sorted(reached) == [*range(1, 9)], f"threads that returned: {sorted(reached)}"


# -- clocks ------------------------------------------------------------------------------------------


def _needs_timestamps(device: Device) -> int:
    bits = device.vulkan.plan.timestamp_bits
    if not bits:
        raise SkipCase("the device writes no timestamps")
    return bits


def _record(device: Device, kernel: Kernel, counts: list[int]) -> CommandBuffer:
    array = device.zeros((max(counts) * 64, 4))
    commands = device.vulkan.create_command_buffer(timing=True, name="check").begin()
    for groups in counts:
        dispatch = kernel.prepare(array, groups=groups, iterations=64, factor=1.0)
        commands.dispatch(*dispatch)
        commands.execution_barrier()
    return commands.end()


def _rising(device: Device) -> Figures:
    """Checks that timestamps of dispatches increase, and lie within the host's times of the submission."""
    bits = _needs_timestamps(device)
    with device.load_kernel(shaders.path("timing/fma"), specialization={0: 64}) as kernel:
        commands = _record(device, kernel, [256, 1, 16, 256, 1])
        durations = []
        for _ in range(5):
            clock = device.vulkan.calibrate()
            before = time.monotonic_ns()
            device.vulkan.compute_queue.submit((commands,))
            device.vulkan.wait_idle(_SECONDS)
            after = time.monotonic_ns()
            timings = commands.timings()
            marks = [tick for timing in timings for tick in (timing.begin_ticks, timing.end_ticks)]
            steps = [signed_ticks(mark, following, bits) for mark, following in itertools.pairwise(marks)]
            assert min(steps) >= 0, f"timestamps go back: {marks}"
            total = sum(timing.duration_ns for timing in timings)
            assert 0 < total <= after - before, f"{total} ns of dispatches in {after - before} ns of the host"
            if clock.host_clock == "clock_monotonic":
                slack = clock.max_deviation_ns + 1_000_000
                first, last = clock.host_time_ns(marks[0]), clock.host_time_ns(marks[-1])
                assert before - slack <= first and last <= after + slack, (
                    f"dispatches from {first - before:.0f} to {last - before:.0f} ns after a submission that took "
                    f"{after - before} ns"
                )
            durations.append(timings[0].duration_ns)
        commands.close()
    return {"a dispatch, us": statistics.median(durations) / 1e3}


def _longer(device: Device) -> None:
    """Checks that eight times the work takes longer."""
    _needs_timestamps(device)
    with device.load_kernel(shaders.path("timing/fma"), specialization={0: 64}) as kernel, device.zeros((256, 4)) as x:

        def duration(iterations: int) -> float:
            runs = [kernel.time(x, groups=4, iterations=iterations, factor=1.0)[1].duration_ns for _ in range(5)]
            return min(runs)  # other work of the machine only makes them longer

        few = 16
        while 16 * few <= _MOST_ITERATIONS and duration(few) < _MEASURABLE_NS:
            few *= 2
        short, long = duration(few), duration(8 * few)
    assert long > 3 * short, f"{few:,} iterations took {short:,.0f} ns, {8 * few:,} took {long:,.0f} ns"


def _agreement(device: Device) -> Figures:
    """Checks over a second that the device's clock runs as fast as the host's."""
    _needs_timestamps(device)
    first = device.vulkan.calibrate()
    time.sleep(1)
    second = device.vulkan.calibrate()
    ticks = elapsed_ticks(first.device_ticks, second.device_ticks, first.valid_bits)
    host = second.host_ns - first.host_ns
    drift = (ticks * first.ns_per_tick / host - 1) * 1e6
    allowed = 1000 + (first.max_deviation_ns + second.max_deviation_ns) / host * 1e6
    assert abs(drift) < allowed, (
        f"the device's clock is off by {drift:.0f} parts in a million; is {first.ns_per_tick} ns a tick right?"
    )
    return {
        "drift, parts in a million": drift,
        "deviation of a reading, us": min(first.max_deviation_ns, second.max_deviation_ns) / 1e3,
        "related by": device.vulkan.plan.calibrated_timestamps or "a submission",
    }


def _wrap(device: Device) -> Figures:
    """Checks that the device's clock runs for at least a second before it wraps around; pumice allows for one wrap."""
    bits = _needs_timestamps(device)
    period = device.profile.limits.timestamp_period
    assert period > 0, f"a tick takes {period} ns"
    seconds = (1 << bits) * period / 1e9
    assert seconds > 1, f"timestamps of {bits} bits wrap around after {seconds:.3f} s"
    clock = device.vulkan.calibrate()
    assert clock.device_ticks < 1 << bits, f"{clock.device_ticks} has more than {bits} bits"
    left = ((1 << bits) - clock.device_ticks) * period / 1e9
    return {"bits": bits, "ns a tick": period, "wraps after, hours": seconds / 3600, "next wrap in, hours": left / 3600}


def timing_cases() -> Iterator[Case]:
    """Yields the cases of the areas ``waits`` and ``clocks``."""
    for mode in WAIT_MODES:
        yield Case("waits", f"two hundred signals, {mode}", _signals(mode))
    yield Case("waits", "deadlines", _deadline)
    yield Case("waits", "work that waits for the host", _gate)
    yield Case("waits", "a chain of submissions", _chain)
    yield Case("waits", "one of two", _any)
    yield Case("waits", "eight threads", _threads)
    yield Case("clocks", "timestamps rise", _rising)
    yield Case("clocks", "more work takes longer", _longer)
    yield Case("clocks", "agreement with the host", _agreement)
    yield Case("clocks", "wrap", _wrap)
