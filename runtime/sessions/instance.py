"""Instances: devices that sessions share.

>>> with pumice.Instance() as instance:
...     encoder = pumice.Session(instance=instance)
...     decoder = pumice.Session(instance=instance)

Calling sequence: ``Instance()`` → ``device(uri)`` or ``Session(instance=…)`` → ``close``, after the sessions. Only
sessions of one instance, or made with the same ``Device``, pass arrays to each other without a copy through the host.
Thread rule: any thread.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from ...base.closeable import Closeable
from ...status import ClosedError
from ...waits.wait_mode import WaitMode, checked_wait_mode
from ..device import Device
from ..opening import REFERENCE, is_reference, list_devices, open_device

if TYPE_CHECKING:
    from ...hal_vulkan import DeviceProfile


class Instance(Closeable):
    """Opens each device once, for all sessions made with it.

    Args:
        validation: whether to turn the Khronos validation layers on; ``None`` reads ``PUMICE_VALIDATION``.
        sanitize: the shader checks of the devices that it opens, as for ``pumice.open_device``.
        wait: the host's wait mode of these devices, as for ``pumice.open_device``.
    """

    def __init__(
        self, *, validation: bool | None = None, sanitize: bool | None = None, wait: WaitMode | None = None
    ) -> None:
        self._validation = validation
        self._sanitize = sanitize
        self._wait: WaitMode | None = None if wait is None else checked_wait_mode(wait)
        self._devices: dict[int | str, Device] = {}  # by the driver's index, whatever the URI
        self._lock = threading.Lock()
        self._closed = False

    @property
    def available(self) -> tuple[DeviceProfile, ...]:
        """The profiles of all Vulkan devices of this machine.

        Raises:
            UnavailableError: there is no Vulkan loader; the message says what to install.
        """
        return list_devices(validation=self._validation)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it opened, without those closed since."""
        return tuple([device for device in self._devices.values() if not device.is_closed])

    def device(self, uri: str | None = None) -> Device:
        """Returns a device by URI as for ``pumice.open_device``; the same object while the device is open.

        The instance closes it. If it is closed earlier, the next ``device`` opens it again.

        Raises:
            NotFoundError: there is no such device; the message lists those that exist.
            UnavailableError: there is no Vulkan loader or driver.
            ClosedError: the instance was closed.
        """
        with self._lock:
            if self._closed:
                raise ClosedError("this instance was closed; make a new Instance()")
            index = self._index(uri)
            device = self._devices.get(index)
            if device is None or device.is_closed:
                device = self._devices[index] = open_device(
                    uri, validation=self._validation, sanitize=self._sanitize, wait=self._wait
                )
            return device

    def _index(self, uri: str | None) -> int | str:
        if is_reference(uri):
            return REFERENCE
        from ...hal_vulkan import shared_driver

        return shared_driver(validation=self._validation).select(uri)

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    def close(self) -> None:
        """Closes its devices, and with them all arrays on them; idempotent. Close sessions first.

        Raises:
            DeadlineExceededError: a device could not be closed in time; another ``close`` continues.
        """
        with self._lock:
            self._closed = True
        with contextlib.ExitStack() as closing:  # all devices, even if one raises
            for device in self._devices.values():
                closing.callback(device.close)

    def __repr__(self) -> str:
        names = ", ".join(device.name for device in self.devices) or "no devices yet"
        return "<closed Instance>" if self._closed else f"<Instance of {names}>"
