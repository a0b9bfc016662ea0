"""Workloads: what is run for one sample of a point.

Calling sequence: made by ``workloads.open_workload`` → ``first`` once → ``sample`` any number of times → ``close``. A sample's host times are of
``Surroundings.clock``, and everything that it submitted is done when it returns.

Thread rule: one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ...runtime.device import Device
from .clock import RawSample
from .device_pool import DevicePool
from .preemption import preemption_counter

__all__ = ["Surroundings", "Workload"]


class Workload(Protocol):
    """What is run for one sample."""

    @property
    def device(self) -> Device:
        """Where it runs."""
        ...

    def first(self) -> RawSample:
        """The first call, with everything that is made then."""
        ...

    def sample(self) -> RawSample:
        """One more."""
        ...

    def close(self) -> None:
        """Gives everything back; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What workloads are made in.

    Attributes:
        pool: opens devices.
        uri: the point's device.
        folder: what relative file names start from.
        seed: of random inputs.
        timeout: seconds after which a sample that is not done is an error.
        preemptions: see ``preemption_counter``.
        clock: the host's time in nanoseconds, which device times are related to.
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
