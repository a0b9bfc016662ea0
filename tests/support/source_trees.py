"""Trees of other projects, which the user names: checkouts, or git directories whose HEAD is unpacked for a while."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


def named_tree(variable: str) -> Path | None:
    """The tree that an environment variable names, or ``None``."""
    named = os.environ.get(variable)
    return Path(named) if named else None


@contextmanager
def opened_tree(tree: Path, folders: Sequence[str]) -> Iterator[Path]:
    """A folder that has some paths of a tree: the checkout itself, or a temporary one, which goes with the context.

    Raises:
        FileNotFoundError: ``tree`` is neither a checkout nor a git directory.
    """
    if (tree / folders[0]).exists():
        yield tree
        return
    if not (tree / "objects").is_dir():
        raise FileNotFoundError(f"expected a checkout with {folders[0]}, or a git directory, at {tree}")
    with TemporaryDirectory(prefix="source-tree-") as folder:
        unpack(tree, folders, Path(folder))
        yield Path(folder)


def unpack(tree: Path, paths: Sequence[str], into: Path) -> None:
    """Writes what HEAD of a git directory has under some paths, but for links and blobs that the directory lacks."""
    git = ["git", "-C", str(tree)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "HEAD", "--", *paths], check=True, capture_output=True)
    entries = [line.split(b"\t", 1) for line in listed.stdout.split(b"\0") if line and not line.startswith(b"120000")]
    asked = b"".join(about.split()[2] + b"\n" for about, _ in entries)
    told = io.BytesIO(
        subprocess.run([*git, "cat-file", "--batch"], input=asked, check=True, capture_output=True).stdout
    )
    for _, path in entries:
        *_, size = told.readline().split()
        if size != b"missing":
            target = into / path.decode()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(told.read(int(size)))
            told.read(1)
