"""The Khronos validation layers' messages as errors.

A message of severity error becomes an ``InternalError`` that the next checked native call raises (``results.check``).
The layers call back inside the wrong call; errors of ``vkCmd…`` calls, which return nothing, are raised by the end of
recording at the latest. Warnings go to ``logging``.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from ...base.switches import switch
from ...status import InternalError
from .functions import CData, InstanceFunctions, ffi, new, text
from .results import check, pending_validation

LAYER = "VK_LAYER_KHRONOS_validation"

_SEVERITY_WARNING = 0x100
_SEVERITY_ERROR = 0x1000
_TYPE_ALL = 0x7

_VARIABLE: Final = "PUMICE_VALIDATION"

_log = logging.getLogger("pumice.validation")

# Images stay in the general layout by choice (docs/design/hal.md); the layers prefer other layouts for transfers.
_LAYOUT: Final = "UNASSIGNED-CoreValidation-DrawState-InvalidImageLayout"
_NOT_OPTIMAL: Final = "For optimal performance"
# Messages about the machine or the driver's state, not about how Vulkan is used.
_NOT_ABOUT_USE = ("Loader Message", "WARNING-cache-file-error", "UNASSIGNED-cache-file-error")


def validation_requested(argument: bool | None) -> bool:
    """Returns whether to turn the layers on: the argument, or else ``PUMICE_VALIDATION``.

    Off if that is unset or empty.
    """
    if argument is not None:
        return argument
    return bool(switch(_VARIABLE))


class DebugMessenger:
    """Receives the layers' messages for one instance; ``close`` it before the instance is destroyed."""

    def __init__(self) -> None:
        self._callback = ffi.callback("PFN_vkDebugUtilsMessengerCallbackEXT", self._receive, error=0)
        self._functions: InstanceFunctions | None = None
        self._instance: CData = None
        self._handle: CData = None

    def create_info(self) -> CData:
        """Returns the structure that both vkCreateInstance (through pNext) and ``attach`` take."""
        return new(
            "VkDebugUtilsMessengerCreateInfoEXT",
            messageSeverity=_SEVERITY_WARNING | _SEVERITY_ERROR,
            messageType=_TYPE_ALL,
            pfnUserCallback=self._callback,
        )

    def attach(self, functions: InstanceFunctions, instance: CData) -> None:
        """Starts listening to an instance."""
        handle = ffi.new("VkDebugUtilsMessengerEXT *")
        check(
            functions.vkCreateDebugUtilsMessengerEXT(instance, self.create_info(), ffi.NULL, handle),
            "creating the validation messenger",
        )
        self._functions, self._instance, self._handle = functions, instance, handle[0]

    def close(self) -> None:
        """Stops listening; idempotent."""
        if self._functions is not None:
            self._functions.vkDestroyDebugUtilsMessengerEXT(self._instance, self._handle, ffi.NULL)
            self._functions = None

    def _receive(self, severity: int, _types: int, data: Any, _user: Any) -> int:
        identifier = text(data.pMessageIdName)
        message = text(data.pMessage)
        if identifier in _NOT_ABOUT_USE:
            return 0
        if severity < _SEVERITY_ERROR and identifier == _LAYOUT and _NOT_OPTIMAL in message:
            return 0
        if severity < _SEVERITY_ERROR:
            _log.warning("%s: %s", identifier, message)
            return 0
        names = [text(data.pObjects[index].pObjectName) for index in range(data.objectCount)]
        about = f" (objects: {', '.join(filter(None, names))})" if any(names) else ""
        pending_validation.append(InternalError(f"validation layer, {identifier}{about}: {message}"))
        return 0
