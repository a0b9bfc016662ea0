"""Another revision of a file: a git worktree in a temporary folder, removed at the end.

If a process is killed, the next process removes its worktree, whose lock is then free.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...base.terminal import printable
from ...status import FailedPreconditionError, NotFoundError, PumiceError, UnavailableError, shorten
from ...study.results.storage.results_file import LOCK_FILE, WriterLock
from ..errors import usage_error
from ..streams import note

_PREFIX: Final = "pumice-revision-"
_MAX_OUTPUT: Final = 3000  # the last characters of a failed build's output


@dataclass(frozen=True, slots=True)
class Revision:
    """A worktree of a revision: its ``root``, the ``repository``'s root, and the commit's short name."""

    root: Path
    repository: Path
    commit: str

    def path(self, path: Path) -> Path | None:
        """Returns the path of a file or folder at the revision; None if it is outside the repository."""
        # Folders are resolved as git does; the name itself may be a link, which is followed at the revision.
        absolute = path.parent.resolve() / path.name
        inside = absolute.is_relative_to(self.repository)
        return self.root / absolute.relative_to(self.repository) if inside else None


@contextlib.contextmanager
def revision(file: Path, name: str, build: str | None) -> Iterator[Revision]:
    """Yields a worktree of the revision ``name`` of the repository that has a file, built by a shell command in its
    root.

    Raises:
        UsageError: the file is in no repository, or there is no such revision.
        UnavailableError: git is not installed, or cannot make a worktree.
        FailedPreconditionError: the build failed; the message has the end of its output.
    """
    folder = file.resolve().parent if not file.parent.is_dir() else file.parent.resolve()
    try:
        repository = Path(_git(folder, "rev-parse", "--show-toplevel")).resolve()
    except FailedPreconditionError as error:
        raise usage_error(f"--against-rev: {file} is in no git repository: {error.message}") from None
    try:
        commit = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except FailedPreconditionError:
        raise usage_error(f"--against-rev: {repository} has no revision {name!r}; git log lists what it has") from None
    _remove_left(repository)
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)))
        lock = stack.enter_context(contextlib.closing(WriterLock(home, str)))
        root = home.resolve() / "tree"
        try:
            _git(repository, "worktree", "add", "--detach", "--quiet", str(root), commit)
            worktree = Revision(root, repository, commit[:12])
            if build is not None:
                _build(build, worktree, name)
            yield worktree
        finally:
            lock.close()
            _remove(repository, root)


def _build(command: str, at: Revision, name: str) -> None:
    note(printable(f"{name} ({at.commit}): {command}"))
    done = subprocess.run(
        command,
        shell=True,
        cwd=at.root,
        env=_environment(at.root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        output = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        raise FailedPreconditionError(
            f"--build: {shorten(command)} ended with status {done.returncode} at {name} ({at.commit})"
            + (f":\n{output[-_MAX_OUTPUT:]}" if output else ", and printed nothing")
        )


def _remove(repository: Path, root: Path) -> None:
    with contextlib.suppress(PumiceError):
        _git(repository, "worktree", "remove", "--force", "--force", str(root))
    shutil.rmtree(root, ignore_errors=True)


def _remove_left(repository: Path) -> None:
    """Removes worktrees of killed processes, and git's records of missing worktrees."""
    for line in _git(repository, "worktree", "list", "--porcelain").splitlines():
        key, _, path = line.partition(" ")
        root = Path(path)
        if key != "worktree" or not root.parent.name.startswith(_PREFIX):
            continue
        if root.parent.is_dir():
            if not (root.parent / LOCK_FILE).is_file():
                continue  # another program's worktree
            try:
                WriterLock(root.parent, str).close()
            except PumiceError:
                continue  # in use
        _remove(repository, root)
        shutil.rmtree(root.parent, ignore_errors=True)
    with contextlib.suppress(PumiceError):
        _git(repository, "worktree", "prune")


def _git(folder: Path, *arguments: str) -> str:
    """Runs git; returns its output without the last newline.

    Raises FailedPreconditionError with its message if it fails.
    """
    # Hooks of the user's checkouts must not run for this one.
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *arguments]
    try:
        done = subprocess.run(
            command, cwd=folder, env=_environment(folder), stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except FileNotFoundError:
        raise UnavailableError("--against-rev needs git, which is not installed") from None
    except OSError as error:
        raise NotFoundError(f"{shorten(str(folder))}: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip() or f"status {done.returncode}"
        raise FailedPreconditionError(f"git {arguments[0]}: {shorten(said, 500)}")
    return os.fsdecode(done.stdout).removesuffix("\n")


def _environment(folder: Path) -> Mapping[str, str]:
    """Returns the environment without git's variables for a repository, which hooks set."""
    names: Sequence[str] = ()
    if any(name.startswith("GIT_") for name in os.environ):
        command = ["git", "rev-parse", "--local-env-vars"]
        listed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        names = listed.stdout.split()
    return {name: value for name, value in os.environ.items() if name not in names}
