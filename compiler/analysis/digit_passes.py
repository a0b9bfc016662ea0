"""Passes of sorts by digits: what those who make them and those who compute them agree on."""

from __future__ import annotations

from typing import Final

GIVEN: Final = "given"
"""The attribute of a pass: so many operands, the last, are not sorted. They are digits, and where chunks begin."""

RUN: Final = 4
"""Elements of a chunk that are loaded together."""


def chunk_of(length: int, chunks: int) -> int:
    """Elements of a chunk: whole runs, of which words of all types fill 256 bits."""
    chunk = -(-length // chunks)
    return -(-chunk // (4 * RUN)) * 4 * RUN
