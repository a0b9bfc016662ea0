"""Verdicts on arrays and images: the reports of instrumented shaders on the work that wrote them.

The device keeps verdicts by the payload of the work, which arrays and images note anyway. A kernel call gets the
verdict on its own pipeline, and inherits the verdicts on the work that wrote its inputs. A reader of a result first
waits for its payload, and then calls ``Verdicts.check``, which raises a failure each time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final, Protocol

from ...hal.device import Device
from ...status import PumiceError

_MIN_SWEEP: Final = 256


class Verdict(Protocol):
    """The part of the Vulkan HAL's ``Verdict`` that arrays use."""

    payload: int
    good_until: int
    is_raised: bool

    @property
    def alone(self) -> frozenset[Verdict]: ...

    @property
    def failure(self) -> PumiceError | None: ...


NO_VERDICTS: Final[frozenset[Verdict]] = frozenset()


class Verdicts(dict[int, frozenset[Verdict]]):
    """The verdicts on work, by payload, until it is found to be good.

    Thread rule: any thread. Its methods hold a lock; other code must not change it.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._sweep_at = _MIN_SWEEP

    def hold(
        self, payload: int, own: frozenset[Verdict], read: Iterable[int] = (), overwritten: Iterable[int] = ()
    ) -> None:
        """Judges work by the verdicts on itself, and on the work whose results it uses.

        Args:
            payload: the payload that the work signals.
            own: the verdicts on its own shaders.
            read: the payloads of the work that wrote its inputs.
            overwritten: the payloads of the work that wrote the previous contents of its outputs. Parts of these may
                remain, so failures not raised yet are also inherited.
        """
        with self._lock:
            verdicts = own if payload not in self else own | self[payload]
            for source in read:
                inherited = self.get(source)
                if inherited is not None and not inherited <= verdicts:
                    verdicts |= inherited
            for source in overwritten:
                inherited = self.get(source)
                if inherited is not None and not inherited <= verdicts:
                    verdicts |= {verdict for verdict in inherited if not verdict.is_raised}
            if not verdicts:
                return
            self[payload] = verdicts
            is_full = len(self) >= self._sweep_at
        if is_full:
            self._sweep(self._device.compute_queue.stream.reached)
            self._sweep_at = max(_MIN_SWEEP, 2 * len(self))

    def check(self, payload: int) -> None:
        """Raises the failure of finished work, by its payload."""
        verdicts = self.get(payload)
        if verdicts is not None:
            self._device.collect_reports()
            _raise_first(verdicts)
            with self._lock:
                for verdict in verdicts:
                    verdict.good_until = max(verdict.good_until, payload)
                self.pop(payload, None)

    def check_all(self, reached: int) -> None:
        """Raises the first failure not raised yet, of finished work up to a payload."""
        if self:
            _raise_first(verdict for verdict in self._sweep(reached) if not verdict.is_raised)

    def _sweep(self, reached: int) -> list[Verdict]:
        """Drops the good verdicts on finished work up to a payload; returns the failed verdicts."""
        self._device.collect_reports()
        failed: list[Verdict] = []
        good: frozenset[Verdict] | None = None
        with self._lock:
            for payload, verdicts in list(self.items()):
                if payload <= reached:
                    if verdicts is not good:
                        bad = [verdict for verdict in verdicts if verdict.failure is not None]
                        failed += bad
                        if bad:
                            continue
                        good = verdicts
                    del self[payload]
        return failed


def _raise_first(verdicts: Iterable[Verdict]) -> None:
    for verdict in verdicts:
        if verdict.failure is not None:
            verdict.is_raised = True
            raise verdict.failure.again()
