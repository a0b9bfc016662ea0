"""Submission: queues, work held back on the host, and what is kept until the device is done with it.

Imports: `vulkan`, `instance`, `memory`, `sync`, `commands` and the ground files at the root.

Read: `retirement`, `held_submission`, `submit_structures`, `submission`, `queue`, `prepared_submission`, `calibration`.
"""

from __future__ import annotations

from .queue import Queue

__all__ = ["Queue"]
