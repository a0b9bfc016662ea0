"""The cases of ``pumice check``: their tasks, their endings, and comparisons of their results."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...runtime.device import Device

Figures: TypeAlias = Mapping[str, "float | str"]
"""Figures that a case measured, by name with the unit."""

AREAS: Final[Mapping[str, str]] = {
    "device": "Features and limits",
    "types": "Arithmetic by type",
    "functions": "Functions of floats",
    "kernels": "Kernels: shared memory, atomics, control flow",
    "subgroups": "Subgroups",
    "images": "Images",
    "products": "Matrix products and convolutions",
    "rows": "Reductions and scans",
    "sorts": "Sorts",
    "movement": "Movement: transposes, slices, gathers, scatters",
    "control": "Loops and branches of programs",
    "runtime": "Calls: copies, donation, results in place, async",
    "waits": "Waits",
    "clocks": "Timestamps and clocks",
    "memory": "Memory",
    "speed": "Speed",
}
"""The areas, each with its own verdict, in the order of the report, with their titles."""


class Ending(enum.Enum):
    """The way a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "crashed"
    HUNG = "hung"
    SKIPPED = "skipped"
    NOT_RUN = "not run"

    @property
    def is_bad(self) -> bool:
        return self in (Ending.FAILED, Ending.CRASHED, Ending.HUNG)


class SkipCase(Exception):
    """The device lacks a requirement of the case; the text names it."""


@dataclass(frozen=True, slots=True)
class Case:
    """A single trial on a device.

    Attributes:
        area: a key of ``AREAS``.
        title: the title, unique within the area.
        run: a function that performs the trial. It raises ``SkipCase`` if the device lacks a requirement, and
            AssertionError or any other error on a fault.
    """

    area: str
    title: str
    run: Callable[[Device], Figures | None]

    @property
    def name(self) -> str:
        return f"{self.area}/{self.title}"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case.

    Attributes:
        seconds: the wall time in seconds.
        message: the reason for not passing; several lines for crashes.
        figures: the measured figures.
    """

    ending: Ending
    seconds: float = 0.0
    message: str = ""
    figures: Figures | None = None


def needs(device: Device, *features: str) -> None:
    """Skips a case on a device without these features."""
    lacking = [name for name in features if name not in device.vulkan.plan.features]
    if lacking:
        raise SkipCase(f"the device has no {', '.join(lacking)}")
