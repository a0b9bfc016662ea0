"""Change points of simulated histories: how often equal versions are marked, and how often a step of 5 % is found."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.soak import rounds

from pumice.status import InvalidArgumentError
from pumice.study.statistics.change_points import Change, changes_in_ratios, changes_in_times, place_confidence
from pumice.study.statistics.paired import compare_pairs

_COMMITS = 30
_ROUNDS = 20
_STEP = 1.05
# The difference between two openings of equal versions: ±2 % on either side.
_INSTANCES = 0.02 * 2**0.5


def history(
    random: np.random.Generator, steps: dict[int, float], *, chain: bool, count: int = _COMMITS, runs: float = 0.0
) -> list[Change]:
    """Returns the changes found in a history of interleaved ratios.

    Versions become slower by the factors of ``steps``, from the positions that are its keys. Each is measured against
    its
    predecessor, or all against one baseline. Intervals are Student's over rounds, as in ``compare_pairs``; runs differ
    by
    ``runs`` in addition.
    """
    levels = np.zeros(count)
    for index, factor in steps.items():
        levels[index:] += np.log(factor)
    true = np.diff(levels, prepend=0.0) if chain else levels
    logs = true[:, None] + _INSTANCES * random.standard_normal((count, _ROUNDS))
    logs += runs * random.standard_normal((count, 1))
    reach = stats.t.isf((1 - place_confidence(count)) / 4, _ROUNDS - 1) * stats.sem(logs, axis=1)
    versions = [(index - 1 if chain else "main", index) for index in range(count)]
    return changes_in_ratios(versions, np.exp(logs.mean(axis=1)), reach)


@pytest.mark.slow
@pytest.mark.parametrize("chain", [True, False], ids=["chain", "baseline"])
@pytest.mark.parametrize("runs", [0.0, 0.005])
def test_equal_versions_are_not_marked(chain: bool, runs: float, capsys: pytest.CaptureFixture[str]) -> None:
    count = rounds(30, 2000)
    random = np.random.default_rng(20)
    marked = sum(bool(history(random, {}, chain=chain, runs=runs)) for _ in range(count))
    with capsys.disabled():
        print(f"\n{_COMMITS} equal commits, {chain=} {runs=}: marked {marked} of {count}")
    # The limit is 1 %: then 30 histories have 3 marks or more with a probability of 0.3 %.
    assert marked <= stats.binom.isf(0.005, count, 0.01)


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "baseline"])
def test_a_step_of_five_percent_is_found(chain: bool, capsys: pytest.CaptureFixture[str]) -> None:
    count = rounds(20, 1000)
    random = np.random.default_rng(21)
    found = more = 0
    for _ in range(count):
        step = int(random.integers(1, _COMMITS))
        changes = history(random, {step: _STEP}, chain=chain)
        found += any(change.start == step and change.ratio > 1 for change in changes)
        more += len(changes) > 1
        for change in changes:
            assert (
                change.interval.low < change.ratio < change.interval.high
                and not change.interval.low < 1 < change.interval.high
            )
    with capsys.disabled():
        print(f"\n5 % in {_COMMITS} commits, {chain=}: found {found} of {count}, another mark in {more}")
    assert found >= 0.9 * count and more <= stats.binom.isf(0.005, count, 0.01)


@pytest.mark.slow
def test_a_step_by_real_comparisons() -> None:
    """Intervals of ``compare_pairs`` on blocks, with bursts that affect either side of a pair."""
    random = np.random.default_rng(22)
    count, step, pairs = 8, 5, 8 * 12
    names = np.repeat(np.arange(12), 8)
    ratios, halves = [], []
    for at in range(count):
        truth = _STEP if at == step else 1.0
        shape = (2, pairs, 10)
        times = 1000 * np.exp(0.01 * random.standard_normal(shape) + 0.6 * (random.random((*shape[:2], 1)) < 0.2))
        times *= np.exp(0.01 * random.standard_normal((2, 12))[:, names, None])
        comparison = compare_pairs(times[0], truth * times[1], names, confidence=place_confidence(count))
        ratios.append(comparison.ratio)
        halves.append(np.log(comparison.interval.high / comparison.interval.low) / 2)
    changes = changes_in_ratios([(at - 1, at) for at in range(count)], ratios, halves)
    assert [change.start for change in changes] == [step] and changes[0].ratio == pytest.approx(_STEP, abs=0.02)


def test_two_steps_and_a_new_baseline() -> None:
    """The second half is measured against a version of the first, so that its level is known; without it, it is not."""
    random = np.random.default_rng(23)
    levels = np.log(np.where(np.arange(20) < 6, 1.0, np.where(np.arange(20) < 15, 1.1, 0.95)))
    logs = levels + 0.002 * random.standard_normal(20)
    halves = np.full(20, 0.01)
    for old, kept in ((8, True), ("unknown", False)):
        versions = [("main" if index < 10 else old, index) for index in range(20)]
        against = np.where(np.arange(20) < 10, 0.0, levels[8])
        changes = changes_in_ratios(versions, np.exp(logs - against), halves)
        assert [change.start for change in changes] == [6, 15]
        assert [one.ratio for one in changes] == pytest.approx([1.1, 0.95 / 1.1], rel=0.01)
        if not kept:
            # A step at a change of the baseline is not known.
            logs[10:] += 0.2
            assert [change.start for change in changes_in_ratios(versions, np.exp(logs - against), halves)] == [6, 15]


def test_a_step_at_the_first_entry_is_from_its_old_version() -> None:
    (change,) = changes_in_ratios([("main", 0)], [1.5], [0.01])
    assert change.start == 0 and change.ratio == pytest.approx(1.5) and change.interval.low == pytest.approx(1.5, 0.02)
    for chain in (True, False):
        changes = history(np.random.default_rng(26), {0: 1.06, 14: 0.9}, chain=chain)
        assert [change.start for change in changes] == [0, 14]
        assert [one.ratio for one in changes] == pytest.approx([1.06, 0.9], abs=0.03)


def test_a_version_that_is_measured_again_has_one_step() -> None:
    """Its two results have a difference, as those of the next version have."""
    ratios, halves = [1.0, 1.05, 1.09, 1.0, 1.0], [0.01] * 5
    versions = [("v0", "v1"), ("v1", "v2"), ("v1", "v2"), ("v2", "v3"), ("v3", "v4")]
    (change,) = changes_in_ratios(versions, ratios, halves, again=[2])
    assert change.start == 1 and change.ratio == pytest.approx((1.05 * 1.09) ** 0.5)
    random = np.random.default_rng(27)
    times = np.exp(0.01 * random.standard_normal(20)) * np.repeat([1.0, 1.2], [10, 10])
    known = np.exp(0.001 * random.standard_normal(20))
    assert [change.start for change in changes_in_times(times, known)] == [10]
    assert [change.start for change in changes_in_times(times, known, again=[10])] in ([9], [11])
    assert changes_in_times(times, known, again=range(20)) == []


def test_what_says_nothing() -> None:
    versions = [(index - 1, index) for index in range(4)]
    assert changes_in_ratios(versions, [1.0, 1.5, 1.0, 1.0], [np.inf] * 4) == []
    assert changes_in_ratios(versions, [1.0, 1.5, 1.0, 1.0], [0.01, np.inf, 0.01, 0.01]) == []
    assert changes_in_ratios([], [], []) == [] == changes_in_times([], [])
    assert changes_in_ratios([("main", 0)], [1.5], [np.inf]) == []
    # A certain step below the threshold.
    assert changes_in_ratios(versions, [1.0, 1.005, 1.0, 1.0], [1e-4] * 4) == []
    for ratios in ([1.0, 0.0, 1.0, 1.0], [1.0, np.nan, 1.0, 1.0], [1.0]):
        with pytest.raises(InvalidArgumentError):
            changes_in_ratios(versions, ratios, [0.01] * len(ratios))
    with pytest.raises(InvalidArgumentError):
        changes_in_times([1.0, -1.0], [1.0, 1.0])
    with pytest.raises(InvalidArgumentError):
        changes_in_times([1.0, 1.0], [1.0])


# -- times -------------------------------------------------------------------------------------------


def lasting_states(random: np.random.Generator) -> NDArray[np.float64]:
    """Returns logarithms of a machine's speeds, which last for 3 to 15 commits and differ by up to a factor of two."""
    levels = np.zeros(_COMMITS)
    begin = 0
    while begin < _COMMITS:
        end = begin + int(random.integers(3, 15))
        levels[begin:end] = random.uniform(0, np.log(2))
        begin = end
    return levels


@pytest.mark.parametrize("kind", ["quiet", "two modes", "lasting states", "states that no reference sees"])
def test_times_of_equal_versions_are_not_marked(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    count = rounds(10, 500)
    random = np.random.default_rng(24)
    marked = 0
    for _ in range(count):
        states = np.zeros(_COMMITS)
        if kind == "two modes":
            states = np.log(2) * (random.random(_COMMITS) < 0.5)
        elif "states" in kind:
            states = lasting_states(random)
        times = np.exp(states + 0.01 * random.standard_normal(_COMMITS))
        # The reference kernel shows a part of a state.
        references = np.exp(0.7 * states + 0.01 * random.standard_normal(_COMMITS))
        if "no reference" in kind:
            references[:] = np.nan
        marked += bool(changes_in_times(times, references))
    with capsys.disabled():
        print(f"\n{_COMMITS} equal commits, times, {kind}: marked {marked} of {count}")
    assert marked <= stats.binom.isf(0.005, count, 0.01)


def test_a_step_in_times_of_a_quiet_machine() -> None:
    count = rounds(10, 500)
    random = np.random.default_rng(25)
    found = 0
    for _ in range(count):
        step = int(random.integers(5, _COMMITS - 5))
        times = np.exp(0.01 * random.standard_normal(_COMMITS))
        times[step:] *= _STEP
        changes = changes_in_times(times, np.exp(0.005 * random.standard_normal(_COMMITS)))
        found += any(
            abs(change.start - step) <= 1 and change.ratio == pytest.approx(_STEP, abs=0.03) for change in changes
        )
    assert found >= 0.9 * count
