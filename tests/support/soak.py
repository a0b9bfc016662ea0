"""The long forms of statistical and stress tests, which `make soak` asks for by ``PUMICE_SOAK=1``.

Tests marked ``sample(n)`` all run in a soak. Every other run takes n of them, chosen by ``PUMICE_SAMPLE_SEED`` (0 by
default), unless a test is named with its node id.
"""

from __future__ import annotations

import collections
import hashlib
import os
from collections.abc import Sequence

import pytest

__all__ = ["SEED", "SOAK", "outside_of_the_sample", "rounds"]

SOAK = os.environ.get("PUMICE_SOAK", "0") not in ("", "0")
SEED = os.environ.get("PUMICE_SAMPLE_SEED", "0")


def rounds(short: int, long: int) -> int:
    """Returns how many times to repeat: ``long`` in a soak, ``short`` in other runs."""
    return long if SOAK else short


def outside_of_the_sample(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Returns the tests that a run with this seed leaves out.

    ``sample(n)`` on a function keeps n of its cases; on a class or in a module's ``pytestmark``, n of its tests;
    ``sample(n, "a name")`` keeps n of all cases in the module that are marked with this name. The closest mark counts.
    """
    groups: dict[str, list[tuple[bytes, pytest.Item]]] = collections.defaultdict(list)
    sizes: dict[str, int] = {}
    for item in items:
        for node, mark in item.iter_markers_with_node("sample"):
            size, *name = mark.args
            if name:
                group = f"{item.nodeid.partition('::')[0]} {name}"
            else:
                group = item.nodeid.partition("[")[0] if node is item else node.nodeid
            rank = hashlib.sha256(f"{SEED} {item.nodeid}".encode()).digest()
            groups[group].append((rank, item))
            sizes[group] = size
            break
    return {
        item
        for group, members in groups.items()
        for _, item in sorted(members, key=lambda member: member[0])[sizes[group] :]
    }
