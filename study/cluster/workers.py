"""The workers of a cluster: which are connected, what each is, and which joined or were lost."""

from __future__ import annotations

import importlib.metadata
import threading
import time
from typing import Final, NamedTuple

from ...status import IncompatibleError, PumiceError, UnavailableError
from .client import ClusterClient, ClusterTask
from .worker import WorkerFacts, describe_worker

_LOOK_S: Final = 0.5
_ANSWER_S: Final = 30.0


class _Asked(NamedTuple):
    """Questions to a worker; the version is separate, as a worker of another version may fail to answer the rest."""

    version: ClusterTask[str]
    facts: ClusterTask[WorkerFacts]


class ClusterWorkers:
    """The workers.

    Calling sequence: ``wait`` once → ``look`` from time to time → ``close``.

    Thread rule: one thread at a time.

    Args:
        client: of the cluster; stays the caller's.
        validation: enables their validation layers; ``None`` asks each worker's ``PUMICE_VALIDATION``.
        token: part of the keys of tasks, which distinguishes this run from others.

    Attributes:
        usable: those that can measure, by address.
        refused: those that cannot, with the reason.
    """

    def __init__(self, client: ClusterClient, validation: bool | None, token: str) -> None:
        self.usable: dict[str, WorkerFacts] = {}
        self.refused: dict[str, PumiceError] = {}
        self._client = client
        self._validation = validation
        self._token = token
        self._asked: dict[str, _Asked] = {}
        self._questions = 0
        self._answered = threading.Event()
        self._there: dict[str, str] = {}
        self._version = installed_version()

    def wait(self, timeout: float) -> None:
        """Waits until there is a worker, and until each connected worker has answered.

        Args:
            timeout: seconds for the first worker to join. Connected ones have at least half a minute to answer; a busy
                one may take part later.

        Raises:
            UnavailableError: no worker joined or answered, or the scheduler is gone.
            IncompatibleError: a worker has another version of pumice; the message has both.
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
        """Updates the lists; returns the addresses of usable workers that were lost since the last call.

        Raises:
            UnavailableError: the scheduler is gone.
        """
        before, self._there = self._there, self._client.workers()
        gone = {address for address in before if self._there.get(address) != before[address]}
        for address in gone:
            self.refused.pop(address, None)
            if address in self._asked:
                self._forget(self._asked.pop(address))
        lost = {address for address in gone if self.usable.pop(address, None) is not None}
        for address in sorted(self._there.keys() - self.usable.keys() - self.refused.keys() - self._asked.keys()):
            self._asked[address] = self._ask(address)
        for address in [*self._asked]:
            if all(task.is_done for task in self._asked[address]):
                self._note(address, self._asked.pop(address))
        return lost

    def close(self) -> None:
        """Cancels open questions; idempotent."""
        for asked in self._asked.values():
            self._forget(asked)
        self._asked.clear()

    def _ask(self, address: str) -> _Asked:
        self._questions += 1
        key = f"pumice-study-{self._token}-question-{self._questions}"
        asked = _Asked(
            self._client.submit(importlib.metadata.version, "pumice", key=f"{key}-version", worker=address),
            self._client.submit(describe_worker, self._validation, key=f"{key}-facts", worker=address),
        )
        for task in asked:
            task.on_end(self._answered.set)
        return asked

    def _note(self, address: str, asked: _Asked) -> None:
        try:
            version = asked.version.result()
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
            self.usable[address] = asked.facts.result()
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

    @staticmethod
    def _forget(asked: _Asked) -> None:
        for task in asked:
            task.cancel()


def installed_version() -> str:
    """The installed version of pumice."""
    return importlib.metadata.version("pumice")
