"""The long forms of statistical and stress tests, which `make soak` asks for by ``PUMICE_SOAK=1``."""

from __future__ import annotations

import os

__all__ = ["SOAK", "rounds"]

SOAK = os.environ.get("PUMICE_SOAK", "0") == "1"


def rounds(short: int, long: int) -> int:
    """How often to repeat: in each run of the suite, and in a soak."""
    return long if SOAK else short
