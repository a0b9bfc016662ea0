"""Prepared commands of a program, which are recorded for one binding table after another.

Overlapping calls produce ever new combinations of arguments, results and transient memory, and so tables without a kept
recording. A ``Replay`` prepares everything that does not depend on the table: it looks up pipelines, lays out push
constants, and leaves out state that the previous command has set. What remains is to write the table's ranges into
descriptors and to make the native calls. (Measured in benchmarks/recording.py.)

Thread rule: immutable; any thread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from ...hal.command_buffer import BindingSlot, CommandBufferState, resolve_slots
from ..memory.buffer import Buffer
from ..pipelines.descriptors import BIND_POINT_COMPUTE, COMPUTE_STAGE
from ..pipelines.pipeline import BoundSets, ComputePipeline
from ..vulkan.functions import NULL, CData, ffi
from .action_recorder import ActionRecorder, Groups
from .recorder import CommandRecorder
from .recording import Recording

_RANGE: Final = struct.Struct("=QQQQ")  # a descriptor: handle, offset, size, serial

Noted: TypeAlias = "tuple[Callable[..., None], tuple[Any, ...], dict[str, int]]"
"""A command as ``CommandRecorder`` notes it: method, arguments, and offsets by name."""


class _Part(NamedTuple):
    """A range of a slot; a ``size`` of ``None`` means up to the end of the table's entry."""

    slot: int
    offset: int
    size: int | None


class _Dispatch(NamedTuple):
    """A dispatch whose bindings are buffers, as descriptors or parts of slots."""

    pipeline: ComputePipeline
    binds: bool  # whether the dispatch must bind the pipeline
    bindings: tuple[bytes | _Part, ...]
    push: CData | None  # None if the previous command has pushed the same
    push_bytes: int
    groups: Groups


class _Command(NamedTuple):
    """Any other command."""

    noted: Noted
    is_barrier: bool


class Replay:
    """Prepared commands: call ``descriptors``, then ``record`` with the result."""

    def __init__(self, commands: Sequence[Noted]) -> None:
        self._steps: list[_Dispatch | _Command] = []
        last: ComputePipeline | None = None
        last_push: bytes | None = None
        for noted in commands:
            command, arguments, _ = noted
            if command is CommandRecorder.execution_barrier:
                self._steps.append(_Command(noted, True))
                continue
            bindings = _bindings_of(arguments) if command is ActionRecorder.dispatch else None
            if bindings is None:
                self._steps.append(_Command(noted, False))
                last = last_push = None
                continue
            pipeline, _, groups, push = arguments
            if last is None or pipeline.layout != last.layout:
                last_push = None
            padded = push + bytes(-len(push) % 4)
            pushed = ffi.new("char[]", padded) if padded and push != last_push else None
            self._steps.append(_Dispatch(pipeline, pipeline is not last, bindings, pushed, len(padded), groups))
            last, last_push = pipeline, push
        self._reports = tuple(
            {dispatch.pipeline.report: None for dispatch in self._dispatches() if dispatch.pipeline.report}
        )

    def _dispatches(self) -> list[_Dispatch]:
        return [step for step in self._steps if isinstance(step, _Dispatch)]

    def descriptors(self, key: bytes) -> list[bytes] | None:
        """Returns the descriptors of each dispatch, for a table with these joined descriptors.

        Returns:
            The descriptors, or ``None`` if a binding might not accept a range: then recording command by command gives
                the message.
        """
        words = struct.unpack(f"={len(key) // 8}Q", key)
        descriptors: list[bytes] = []
        for pipeline, _, bindings, *_ in self._dispatches():
            mask, most = pipeline.device.bind_limits
            whole = pipeline.interface.whole_words
            parts: list[bytes] = []
            for part in bindings:
                if type(part) is bytes:
                    parts.append(part)
                    continue
                slot, offset, size = part
                if 4 * slot >= len(words):
                    return None
                handle, start, room, serial = words[4 * slot : 4 * slot + 4]
                start += offset
                room -= offset
                if size is None:
                    size = room
                if start & mask or not 0 < size <= room or size > most:
                    return None
                if whole:
                    size = min((size + 3) & ~3, most)
                parts.append(_RANGE.pack(handle, start, size, serial))
            descriptors.append(b"".join(parts) + pipeline.tail)
        return descriptors

    def recorded(
        self, recorder: ActionRecorder, key: bytes, table: Callable[[], Sequence[object]] = tuple
    ) -> Recording | None:
        """Returns a whole recording by a new recorder, for a table with these joined descriptors.

        Returns:
            The recording, or ``None`` as from ``descriptors``.
        """
        descriptors = self.descriptors(key)
        if descriptors is None:
            return None
        recorder.state = CommandBufferState.RECORDING
        recorder._open()
        recording = recorder._recording
        assert recording is not None
        try:
            self.record(recorder, descriptors, table)
            recorder._finish()
        except BaseException:
            recorder.context.recycle(recording)  # no queue has seen it
            raise
        return recording

    def record(
        self, recorder: ActionRecorder, descriptors: Sequence[bytes], table: Callable[[], Sequence[object]]
    ) -> None:
        """Records the commands; ``table`` has the buffers of the slots, for commands other than dispatches."""
        fn, handle, barriers = recorder.device.fn, recorder._handle, recorder._barriers
        recording = recorder._recording
        assert recording is not None
        with recorder.device.guard.lock:
            recorder.device.check_not_ended()
            recording.reports = self._reports
            remaining = iter(descriptors)
            for step in self._steps:
                if isinstance(step, _Dispatch):
                    pipeline, binds, _, push, push_bytes, groups = step
                    if binds:
                        fn.vkCmdBindPipeline(handle, BIND_POINT_COMPUTE, pipeline.handle)
                    infos = next(remaining)
                    if pipeline.push_template is not None:
                        fn.vkCmdPushDescriptorSetWithTemplateKHR(
                            handle, pipeline.push_template, pipeline.layout, 0, ffi.from_buffer(infos)
                        )
                    else:
                        bound = BoundSets(pipeline, (), pipeline.pin_sets((), infos))
                        recording.take_over(bound)
                        recorder._bind_sets(pipeline, bound)
                    if push is not None:
                        fn.vkCmdPushConstants(handle, pipeline.layout, COMPUTE_STAGE, 0, push_bytes, push)
                    fn.vkCmdDispatch(handle, *groups)
                elif step.is_barrier:
                    barriers.record(handle, *barriers.between)
                else:
                    # The command may bind another pipeline, so the recorder no longer knows the bound one.
                    recorder._pipeline = recorder._bound = None
                    recorder._bound_layout = NULL
                    recorder._push = b""
                    command, arguments, offsets = step.noted
                    resolved = table()
                    command(recorder, *(resolve_slots(argument, resolved) for argument in arguments), **offsets)


def _bindings_of(arguments: tuple[Any, ...]) -> tuple[bytes | _Part, ...] | None:
    """Returns the bindings of a noted dispatch; ``None`` unless all are buffers, bound as descriptors."""
    pipeline, bindings, _, _ = arguments
    if isinstance(bindings, BoundSets) or not pipeline.takes_plain_buffers:
        return None
    parts: list[bytes | _Part] = []
    for binding in bindings:
        if isinstance(binding, bytes):
            parts.append(binding)  # already a descriptor, or several
        elif isinstance(binding, BindingSlot):
            parts.append(_Part(binding.slot, binding.offset, binding.size))
        elif isinstance(binding, Buffer):
            if not binding.bindable:
                return None
            rounds = pipeline.interface.whole_words and binding.size & 3
            parts.append(binding.word_descriptor() if rounds else binding.descriptor)
        else:
            return None
    return tuple(parts)
