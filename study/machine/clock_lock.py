"""Locks the clock of NVIDIA devices while they are measured, so that boosts and heat do not change it.

A locked clock stays locked after the end of the process. So every exit resets it, and a marker lets the next run report
a lock that a killed process left. Locking needs root, so markers are in a folder that only root can write to, and that
a restart empties. Source: ``nvmlDeviceSetGpuLockedClocks`` in NVML's API reference.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psutil

from ...base.closeable import Closeable
from ...base.files import read_regular
from ...hal_vulkan import DeviceProfile
from ...status import FailedPreconditionError, InvalidArgumentError, PermissionDeniedError, UnavailableError
from .device_clocks import nvml_device

_PREFIX: Final = "clocks-"
_MAX_MARKER: Final = 4096  # bytes
_AS_ROOT: Final = "Run as root, or lock them beforehand with `sudo nvidia-smi -lgc MHZ` and leave --lock-clocks out"
_ENDINGS: Final = ("SIGTERM", "SIGHUP")  # signals that end a process without unwinding it


class ClockLock(Closeable):
    """A device's clock, locked until ``close``, which is idempotent, or the end of the process.

    Args:
        profile: the device's profile.
        mhz: the rate of its processors; None for the device's default for applications.

    Raises:
        UnavailableError: the device is not NVIDIA's, or cannot lock its clock.
        PermissionDeniedError: the user is not root.
        InvalidArgumentError: the device has no such clock.
        FailedPreconditionError: another process has locked it.
    """

    def __init__(self, profile: DeviceProfile, mhz: int | None = None) -> None:
        try:
            self._nvml, self._handle = nvml_device(profile)
        except UnavailableError as error:
            raise UnavailableError(
                f"{error.message}, so its clock cannot be locked: leave --lock-clocks out, or name another device"
            ) from error
        nvml = self._nvml
        with self._errors(profile, mhz):
            if mhz is None:
                mhz = int(nvml.nvmlDeviceGetDefaultApplicationsClock(self._handle, nvml.NVML_CLOCK_GRAPHICS))
        self.mhz: Final = int(mhz or 0)
        self._uuid = profile.device_uuid
        self._marker = _folder() / f"{_PREFIX}{profile.device_uuid}.json"
        left = _read_marker(self._marker)
        if left is not None and _is_alive(left):
            raise FailedPreconditionError(
                f"process {left['pid']} has locked the clocks of {profile.name}; wait for it to end"
            )
        # The marker comes before the lock: a kill in between leaves a superfluous marker, not a locked clock without a
        # marker.
        facts = {"name": profile.name, "uuid": profile.device_uuid, "mhz": self.mhz, "pid": os.getpid()}
        process = {"began": psutil.Process().create_time(), "boot": psutil.boot_time()}
        try:
            self._marker.parent.mkdir(mode=0o755, exist_ok=True)
            self._marker.unlink(missing_ok=True)
            with self._marker.open("x", encoding="utf-8") as file:
                json.dump(facts | process, file)
            self._marker.chmod(0o644)
        except OSError as error:
            raise PermissionDeniedError(
                f"locking the clocks of {profile.name} needs root: {self._marker} cannot be written "
                f"({error.strerror}). {_AS_ROOT}"
            ) from error
        self._locked = True
        atexit.register(self.close)
        try:
            with self._errors(profile, self.mhz):
                nvml.nvmlDeviceSetGpuLockedClocks(self._handle, self.mhz, self.mhz)
        except BaseException:
            # The clock may be locked if this is Ctrl-C; otherwise the reset fails like the lock.
            with contextlib.suppress(nvml.NVMLError):
                nvml.nvmlDeviceResetGpuLockedClocks(self._handle)
            self._forget()
            raise

    @contextlib.contextmanager
    def _errors(self, profile: DeviceProfile, mhz: int | None) -> Iterator[None]:
        nvml = self._nvml
        try:
            yield
        except nvml.NVMLError as error:
            code = getattr(error, "value", None)
            if code == nvml.NVML_ERROR_NO_PERMISSION:
                raise PermissionDeniedError(f"locking the clocks of {profile.name} needs root. {_AS_ROOT}") from error
            if mhz is None:
                raise UnavailableError(
                    f"{profile.name} names no default clock ({error}); say which: --lock-clocks MHZ"
                ) from error
            if code == nvml.NVML_ERROR_INVALID_ARGUMENT:
                raise InvalidArgumentError(
                    f"{profile.name} has no clock of {mhz} MHz; `nvidia-smi -q -d SUPPORTED_CLOCKS` lists its own"
                ) from error
            raise UnavailableError(f"{profile.name} cannot lock its clocks: {error}") from error

    def close(self) -> None:
        """Resets the clock. UnavailableError: the driver refuses; the message names the remedy."""
        if not self._locked:
            return
        try:
            self._nvml.nvmlDeviceResetGpuLockedClocks(self._handle)
        except self._nvml.NVMLError as error:
            raise UnavailableError(
                f"the clocks stay locked to {self.mhz} MHz, the driver does not reset them ({error}): "
                f"{_reset_command(self._uuid)}"
            ) from error
        self._forget()

    def _forget(self) -> None:
        self._locked = False
        self._marker.unlink(missing_ok=True)
        atexit.unregister(self.close)


@contextlib.contextmanager
def locked_clocks(profiles: Sequence[DeviceProfile], mhz: int | None) -> Iterator[list[int]]:
    """Locks the clocks of devices within the block, and yields their MHz; signals that end the process unwind the block
    first.

    Raises:
        PumiceError: a clock cannot be locked; see ``ClockLock``.
    """
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for name in _ENDINGS:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                    stack.callback(signal.signal, number, signal.signal(number, _end))
        yield [stack.enter_context(ClockLock(profile, mhz)).mhz for profile in profiles]


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def left_locked() -> list[str]:
    """Returns a message for each clock that a killed process left locked since the machine started."""
    messages = []
    for path in sorted(_folder().glob(f"{_PREFIX}*.json")):
        left = _read_marker(path)
        if left is not None and not _is_alive(left):
            locked = f"the clocks of {left['name']} are still locked to {left['mhz']} MHz"
            messages.append(
                f"{locked} by process {left['pid']}, which was killed. Reset them: {_reset_command(left['uuid'])} && "
                f"sudo rm {path}"
            )
    return messages


def _folder() -> Path:
    """Returns the folder of markers, which other users cannot write to; on Windows, the folder is the user's own."""
    return Path("/run/pumice") if sys.platform != "win32" else Path(tempfile.gettempdir())


def _reset_command(uuid: str) -> str:
    return f"sudo nvidia-smi -i GPU-{uuid} -rgc"


def _read_marker(path: Path) -> dict[str, Any] | None:
    """Reads a marker of root or of this user, written since the machine started, as a start resets clocks."""
    try:
        content, status = read_regular(path, _MAX_MARKER)
        facts = json.loads(content)
        mine = {name: kind(facts[name]) for name, kind in _FACTS.items()}
        is_ours = _is_trusted(status) and path.name == f"{_PREFIX}{UUID(mine['uuid'])}.json"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return mine if is_ours and abs(mine["boot"] - psutil.boot_time()) < _SAME_BOOT else None


def _is_trusted(status: os.stat_result) -> bool:
    if sys.platform == "win32":
        return True  # it is in the user's own folder
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


_FACTS: Final = {"name": str, "uuid": str, "mhz": int, "pid": int, "began": float, "boot": float}
_SAME_BOOT: Final = 60.0  # seconds; the start time moves when the clock is set


def _is_alive(left: dict[str, Any]) -> bool:
    try:
        return bool(abs(psutil.Process(left["pid"]).create_time() - left["began"]) < 1)
    except psutil.Error:
        return False
