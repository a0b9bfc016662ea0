"""The devices of one VM context: what all exports of the ``hal`` module share."""

from __future__ import annotations

from collections.abc import Sequence

from ....hal_vulkan import Buffer, Device
from ....hal_vulkan.instance.logical_device import LogicalDevice
from ....status import InvalidArgumentError
from .device_context import DeviceContext
from .reference import Ref

__all__ = ["DeviceTable"]


class DeviceTable:
    """The devices of one VM context, with what the context keeps for each.

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
        """What the context keeps for a device.

        Raises:
            InvalidArgumentError: not a device, or one that the context was not made with.
        """
        try:
            return self._contexts[device]
        except (KeyError, TypeError):
            what = "null" if device is None else repr(device)
            raise InvalidArgumentError(
                f"expected a !hal.device of this context ({len(self._devices)} device(s)), got {what}"
            ) from None

    def _context_of(self, buffer: Buffer, device: Ref) -> DeviceContext:
        """That of a buffer's device, for what any queue may do; that of ``device`` where the buffer's is not known."""
        context = self.device_context(device)
        return context.peers.get(buffer.device, context)

    @property
    def device_contexts(self) -> tuple[DeviceContext, ...]:
        """Those of all devices."""
        return tuple(self._contexts.values())

    def close(self) -> None:
        """Frees what is kept for next uses; idempotent. What was handed out lives on."""
        for context in self._contexts.values():
            context.peers = {}
            context.close()

    def __del__(self) -> None:
        # The garbage collector may come at any point, under any lock: only a note is taken (docs/design/hal.md).
        for device, context in getattr(self, "_contexts", {}).items():
            if not context.allocator.is_closed:
                device.dropped.append(context.allocator)
