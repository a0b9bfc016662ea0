"""The database of tuning: stored findings, by device, and damaged files."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.profiles import recorded_profile

from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.status import InvalidArgumentError, NotFoundError
from pumice.tuning.database import Finding, TuningDatabase, tuned_target

GPU, CPU = recorded_profile("nvidia_rtx_4060"), recorded_profile("lavapipe_mesa_22_3_6")
FOUND = Finding("tile rows=4", ("tile rows=4", "tile rows=8"), 0.75)


@pytest.fixture(params=["cache", "file"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | None:
    monkeypatch.setenv("PUMICE_CACHE", "1")
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "tuning.json" if request.param == "file" else None


def test_findings_are_of_a_device_and_its_driver(path: Path | None) -> None:
    for profile, found in ((GPU, FOUND), (CPU, Finding("elements", ("elements",)))):
        database = TuningDatabase.open(profile, path)
        assert database.findings == {}
        database.findings["sum"] = found
        database.store()
    assert TuningDatabase.open(GPU, path).findings == {"sum": FOUND}
    assert TuningDatabase.open(replace(GPU, driver_version=1), path).findings == {}
    assert tuned_target(GPU, path) == replace(target_of(GPU), tuned=(("sum", "tile rows=4"),))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"form": "another"}', '{"form": "pumice tuning 1", "devices": 3}'])
def test_a_file_that_is_none_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tuning.json"
    path.write_text(text)
    with pytest.raises(InvalidArgumentError, match="expected what tuning wrote.*got .*; name another file"):
        TuningDatabase.open(GPU, path)
    assert path.read_text() == text


def test_entries_that_are_none_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "tuning.json"
    database = TuningDatabase.open(GPU, path)
    database.findings["sum"] = FOUND
    database.store()
    data = json.loads(path.read_text())
    data["devices"][database.device] |= {"a": 1, "b": {"winner": 3, "tried": [], "ratio": 1}, "c": {"winner": "x"}}
    path.write_text(json.dumps(data))
    assert TuningDatabase.open(GPU, path).findings == {"sum": FOUND}


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    database = TuningDatabase.open(GPU, tmp_path / "nowhere" / "tuning.json")
    with pytest.raises(NotFoundError, match="there is no folder"):
        database.store()


def test_two_that_store_keep_what_both_found(path: Path | None) -> None:
    """Each was opened before the other stored, as processes that tune at once are."""
    first, second = TuningDatabase.open(GPU, path), TuningDatabase.open(GPU, path)
    other = TuningDatabase.open(CPU, path)
    for database, name in ((first, "sum"), (second, "sort"), (other, "scan")):
        database.findings[name] = FOUND
        database.store()
    first.findings["sum"] = Finding("elements", ("elements",))
    first.store()
    assert TuningDatabase.open(GPU, path).findings == {"sort": FOUND, "sum": Finding("elements", ("elements",))}
    assert TuningDatabase.open(CPU, path).findings == {"scan": FOUND}


@pytest.mark.slow
def test_many_that_store_at_once_lose_nothing(path: Path | None) -> None:
    def tune(number: int) -> None:
        for step in range(5):
            database = TuningDatabase.open(GPU, path)
            database.findings = {f"{number}-{step}": FOUND}
            database.store()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(tune, range(4)))
    assert len(TuningDatabase.open(GPU, path).findings) == 20
