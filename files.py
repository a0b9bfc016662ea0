"""Files that the package keeps for itself."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

__all__ = ["cache_directory"]


def cache_directory() -> Path | None:
    """Where pumice keeps what it can make again; ``None`` when switched off by ``PUMICE_CACHE=0``."""
    if os.environ.get("PUMICE_CACHE", "1") == "0":
        return None
    chosen = os.environ.get("PUMICE_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("pumice"))
