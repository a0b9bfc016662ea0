"""Damaged and hostile modules end in an error of pumice's own or in a run: a small share of ``make mutants``."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from mutant_runner import ASSEMBLED, Runner, assembled_bases
from mutations import Mutant, mutate
from support.case_pool import Tally, run_cases
from support.iree_releases import available_compilers

from pumice.hal_vulkan.device import Device

pytestmark = pytest.mark.vulkan
NO_LAYERS: Mapping[str, str] = {"PUMICE_VALIDATION": "0"}  # they crash on some shaders themselves


def _wrong(tally: Tally) -> str:
    return "\n".join(f"mutant {index}: {result}: {detail}" for index, result, detail in tally.wrong)


@pytest.mark.sample(1, "mutants")
@pytest.mark.parametrize(
    ("opener", "count", "least_run", "least_refused"),
    [("open_assembled", 500, 30, 100), pytest.param("open_compiled", 200, 10, 0, marks=pytest.mark.peer)],
)
def test_mutants(opener: str, count: int, least_run: int, least_refused: int) -> None:
    if opener == "open_compiled" and not available_compilers():
        pytest.skip("no iree-compile: install the peer extra")
    tally = run_cases(f"mutant_runner:{opener}", count, environment=NO_LAYERS)
    assert not tally.wrong, _wrong(tally)
    assert tally.count == count
    # The damage must be of use: some is refused, some is not.
    assert tally.outcomes["run", "ran"] > least_run
    assert sum(number for (stage, _), number in tally.outcomes.items() if stage == "load") >= least_refused


def test_every_truncation(device: Device) -> None:
    """A file that is cut short anywhere is refused: there is nothing behind the last byte in use but padding."""
    (base,) = assembled_bases(("globals",))
    runner = Runner(device)
    assert runner.run(Mutant(0, base.name, "", base.data)).stage == "run"
    for length in range(0, len(base.data) - 16, 3):
        outcome = runner.run(Mutant(0, base.name, "truncated", base.data[:length]))
        assert (outcome.stage, outcome.result) == ("load", "INVALID_ARGUMENT"), (length, outcome)


def test_mutants_are_reproducible() -> None:
    bases, again = (assembled_bases(tuple(ASSEMBLED)[:2]) for _ in range(2))
    for index in random.Random(1).sample(range(10_000), 20):
        assert mutate(bases, 7, index) == mutate(again, 7, index)
    assert mutate(bases, 7, 0) != mutate(bases, 8, 0)


@pytest.mark.sample(1, "mutants")
def test_crashes_and_hangs_are_laid_to_their_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: what ends or stops a worker is counted, and the rest of its share still runs."""
    monkeypatch.setenv("PUMICE_TEST_CASES", "2=abort,5=hang,8=raise")
    tally = run_cases("mutant_runner:open_assembled", 12, processes=1, hang_s=3.0)
    assert tally.count == 12
    assert sorted((index, kind) for index, kind, _ in tally.wrong) == [(2, "crash"), (5, "hang"), (8, "bug")]
