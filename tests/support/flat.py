"""Checks that a block of calls leaves no memory behind: native objects, Python objects, allocations,
resident memory.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

import psutil
import pytest
from support.soak import SOAK

import pumice

VALIDATION = os.environ.get("PUMICE_VALIDATION", "0") not in ("", "0")
_MAX_BLOCKS = 4 if SOAK else 8
_MAX_STAYING = 64 if SOAK else 16  # native objects of a kind in a block
_MAX_RESIDENT = (4 << 20) if SOAK else (1 << 20)


def hold_flat(block: Callable[[], object], idle: Callable[[], object], *, exact: bool = False) -> None:
    """Runs blocks of calls until one leaves nothing behind; fails if each of several does.

    Pools grow with what is in flight at once, but not for ever.

    Args:
        block: some hundreds of calls; many thousands in the long form (``PUMICE_SOAK=1``).
        idle: waits until nothing is under way.
        exact: native objects do not differ by one; otherwise by some, as those that are made ahead.
    """
    process = psutil.Process()

    def measure() -> dict[str, int]:
        idle()
        gc.collect()
        return {
            **pumice.live_objects(),
            "Python objects": len(gc.get_objects()),
            "blocks": sys.getallocatedblocks(),
            "resident": process.memory_info().rss,
        }

    # What Python keeps for a native object.
    limits = {"Python objects": 4 * _MAX_STAYING, "blocks": 16 * _MAX_STAYING, "resident": _MAX_RESIDENT}
    if VALIDATION:
        limits["resident"] = sys.maxsize  # the layers keep records of their own
    block()
    before = measure()
    blocks = []
    for _ in range(_MAX_BLOCKS):
        block()
        after = measure()
        grown = {kind: count - before.get(kind, 0) for kind, count in after.items()}
        before = after
        stays = {kind: more for kind, more in grown.items() if more > limits.get(kind, 0 if exact else _MAX_STAYING)}
        if not stays:
            return
        blocks.append(stays)
    pytest.fail(f"each block left something behind: {blocks}")
