"""The Vulkan library: its functions and structures, its results as errors, and counts of the native objects alive.

Read: vendored, functions, results, validation, live_objects.
"""

from __future__ import annotations

from .live_objects import live_objects

__all__ = ["live_objects"]
