"""Synchronisation: timeline semaphores, fences over them, and the notifier that calls back.

Imports: `vulkan`, `instance` and the ground files at the root.

Read: `timeline`, `notifications`, `notifier`, `context`, `semaphore`, `waits`, `fence`.
"""

from __future__ import annotations

from .fence import Fence
from .semaphore import TimelineSemaphore, Timepoint
from .waits import wait_all, wait_any

__all__ = ["Fence", "TimelineSemaphore", "Timepoint", "wait_all", "wait_any"]
