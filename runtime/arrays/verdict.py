"""Verdicts on arrays and images: what instrumented shaders report of the work that made them.

A call of a kernel is held against the verdict of its pipeline, and against those of the work that made what it reads.
The device keeps them by the payload that marks the call's end, which arrays and images note anyway. Whoever reads one
waits for that payload first, and then asks the verdicts: a failure is raised, each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from ...hal.logical_device import LogicalDevice
from ...status import PumiceError

_MIN_SWEEP: Final = 256


class Verdict(Protocol):
    """What arrays know of a ``Verdict`` of the Vulkan HAL, which documents it."""

    payload: int
    good_until: int
    is_raised: bool

    @property
    def alone(self) -> frozenset[Verdict]: ...

    @property
    def failure(self) -> PumiceError | None: ...


class Verdicts(dict[int, frozenset[Verdict]]):
    """The verdicts on work by its payload, until somebody has found that they are good.

    Attributes:
        sweep_at: so many of them are swept.

    Thread rule: any thread.
    """

    def __init__(self, device: LogicalDevice) -> None:
        self._device = device
        self.sweep_at = _MIN_SWEEP

    def hold(self, payload: int, verdicts: frozenset[Verdict], reached: int) -> None:
        """Holds work against verdicts; ``reached`` is a payload that is known to be reached."""
        if verdicts:
            known = self.get(payload)
            self[payload] = verdicts if known is None else verdicts | known
            if len(self) >= self.sweep_at:
                self.sweep(reached)

    def sweep(self, reached: int) -> None:
        """Drops what is good of work up to a payload, which is done. For whoever adds, at ``sweep_at`` of them."""
        self._sweep(reached)
        self.sweep_at = max(_MIN_SWEEP, 2 * len(self))

    def check(self, payload: int) -> None:
        """Raises the failure of the work of a payload, which is done."""
        verdicts = self.get(payload)
        if verdicts is not None:
            self._device.collect_reports()
            _raise_first(verdicts)
            for one in verdicts:
                one.good_until = max(one.good_until, payload)
            self.pop(payload, None)

    def check_all(self, reached: int) -> None:
        """Raises a failure of work up to a payload, which is done, that nobody was told of."""
        if self:
            _raise_first(one for one in self._sweep(reached) if not one.is_raised)

    def _sweep(self, reached: int) -> list[Verdict]:
        """Drops those of work up to a payload, which is done, that are good; returns the others."""
        self._device.collect_reports()
        failed: list[Verdict] = []
        good: frozenset[Verdict] | None = None
        for payload, verdicts in list(self.items()):
            if payload <= reached:
                if verdicts is not good:
                    bad = [one for one in verdicts if one.failure is not None]
                    failed += bad
                    if bad:
                        continue
                    good = verdicts
                self.pop(payload, None)
        return failed


def _raise_first(verdicts: Iterable[Verdict]) -> None:
    for verdict in verdicts:
        if verdict.failure is not None:
            verdict.is_raised = True
            raise verdict.failure.again()
