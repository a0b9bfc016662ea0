"""The first cases of each kind of `make fuzz` end well: refused with a clear error, or accepted.

They run in this process, which is quicker; shaders run in another, as nothing ends one that does not end by itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
from fuzz import KINDS, bad_ends, run_kind
from support.case_pool import WRONG, open_cases
from support.soak import rounds

RUNS = ("spirv-run", "mutants")  # in workers; for mutants see test_mutants.py
DEVICE = ("pipeline-cache", "results", "command-line", "environment", "output", "input", "signals")


@pytest.mark.sample(10)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.vulkan) if name in DEVICE else name for name in KINDS if name not in RUNS],
)
def test_the_first_cases(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with mock.patch.dict(os.environ):
        cases = open_cases(KINDS[name].opener, tmp_path)
        for index in range(rounds(KINDS[name].quick, 20 * KINDS[name].quick)):
            outcome = cases.run(1, index)
            assert outcome.result not in WRONG, f"make fuzz ARGS='--kind {name} --only {index}': {outcome.detail}"
        cases.close()


@pytest.mark.slow
@pytest.mark.vulkan
def test_the_first_shaders_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_VALIDATION", "0")  # the layers crash on some shaders by themselves
    count = rounds(KINDS["spirv-run"].quick, 20 * KINDS["spirv-run"].quick)
    tally = run_kind("spirv-run", count, processes=1)
    assert tally.count == count
    assert not tally.wrong, "\n".join(bad_ends("spirv-run", tally, 1))


def test_the_shares_are_of_a_hundred_thousand() -> None:
    assert sum(kind.share for kind in KINDS.values()) == 100_000
