"""Running scripts: from a path to a report."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..base.closeable import Closeable
from ..runtime.device import Device
from ..runtime.opening import open_device
from ..status import PumiceError
from .reading import parse
from .report import Outcome, ScriptReport
from .requirements import needs_robust_access
from .runner import ScriptRunner, located_text
from .script import Script
from .source import UnsupportedScriptError

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds that a run of a pipeline may take."""


def run(
    path: str | Path | Script, *, device: Device | str | None = None, timeout: float = DEFAULT_TIMEOUT
) -> ScriptReport:
    """Runs a script.

    Args:
        path: the path of the script, or the script that ``parse`` returned.
        device: a device, or its URI; ``None`` means the best. A device that is opened here bounds the accesses of
            shaders if the script asks for it.
        timeout: the seconds for each ``RUN``.

    Returns:
        The report, also for scripts that are wrong or need features that the device lacks.
    """
    with Devices(device) as devices:
        return devices.run(path, timeout)


class Devices(Closeable):
    """The devices that scripts run on, opened when a script first needs one: with bounded accesses, and without."""

    def __init__(
        self, device: Device | str | None, *, validation: bool | None = None, sanitize: bool | None = None
    ) -> None:
        self._given = device if isinstance(device, Device) else None
        self._uri = None if isinstance(device, Device) else device
        self._validation = validation
        self._sanitize = sanitize
        self._opened: dict[bool, Device] = {}

    def device(self, *, robust: bool = False) -> Device:
        """Returns the device with or without bounded accesses."""
        if self._given is not None:
            return self._given
        if robust and "robustBufferAccess" not in self.device().profile.features:
            robust = False  # the script is skipped for it
        device = self._opened.get(robust)
        if device is None or device.vulkan.lost is not None:
            # Scripts that ask for bounded accesses go out of bounds.
            sanitize = False if robust else self._sanitize
            device = self._opened[robust] = open_device(
                self._uri, validation=self._validation, robust=robust, sanitize=sanitize
            )
        return device

    def run(self, path: str | Path | Script, timeout: float = DEFAULT_TIMEOUT) -> ScriptReport:
        if isinstance(path, Script):
            script = path
        else:
            try:
                script = parse(path)
            except UnsupportedScriptError as error:
                return ScriptReport(str(path), Outcome.UNSUPPORTED, located_text(error, str(path)))
            except PumiceError as error:
                return ScriptReport(str(path), Outcome.ERROR, located_text(error, str(path)))
        device = self.device(robust=needs_robust_access(script))
        return ScriptRunner(device, script, timeout).run()

    def close(self) -> None:
        """Closes the device if it was opened here; idempotent."""
        for device in self._opened.values():
            device.close()
        self._opened.clear()
