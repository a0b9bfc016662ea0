"""Recordings: calls that are collected once and run many times, as one submission.

Read: module, values, push_blocks, recording.
"""

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .recording import Recording

__all__ = ["Recording"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".recording": ("Recording",),
        },
    )
