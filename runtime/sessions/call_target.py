"""What calls of a session run on, and who is told of them."""

from __future__ import annotations

from ...vm.execution.context import Context
from .call_observer import CallObserver
from .session_devices import SessionDevices


class CallTarget:
    """What the functions of a session share.

    Attributes:
        context: where calls run.
        devices: where arguments go and results are.
        observer: is told of calls, or ``None``.
    """

    __slots__ = ("context", "devices", "observer")

    def __init__(self, context: Context, devices: SessionDevices) -> None:
        self.context = context
        self.devices = devices
        self.observer: CallObserver | None = None

    def unobserve(self) -> None:
        """Removes the observer."""
        self.observer = None
