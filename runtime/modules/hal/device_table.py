"""The devices of one VM context, shared by all exports of the ``hal`` module."""

from __future__ import annotations

from collections.abc import Sequence

from ....hal_vulkan import Buffer, Device
from ....hal_vulkan.instance.logical_device import LogicalDevice
from ....status import InvalidArgumentError
from .device_context import DeviceContext
from .reference import Ref


class DeviceTable:
    """The devices of one VM context and their device contexts.

    Args:
        devices: open devices, in the order in which programs number them.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = tuple(devices)
        self._contexts: dict[LogicalDevice, DeviceContext] = {device: DeviceContext(device) for device in devices}
        if len(self._contexts) > 1:
            for context in self._contexts.values():
                context.peers = self._contexts

    def device_context(self, device: Ref) -> DeviceContext:
        """The device context of a device.

        Raises:
            InvalidArgumentError: not a device of this context.
        """
        try:
            return self._contexts[device]
        except (KeyError, TypeError):
            what = "null" if device is None else repr(device)
            raise InvalidArgumentError(
                f"expected a !hal.device of this context ({len(self._devices)} device(s)), got {what}"
            ) from None

    def _context_of(self, buffer: Buffer, device: Ref) -> DeviceContext:
        """The device context of a buffer's device; of ``device`` if the buffer's is not in the table."""
        context = self.device_context(device)
        return context.peers.get(buffer.device, context)

    @property
    def device_contexts(self) -> tuple[DeviceContext, ...]:
        """The device contexts of all devices."""
        return tuple(self._contexts.values())

    def close(self) -> None:
        """Frees kept memory; idempotent. Live objects stay usable."""
        for context in self._contexts.values():
            context.peers = {}
            context.close()

    def __del__(self) -> None:
        # May run at any point, under any lock: only takes a note (docs/design/hal.md).
        for device, context in getattr(self, "_contexts", {}).items():
            if not context.allocator.is_closed:
                device.dropped.append(context.allocator)
