"""The device that programs are compiled for, requested or recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..status import InvalidArgumentError
from .errors import usage
from .input_files import read_file

if TYPE_CHECKING:
    from ..compiler.kernels.scalars.target import Target
    from ..hal_vulkan import DeviceProfile


def device_profile(uri: str | None) -> DeviceProfile | None:
    """Returns a device's profile; None for the reference device.

    Args:
        uri: the URI of a device, which is not opened, or the path of a profile from ``pumice devices --json``; ``None``
            has the meaning of ``pumice.open_device``.

    Raises:
        UsageError: the text is no URI.
        NotFoundError: there is no such device or file.
        InvalidArgumentError: the file is not a profile.
        UnavailableError: there is no Vulkan loader or driver.
    """
    from ..runtime.opening import is_reference

    if uri is not None and uri.endswith(".json"):
        return _recorded(Path(uri))
    if is_reference(uri):
        return None
    from ..hal_vulkan import shared_driver

    with usage("" if uri is None else "--device"):
        driver = shared_driver()
        return driver.profiles[driver.select(uri)]


def device_target(uri: str | None, tuning: Path | None = None) -> Target:
    """Returns the target of a device, with tuning's findings.

    Args:
        uri: the URI or the path, as for ``device_profile``.
        tuning: the database, None for the cache.

    Raises: as ``device_profile`` and ``TuningDatabase.open``.
    """
    from ..compiler.kernels.scalars.target import Target
    from ..tuning.database import tuned_target

    profile = device_profile(uri)
    return Target(kinds=("reference",)) if profile is None else tuned_target(profile, tuning)


def devices_target(devices: Sequence[str | None]) -> Target:
    """Returns one target for several devices; it assumes only features that every device of their kinds has."""
    from ..compiler.kernels.scalars.target import Target

    targets = [device_target(uri) for uri in devices]
    kinds = tuple(sorted({kind for target in targets for kind in target.kinds}, reverse=True)) or ("vulkan",)
    vulkan = {target for target in targets if target.kinds == ("vulkan",)}
    return replace(vulkan.pop(), kinds=kinds) if len(vulkan) == 1 else Target(kinds=kinds)


def _recorded(path: Path) -> DeviceProfile:
    from ..hal_vulkan import DeviceProfile

    try:
        record = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{path}: expected a device's profile as JSON: {error}") from None
    if isinstance(record, list):
        # The whole output of `pumice devices --json`.
        if len(record) != 1:
            raise InvalidArgumentError(f"{path}: expected one device, got a list of {len(record)}: keep one of them")
        (record,) = record
    try:
        return DeviceProfile.from_json(record.get("profile", record) if isinstance(record, dict) else record)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{path}: {error.message}") from None
