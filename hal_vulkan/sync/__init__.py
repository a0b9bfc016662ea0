"""Synchronisation: timeline semaphores, fences over them, and the notifier that calls back.

Imports: `vulkan`, `instance` and the ground files at the root.

Read: `timeline`, `notifier`, `context`, `semaphore`, `fence`.
"""

from __future__ import annotations

from .fence import Fence, wait_all, wait_any
from .semaphore import TimelineSemaphore, Timepoint

__all__ = ["Fence", "TimelineSemaphore", "Timepoint", "wait_all", "wait_any"]
