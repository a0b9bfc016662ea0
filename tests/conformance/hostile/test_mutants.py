"""Damaged and hostile modules end in an error of pumice's own or in a run: a small share of ``make mutants``."""

from __future__ import annotations

import random

import pytest
from conformance.hostile.mutant_runner import Runner, run_mutants
from conformance.hostile.mutants import ASSEMBLED, assembled_bases, compiled_bases
from conformance.hostile.mutations import Mutant, load_base, mutate
from support.case_pool import Tally
from support.iree_releases import available_compilers

from pumice.hal_vulkan.device import Device

pytestmark = pytest.mark.vulkan


def _wrong(tally: Tally) -> str:
    return "\n".join(f"mutant {index}: {result}: {detail}" for index, result, detail in tally.wrong)


@pytest.mark.sample(1, "mutants")
def test_assembled_modules() -> None:
    tally = run_mutants(assembled_bases(), 500, processes=2)
    assert not tally.wrong, _wrong(tally)
    assert not tally.internal
    assert tally.count == 500
    # The damage must be of use: some is refused, some is not.
    assert tally.outcomes["run", "ran"] > 30
    assert sum(count for (stage, _), count in tally.outcomes.items() if stage == "load") > 100


@pytest.mark.sample(1, "mutants")
@pytest.mark.peer
def test_compiled_modules() -> None:
    if not available_compilers():
        pytest.skip("no iree-compile: install the peer extra")
    tally = run_mutants(compiled_bases(("async_mul", "dynamic_matmul", "globals_counter")), 200, processes=2)
    assert not tally.wrong, _wrong(tally)
    assert not tally.internal
    assert tally.count == 200
    assert tally.outcomes["run", "ran"] > 10


def test_every_truncation(device: Device) -> None:
    """A file that is cut short anywhere is refused: there is nothing behind the last byte in use but padding."""
    name, data = assembled_bases(("globals",))[0]
    runner = Runner(device)
    assert runner.run(Mutant(0, name, "", data)).stage == "run"
    for length in range(0, len(data) - 16, 3):
        outcome = runner.run(Mutant(0, name, "truncated", data[:length]))
        assert (outcome.stage, outcome.result) == ("load", "INVALID_ARGUMENT"), (length, outcome)


def test_mutants_are_reproducible() -> None:
    bases = [load_base(*file) for file in assembled_bases(tuple(ASSEMBLED)[:2])]
    again = [load_base(*file) for file in assembled_bases(tuple(ASSEMBLED)[:2])]
    for index in random.Random(1).sample(range(10_000), 20):
        assert mutate(bases, 7, index) == mutate(again, 7, index)
    assert mutate(bases, 7, 0) != mutate(bases, 8, 0)


@pytest.mark.sample(1, "mutants")
def test_crashes_and_hangs_are_laid_to_their_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: what ends or stops a worker is counted, and the rest of its share still runs."""
    monkeypatch.setenv("PUMICE_TEST_CASES", "2=abort,5=hang,8=raise")
    tally = run_mutants(assembled_bases(("globals",)), 12, processes=1, hang_s=3.0)
    assert tally.count == 12
    assert sorted((index, kind) for index, kind, _ in tally.wrong) == [(2, "crash"), (5, "hang"), (8, "bug")]
