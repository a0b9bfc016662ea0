"""Workloads, what runs for one sample of a point; the context that they run in; and the devices of a run.

Calling sequence: ``openers.open_workload`` → ``first`` once → ``sample`` any number of times → ``close``. Host times of
a sample are of ``time.monotonic_ns``, and all that it submitted is done when it returns.

Thread rule: one thread at a time.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from ...closing import Closing
from ...hal_vulkan import Device as HalDevice
from ...hal_vulkan import PlanOptions, shared_driver
from ...records import dataclass
from ...runtime.device import Device
from .clock import RawSample


class DevicePool(Closing):
    """The devices of a run, each opened once for each combination of options. Pipelines are not cached on disk, so that
    the first call of a kernel shows its whole cost. One thread at a time.
    """

    def __init__(self, *, validation: bool | None = None) -> None:
        self._validation = validation
        self._devices: dict[tuple[str, PlanOptions], Device] = {}

    def open(self, uri: str, options: PlanOptions | None = None) -> Device:
        """The device of a URI and options; the one opened before if it is usable."""
        wanted = options or PlanOptions()
        key = (uri, wanted)
        found = self._devices.get(key)
        if found is not None and (found.is_closed or found.hal.lost is not None):
            found.close()
            found = None
        if found is None:
            found = self._devices[key] = self.open_new(uri, wanted)
        return found

    def open_new(self, uri: str, options: PlanOptions | None = None, *, persistent_cache: bool = False) -> Device:
        """A separate device, which the caller closes."""
        driver = shared_driver(validation=self._validation)
        index = driver.select(uri or None)
        return Device(HalDevice(driver, index, options=options or PlanOptions(), persistent_cache=persistent_cache))

    def close(self) -> None:
        for device in self._devices.values():
            device.close()
        self._devices.clear()


def preemption_counter() -> Callable[[], int]:
    """Reads how often the calling thread was preempted so far, or -1 if the platform does not tell.

    Source: getrusage(2), ``RUSAGE_THREAD`` and ``ru_nivcsw``, on Linux.
    """
    try:
        import resource
    except ImportError:  # Windows
        return lambda: -1
    who = getattr(resource, "RUSAGE_THREAD", None)
    return (lambda: -1) if who is None else lambda: resource.getrusage(who).ru_nivcsw


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """What workloads are created in; ``timeout`` is the seconds after which an unfinished sample is an error."""

    pool: DevicePool
    uri: str
    folder: Path = field(default_factory=Path)
    seed: int = 0
    timeout: float = 60.0
    preemptions: Callable[[], int] = field(default_factory=preemption_counter)

    def preemptions_since(self, before: int) -> int:
        """Preemptions since ``preemptions`` returned ``before``, or -1."""
        return -1 if before < 0 else self.preemptions() - before


class Workload(abc.ABC):
    """What runs for one sample on its ``device``."""

    def __init__(self, context: WorkloadContext, options: PlanOptions | None = None) -> None:
        self._context = context
        self.device: Device = context.pool.open(context.uri, options)

    def first(self) -> RawSample:
        """The first call, including everything that is created for it."""
        return self.sample()

    @abc.abstractmethod
    def sample(self) -> RawSample:
        """One more sample."""

    @abc.abstractmethod
    def close(self) -> None:
        """Releases everything; idempotent."""
