"""The commit of a folder and the order of commits, in repositories that git creates."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pumice.study.definition.axis import Axis
from pumice.study.definition.expansion import expand
from pumice.study.definition.study import Study, Target
from pumice.study.definition.study_file import study_as_dict
from pumice.study.machine.environment import revision_facts
from pumice.study.results.comparison.revision import Revision, commit_order, read_revision, revision_of
from pumice.study.results.results import Results
from pumice.study.results.storage.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


class Repository:
    """A repository in a folder, without the user's configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, time: str = "2026-01-01T12:00:00+01:00") -> str:
        names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        environment |= {"GIT_COMMITTER_DATE": time}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, subject: str, time: str = "2026-01-01T12:00:00+01:00") -> str:
        self.git("commit", "--quiet", "--allow-empty", "--message", subject, time=time)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def test_a_revision(repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert read_revision(repository.folder) is None, "no commit yet"
    file = repository.folder / "inner" / "study.toml"
    file.parent.mkdir()
    file.write_text("1")
    repository.git("add", ".")
    commit = repository.commit('Subject: with "quotes" ⛔\n\nand a body')
    revision = read_revision(file.parent)
    assert revision == Revision(commit, "2026-01-01T12:00:00+01:00", 'Subject: with "quotes" ⛔', "main", False)
    assert revision.name == commit[:9] and revision_of(revision.facts()) == revision
    file.write_text("2")
    repository.git("checkout", "--quiet", "--detach")
    changed = read_revision(file.parent)
    assert changed is not None and (changed.dirty, changed.branch, changed.name) == (True, "", f"{commit[:9]}+")
    # As within a hook of another repository.
    other = Repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert read_revision(file.parent) == changed


def test_no_repository_and_no_git(tmp_path: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_revision(tmp_path) is None and read_revision(tmp_path / "nosuch") is None
    repository.commit("one")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_revision(repository.folder) is None and commit_order([repository.folder], ["ab"]) is None


@pytest.mark.parametrize("facts", [None, 3, {}, {"commit": 3}, []])
def test_what_is_no_revision(facts: object) -> None:
    assert revision_of(facts) is None


def test_the_order_of_commits(repository: Repository, tmp_path: Path) -> None:
    """Parents come first, whatever the commits' dates are."""
    repository.commit("root")
    first = repository.commit("first", "2026-03-01T00:00:00Z")
    second = repository.commit("second", "2026-01-01T00:00:00Z")
    repository.git("checkout", "--quiet", "-b", "branch", first)
    third = repository.commit("third")
    order = commit_order([tmp_path, repository.folder], [third, second, first])
    assert order is not None and order[first] < order[second] and order[first] < order[third]
    assert commit_order([repository.folder], [second]) is not None
    assert commit_order([repository.folder], [first, "0" * 40]) is None
    assert commit_order([repository.folder], ["--all"]) is None and commit_order([repository.folder], []) is None


def test_both_sides_of_a_study(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit("one")
    target = Target("mul", "kernel", {"source": "builtin:mul", "groups": "$n"})

    def study(folder: Path, against: Study | None = None) -> Study:
        return Study("s", (target,), axes=(Axis("n", (4,)),), folder=folder, against=against)

    assert revision_facts(study(tmp_path)) == {}
    facts = revision_facts(study(tmp_path, study(repository.folder)))
    assert set(facts) == {"against_revision"}
    revision = revision_of(facts["against_revision"])
    assert revision is not None and revision.commit == commit
    # Kept programs belong to the commit that the results recorded, wherever the files are now.
    old = study(tmp_path / "old")
    with Store.create(tmp_path / "r", study_as_dict(old), expand(old, ["d"])) as store:
        for subject in ("before", "last"):
            store.begin_run({"revision": {"commit": subject}})
            store.end_run()
        store.begin_run({})
        store.end_run()
    with Results.open(tmp_path / "r") as results:
        facts = revision_facts(study(repository.folder, results.to_measure()))
    first, second = (revision_of(facts[name]) for name in ("against_revision", "revision"))
    assert first is not None and second is not None and (first.commit, second.commit) == ("last", commit)
