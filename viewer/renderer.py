"""Frames of a picture, two in flight at a time, with their durations."""

from __future__ import annotations

import time
from typing import Final

from ..base.closeable import Closeable
from ..base.lazy_dataclass import dataclass
from ..hal_vulkan import Buffer, CommandBuffer, MemoryTypeFlags
from ..runtime.device import Device
from ..status import DataLossError, OutOfRangeError, PumiceError
from .picture import Picture
from .uniforms import UNIFORM_BYTES, Uniforms

_UNDER_WAY: Final = 2
_TOLD: Final = MemoryTypeFlags.HOST_VISIBLE | MemoryTypeFlags.DEVICE_VISIBLE
_CALIBRATE_EVERY: Final = 256  # frames, as clocks drift apart


@dataclass(slots=True, frozen=True)
class FrameTiming:
    """Times of one frame.

    Attributes:
        gpu_ns: the time from the begin of its commands to their end, on the device.
        latency_ns: the time from the host's call to the end on the device, by calibrated clocks.
    """

    gpu_ns: float
    latency_ns: float


@dataclass(slots=True)
class _Commands:
    buffer: CommandBuffer
    recorded: object = None  # of the picture whose commands these are


@dataclass(slots=True)
class _Slot:
    plain: _Commands
    timed: _Commands | None
    told: Buffer
    payload: int = 0
    called_ns: int = 0
    ran: _Commands | None = None


class Renderer(Closeable):
    """Submits frames; their commands are recorded if they differ from those of two frames before.

    Calling sequence: ``draw`` for each frame → ``close``. A frame waits for the one before the last, whose timing it
    returns.

    Attributes:
        failure: the shaders' report on the last frame that was waited for (docs/trusting-results.md), or ``None``.
        is_closed: whether the renderer was closed.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        hal = device.vulkan
        has_clock = hal.plan.timestamp_bits > 0
        self._clock = hal.read_clock() if has_clock else None
        self._count = 0
        self.failure: PumiceError | None = None
        self.is_closed: bool = False
        self._slots = [
            _Slot(
                _Commands(hal.create_command_buffer(name=f"frame {i}")),
                _Commands(hal.create_command_buffer(timing="span", name=f"timed frame {i}")) if has_clock else None,
                hal.create_buffer(UNIFORM_BYTES, memory_type=_TOLD),
            )
            for i in range(_UNDER_WAY)
        ]

    def draw(self, picture: Picture, uniforms: Uniforms, *, timed: bool = True) -> FrameTiming | None:
        """Submits a frame; returns the timing of an earlier one, if that was timed.

        Args:
            picture: the picture to draw.
            uniforms: the frame's values.
            timed: whether to write timestamps, if the device has them. On a CPU they cost tenths of a millisecond.
        """
        slot = self._slots[self._count % _UNDER_WAY]
        self._count += 1
        if self._clock is not None and self._count % _CALIBRATE_EVERY == 0:
            self._clock = self.device.vulkan.read_clock()
        timing = self._finish(slot)
        slot.called_ns = time.monotonic_ns()
        slot.ran = chosen = slot.timed if timed and slot.timed is not None else slot.plain
        commands = chosen.buffer
        if chosen.recorded is None or chosen.recorded is not picture.recorded:
            chosen.recorded = None
            picture.record(commands.begin(), uniforms, slot.told)
            commands.end()
            chosen.recorded = picture.recorded
        slot.told.write(picture.pack(uniforms))
        verdicts = [report.next_verdict() for report in picture.reports]
        slot.payload = self.device.submit((commands,))
        for verdict in verdicts:
            verdict.payload = slot.payload
            self.device.verdicts.hold(slot.payload, verdict.alone)
        picture.image.mark(slot.payload, written=True)
        return timing

    def _finish(self, slot: _Slot) -> FrameTiming | None:
        payload, slot.payload = slot.payload, 0
        if not payload:
            return None
        try:
            self.device.finish(payload)
            self.failure = None
        except (DataLossError, OutOfRangeError) as error:  # the picture is wrong; the next one may be right
            self.failure = error
        if self._clock is None or slot.ran is None or slot.ran is not slot.timed:
            return None
        (timing,) = slot.ran.buffer.timings()
        return FrameTiming(timing.duration_ns, self._clock.host_time_ns(timing.end_ticks) - slot.called_ns)

    def close(self) -> None:
        """Leaves frames in flight to the device; idempotent."""
        self.is_closed = True
        for slot in self._slots:
            slot.plain.buffer.close()
            if slot.timed is not None:
                slot.timed.buffer.close()
            slot.told.close()
