"""``--against-rev``: the worktree of a revision is removed on every exit, and after a kill at the next run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pumice.status import FailedPreconditionError
from pumice.tools.bench.revision import revision

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

HOLD = """
import sys, time
from pathlib import Path
from pumice.tools.bench.revision import revision
with revision(Path(sys.argv[1]), "HEAD", None) as at:
    print(at.root, flush=True)
    time.sleep(60)
"""


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Creates a file with two revisions, in a folder of a repository; checks at the end that no worktree is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    repository = tmp_path / "repository"
    path = repository / "kernels" / "k.comp"
    path.parent.mkdir(parents=True)
    git(repository, "init", "--quiet")
    for text in ("old", "new"):
        path.write_text(text, encoding="utf-8")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "-m", text)
    yield path
    assert [*temporary.iterdir()] == []
    assert git(repository, "worktree", "list", "--porcelain").count("worktree ") == 1


def test_the_file_of_a_revision_beside_that_of_today(kernel: Path, tmp_path: Path) -> None:
    (kernel.parent / "later.comp").write_text("", encoding="utf-8")
    with revision(kernel, "HEAD~1", None) as at:
        old = at.path(kernel)
        assert old is not None and old.read_text(encoding="utf-8") == "old"
        assert kernel.read_text(encoding="utf-8") == "new"
        later = at.path(kernel.parent / "later.comp")
        assert later is not None and not later.exists()
        assert at.path(tmp_path / "elsewhere") is None
        assert git(kernel.parent, "rev-parse", "HEAD~1").startswith(at.commit)


def test_a_build_runs_in_the_worktree(kernel: Path) -> None:
    with revision(kernel, "HEAD~1", "cp kernels/k.comp built; mkdir out") as at:
        assert (at.root / "built").read_text(encoding="utf-8") == "old" and (at.root / "out").is_dir()


def test_a_build_that_fails_shows_what_it_printed(kernel: Path) -> None:
    with (
        pytest.raises(FailedPreconditionError, match=r"ended with status 3 at HEAD~1 \(.*\):\nno\nluck") as caught,
        revision(kernel, "HEAD~1", "echo no; echo luck >&2; exit 3"),
    ):
        pass
    assert "--build" in caught.value.message


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_after_an_error(kernel: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), revision(kernel, "HEAD", None) as at:
        (at.root / "changed").write_text("", encoding="utf-8")
        raise error


@pytest.mark.parametrize("name", ["gone", "--output=x", "HEAD:kernels", ""])
def test_what_is_no_revision(kernel: Path, name: str) -> None:
    with pytest.raises(click.UsageError, match="has no revision"), revision(kernel, name, None):
        pass


def test_a_file_in_no_repository(tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="in no git repository"), revision(tmp_path / "k.comp", "HEAD", None):
        pass


def test_within_a_hook_of_another_repository(kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    with revision(kernel, "HEAD~1", "git log --format=%s > subject") as at:
        assert (at.root / "subject").read_text(encoding="utf-8") == "old\n"
    monkeypatch.undo()


def test_hooks_of_checkouts_do_not_run(kernel: Path) -> None:
    hook = kernel.parents[1] / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    with revision(kernel, "HEAD", None) as at:
        assert not (at.root / "hooked").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_what_a_killed_process_left_goes_the_next_time(kernel: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(kernel)], stdout=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        root = Path(process.stdout.readline().strip())
        assert root.is_dir()
        with revision(kernel, "HEAD", None) as mine:  # the worktree of a living process stays
            assert root.is_dir() and mine.root != root
        process.send_signal(signal.SIGKILL)
    assert root.is_dir()
    with revision(kernel, "HEAD", None):
        assert not root.parent.exists()


def test_worktrees_of_others_stay(kernel: Path, tmp_path: Path) -> None:
    """Even one in a folder whose name begins as those of this command."""
    mine = tmp_path / "pumice-revision-2" / "tree"
    git(kernel.parent, "worktree", "add", "--detach", "--quiet", str(mine), "HEAD")
    (mine / "work.txt").write_text("a day's", encoding="utf-8")
    with revision(kernel, "HEAD", None):
        pass
    assert (mine / "work.txt").read_text(encoding="utf-8") == "a day's"
    git(kernel.parent, "worktree", "remove", "--force", str(mine))
