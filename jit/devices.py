"""The devices that functions share."""

from __future__ import annotations

from typing import Final

from ..runtime import Device, Instance
from ..status import InvalidArgumentError

_instance: Final = Instance()


def shared_device(wanted: str | Device | None) -> Device:
    """An open device as it is; that of a URI, opened once for all functions of the process.

    Raises: as ``pumice.open_device``; InvalidArgumentError for what is neither.
    """
    if isinstance(wanted, Device):
        return wanted
    if wanted is not None and not isinstance(wanted, str):
        raise InvalidArgumentError(f"device is a URI or an open pumice.Device, got {type(wanted).__name__}")
    return _instance.device(wanted)
