"""The push constants of a recording in memory, where runs change them without new commands.

The kernels of a recording whose push constants change read them from a buffer: a block for each call. A run that
changes values writes them into a *slot* of host memory, and submits a copy from there before the recording. So current
runs keep their values. A slot is used again when its copy has run.

Thread rule: the recording's lock is held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ...base.closeable import Closeable
from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from ..arrays.array_device import UPLOAD, ArrayDevice
from ..arrays.recorder import Step
from ..kernels.bound_call import Binder
from ..kernels.recorded_call import RecordedCall
from .values import Value, push_targets

_MAX_SLOTS: Final = 64

_Targets: TypeAlias = Sequence[tuple[RecordedCall, str, Sequence[slice]]]
"""The calls of a kernel whose push constant a name stands for: one of them, the name there, and the places."""


class _Slot:
    """Host memory for the values of one run, and the commands that copy them to the blocks."""

    def __init__(self, device: ArrayDevice, blocks: Buffer) -> None:
        self.buffer = device.hal.create_buffer(blocks.size, memory_type=UPLOAD)
        self.commands = device.copies(((self.buffer, blocks),), "push constants", one_shot=False)
        self.payload = 0

    def close(self) -> None:
        self.commands.close()
        self.buffer.close()


class PushBlocks(Closeable):
    """The blocks of push constants of a recording's calls.

    Attributes:
        parts: the memory of the block of each call that has one, by the call's index.
        data: the values of runs that change none.
    """

    def __init__(self, device: ArrayDevice, steps: Sequence[Step]) -> None:
        """Makes room for the blocks of all calls that can read them from memory."""
        self._device = device
        calls = {
            index: step
            for index, step in enumerate(steps)
            if isinstance(step, RecordedCall) and step.call.push and step.memory.pipeline() is not None
        }
        stride = device.vulkan.profile.limits.min_storage_buffer_offset_alignment
        self._places: dict[int, tuple[int, int]] = {}
        size = 0
        for index, call in calls.items():
            length = -(-len(call.call.push) // 4) * 4
            self._places[index] = size, length
            size += -(-length // stride) * stride
        self._buffer = device.hal.create_buffer(max(4, size))
        self.parts: dict[int, Buffer] = {
            index: self._buffer.subspan(start, length) for index, (start, length) in self._places.items()
        }
        self._targets: dict[str, _Targets] = {}
        self._checked: dict[str, bytes] = {}  # the data in which a name was found to stand for one value
        self._slots: deque[_Slot] = deque()
        self._on_device = b""
        self.data: bytes = b""
        self.take(steps)

    def take(self, steps: Sequence[Step]) -> None:
        """Takes the values, and the calls that names stand for, from the recording's steps."""
        data = bytearray(self._buffer.size)
        for index, (start, _) in self._places.items():
            step = steps[index]
            assert isinstance(step, RecordedCall)
            data[start : start + len(step.call.push)] = step.call.push
        self.data = bytes(data)
        self._steps = steps
        self._targets.clear()
        self._checked.clear()

    def settled(self) -> tuple[Step, ...]:
        """Returns the recording's steps with the values of ``data``."""
        steps = list(self._steps)
        for index, (start, _) in self._places.items():
            call = steps[index]
            assert isinstance(call, RecordedCall)
            steps[index] = call.with_push_bytes(self.data[start : start + len(call.call.push)])
        return tuple(steps)

    def changed(self, values: Mapping[str, Value]) -> bytes | None:
        """Returns ``data`` with other values; ``None`` where the recording's steps have to be changed for them."""
        data = bytearray(self.data)
        for name, value in values.items():
            targets = self._targets.get(name)
            if targets is None:
                targets = self._targets[name] = self._targets_of(name)
            if not targets:
                return None
            if len(values) > 1 or self._checked.get(name) is not self.data:
                if len({bytes(data[part]) for _, _, parts in targets for part in parts}) > 1:
                    return None  # ambiguous
                if len(values) == 1:
                    self._checked[name] = self.data
            for call, member, parts in targets:
                packed = call.packed(member, value)
                for part in parts:
                    data[part] = packed
        return bytes(data)

    def _targets_of(self, name: str) -> _Targets:
        """Returns the places of a push constant; none if they are not all in memory."""
        parts: dict[tuple[Binder, str], list[slice]] = {}
        calls: dict[tuple[Binder, str], RecordedCall] = {}
        for index, member in push_targets(self._steps, name):
            if index not in self._places:
                return ()
            call = self._steps[index]
            assert isinstance(call, RecordedCall)
            declared = call.binder.push_members[member]
            start = self._places[index][0] + declared.offset
            key = call.binder, member
            calls[key] = call
            parts.setdefault(key, []).append(slice(start, start + declared.size))
        return [(calls[key], key[1], parts[key]) for key in parts]

    def copy_of(self, data: bytes) -> tuple[CommandBuffer, ...]:
        """Returns the commands that write values to the blocks, if other than the last ones; ``noted`` follows."""
        if data == self._on_device:
            return ()
        slots, device = self._slots, self._device
        if slots and slots[0].payload < 0:  # an interrupt or an error: its copy may be under way
            slots.popleft().close()
        if slots and device.stream.reached < slots[0].payload and not device.has_reached(slots[0].payload):
            if len(slots) < _MAX_SLOTS:
                slots.appendleft(_Slot(device, self._buffer))
            else:
                device.reach(slots[0].payload)
        elif not slots:
            slots.append(_Slot(device, self._buffer))
        slot = slots[0]
        slot.buffer.write(data)
        slot.payload = -1
        self._on_device = b""  # until it is submitted
        return (slot.commands,)

    def noted(self, data: bytes, payload: int) -> None:
        """Notes the submission of ``copy_of(data)``."""
        self._slots[0].payload = payload
        self._slots.rotate(-1)
        self._on_device = data

    def close(self) -> None:
        """Frees the memory once current runs have finished; idempotent."""
        for slot in self._slots:
            slot.close()
        self._slots.clear()
        self._buffer.close()
