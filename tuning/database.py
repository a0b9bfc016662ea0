"""What tuning found, by device, driver, and class of region.

It is JSON, in an entry of the user's cache for each device and driver, or in a file that the user names, which holds
several devices. A damaged entry of the cache is none; a damaged file of the user's is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from ..base.cache import CachedFile
from ..base.files import reading_errors, write_whole
from ..base.lazy_dataclass import dataclass
from ..compiler.kernels.scalars.device_target import DeviceFacts, target_of
from ..compiler.kernels.scalars.target import Target
from ..status import InvalidArgumentError, NotFoundError, shown

_FORM: Final = "pumice tuning 1"


class NamedDevice(DeviceFacts, Protocol):
    """What a driver says of a device, and who it is."""

    @property
    def name(self) -> str: ...
    @property
    def driver_name(self) -> str: ...
    @property
    def driver_info(self) -> str: ...
    @property
    def driver_version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of a class of regions.

    Attributes:
        winner: the strategy that is fastest of those that were measured, as ``Strategy.text`` has it.
        tried: all that were measured, the winner too.
        ratio: of the winner's time to that of what is estimated to be the fastest.
    """

    winner: str
    tried: tuple[str, ...]
    ratio: float = 1.0


@dataclass
class TuningDatabase:
    """The findings of one device; ``open`` reads them, ``store`` keeps them.

    Thread rule: one thread at a time; of two processes that store at once, one's findings may be lost.

    Attributes:
        device: which device and driver it is.
        path: the file of the user's, None for the cache.
        findings: by class of region.
    """

    device: str
    path: Path | None
    findings: dict[str, Finding] = field(default_factory=dict)

    @classmethod
    def open(cls, profile: NamedDevice, path: Path | None = None) -> TuningDatabase:
        """What is known of a device.

        Raises:
            InvalidArgumentError: the file that is named is no database.
            PermissionDeniedError, UnavailableError: it cannot be read.
        """
        driver = f"{profile.driver_name} {profile.driver_info} {profile.driver_version:#x}"
        database = cls(f"{profile.name}, {driver}", path)
        database.findings = _findings(database._load(), database.device)
        return database

    def store(self) -> None:
        """Keeps the findings, beside those of other devices.

        Raises:
            PumiceError: the file that is named cannot be written. A cache that keeps nothing is no error.
        """
        written = {
            name: {"winner": each.winner, "tried": list(each.tried), "ratio": round(each.ratio, 4)}
            for name, each in sorted(self.findings.items())
        }
        devices = {**self._load(), self.device: written}
        data = json.dumps({"form": _FORM, "devices": devices}, indent=1).encode()
        if self.path is not None:
            write_whole(self.path, lambda file: file.write(data))
        else:
            self._entry.store(data)

    @property
    def winners(self) -> tuple[tuple[str, str], ...]:
        """The fastest strategy of each class, as ``Target.tuned`` has it."""
        return tuple(sorted((name, each.winner) for name, each in self.findings.items()))

    @property
    def _entry(self) -> CachedFile:
        return CachedFile("tuning", (_FORM, self.device))

    def _load(self) -> Mapping[str, Any]:
        """The findings of all devices as they are written."""
        if self.path is None:
            data = self._entry.load()
        else:
            try:
                with reading_errors(self.path):
                    data = self.path.read_bytes()
            except NotFoundError:
                data = None
        if data is None:
            return {}
        try:
            read = json.loads(data)
        except (ValueError, RecursionError):
            read = None
        match read:
            case {"form": form, "devices": dict() as devices} if form == _FORM:
                return devices
        if self.path is None:
            return {}
        came = shown(data[:40].decode(errors="replace"))
        raise InvalidArgumentError(
            f"{self.path}: expected what tuning wrote, JSON of the form {_FORM!r}, got {came}; "
            "name another file, or delete this one"
        )


def _findings(devices: Mapping[str, Any], device: str) -> dict[str, Finding]:
    """The findings of a device, without those that are not as they are written."""
    listed = devices.get(device)
    found = {}
    for name, each in (listed if isinstance(listed, dict) else {}).items():
        match each:
            case {"winner": str(winner), "tried": [*tried], "ratio": float() | int() as ratio}:
                found[name] = Finding(winner, tuple(map(str, tried)), float(ratio))
    return found


def tuned_target(profile: NamedDevice, path: Path | None = None, kinds: tuple[str, ...] = ("vulkan",)) -> Target:
    """The target of a device, with what tuning found on it.

    Raises: as ``TuningDatabase.open``.
    """
    return replace(target_of(profile, kinds), tuned=TuningDatabase.open(profile, path).winners)
