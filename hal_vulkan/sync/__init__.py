"""Synchronisation: timeline semaphores, and the callbacks that they make.

Read: look, timeline, notifier, context, semaphore, owned_semaphores.
"""

from __future__ import annotations

from .semaphore import TimelineSemaphore

__all__ = ["TimelineSemaphore"]
