"""The workers of a cluster: the connected workers, their facts, and changes in the set of workers."""

from __future__ import annotations

import importlib.metadata
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from ...hal_vulkan.instance.profile import DeviceProfile
from ...hal_vulkan.instance.uri import DeviceUri, list_devices, parse_device_uri, select_device
from ...status import IncompatibleError, InvalidArgumentError, NotFoundError, PumiceError, UnavailableError
from .client import ClusterClient, ClusterTask
from .worker import WorkerFacts, describe_worker

_LOOK_S: Final = 0.5
_ANSWER_S: Final = 30.0


class ClusterWorkers:
    """The workers by address: ``usable`` ones can measure, ``refused`` ones cannot, with the reason. One thread at a
    time.

    Calling sequence: ``wait`` once → ``look`` repeatedly → ``close``.
    """

    def __init__(self, client: ClusterClient, validation: bool | None, token: str) -> None:
        self.usable: dict[str, WorkerFacts] = {}
        self.refused: dict[str, PumiceError] = {}
        self._client = client
        self._validation = validation
        self._token = token
        # The version is separate, as a worker of another version may fail to answer the rest.
        self._asked: dict[str, tuple[ClusterTask[str], ClusterTask[WorkerFacts]]] = {}
        self._questions = 0
        self._answered = threading.Event()
        self._there: dict[str, str] = {}
        self._version = installed_version()

    def wait(self, timeout: float) -> None:
        """Waits for at most ``timeout`` seconds until there is a worker and each connected worker has answered (a busy
        worker has half a minute, then may take part later). Raises if there is none, or a worker is refused.
        """
        began = time.monotonic()
        self.look()
        while self._asked or not (self.usable or self.refused):
            left = began + (max(timeout, _ANSWER_S) if self._asked else timeout) - time.monotonic()
            if left <= 0:
                break
            self._answered.wait(min(left, _LOOK_S))
            self._answered.clear()
            self.look()
        for error in self.refused.values():
            raise error
        if not self.usable:
            busy = f"; {', '.join(self._asked)} did not answer, being busy" if self._asked else ""
            raise UnavailableError(
                f"the cluster has no worker that can measure, and none came within {timeout:g} s{busy}; "
                "start one on each machine with: dask worker SCHEDULER --nthreads 1"
            )

    def look(self) -> set[str]:
        """Updates the lists; returns the addresses of usable workers that were lost since the last call."""
        before, self._there = self._there, self._client.workers()
        gone = {address for address in before if self._there.get(address) != before[address]}
        for address in gone:
            self.refused.pop(address, None)
            for task in self._asked.pop(address, ()):
                task.cancel()
        lost = {address for address in gone if self.usable.pop(address, None) is not None}
        for address in sorted(self._there.keys() - self.usable.keys() - self.refused.keys() - self._asked.keys()):
            self._asked[address] = self._ask(address)
        for address in [*self._asked]:
            if all(task.is_done for task in self._asked[address]):
                self._note(address, *self._asked.pop(address))
        return lost

    def close(self) -> None:
        """Cancels open questions; idempotent."""
        for asked in self._asked.values():
            for task in asked:
                task.cancel()
        self._asked.clear()

    def _ask(self, address: str) -> tuple[ClusterTask[str], ClusterTask[WorkerFacts]]:
        self._questions += 1
        key = f"pumice-study-{self._token}-question-{self._questions}"
        asked = (
            self._client.submit(importlib.metadata.version, "pumice", key=f"{key}-version", worker=address),
            self._client.submit(describe_worker, self._validation, key=f"{key}-facts", worker=address),
        )
        for task in asked:
            task.on_end(self._answered.set)
        return asked

    def _note(self, address: str, told: ClusterTask[str], facts: ClusterTask[WorkerFacts]) -> None:
        try:
            version = told.result()
        except importlib.metadata.PackageNotFoundError:
            self.refused[address] = IncompatibleError(
                f"worker {address} has no pumice; install the version that is here: "
                f"pip install 'pumice[cluster]=={self._version}'"
            )
            return
        except UnavailableError:  # lost meanwhile; asked again if it is still connected
            return
        if version != self._version:
            self.refused[address] = IncompatibleError(
                f"worker {address} has pumice {version}, and here it is {self._version}; all machines of a study need "
                f"the same version: pip install 'pumice[cluster]=={self._version}'"
            )
            return
        try:
            self.usable[address] = facts.result()
        except UnavailableError:
            return
        except ImportError as error:
            self.refused[address] = UnavailableError(
                f"worker {address} lacks a library that studies need ({error}); install it there: "
                "pip install 'pumice[cluster]'"
            )
        except Exception as error:
            self.refused[address] = UnavailableError(
                f"worker {address} cannot be described: {type(error).__name__}: {error}"
            )


def installed_version() -> str:
    return importlib.metadata.version("pumice")


ALL_DEVICES: Final = "all"
"""The name for all devices of the cluster, in place of URIs."""


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
