"""Workloads, the code that runs for one sample of a point; their context; and the devices of a run.

Calling sequence: ``openers.open_workload`` → ``first`` once → ``sample`` any number of times → ``close``. Host times of
a sample are of ``time.monotonic_ns``; all submitted work is done when it returns.

Thread rule: one thread at a time.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from ...base.closeable import Closeable
from ...base.lazy_dataclass import dataclass
from ...hal_vulkan import Device as HalDevice
from ...hal_vulkan import PlanOptions, shared_driver
from ...runtime.device import Device
from .clock import RawSample
from .thread_delays import ThreadDelays


class DevicePool(Closeable):
    """The devices of a run, each opened once per combination of options, all with the options in ``asked``.

    Pipelines are not cached on disk, so that a kernel's first call shows its whole cost. ``delays`` are those of this
    process's threads. One thread at a time.
    """

    def __init__(self, *, validation: bool | None = None, asked: Mapping[str, bool] | None = None) -> None:
        self.validation: Final = validation
        self._asked = dict(asked or {})
        self.delays: Final = ThreadDelays()
        self._devices: dict[tuple[str, PlanOptions], Device] = {}

    def open(self, uri: str, options: PlanOptions | None = None) -> Device:
        """Returns the device of a URI and options, reused if it is open and usable."""
        wanted = options or PlanOptions()
        if self._asked:
            wanted = replace(wanted, **self._asked)  # type: ignore[arg-type]  # switches
        key = (uri, wanted)
        device = self._devices.get(key)
        if device is not None and (device.is_closed or device.hal.lost is not None):
            device.close()
            device = None
        if device is None:
            device = self._devices[key] = self.open_new(uri, wanted)
        return device

    def open_new(self, uri: str, options: PlanOptions | None = None, *, persistent_cache: bool = False) -> Device:
        """Opens a separate device, which the caller closes. Its shaders do not print, which would be timed."""
        options = replace(options or PlanOptions(), prints=False)
        driver = shared_driver(validation=self.validation)
        index = driver.select(uri or None)
        return Device(HalDevice(driver, index, options=options, persistent_cache=persistent_cache))

    def close(self) -> None:
        for device in self._devices.values():
            device.close()
        self._devices.clear()
        self.delays.close()


Usage = tuple[int, float]
"""Involuntary context switches and nanoseconds of processor time of all threads of the process; -1 and NaN if unknown.
"""


def process_usage() -> Callable[[], Usage]:
    """Reads the usage so far, in about a microsecond.

    Source: getrusage(2), ``RUSAGE_SELF``.
    """
    try:
        from resource import RUSAGE_SELF, getrusage
    except ImportError:  # Windows
        return lambda: (-1, math.nan)

    def read() -> Usage:
        usage = getrusage(RUSAGE_SELF)
        return usage.ru_nivcsw, (usage.ru_utime + usage.ru_stime) * 1e9

    return read


@dataclass(frozen=True, slots=True)
class Load:
    """An approximation of a device's work: workgroups of ``local_size`` invocations over ``nbytes`` of memory, with a
    kernel target's ``wait`` and ``look``; ``timed`` puts it between two timestamps of the device.
    """

    groups: int = 1
    local_size: int = 64
    nbytes: int = 0
    wait: str = "host"
    look: float = 0.0
    timed: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """The context of workloads; an unfinished sample is an error after ``timeout`` seconds."""

    pool: DevicePool
    uri: str
    folder: Path = field(default_factory=Path)
    seed: int = 0
    timeout: float = 60.0
    usage: Callable[[], Usage] = field(default_factory=process_usage)

    def usage_since(self, before: Usage) -> Usage:
        """Returns the usage since ``usage`` returned ``before``."""
        preemptions, cpu = self.usage()
        return -1 if before[0] < 0 else preemptions - before[0], cpu - before[1]


class Workload(abc.ABC):
    """The code that runs for one sample on its ``device``."""

    def __init__(self, context: WorkloadContext, options: PlanOptions | None = None) -> None:
        self._context = context
        self.device: Device = context.pool.open(context.uri, options)

    def first(self) -> RawSample:
        """Makes the first call, which creates everything that it needs."""
        return self.sample()

    @abc.abstractmethod
    def sample(self) -> RawSample:
        """Takes one more sample."""

    @property
    def load(self) -> Load:
        """The load of a sample, after ``first``; unknown parts have the values of the smallest kernel."""
        return Load()

    @abc.abstractmethod
    def close(self) -> None:
        """Releases everything; idempotent."""
