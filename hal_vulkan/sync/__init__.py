"""Synchronisation: timeline semaphores, and the notifier that calls back.

Imports: `vulkan`, `instance`, `hal` and the ground files at the root.

Read: `look`, `timeline`, `notifier`, `context`, `semaphore`, `program_semaphore`, `queue_timeline`.
"""

from __future__ import annotations

from .semaphore import TimelineSemaphore

__all__ = ["TimelineSemaphore"]
