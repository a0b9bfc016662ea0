"""Workloads: what runs for one sample of a point, and the context that they run in.

Calling sequence: ``openers.open_workload`` → ``first`` once → ``sample`` any number of times → ``close``. Host times of
a sample are of ``WorkloadContext.clock``, and all that it submitted is done when it returns.

Thread rule: one thread at a time.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...hal_vulkan import PlanOptions
from ...runtime.device import Device
from .clock import RawSample
from .device_pool import DevicePool


def preemption_counter() -> Callable[[], int] | None:
    """Reads how often the calling thread was preempted so far; ``None`` if the platform does not tell.

    Source: getrusage(2), ``RUSAGE_THREAD`` and ``ru_nivcsw``, on Linux.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    who = getattr(resource, "RUSAGE_THREAD", None)
    return None if who is None else lambda: resource.getrusage(who).ru_nivcsw


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """What workloads are created in.

    Attributes:
        pool: opens devices.
        uri: of the point's device.
        folder: what file names are relative to.
        seed: of random inputs.
        timeout: seconds after which an unfinished sample is an error.
        preemptions: see ``preemption_counter``.
        clock: the host's time in nanoseconds.
    """

    pool: DevicePool
    uri: str
    folder: Path = field(default_factory=Path)
    seed: int = 0
    timeout: float = 60.0
    preemptions: Callable[[], int] | None = field(default_factory=preemption_counter)
    clock: Callable[[], int] = time.monotonic_ns

    def count_preemptions(self) -> int:
        """The count so far, or -1."""
        return -1 if self.preemptions is None else self.preemptions()

    def preemptions_since(self, before: int) -> int:
        """Preemptions since ``count_preemptions`` returned ``before``, or -1."""
        return -1 if before < 0 else self.count_preemptions() - before


class Workload(abc.ABC):
    """What runs for one sample.

    Attributes:
        device: where it runs.
    """

    def __init__(self, context: WorkloadContext, options: PlanOptions | None = None) -> None:
        self._context = context
        self._clock = context.clock
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
