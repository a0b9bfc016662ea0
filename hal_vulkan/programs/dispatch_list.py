"""Noted dispatches of a one-shot command buffer, and recordings cached by their contents.

Compiled programs record many command buffers anew at each call, mostly those after a wait for a value. Most have the
same dispatches over the same ranges of memory each time. So dispatches and barriers are only noted, and their native
recording is looked up when they are submitted. The key consists of pipelines, the ranges' descriptors, workgroup counts
and push constants; a recording holds no buffer (hal_vulkan/commands/recording_cache.py).

An unusual command goes to the recorder, which has the error messages: the commands noted before it are recorded first,
and it is recorded after them.

Thread rule: one thread at a time notes commands; ``recording`` from any.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from ...hal.program import BindingReference
from ..commands.action_recorder import ActionRecorder, Groups
from ..commands.context import CommandContext
from ..commands.recorder import CommandRecorder
from ..commands.recording import Named, Recording
from ..commands.replay import Noted, Replay
from ..memory.buffer import Buffer
from ..pipelines.pipeline import ComputePipeline

Command: TypeAlias = tuple[ComputePipeline, bytes, Groups, bytes] | None
"""A dispatch: pipeline, descriptors, workgroup counts and push constants; ``None`` for a barrier."""

_RANGE = struct.Struct("=QQ")


class DispatchList:
    """Noted dispatches and barriers.

    Attributes:
        named: the pipelines and buffers of the dispatches; submission checks that these are open.
    """

    __slots__ = ("_commands", "named")

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self.named: list[Named] = []

    def dispatch(
        self, pipeline: ComputePipeline, groups: Groups, constants: Sequence[int], bindings: Sequence[BindingReference]
    ) -> bool:
        """Notes a dispatch with a module's arguments; returns ``False``, and notes nothing, if any is unusual.

        ``groups`` are within the device's limits, and none is 0.
        """
        device, interface = pipeline.device, pipeline.interface
        if (
            pipeline.is_closed
            or not pipeline.takes_plain_buffers
            or len(bindings) != pipeline.descriptor_count
            or 4 * len(constants) != interface.push_constant_bytes
        ):
            return False
        mask, most = device.bind_limits
        rounds = 3 if interface.whole_words else 0
        descriptors: list[bytes] = []
        buffers: list[Buffer] = []
        for _, _, buffer, offset, size in bindings:
            if not isinstance(buffer, Buffer) or buffer.is_closed or buffer.device is not device:
                return False
            if not offset and (size == -1 or size == buffer.size) and not buffer.size & rounds:
                if not buffer.bindable:
                    return False
                descriptors.append(buffer.descriptor)
            else:
                if size == -1:
                    size = buffer.size - offset
                start = buffer.offset + offset
                if offset < 0 or not 0 < size <= most or offset + size > buffer.size or start & mask:
                    return False
                if size & rounds:
                    size = min((size + 3) & ~3, most)
                whole = buffer.descriptor
                descriptors.append(whole[:8] + _RANGE.pack(start, size) + whole[24:])
            buffers.append(buffer)
        push = struct.pack(f"<{len(constants)}i", *constants) if constants else b""
        self._commands.append((pipeline, b"".join(descriptors), groups, push))
        self.named.append(pipeline)
        self.named += buffers
        return True

    def barrier(self) -> None:
        """Notes an execution barrier."""
        self._commands.append(None)

    def recording(self, context: CommandContext, name: str, family: int) -> Recording:
        """Returns a kept recording of equal commands, or records them."""
        recording = self.find_recording(context, family)
        if recording is None:
            # Several submissions may use it at a time, so it is not recorded as one-shot.
            recording = self._replay().recorded(ActionRecorder(context, name=name, family=family), b"")
            assert recording is not None  # without a table it always fits
            recording = context.kept.keep((family, *self._commands), recording)
        return recording

    def find_recording(self, context: CommandContext, family: int) -> Recording | None:
        """Returns a kept recording of equal commands, or ``None``."""
        return context.kept.use((family, *self._commands))

    def record_in(self, recorder: ActionRecorder) -> None:
        """Records the commands in an open recorder, which continues after them."""
        if self._commands:
            replay = self._replay()
            replay.record(recorder, replay.descriptors(b"") or (), tuple)
            assert recorder._recording is not None
            recorder._recording.resources += self.named

    def _replay(self) -> Replay:
        return Replay([_noted(command) for command in self._commands])


def _noted(command: Command) -> Noted:
    if command is None:
        return CommandRecorder.execution_barrier, (), {}
    pipeline, descriptors, groups, push = command
    return ActionRecorder.dispatch, (pipeline, (descriptors,), groups, push), {}
