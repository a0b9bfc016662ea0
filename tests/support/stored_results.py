"""What a results file holds, read by SQL."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from pumice.study.results.database import RESULTS_FILE

__all__ = ["next_block", "query", "sample_count"]


def query(folder: Path, text: str, *values: object) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(folder / RESULTS_FILE)) as connection:
        return connection.execute(text, values).fetchall()


def sample_count(folder: Path, point: int, phase: str = "sample") -> int:
    """Samples of a point and phase, of all runs."""
    ((count,),) = query(folder, "SELECT count(*) FROM samples WHERE point = ? AND phase LIKE ?", point, phase)
    assert isinstance(count, int)
    return count


def next_block(folder: Path, point: int) -> int:
    """A block number of a point that no sample has yet, of any run."""
    ((block,),) = query(folder, "SELECT coalesce(max(block), -1) + 1 FROM samples WHERE point = ?", point)
    assert isinstance(block, int)
    return block
