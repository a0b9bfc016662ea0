"""Samples two points in turns, so that the machine affects both alike; the reasons are in docs/design/study.md.

A *lap* is a block of each point, in succession, each of at most 20 ms. The order is random, and the next lap has the
opposite order. A *round* is the laps between two openings: both points are closed and reopened, in an order that is
random likewise. A round has about ten laps; opening takes at most a third of the time, unless the sides are in separate
processes.

The pair ends when the ratio is known well enough, whatever its value. This is decided at the ends of rounds, from the
eighth on. Other ends are ``max_samples`` of either point, and the time limit: sampling takes at most twice
``time_limit``, as for two points, and opening as long as one.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...status import FailedPreconditionError, PumiceError
from ..definition.point import Point
from ..definition.settings import Sampling
from ..results.storage.records import PointStatus, status_of
from ..statistics.paired import compare_pairs
from .stopping import Decision, StopReason
from .turns import Block, Prior, Side, Turns

_BLOCK_NS: Final = 20_000_000
_LAPS: Final = 10
_MIN_ROUNDS: Final = 8
# The smallest number of rounds, for long samples.
_LONG_ROUNDS: Final = 10
# The growth of rounds between decisions: each decision is a chance to end by luck.
_GROWTH: Final = 1.15
# Ends well below the requested resolution, so that an estimate next to 1 is known to be within it.
_MARGIN: Final = 0.8
_CONFIDENCE: Final = 0.99


class PairRun(Turns):
    """The two points of a pair; see the module. ``prior`` belongs to the new side, ``old_prior`` to the old one."""

    def __init__(
        self,
        new: Side,
        old: Side,
        sampling: Sampling,
        random: Random,
        prior: Prior | None = None,
        old_prior: Prior | None = None,
    ) -> None:
        super().__init__([new.point, old.point])
        mine, its = prior or Prior(), old_prior or Prior()
        self._sides = (new, old)
        self._sampling = mine.limits(sampling)
        self._openings, self._orders = _orders(random), _orders(random)
        self.count: int = len(mine.values) + len(its.values)
        self._block = max(mine.next_block, its.next_block)
        # The blocks of either side, and the round of each lap.
        self._new, self._old, self._rounds = _pairs(mine, its)
        self._ratios = [_log_ratio(*both) for both in zip(self._new, self._old, strict=True)]
        self._medians = [
            _median([ratio for ratio, at in zip(self._ratios, self._rounds, strict=True) if at == number])
            for number in set(self._rounds)
        ]
        self._round = 0
        self._is_again = False
        self._first_lap = len(self._rounds)
        self._laps = self._samples = 0
        self._is_round_done = False
        self._next_decision = _MIN_ROUNDS
        self._half_width = math.nan
        self._opening_ns = self._again_ns = self._sampling_ns = 0
        # A sample of the slower side, over all laps.
        self._slower_ns = 0.0
        # The side that an error belongs to.
        self._at = new

    def start(self) -> None:
        began = time.monotonic_ns()
        for side in self._sides:
            side.release()
        try:
            for side in self._in_order(self._openings):
                side.start(self._block, again=self._is_again)
        except PumiceError as error:
            self._check_lack(error)
            raise
        self._is_again = True
        self._block += 2
        taken = time.monotonic_ns() - began
        self._opening_ns += taken
        self._again_ns += taken if self._round else 0
        self._round += 1
        self._first_lap = len(self._rounds)
        self._is_round_done = False

    def _check_lack(self, error: PumiceError) -> None:
        """Raises another error if the device lacks something for the new side only: a program that no longer runs must
        not be skipped.
        """
        new, old = self._sides
        if self._at is not new or status_of(error) is not PointStatus.SKIPPED:
            return
        self._at = old
        old.release()
        old.start(self._block, again=self._is_again)
        self._at = new
        raise FailedPreconditionError(f"{error.message}; the old side needs nothing that is lacking") from error

    def take_turn(self) -> Decision:
        if self._is_round_done:
            self.start()
        began = time.monotonic_ns()
        samples = self._block_samples
        blocks: dict[Side, Block] = {}
        for side in self._in_order(self._orders):
            blocks[side] = side.take_block(self._block, samples, most_ns=_BLOCK_NS)
        for side, kept in zip(self._sides, (self._new, self._old), strict=True):
            self._add(blocks[side])
            kept.append(blocks[side].values)
        self._ratios.append(_log_ratio(self._new[-1], self._old[-1]))
        # A number that is unique in this run, and differs from all of earlier runs.
        self._rounds.append(-self._round)
        self._block += 1
        self._laps += 1
        self._samples += max(len(block.values) for block in blocks.values())
        self._slower_ns += max(block.elapsed_ns / len(block.values) for block in blocks.values())
        self._sampling_ns += time.monotonic_ns() - began
        for side in self._sides:
            self._at = side
            side.read_reference()
        return self._decide()

    def _in_order(self, orders: Iterator[bool]) -> Iterator[Side]:
        new, old = self._sides
        for side in (new, old) if next(orders) else (old, new):
            self._at = side
            yield side

    # -- how much ------------------------------------------------------------------------------------

    @property
    def _block_samples(self) -> int:
        """Returns the number of samples in a block of either side: enough for 20 ms on the slower side, and few enough
        for ten rounds.
        """
        sampling = self._sampling
        wanted = min(sampling.block, max(1, sampling.max_samples // _LONG_ROUNDS))
        if self._laps:
            sample_ns = self._slower_ns / self._laps
            wanted = min(wanted, max(1, int(_BLOCK_NS / max(sample_ns, 1.0))))
        return min(wanted, max(1, sampling.max_samples - self.count // 2))

    @property
    def _round_laps(self) -> int:
        """Returns the number of laps of a round: the laps within the limits, divided among the rounds within the
        limits.
        """
        limit_ns = 1e9 * self._sampling.time_limit
        laps = self._sampling.max_samples * self._laps / self._samples
        laps = min(laps, 2 * limit_ns * self._laps / max(self._sampling_ns, 1))
        opening = self._again_ns / (self._round - 1) if self._round > 1 else self._opening_ns
        fewest = _MIN_ROUNDS if self._sides[0].is_apart else 2
        rounds = min(max(laps / _LAPS, _LONG_ROUNDS), max(limit_ns / max(opening, 1), fewest))
        return max(1, round(laps / rounds))

    @property
    def progress(self) -> float:
        limit_ns = max(2e9 * self._sampling.time_limit, 1.0)
        return min(1.0, max(self.count / 2 / self._sampling.max_samples, self._sampling_ns / limit_ns))

    # -- when it is done -----------------------------------------------------------------------------

    def _decide(self) -> Decision:
        sampling, limit_ns = self._sampling, 2e9 * self._sampling.time_limit
        limit: StopReason | None = None
        if self.count // 2 >= sampling.max_samples:
            limit = StopReason.MAX_SAMPLES
        elif self._sampling_ns >= limit_ns:
            limit = StopReason.TIME_LIMIT
        self._is_round_done = len(self._rounds) - self._first_lap >= self._round_laps
        if limit is None and not self._is_round_done:
            return Decision(None, self._half_width)
        self._medians.append(_median(self._ratios[self._first_lap :]))
        if limit is None and limit_ns - self._sampling_ns < self._sampling_ns / self._round / 2:
            limit = StopReason.TIME_LIMIT  # less than half of another round remains
        if limit is None and not self._is_precise():
            return Decision(None, self._half_width)
        self._half_width = self._compared_half_width()
        precise = self._half_width <= _MARGIN * sampling.resolution
        if limit is None and not precise:
            return Decision(None, self._half_width)
        reason = StopReason.PRECISION_REACHED if limit is None else limit
        return Decision(reason, self._half_width, noisy=not self._half_width <= sampling.resolution)

    def _is_precise(self) -> bool:
        """Whether the interval may be small enough: a shortcut, as computing it takes milliseconds."""
        rounds = len(self._medians)
        if rounds < self._next_decision or self.count // 2 < self._sampling.min_samples:
            return False
        if self._sampling.statistic != "median":
            self._next_decision = math.ceil(_GROWTH * rounds)
            return True
        with np.errstate(invalid="ignore"):  # of times of 0
            error = float(np.std(self._medians, ddof=1)) / math.sqrt(rounds)
        reach = error * float(special.stdtrit(rounds - 1, (1 + _CONFIDENCE) / 2))
        if not reach <= _MARGIN * self._sampling.resolution:
            return False
        self._next_decision = math.ceil(_GROWTH * rounds)
        return True

    def _compared_half_width(self) -> float:
        old, new = (_padded(blocks) for blocks in (self._old, self._new))
        statistic = self._sampling.statistic
        return compare_pairs(old, new, self._rounds, confidence=_CONFIDENCE, statistic=statistic).half_width

    # -- the end -------------------------------------------------------------------------------------

    def explain(self, decision: Decision) -> str:
        rounds = len(set(self._rounds))
        half_width = decision.relative_error
        statistic = self._sampling.statistic
        ratio = "the ratio" if statistic == "median" else f"the ratio of {statistic}"
        told = f"{ratio} is known to ±{half_width:.2%}" if math.isfinite(half_width) else "too few to tell"
        text = f"{decision.reason}: {len(self._rounds)} pairs of blocks in {rounds} rounds, {told}"
        if rounds < _MIN_ROUNDS and self._round > 1:
            opening = self._again_ns / (self._round - 1) / 1e9
            if opening > self._sampling.time_limit / _MIN_ROUNDS:
                text += f"; opening takes {opening:.2g} s: time_limit = {_MIN_ROUNDS * opening:.2g} allows more rounds"
        return text

    @property
    def at(self) -> Point:
        return self._at.point

    def close(self) -> None:
        self._is_again = False
        for side in self._sides:
            side.close()


def _orders(random: Random) -> Iterator[bool]:
    """Whether the new side comes first: a coin, then its opposite, and so on."""
    while True:
        first = random.random() < 0.5
        yield first
        yield not first


def _pairs(new: Prior, old: Prior) -> tuple[list[Sequence[float]], list[Sequence[float]], list[int]]:
    """Returns the blocks of earlier runs that both sides have, and their rounds."""
    mine, its = _by_block(new), _by_block(old)
    rounds = dict(zip(new.blocks, new.rounds, strict=True))
    both = [block for block in mine if block in its]
    return [mine[block] for block in both], [its[block] for block in both], [rounds[block] for block in both]


def _by_block(prior: Prior) -> dict[int, list[float]]:
    blocks: dict[int, list[float]] = {}
    for block, value in zip(prior.blocks, prior.values, strict=True):
        blocks.setdefault(block, []).append(value)
    return blocks


def _padded(blocks: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Stacks blocks as rows, padded with NaN."""
    padded = np.full((len(blocks), max(map(len, blocks))), math.nan)
    for row, block in zip(padded, blocks, strict=True):
        row[: len(block)] = block
    return padded


def _log_ratio(new: Sequence[float], old: Sequence[float]) -> float:
    """Returns the median log ratio of samples of equal rank; the log ratio of medians if the counts differ."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if len(new) == len(old):
            return _median(np.log(np.sort(new) / np.sort(old)).tolist())
        return float(np.log(np.divide(_median(new), _median(old))))


def _median(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan
