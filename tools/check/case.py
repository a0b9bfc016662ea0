"""The cases of ``pumice check``: what each tries, how it can end, and comparisons of its results."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...runtime.device import Device

Figures: TypeAlias = Mapping[str, "float | str"]
"""What a case measured or found, by name with its unit."""

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
"""The areas that get a verdict each, in the order of the report, with their titles."""


class Ending(enum.Enum):
    """How a case ended."""

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
    """The device lacks what a case needs; the text says what."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to try on a device.

    Attributes:
        area: a key of ``AREAS``.
        title: the title, unique within the area.
        run: a function that tries it. It raises ``SkipCase`` where the device lacks something, and AssertionError or
            any other error where something is wrong.
    """

    area: str
    title: str
    run: Callable[[Device], Figures | None]

    @property
    def name(self) -> str:
        return f"{self.area}/{self.title}"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How a case ended.

    Attributes:
        seconds: the wall time in seconds.
        message: the reason why it did not pass; several lines for crashes.
        figures: the figures that it measured.
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
