"""The commit of a study's files, from git; and the order of commits.

git runs as a separate program. If git, a repository or an answer is missing, nothing is known; this is not an error.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from ....base.lazy_dataclass import dataclass

_SECONDS: Final = 10.0
_FIELDS: Final = "%H%x00%cI%x00%s"
# Set within hooks, they would point git to another repository than the folder's.
_MISLEADING: Final = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit, and the state of the work tree.

    Attributes:
        commit: the commit's hash.
        time: the time of the commit; ISO 8601.
        subject: the first line of its message.
        branch: the checked-out branch; empty for none.
        dirty: whether tracked files differ from the commit.
    """

    commit: str
    time: str
    subject: str
    branch: str
    dirty: bool

    @property
    def name(self) -> str:
        """The name for people: the abbreviated hash, with a plus if the work tree had changes."""
        return self.commit[:9] + ("+" if self.dirty else "")

    def facts(self) -> dict[str, object]:
        """Returns the fields as JSON values."""
        return {name: getattr(self, name) for name in type(self).__annotations__}


def read_revision(folder: Path) -> Revision | None:
    """Reads the revision of a folder; returns None outside a repository, before the first commit, or without git."""
    head = _git(folder, "log", "-1", f"--format={_FIELDS}")
    if head is None or head.count("\0") != 2:
        return None
    commit, time, subject = head.rstrip("\n").split("\0")
    status = _git(folder, "status", "--porcelain", "--untracked-files=no")
    branch = _git(folder, "symbolic-ref", "--short", "--quiet", "HEAD")
    return Revision(commit, time, subject, (branch or "").strip(), bool(status))


def revision_of(facts: object) -> Revision | None:
    """Restores the revision from ``Revision.facts``; None for anything else."""
    if not isinstance(facts, Mapping) or not isinstance(facts.get("commit"), str):
        return None
    time, subject, branch = (str(facts.get(name) or "") for name in ("time", "subject", "branch"))
    return Revision(facts["commit"], time, subject, branch, facts.get("dirty") is True)


def commit_order(folders: Iterable[Path], commits: Sequence[str]) -> dict[str, int] | None:
    """Returns the index of each commit in the history, parents before children, by the first folder's repository that
    has all of them; None if none has.
    """
    wanted = sorted(set(commits))
    # A text from the results must not be an option of git.
    if not wanted or not all(set(commit) <= set("0123456789abcdef") for commit in wanted):
        return None
    for folder in folders:
        base = (_git(folder, "merge-base", "--octopus", *wanted) or "").strip()
        # Only the history since their common ancestor.
        listed = _git(folder, "rev-list", "--topo-order", "--reverse", *wanted, *([f"^{base}"] if base else []))
        if listed is not None:
            places = {commit: index for index, commit in enumerate([base, *listed.split()])}
            if all(commit in places for commit in wanted):
                return {commit: places[commit] for commit in wanted}
    return None


def _git(folder: Path, *arguments: str) -> str | None:
    environment = {name: value for name, value in os.environ.items() if name not in _MISLEADING}
    # Reading takes no locks, and does not run programs from the repository's configuration.
    command = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
