"""Verdicts are right on every machine model: equal versions are seldom called different, a slow-down of 5 % is found.

Each trial has a pair of equal versions and a pair of which one is slower, so that 500 trials are 1,000 pairs. The long
form judges each model and way by itself, the short one a few trials of all models together. What is asked of a rate is
asked of the count beyond which it would be found wrong once in a thousand times.
"""

from __future__ import annotations

from collections import Counter

import pytest
from machine_models import MODELS, Model
from rates import Rates, rates
from scipy import stats
from support.soak import SOAK, rounds
from trials import TRIALS

TRIALS_OF_A_MODEL = rounds(1, 500)
# A model's long form takes minutes.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(rounds(180, 1800))]


def check(found: Rates) -> None:
    """Equal versions are called different in at most 1 %, no slow-down is called a gain, and 5 % is found."""
    print(found)
    pairs = found.pairs

    def at_most(rate: float) -> int:
        return int(stats.binom.ppf(0.999, pairs, rate))

    assert found.different <= at_most(0.01), found
    assert found.missed <= at_most(0.01), found
    if found.way == "interleaved":
        assert found.wrong == 0 and pairs - found.found <= at_most(0.05), found
    else:
        # UNCLEAR is an answer, for runs whose machine was another one.
        assert found.wrong <= at_most(0.001), found


@pytest.mark.skipif(SOAK, reason="the long form judges each model by itself")
@pytest.mark.parametrize("trial", TRIALS)
def test_verdicts_are_right_on_all_models_together(trial: str) -> None:
    together: dict[str, Rates] = {}
    for model in MODELS:
        for found in rates(model.name, trial, range(TRIALS_OF_A_MODEL)):
            together.setdefault(found.way, Rates("all", found.way)).verdicts.update(found.verdicts)
    for found in together.values():
        check(found)


@pytest.mark.skipif(not SOAK, reason="the short form judges all models together")
@pytest.mark.parametrize("trial", TRIALS)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_verdicts_are_right_on_each_model(model: Model, trial: str) -> None:
    for found in rates(model.name, trial, range(TRIALS_OF_A_MODEL)):
        check(found)


def test_rates_are_of_equal_pairs_and_slowed_ones() -> None:
    counts = Counter({("equal", "SAME"): 96, ("equal", "FASTER"): 4, ("slower", "SLOWER"): 90, ("slower", "SAME"): 10})
    found = Rates("any", "runs", counts)
    assert (found.pairs, found.different, found.found, found.missed, found.wrong) == (100, 4, 90, 10, 0)
    assert found.interval(4) == pytest.approx(stats.beta.ppf([0.025, 0.975], [4, 5], [97, 96]))
