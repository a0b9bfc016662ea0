"""The state of the machine between blocks: wake-up times of threads, the load by other programs, and clock rates.

A state covers the span since the one before. Its shares are of the span's processor time:

- ``steal``: the share that a hypervisor gave to others; ``others``: the share of processes other than this one and
  those that it has for sides (``ChildProcess``);
- ``pressure``: the share of the span in which some task of the system waited for a core (Linux' PSI);
- ``run_delay``: of the time in which the threads of this process and of those that it has for sides wanted a core, the
  share that they waited for one;
- ``wake_ns``, ``wake_p90_ns``: from releasing a semaphore until the thread that waits for it runs.

Figures that a platform or a container does not report are ``None``. Sources: proc(5); Documentation/accounting/psi.rst
and Documentation/scheduler/sched-stats.rst of Linux.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import psutil

from ...base.child_process import ChildProcess
from ...base.closeable import Closeable
from ...runtime.device import Device
from ..results.storage.sink import Sink
from ..workloads.reference_kernel import ReferenceKernel
from ..workloads.thread_delays import ThreadDelays, ThreadTimes, since
from ..workloads.workload import Load
from .device_clocks import clock_reader

_WAKES: Final = 20
# The share of a span that wake-ups may take.
_WAKES_SHARE: Final = 0.015
_FIRST_WAKES_NS: Final = 7_500_000
# Processor times are counted in hundredths of a second.
_MIN_SPAN_NS: Final = 100_000_000
_ASLEEP_S: Final = 0.0001
_PRESSURE: Final = Path("/proc/pressure/cpu")


class _Waker(Closeable):
    """A thread that sleeps until it is woken, and records when it ran."""

    def __init__(self) -> None:
        self._go, self._told = threading.Semaphore(0), threading.Semaphore(0)
        self._ran = 0
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="pumice study wake-ups", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            self._go.acquire()
            self._ran = time.monotonic_ns()
            if self._ended:
                return
            self._told.release()

    def wake(self) -> int:
        """Wakes the sleeping thread; returns the nanoseconds until it ran."""
        time.sleep(_ASLEEP_S)
        began = time.monotonic_ns()
        self._go.release()
        self._told.acquire()
        return self._ran - began

    def close(self) -> None:
        self._ended = True
        self._go.release()
        self._thread.join(5)


class _Counters(NamedTuple):
    """Counters that grow: host time, processor times of the machine, microseconds of pressure, seconds of processor
    time of own processes, also of those that have ended, and times of own threads.
    """

    now: int
    processors: Mapping[str, float]
    pressure: int | None
    own: float
    delays: ThreadTimes


class MachineState(Closeable):
    """Reads states, each of the span since the previous reading. One thread at a time."""

    def __init__(self) -> None:
        self._waker = _Waker()
        self._delays = ThreadDelays(lambda: (os.getpid(), *ChildProcess.running))
        self._before = self._counters()

    def read(self) -> dict[str, float | None]:
        """Returns the columns of ``machine_states`` except ``host_ns``.

        Wake-ups take at most 2 % of the span, or 8 ms if it has just begun: the first state has only values that need
        no span.
        """
        before, began = self._before, time.monotonic_ns()
        budget = max(_WAKES_SHARE * (began - before.now), _FIRST_WAKES_NS)
        wakes: list[int] = []
        while not wakes or (len(wakes) < _WAKES and time.monotonic_ns() - began < budget):
            wakes.append(self._waker.wake())
        self._delays.refresh()
        after = self._counters()
        state: dict[str, float | None] = {
            "wake_ns": float(np.median(wakes)),
            "wake_p90_ns": float(np.quantile(wakes, 0.9)),
            "load": psutil.getloadavg()[0],
            "cpu_mhz": _cpu_mhz(),
        }
        span = after.now - before.now
        if span >= _MIN_SPAN_NS:
            self._before = after
            state |= {"span_ns": float(span), **_shares(before, after)}
        return state

    def _counters(self) -> _Counters:
        return _Counters(
            time.monotonic_ns(),
            psutil.cpu_times()._asdict(),
            _pressure(),
            _own_time(),
            self._delays.read(),
        )

    def close(self) -> None:
        self._waker.close()
        self._delays.close()


def _shares(before: _Counters, after: _Counters) -> dict[str, float | None]:
    seconds = (after.now - before.now) / 1e9
    grown = {name: max(0.0, value - before.processors[name]) for name, value in after.processors.items()}
    # On Linux, user and nice include the time of guests.
    total = sum(value for name, value in grown.items() if not name.startswith("guest"))
    shares: dict[str, float | None] = {"steal": None, "others": None, "pressure": None, "run_delay": None}
    if total > 0:
        idle = grown["idle"] + grown.get("iowait", 0.0)
        steal = grown.get("steal", 0.0)
        own = after.own - before.own
        shares["others"] = min(1.0, max(0.0, (total - idle - steal - own) / total))
        if "steal" in grown:
            shares["steal"] = steal / total
    if before.pressure is not None and after.pressure is not None:
        shares["pressure"] = min(1.0, (after.pressure - before.pressure) / 1e6 / seconds)
    if (times := since(before.delays, after.delays)) is not None:
        waited, ran = times
        shares["run_delay"] = waited / (waited + ran) if waited + ran > 0 else 0.0
    return shares


def _own_time() -> float:
    """Returns the processor time, in seconds, of this process, of its measuring children, and of children that have
    ended.
    """
    times = os.times()
    used = time.process_time() + times.children_user + times.children_system
    for pid in tuple(ChildProcess.running):
        with contextlib.suppress(psutil.Error):  # ended in between
            used += sum(psutil.Process(pid).cpu_times()[:2])
    return used


def _pressure() -> int | None:
    """Returns the microseconds for which some task of the system waited for a core."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(_PRESSURE.read_text().partition("total=")[2].split()[0])
    return None


def _cpu_mhz() -> float | None:
    with contextlib.suppress(OSError, NotImplementedError, RuntimeError):  # depending on the platform
        frequency = psutil.cpu_freq()
        return float(frequency.current) if frequency and frequency.current else None
    return None


_EVERY_NS: Final = 500_000_000
_SHARE: Final = 0.05  # the largest share of the time that the reference takes
_WANTED_NS: Final = 100_000


class Watch(Closeable):
    """Watches the machine and one device; with ``reference`` also one workgroup of arithmetic, the same for all points.

    Calling sequence: ``Watch`` → ``read`` between blocks → ``end``, which stores the last state → ``close``. One thread
    at a time.
    """

    def __init__(self, uri: str, device: Device, sink: Sink, *, reference: bool) -> None:
        self._uri = uri
        self._sink = sink
        self._clocks = clock_reader(device)
        load = Load(timed=True)
        self._reference = ReferenceKernel(device, load, _WANTED_NS) if reference else None
        self._state = MachineState()
        self._began = time.monotonic_ns()
        self._watched_ns = self._next_ns = 0

    def read(self) -> None:
        """Makes the readings that are due."""
        began = time.monotonic_ns()
        if began >= self._next_ns:
            self._next_ns = began + _EVERY_NS
            self._read_state()
            if clocks := self._clocks():
                self._sink.add_clock(self._uri, host_ns=time.monotonic_ns(), **clocks)
        began = time.monotonic_ns()
        if self._reference is not None and self._watched_ns <= _SHARE * (began - self._began):
            reading = self._reference.read()
            self._sink.add_reference(
                self._uri, started_ns=reading.started_ns, duration_ns=reading.duration_ns, load=reading.load
            )
            self._watched_ns += time.monotonic_ns() - began

    def end(self) -> None:
        """Stores the state at the end."""
        self._read_state()

    def _read_state(self) -> None:
        state = self._state.read()
        self._sink.add_state(host_ns=time.monotonic_ns(), **state)

    def close(self) -> None:
        self._state.close()
        if self._reference is not None:
            self._reference.close()
