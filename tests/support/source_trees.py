"""Trees of other projects, which the user names: checkouts, or git directories whose HEAD is unpacked for a while."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
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
    archived = subprocess.run(["git", "-C", str(tree), "archive", "HEAD", *folders], check=True, capture_output=True)
    with TemporaryDirectory(prefix="source-tree-") as folder:
        with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)
