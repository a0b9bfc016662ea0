"""Passes of radix sorts: what the pass that creates them and the strategy that computes them agree on."""

from __future__ import annotations

from typing import Final

GIVEN: Final = "given"
"""The attribute of a pass: the number of last operands that are not sorted. They are digits, and the chunks' starts."""

RUN: Final = 4
"""Elements of a chunk that are loaded together."""


def chunk_of(length: int, chunks: int) -> int:
    """Returns the elements of a chunk: whole runs, of which words of all types fill 256 bits."""
    chunk = -(-length // chunks)
    return -(-chunk // (4 * RUN)) * 4 * RUN
