"""The devices of a cluster's workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from ...hal_vulkan.instance.profile import DeviceProfile
from ...hal_vulkan.instance.uri import DeviceUri, list_devices, parse_device_uri, select_device
from ...status import InvalidArgumentError, NotFoundError, UnavailableError
from .worker import WorkerFacts

ALL_DEVICES: Final = "all"
"""Stands for all devices of the cluster, in place of URIs."""


def distinct_devices(workers: Mapping[str, WorkerFacts]) -> tuple[str, ...]:
    """Returns the URIs of all usable devices of a cluster, without duplicates, in the order of worker addresses."""
    uris: dict[str, None] = {}
    for address in sorted(workers):
        for profile in workers[address].profiles:
            if not profile.problems():
                uris[_uri(profile)] = None
    if not uris:
        raise NotFoundError(f"no worker has a device that pumice can run on. There are:\n{list_workers(workers)}")
    return tuple(uris)


def match_devices(uris: Iterable[str], workers: Mapping[str, WorkerFacts]) -> dict[str, dict[str, DeviceProfile]]:
    """Finds the workers that have each device of a study: by device, their addresses with the device's profile."""
    matched: dict[str, dict[str, DeviceProfile]] = {}
    for uri in uris:
        parsed = parse_device_uri(uri)
        profiles = {
            address: profile
            for address, facts in workers.items()
            if (profile := _select(parsed, address, facts)) is not None
        }
        if not profiles:
            raise NotFoundError(f"no worker has the device {uri!r}. There are:\n{list_workers(workers)}")
        if len({_model(profile) for profile in profiles.values()}) > 1:
            lines = "\n".join(
                f"  {_titled(address, workers)}: {profiles[address].name}" for address in sorted(profiles)
            )
            raise InvalidArgumentError(
                f"the device {uri!r} is not the same on all workers; name one of these, such as "
                f"vulkan://PART-OF-THE-NAME, or measure each as a separate device:\n{lines}"
            )
        matched[uri] = profiles
    return matched


def find_device(uri: str, address: str, facts: WorkerFacts, known: DeviceProfile) -> DeviceProfile | None:
    """Returns the study's device ``uri`` on a worker that joined later; None if it has no device of that model."""
    try:
        profile = _select(parse_device_uri(uri), address, facts)
    except InvalidArgumentError:
        return None
    return profile if profile is not None and _model(profile) == _model(known) else None


def list_workers(workers: Mapping[str, WorkerFacts]) -> str:
    """Lists workers with their devices, for messages."""
    lines = []
    for address in sorted(workers):
        facts = workers[address]
        devices = list_devices(facts.profiles) if facts.profiles else f"  no Vulkan device: {facts.trouble}"
        lines.append(f"{_titled(address, workers)}:\n{devices}")
    return "\n".join(lines)


def _select(uri: DeviceUri, address: str, facts: WorkerFacts) -> DeviceProfile | None:
    try:
        return facts.profiles[select_device(uri, facts.profiles)]
    except (NotFoundError, UnavailableError):
        return None
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"worker {address} on {facts.host}: {error.message}") from None


def _model(profile: DeviceProfile) -> tuple[str, int, int, int]:
    return (profile.name, profile.vendor_id, profile.device_id, profile.driver_id)


def _uri(profile: DeviceProfile) -> str:
    return f"vulkan://GPU-{profile.device_uuid}" if profile.device_uuid else f"vulkan://{quote(profile.name, safe='')}"


def _titled(address: str, workers: Mapping[str, WorkerFacts]) -> str:
    return f"worker {address} on {workers[address].host}"
