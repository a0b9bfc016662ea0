"""Command buffers that dispatch kernels and copy: recording, replaying and timing.

Read: timestamps, recording_cache, recording, context, recorder, image_recorder, action_recorder, replay,
command_buffer, performance_query.
"""

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .command_buffer import CommandBuffer
    from .timestamps import DispatchTiming

__all__ = ["CommandBuffer", "DispatchTiming"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".command_buffer": ("CommandBuffer",),
            ".timestamps": ("DispatchTiming",),
        },
    )
