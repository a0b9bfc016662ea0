"""The devices that functions share."""

from __future__ import annotations

from typing import Final

from ..runtime import Device, Instance
from ..status import InvalidArgumentError

_instance: Final = Instance()


def check_device(wanted: object) -> None:
    """Raises InvalidArgumentError unless ``wanted`` is a URI, a device or ``None``."""
    if wanted is not None and not isinstance(wanted, str | Device):
        raise InvalidArgumentError(f"device is a URI or an open pumice.Device, got {type(wanted).__name__}")


def shared_device(wanted: str | Device | None) -> Device:
    """Returns an open device as it is, or opens the device of a URI once for all functions of the process.

    Raises: as ``pumice.open_device``.
    """
    return wanted if isinstance(wanted, Device) else _instance.device(wanted)
