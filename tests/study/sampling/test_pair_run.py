"""Pairs on a simulated clock: turns, laps and rounds, and when a pair ends.

Sides here run nothing; the clock advances by the planned durations.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pumice.status import PumiceError
from pumice.study.definition.point import Point, paired
from pumice.study.definition.settings import Sampling
from pumice.study.sampling import pair_run
from pumice.study.sampling.pair_run import PairRun
from pumice.study.sampling.stopping import Decision, StopReason
from pumice.study.sampling.turns import Block, Prior
from pumice.study.statistics.paired import compare_pairs

NEW, OLD = Point(0, "saxpy", "x", against=1), Point(1, "saxpy", "x", is_against=True)
MS = 1_000_000


class Machine:
    """A clock, and the steps in their order: (side, step, block, samples)."""

    def __init__(self) -> None:
        self.now = 0
        self.log: list[tuple[int, str, int, int]] = []

    def of(self, what: str) -> list[tuple[int, str, int, int]]:
        return [step for step in self.log if step[1] == what]


class PlannedSide:
    is_apart = False

    def __init__(self, machine: Machine, point: Point, take: Callable[[], float], open_ns: int) -> None:
        self.point = point
        self._machine, self._take, self._open_ns = machine, take, open_ns
        self.is_open = False

    def start(self, block: int, *, again: bool) -> None:
        assert not self.is_open
        self.is_open = True
        self._machine.now += self._open_ns
        self._machine.log.append((self.point.index, "again" if again else "open", block, 0))

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        assert self.is_open
        began, values = self._machine.now, []
        while len(values) < samples and self._machine.now - began <= most_ns:
            values.append(self._take())
            self._machine.now += round(values[-1])
        self._machine.log.append((self.point.index, "block", block, len(values)))
        return Block(values, [0] * len(values), self._machine.now - began)

    def read_reference(self) -> None:
        self._machine.log.append((self.point.index, "reference", -1, 0))

    def release(self) -> None:
        self.is_open = False

    def close(self) -> None:
        self.release()


def lognormal(median: float, spread: float, seed: int) -> Callable[[], float]:
    random = np.random.default_rng(seed)
    return lambda: median * float(random.lognormal(0, spread))


def plan(
    monkeypatch: pytest.MonkeyPatch,
    new: Callable[[], float],
    old: Callable[[], float],
    open_ns: int = 10 * MS,
    *,
    seed: int = 0,
    priors: tuple[Prior, Prior] | None = None,
    **sampling: Any,
) -> tuple[Machine, PairRun]:
    machine = Machine()
    monkeypatch.setattr(pair_run, "time", SimpleNamespace(monotonic_ns=lambda: machine.now))
    sides = [PlannedSide(machine, point, take, open_ns) for point, take in ((NEW, new), (OLD, old))]
    return machine, PairRun(*sides, Sampling(**sampling), Random(seed), *(priors or ()))


def run_out(run: PairRun) -> Decision:
    run.start()
    try:
        while True:
            if (decision := run.take_turn()).done:
                return decision
    finally:
        run.close()


def laps_of(machine: Machine) -> list[tuple[tuple[int, str, int, int], ...]]:
    blocks = machine.of("block")
    return list(zip(blocks[::2], blocks[1::2], strict=True))


# ---- turns ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_lap_is_a_block_of_either_side_of_one_number_in_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = []
    for seed in range(40):
        machine, run = plan(monkeypatch, lambda: MS, lambda: 1.05 * MS, seed=seed)
        run_out(run)
        laps = laps_of(machine)
        assert len(laps) >= 80 and [len({side for side, *_ in lap}) for lap in laps] == [2] * len(laps)
        assert all(steps[2] == other[2] and steps[3] == other[3] for steps, other in laps)
        assert len({lap[0][2] for lap in laps}) == len(laps)
        # No other pair comes between the two.
        log = [step for _, step, *_ in machine.log]
        assert all(log[i + 1] == "block" for i in range(len(log)) if log[i] == "block" and log[i - 1] != "block")
        order = [lap[0][0] for lap in laps]
        assert all(order[i] != order[i + 1] for i in range(0, len(order) - 1, 2))
        orders.append(order[:80:2])
    # Coins decide the order of every second lap, in all runs, and at each position of a run.
    coins = np.array(orders)
    assert stats.binomtest(int(coins.sum()), coins.size).pvalue > 1e-3
    assert stats.binomtest(int((coins[:, 1:] == coins[:, :-1]).sum()), coins[:, 1:].size).pvalue > 1e-3


def test_both_sides_are_opened_afresh_in_each_round_in_random_order(monkeypatch: pytest.MonkeyPatch) -> None:
    firsts = Counter[int]()
    for seed in range(40):
        machine, run = plan(monkeypatch, lambda: MS, lambda: MS, seed=seed)
        run_out(run)
        openings = machine.of("open") + machine.of("again")
        assert [step for _, step, *_ in openings] == ["open"] * 2 + ["again"] * (len(openings) - 2)
        rounds = list(zip(openings[::2], openings[1::2], strict=True))
        assert len(rounds) >= 8 and all(steps[0] != other[0] and steps[2] == other[2] for steps, other in rounds)
        # First calls and warm-ups have no block number.
        blocks = {block for _, _, block, _ in machine.of("block")}
        assert not blocks & {block + index for _, _, block, _ in openings for index in (0, 1)}
        firsts[rounds[0][0][0]] += 1
        # In each of two rounds another side is first.
        assert all(rounds[i][0][0] != rounds[i + 1][0][0] for i in range(0, len(rounds) - 1, 2))
    assert stats.binomtest(firsts[0], 40).pvalue > 1e-3


# ---- how much -------------------------------------------------------------------------------------------------------


def test_blocks_of_long_samples_have_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    for sample_ms, most in ((0.1, 10), (3.8, 5), (7, 2), (30, 1)):
        machine, run = plan(monkeypatch, lognormal(sample_ms * MS, 0.01, 0), lognormal(0.05 * MS, 0.01, 1))
        run_out(run)
        # The first lap's size is not known in advance; the last lap has the remaining samples.
        assert {samples for _, _, _, samples in machine.of("block")[2:-2]} == {most}


@pytest.mark.parametrize(
    ("open_ms", "sample_ms", "rounds"), [(1, 0.1, 20), (100, 0.1, 20), (1, 20, 25), (500, 1, 10), (1500, 1, 3)]
)
def test_rounds_are_as_many_as_opening_allows_for(
    monkeypatch: pytest.MonkeyPatch, open_ms: float, sample_ms: float, rounds: int
) -> None:
    """A pair that never reaches its error: 2000 samples, 10 s of sampling, 5 s of opening."""
    take = (lognormal(sample_ms * MS, 0.6, seed) for seed in (0, 1))
    machine, run = plan(monkeypatch, *take, open_ns=round(open_ms * MS / 2))
    decision = run_out(run)
    opened = len(machine.of("open") + machine.of("again")) / 2
    assert opened == pytest.approx(rounds, rel=0.4)
    laps = len(laps_of(machine))
    assert decision.noisy
    assert laps == pytest.approx(2000 / 10, rel=0.02) or machine.now - opened * open_ms * MS >= 9e9
    assert machine.now <= 1.1 * 15e9
    assert opened * open_ms * MS <= 1.2 * 5e9
    text = run.explain(decision)
    assert text.startswith(f"{decision.reason}: {laps} pairs of blocks in {opened:.0f} rounds, the ratio is known to ±")
    assert ("time_limit = " in text) is (open_ms == 1500)


def test_sides_in_processes_of_their_own_have_several_rounds_however_long_opening_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Processes differ for as long as they live, so a few of them are too few."""
    monkeypatch.setattr(PlannedSide, "is_apart", True)
    machine, run = plan(monkeypatch, lambda: MS, lambda: MS, open_ns=2000 * MS, time_limit=0.5)
    assert not run_out(run).noisy
    assert 2 * 8 <= len(machine.of("open") + machine.of("again")) <= 2 * 10


def test_few_samples_are_many_rounds_of_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, run = plan(monkeypatch, lambda: MS, lambda: MS, min_samples=1, max_samples=20)
    decision = run_out(run)
    assert decision.reason is StopReason.MAX_SAMPLES or decision.reason is StopReason.PRECISION_REACHED
    assert len(machine.of("again")) >= 14 and sum(samples for *_, samples in machine.of("block")) <= 40


# ---- when it ends ---------------------------------------------------------------------------------------------------


def test_a_pair_ends_when_the_ratio_of_the_statistic_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """p99 takes 1,600 samples; the median is known after eight rounds."""
    counts = {}
    for statistic in ("median", "p99"):
        sides = (lognormal(MS / 5, 0.02, seed) for seed in (0, 1))
        _, run = plan(monkeypatch, *sides, statistic=statistic, max_samples=20_000, time_limit=60)
        decision = run_out(run)
        assert decision.reason is StopReason.PRECISION_REACHED and not decision.noisy
        assert ("the ratio of p99 is known to ±" in run.explain(decision)) is (statistic == "p99")
        counts[statistic] = run.count // 2
    assert counts["median"] < 1600 <= counts["p99"] < 20_000


def test_a_pair_ends_when_its_ratio_is_known_whatever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine doubles its speed and drifts; the lengths of runs do not depend on the ratio."""
    ends = {}
    for ratio in (1.0, 1.07, 2.0):
        clock = itertools.count()
        state = {"level": 1.0}

        def speed(clock: Any = clock, state: Any = state) -> float:
            number = next(clock)
            if number % 700 == 0:
                state["level"] = 3.0 - state["level"]
            return float(state["level"] * (1 + 0.1 * np.sin(number / 3000)))

        noise = lognormal(1.0, 0.05, 5)
        machine, run = plan(
            monkeypatch, lambda r=ratio: r * MS / 5 * speed() * noise(), lambda: MS / 5 * speed() * noise()
        )
        decision = run_out(run)
        ends[ratio] = len(laps_of(machine))
        comparison = compare_pairs(*map(np.array, (run._old, run._new)), run._rounds)
        assert decision.reason is StopReason.PRECISION_REACHED and not decision.noisy
        assert comparison.interval.low <= ratio <= comparison.interval.high and decision.relative_error <= 0.02
    assert max(ends.values()) <= 1.5 * min(ends.values())


def test_a_pair_that_is_not_known_well_enough_is_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    takes = [lognormal(MS, 0.8, seed) for seed in (0, 1)]
    _, run = plan(monkeypatch, *takes, block=1, max_samples=50, min_samples=10)
    decision = run_out(run)
    assert decision.noisy and decision.reason is StopReason.MAX_SAMPLES and decision.relative_error > 0.025


def test_times_of_zero_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for new in (lambda: 0.0, lambda: float("nan"), lambda: float(MS)):
        _, run = plan(monkeypatch, lambda: MS / 10, lambda: 0.0, max_samples=100)
        run._sides[0]._take = new  # type: ignore[attr-defined]
        monkeypatch.setattr(PlannedSide, "take_block", _instant)
        assert run_out(run).noisy


def _instant(self: PlannedSide, block: int, samples: int, *, most_ns: int) -> Block:
    return Block([self._take()] * samples, [0] * samples, 0)


def test_statistics_take_little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair of 20 rounds computes the interval a few times, which takes milliseconds each."""
    asked = []

    def counted(*arguments: Any, **named: Any) -> Any:
        asked.append(1)
        return compare_pairs(*arguments, **named)

    monkeypatch.setattr(pair_run, "compare_pairs", counted)
    for spread in (0.001, 0.1, 0.5):
        asked.clear()
        _, run = plan(monkeypatch, lognormal(MS, spread, 0), lognormal(MS, spread, 1))
        run_out(run)
        assert 1 <= len(asked) <= 4


# ---- earlier runs, and ends before the end --------------------------------------------------------------------------


def test_a_pair_goes_on_with_the_blocks_that_both_sides_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block 7 of the new side has no counterpart: its process was killed in between."""
    blocks = [block for block in range(2, 8) for _ in range(3)]
    mine = Prior([1.05e6] * 18, blocks, [0] * 18, 8, [1] * 18)
    its = Prior([1e6] * 15, blocks[:15], [0] * 15, 7, [1] * 15)
    machine, run = plan(monkeypatch, lambda: 1.05 * MS, lambda: MS, priors=(mine, its))
    assert run.count == 33 and len(run._rounds) == 5
    decision = run_out(run)
    assert min(block for _, _, block, _ in machine.log if block >= 0) == 8
    assert "rounds" in run.explain(decision) and len(run._rounds) == len(laps_of(machine)) + 5
    assert np.allclose(run._ratios, np.log(1.05))


def test_a_pair_that_is_closed_goes_on_in_a_new_round(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, run = plan(monkeypatch, lambda: MS, lambda: MS)
    run.start()
    run.take_turn()
    run.close()
    run_out(run)
    assert [step for _, step, *_ in machine.log if step in ("open", "again")][:5] == ["open"] * 4 + ["again"]
    assert len({lap[0][2] for lap in laps_of(machine)}) == len(laps_of(machine))


def test_an_error_is_of_the_side_that_raised_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> float:
        raise PumiceError("planted")

    for failing, takes in ((NEW, (fail, lambda: MS)), (OLD, (lambda: MS, fail))):
        _, run = plan(monkeypatch, *takes)
        with pytest.raises(PumiceError, match="planted"):
            run_out(run)
        assert run.at is failing


def test_pairs_stay_together() -> None:
    other = Point(2, "other", "x")
    points = [NEW, OLD, other]
    assert paired(points) == [(NEW, OLD), (other,)] and paired([OLD, other]) == [(OLD,), (other,)]
