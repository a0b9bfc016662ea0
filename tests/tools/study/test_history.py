"""``pumice study history`` over simulated results of commits that git creates."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import Result
from support.study.commands import study
from support.study.stored_results import made_version

from pumice.study.results.comparison.revision import read_revision

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def history(*arguments: object) -> Result:
    return study("history", *arguments)


def commits(folder: Path, subjects: Sequence[str]) -> list[dict[str, object]]:
    """Creates commits in a new repository, whose clock runs backwards; returns their facts."""
    folder.mkdir()
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    facts = []
    for index, subject in enumerate([None, *subjects]):
        words = ("commit", "--quiet", "--allow-empty", "--message", subject) if subject else ("init", "--quiet")
        when = {"GIT_COMMITTER_DATE": f"2026-01-{28 - index:02}T12:00:00Z"}
        subprocess.run(["git", *words], cwd=folder, env=environment | when, check=True, capture_output=True)
        revision = read_revision(folder)
        if revision is not None:
            facts.append(revision.facts())
    return facts


LEVELS = [1.0] * 4 + [1.06] * 4


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates results of eight commits, each measured in turns with its predecessor; the fifth is 6 % slower."""
    folder = tmp_path_factory.mktemp("history")
    facts = commits(folder / "repository", [f"Commit {n}" for n in range(8)])
    for at, level in enumerate(LEVELS):
        before = max(at - 1, 0)
        # Folders are in another order than commits.
        made_version(folder / "repository" / "out" / f"{9 - at}", at, level, (f"v{before}", LEVELS[before]), facts[at])
    return folder / "repository"


@pytest.mark.slow
def test_a_chain_of_ratios(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(chain)
    data = json.loads(history("out", "--json").stdout)
    assert data["order"] == "commits" and data["unread"] == []
    (point,) = data["points"]
    assert (point["point"], point["device"], point["by"]) == ("mul", "llvmpipe", "ratios")
    subjects = [entry["revision"]["subject"] for entry in point["entries"]]
    assert subjects == [f"Commit {n}" for n in range(8)], "by parents, though their clock goes backwards"
    assert [entry["level"] for entry in point["entries"]] == pytest.approx(LEVELS, abs=0.03)
    for entry, level in zip(point["entries"], LEVELS, strict=True):
        low, high = entry["level_interval"]
        assert low < level < high and entry["related"]
    (change,) = point["changes"]
    assert change["entry"] == 4 and change["ratio"] == pytest.approx(1.06, abs=0.02)
    assert change["interval"][0] > 1
    printed = history().stdout
    assert "% [" in printed and "since" in printed and '"Commit 4"' in printed and "▁" in printed
    assert "8 results, in the order of commits" in printed


@pytest.mark.slow
def test_the_page(chain: Path, tmp_path: Path) -> None:
    result = history(chain, "--html", tmp_path / "h.html")
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "h.html").read_text(encoding="utf-8")
    assert "Commit 4" in text and "mul on llvmpipe" in text and "8 results" in text
    assert text.count('class="figure"') == 1


@pytest.mark.slow
def test_times_of_a_machine_with_states_have_no_marks(tmp_path: Path) -> None:
    """Medians differ by up to a factor of two, and so does the reference kernel."""
    for index in range(8):
        made_version(tmp_path / str(index), index, 1.0, None, None)
    data = json.loads(history(tmp_path, "--json").stdout)
    (point,) = data["points"]
    assert data["order"] == "run times" and point["by"] == "times" and point["changes"] == []
    medians = [entry["median_ns"] for entry in point["entries"]]
    assert max(medians) > 1.3 * min(medians) and [entry["level"] for entry in point["entries"]] == medians
    assert point["entries"][0]["revision"] is None and math.isfinite(medians[0])


@pytest.mark.slow
def test_another_baseline_is_said(tmp_path: Path) -> None:
    for index, old in enumerate(("a", "a", "b")):
        made_version(tmp_path / str(index), index, 1.0, (old, 1.0), None)
    printed = history(tmp_path).stdout
    assert printed.count("another baseline begins at") == 1


@pytest.mark.slow
def test_pairs_too_few_for_a_change_have_a_level(tmp_path: Path) -> None:
    """Eight pairs give an interval at 99 %, but none at the confidence of a change."""
    for index, rounds in enumerate((8, 8, 2)):
        made_version(tmp_path / str(index), index, 1.0, (f"v{max(index - 1, 0)}", 1.0), rounds=rounds)
    (point,) = json.loads(history(tmp_path, "--json").stdout)["points"]
    assert point["changes"] == [] and [entry["ratio"] is None for entry in point["entries"]] == [False] * 3


@pytest.mark.slow
def test_two_results_of_one_commit_are_one_step(tmp_path: Path) -> None:
    """Their ratios are pooled, and the change of the first entry is relative to its own baseline."""
    facts = commits(tmp_path / "repository", ["First", "Second"])
    folder = tmp_path / "repository" / "out"
    for at, (old, version, commit) in enumerate([("v0", "v1", 0), ("v0", "v1", 0), ("v1", "v2", 1)]):
        levels = {"v0": 1.0, "v1": 1.1, "v2": 1.1}
        made_version(folder / str(at), at + 10, levels[version], (old, levels[old]), facts[commit], version)
    (point,) = json.loads(history(folder, "--json").stdout)["points"]
    first, again, last = point["entries"]
    assert first["level"] == again["level"] and first["level_interval"] == again["level_interval"]
    assert min(first["ratio"], again["ratio"]) < first["level"] < max(first["ratio"], again["ratio"])
    assert last["level"] == pytest.approx(first["level"] * last["ratio"])
    (change,) = point["changes"]
    assert change["entry"] == 0 and change["ratio"] == pytest.approx(1.1, abs=0.03)


@pytest.mark.slow
def test_what_is_no_history(tmp_path: Path) -> None:
    assert "there is no folder" in history(tmp_path / "nosuch").stderr
    assert "no results with samples" in history(tmp_path).stderr
    made_version(tmp_path / "a", 0, 1.0, None, None)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "results.sqlite").write_text("no database at all, but long enough to be one" * 9)
    result = history(tmp_path)
    assert result.exit_code == 0 and "bad is left out" in result.stderr
    wrong = history(tmp_path, "--measure", "speed")
    assert wrong.exit_code == 2 and "got 'speed'" in wrong.stderr
    hostile = {"commit": "\x1b[31m--all", "time": "x", "subject": "\x1b]0;x\x07", "branch": "", "dirty": False}
    made_version(tmp_path / "h", 1, 1.0, None, hostile)
    assert "\x1b" not in history(tmp_path).output
