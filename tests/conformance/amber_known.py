"""What a driver fails by itself."""

from __future__ import annotations

from amber_trees import Script


def known_failure(script: Script) -> str:
    """Why a script fails without fault of pumice; ``""`` if it should pass."""
    return ""
