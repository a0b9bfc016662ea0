"""The device of ``pumice run``, and its reports on stderr: the device, and times."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ..base.terminal import printable
from ..runtime.device import Device
from ..runtime.opening import is_reference, open_device
from .errors import usage
from .streams import note, put

_REPETITIONS: Final = 20
_MAX_SECONDS: Final = 5.0
"""For each series of repetitions; slow calls are repeated fewer times, which the report states."""


def open_asked(uri: str | None, validation: bool | None, *, sanitize: bool | None = None) -> Device:
    """Returns the device of ``--device``, whose shaders print to stdout.

    Without the option an error is about ``PUMICE_DEVICE``, and says so itself.
    """
    from ..hal_vulkan.vulkan.validation import validation_requested

    with usage():
        validation = validation_requested(validation)
    with usage("--device" if uri is not None else ""):
        return open_device(uri, validation=validation, sanitize=sanitize, print=lambda line: put(str(line)))


def device_text(device: Device) -> str:
    """Returns a device's name, type and driver."""
    if is_reference(device.uri):
        return "reference (NumPy)"
    profile = device.profile
    driver = " ".join(part for part in (profile.driver_name, profile.driver_info) if part) or profile.driver_id_name
    return printable(f"{profile.name} ({profile.device_type.name.lower()}, {driver or 'unknown driver'})")


def repeat(call: Callable[[], object]) -> list[float]:
    """Returns the seconds of each of ``_REPETITIONS`` calls; of fewer calls if they are slow."""
    seconds: list[float] = []
    while len(seconds) < _REPETITIONS and sum(seconds) < _MAX_SECONDS:
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds


def say_time(name: str, text: str) -> None:
    note(f"{name + ':':<12}{text}")


def seconds_text(value: float) -> str:
    """Returns a duration in seconds with three digits and its unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"
