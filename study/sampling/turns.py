"""Sides, which are points as the sampler sees them, measured in this process or another one; and turns: one point, or
the two points of a pair, that are sampled together.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from ...base.lazy_dataclass import dataclass
from ..definition.point import Point
from ..definition.settings import Sampling
from ..results.storage.records import SampleFlag
from .stopping import Decision


class Block(NamedTuple):
    """A block of samples: the headline of each, its ``SampleFlag`` bits, and the time that they took."""

    values: Sequence[float]
    flags: Sequence[int]
    elapsed_ns: int


class Side(Protocol):
    """Measures one point. Calling sequence: ``start`` → ``take_block`` any number of times → ``close``; or ``release``
    and ``start`` again. ``start`` may follow ``close``, too. One thread at a time.
    """

    @property
    def point(self) -> Point:
        """The measured point."""

    @property
    def is_apart(self) -> bool:
        """Whether each opening is in a separate process."""

    def start(self, block: int, *, again: bool) -> None:
        """Opens the workload afresh; the first call is block ``block`` of the sink, warm-up the next one. With
        ``again`` it was open before, and warm-up is short.
        """

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        """Takes samples, fewer if they take longer than ``most_ns``, and adds them to the sink."""

    def read_reference(self) -> None:
        """Reads the reference like the point's load, if it is due; called between turns."""

    def release(self) -> None:
        """Closes the workload, to be opened again; idempotent."""

    def close(self) -> None:
        """Releases everything; idempotent."""


# As ints: each operation on flags takes a microsecond.
_PREEMPTED, _THROTTLED, _STARVED = map(int, (SampleFlag.PREEMPTED, SampleFlag.THROTTLED, SampleFlag.STARVED))


@dataclass
class Prior:
    """The samples of a point from earlier runs: headline, block, disturbance and round of each, the first unused block,
    and the number that does not count for ``max_samples`` if the point is sampled further. The two points of a pair
    have the same numbers of blocks that were measured in turns.
    """

    values: Sequence[float] = ()
    blocks: Sequence[int] = ()
    disturbed: Sequence[int] = ()
    next_block: int = 0
    rounds: Sequence[int] = ()
    uncounted: int = 0

    def limits(self, sampling: Sampling) -> Sampling:
        """Raises ``max_samples`` by the number of samples that do not count for it."""
        return replace(sampling, max_samples=sampling.max_samples + self.uncounted) if self.uncounted else sampling


def failure_of(point: Point, count: int, error: Exception) -> str:
    """Describes why ``count`` points that are measured together failed; the error belongs to ``point``."""
    return str(error) if count == 1 else f"the {'old' if point.is_against else 'new'} side failed: {error}"


class Turns(abc.ABC):
    """Points that are opened, sampled and ended together.

    Calling sequence: ``start`` → ``take_turn`` until its decision is done → ``close``. ``start`` after ``close``
    continues, for example after the device was lost.

    Attributes:
        points: the points.
        count: the number of their samples, including those of earlier runs.
        preempted, throttled, starved: the numbers of samples of this run that were disturbed.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        self.points: tuple[Point, ...] = tuple(points)
        self.starved: int
        self.throttled: int
        self.preempted: int
        self.count: int
        self.count = self.preempted = self.throttled = self.starved = 0

    @abc.abstractmethod
    def start(self) -> None:
        """Opens all points."""

    @abc.abstractmethod
    def take_turn(self) -> Decision:
        """Takes a block of each point, and decides whether they are done."""

    @property
    @abc.abstractmethod
    def progress(self) -> float:
        """The estimated progress, from 0 to 1."""

    @abc.abstractmethod
    def explain(self, decision: Decision) -> str:
        """Explains why the points are done, and the precision reached."""

    @property
    @abc.abstractmethod
    def at(self) -> Point:
        """The point that is or was last measured: errors belong to it."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes all points; idempotent."""

    @property
    def disturbances(self) -> str:
        """The disturbances so far, as text; empty for none."""
        seen = (
            (self.starved, "while threads waited for a core"),
            (self.preempted, "with a thread preempted"),
            (self.throttled, "while the reference like this load ran at another speed"),
        )
        return ", ".join(f"{count} samples {how}" for count, how in seen if count)

    def _add(self, block: Block) -> None:
        self.count += len(block.values)
        for flag in filter(None, block.flags):
            self.preempted += bool(flag & _PREEMPTED)
            self.throttled += bool(flag & _THROTTLED)
            self.starved += bool(flag & _STARVED)
