"""Rates of verdicts on every machine model: equal versions rarely count as different, a slow-down of 5 % is found.

Each trial has a pair of equal versions and a pair with one slower version, so that 500 trials are 1,000 pairs. The
long form judges each model separately: a count fails if, at the required rate, it would be as far off once in a
thousand times. The short form has a few trials of each of the hardest models, and none may fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from machine_models import MODELS
from rates import Rates, rates
from scipy import stats
from support.soak import SOAK, rounds
from trials import TRIALS

# The long forms take an hour on one core; `rates.py` runs any number of trials.
COUNTS = {"interleaved": rounds(1, 500), "separate": rounds(2, 500)}
HARDEST = ("instances", "states seen in part", "wake-ups", "shared machine")
GROUPS = [(model.name,) for model in MODELS] if SOAK else [HARDEST]
# The long form of one model takes minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(rounds(180, 1800))]


def check(counts: Rates) -> None:
    """Checks that at most 1 % of equal versions count as different, no slow-down as a gain, and that 5 % is found."""
    print(counts)
    pairs = counts.pairs

    def at_most(rate: float) -> int:
        # A few trials leave no room for a rare event: inspect one that occurs.
        return int(stats.binom.ppf(0.999, pairs, rate)) if SOAK else 0

    assert counts.different <= at_most(0.01), counts
    assert counts.missed <= at_most(0.01), counts
    if counts.way == "interleaved":
        assert counts.wrong == 0 and pairs - counts.found <= at_most(0.05), counts
    else:
        # UNCLEAR is a right answer for runs on a machine that has changed.
        assert counts.wrong <= at_most(0.001), counts


@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("names", GROUPS, ids=" and ".join)
def test_verdicts_are_right(names: Sequence[str], trial: str) -> None:
    together: dict[str, Rates] = {}
    for name in names:
        for counts in rates(name, trial, range(COUNTS[trial])):
            together.setdefault(counts.way, Rates(" and ".join(names), counts.way)).verdicts.update(counts.verdicts)
    for counts in together.values():
        check(counts)


def test_rates_are_of_equal_pairs_and_slowed_ones() -> None:
    counts = Counter({("equal", "SAME"): 96, ("equal", "FASTER"): 4, ("slower", "SLOWER"): 90, ("slower", "SAME"): 10})
    rates = Rates("any", "runs", counts)
    assert (rates.pairs, rates.different, rates.found, rates.missed, rates.wrong) == (100, 4, 90, 10, 0)
    assert rates.interval(4) == pytest.approx(stats.beta.ppf([0.025, 0.975], [4, 5], [97, 96]))
