"""The results of tuning, by device, driver, and class of region.

They are JSON, in an entry of the user's cache for each device and driver, or in a file that the user names, which holds
several devices. A damaged entry of the cache counts as absent; a damaged file of the user's is an error.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from ..base.cache import CachedFile
from ..base.files import locked, reading_errors, write_whole, writing_errors
from ..base.lazy_dataclass import dataclass
from ..compiler.kernels.scalars.device_target import DeviceFacts, target_of
from ..compiler.kernels.scalars.target import Target
from ..status import InvalidArgumentError, NotFoundError, shown

_FORM: Final = "pumice tuning 1"


class NamedDevice(DeviceFacts, Protocol):
    """A device and its driver, by the driver's names."""

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
    """The result of tuning for a class of regions.

    Attributes:
        winner: the fastest strategy that was measured, as ``Strategy.text`` writes it.
        tried: the strategies that were measured, all of them, the winner too.
        ratio: the winner's time divided by that of the strategy with the lowest estimate.
    """

    winner: str
    tried: tuple[str, ...]
    ratio: float = 1.0


@dataclass
class TuningDatabase:
    """The findings of one device; ``open`` reads them, ``store`` writes them.

    Thread rule: one thread at a time. Processes that store at once keep each other's findings.

    Attributes:
        device: the names of the device and its driver.
        path: the user's file; None for the cache.
        findings: the findings by class of region.
    """

    device: str
    path: Path | None
    findings: dict[str, Finding] = field(default_factory=dict)

    @classmethod
    def open(cls, profile: NamedDevice, path: Path | None = None) -> TuningDatabase:
        """Reads the findings of a device.

        Raises:
            InvalidArgumentError: the user's file is not a database.
            PermissionDeniedError, UnavailableError: the file cannot be read.
        """
        driver = f"{profile.driver_name} {profile.driver_info} {profile.driver_version:#x}"
        database = cls(f"{profile.name}, {driver}", path)
        database.findings = _findings(database._load(), database.device)
        return database

    def store(self) -> None:
        """Adds the findings to those that are stored, of this device and others.

        Raises:
            PumiceError: the user's file cannot be written. A cache that keeps nothing is not an error.
        """
        with contextlib.ExitStack() as stack:
            if self.path is None:
                stack.enter_context(self._entry.alone())
            else:
                stack.enter_context(writing_errors(self.path))
                path = Path(os.path.realpath(self.path))
                if path.is_file() or not path.exists():  # nobody else changes a pipe or a device
                    stack.enter_context(locked(path))
            stored = self._load()
            findings = {**_findings(stored, self.device), **self.findings}
            written = {
                name: {"winner": finding.winner, "tried": list(finding.tried), "ratio": round(finding.ratio, 4)}
                for name, finding in sorted(findings.items())
            }
            devices = {**stored, self.device: written}
            data = json.dumps({"form": _FORM, "devices": devices}, indent=1).encode()
            if self.path is None:
                self._entry.store(data)
            else:
                write_whole(self.path, lambda file: file.write(data))

    @property
    def winners(self) -> tuple[tuple[str, str], ...]:
        """The fastest strategy of each class, in the form of ``Target.tuned``."""
        return tuple(sorted((name, finding.winner) for name, finding in self.findings.items()))

    @property
    def _entry(self) -> CachedFile:
        return CachedFile("tuning", (_FORM, self.device))

    def _load(self) -> Mapping[str, Any]:
        """Reads the findings of all devices in their written form."""
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
    """Returns the findings of a device; malformed findings are left out."""
    listed = devices.get(device)
    findings = {}
    for name, written in (listed if isinstance(listed, dict) else {}).items():
        match written:
            case {"winner": str(winner), "tried": [*tried], "ratio": float() | int() as ratio}:
                findings[name] = Finding(winner, tuple(map(str, tried)), float(ratio))
    return findings


def tuned_target(profile: NamedDevice, path: Path | None = None, kinds: tuple[str, ...] = ("vulkan",)) -> Target:
    """Returns the target of a device, with the results of tuning on it.

    Raises: as ``TuningDatabase.open``.
    """
    return replace(target_of(profile, kinds), tuned=TuningDatabase.open(profile, path).winners)
