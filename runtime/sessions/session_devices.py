"""The target of a session's calls: the context, and the devices, which are opened when first needed."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import numpy as np

from ...formats.element_type import EncodingType
from ...hal.buffer_view import BufferView
from ...hal.logical_device import LogicalDevice
from ...status import ClosedError, InvalidArgumentError
from ...vm.execution.context import Context
from ...waits.wait_mode import WaitMode, checked_wait_mode
from ..arrays.array import DeviceArray
from ..device import Device
from ..opening import REFERENCE
from .instance import Instance

if TYPE_CHECKING:
    from ..profiling.profile import Profile


class SessionDevices:
    """The devices of a session.

    Thread rule: any thread; asynchronous calls open the devices from their threads.

    Attributes:
        instance: the instance, which sessions can share; if not passed, it is made here and closed with this object.
        opened: the open devices; empty before.
        known: the same devices as a set, which grows as they are opened.
    """

    def __init__(
        self,
        wanted: object,
        instance: Instance | None,
        sanitize: bool | None = None,
        wait: WaitMode | None = None,
    ) -> None:
        self._wanted = _checked(wanted)
        self._owns_instance = instance is None
        if wait is not None:
            checked_wait_mode(wait)
        self.instance: Instance = instance or Instance(sanitize=sanitize, wait=wait)
        self._settings = {"sanitize": sanitize, "wait": wait}  # its devices are opened with these
        self.opened: tuple[Device, ...] = ()
        self.known: set[Device] = set()
        self._by_hal: dict[LogicalDevice, Device] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def open(self) -> tuple[Device, ...]:
        """Returns all devices, opened if necessary."""
        if not self.opened:
            with self._lock:
                if not self.opened:
                    self._open()
        return self.opened

    def _open(self) -> None:
        if self._is_closed:
            raise ClosedError("this session was closed; make a new one")
        devices = tuple(
            device if isinstance(device, Device) else self.instance.device(device) for device in self._wanted
        )
        for device in devices:
            if device.is_closed:
                raise ClosedError(f"the device {device.name} was closed; open it again, or give its URI")
            if device.uri == REFERENCE:
                continue
            for name, value in self._settings.items():
                opened = getattr(device.vulkan.plan, name)
                if value is not None and opened != value:
                    raise InvalidArgumentError(
                        f"{name}={value!r} is for devices that the session opens; {device.name} was opened with "
                        f"{name}={opened!r}: open it, or the instance, with the same"
                    )
        self._by_hal = {device.hal: device for device in devices}
        self.known.update(devices)
        self.opened = devices

    def first(self) -> Device:
        """Returns the device for arguments."""
        return (self.opened or self.open())[0]

    def wrap(self, view: BufferView) -> DeviceArray | BufferView:
        """Returns the array of a buffer view; the view itself if NumPy has no dtype for its elements."""
        element_type = view.element_type
        dtype = element_type.dtype
        if dtype is None or element_type.is_sub_byte or view.encoding is not EncodingType.DENSE_ROW_MAJOR:
            return view
        return self.wrap_dense(view, dtype)

    def wrap_dense(self, view: BufferView, dtype: np.dtype[np.generic]) -> DeviceArray | BufferView:
        """Wraps a dense view whose elements have this dtype."""
        buffer = view.buffer
        device = self._by_hal.get(buffer.device)
        if device is None:
            return view
        nbytes = dtype.itemsize
        for length in view.shape:
            nbytes *= length
        if nbytes != buffer.size:
            buffer = buffer.subspan(0, nbytes)
        return DeviceArray(device, buffer, view.shape, dtype, nbytes, shared=buffer)

    def wrap_number(self, view: object) -> object:
        """Returns the single element of a buffer view, as a Python number."""
        assert isinstance(view, BufferView)
        array = self.wrap(view)
        assert isinstance(array, DeviceArray)
        return array.item()

    def close(self) -> None:
        """Closes the instance if it was made here, and with it the devices; idempotent."""
        self._is_closed = True
        if self._owns_instance:
            self.instance.close()


class CallTarget:
    """The part shared by the functions of a session: its context, its devices, and its profile, if any."""

    __slots__ = ("context", "devices", "observer")

    def __init__(self, context: Context, devices: SessionDevices) -> None:
        self.context: Context = context
        self.devices: SessionDevices = devices
        self.observer: Profile | None = None

    def unobserve(self) -> None:
        """Removes the observer."""
        self.observer = None


def _checked(wanted: object) -> tuple[str | Device | None, ...]:
    if wanted is None:
        return (None,)
    several: tuple[object, ...] = (wanted,)
    if not isinstance(wanted, (str, Device)):
        with contextlib.suppress(TypeError):  # rejected below
            several = tuple(wanted)  # type: ignore[arg-type]
    if not several:
        raise InvalidArgumentError("a session takes one device or several, got an empty sequence")
    checked: list[str | Device | None] = []
    for device in several:
        if not isinstance(device, (str, Device)):
            raise InvalidArgumentError(f"a device is a URI or an open pumice.Device, got {type(device).__name__}")
        checked.append(device)
    return tuple(checked)
