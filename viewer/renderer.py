"""Frames of a picture, two of them under way at a time, and how long each took."""

from __future__ import annotations

import time
from typing import Final

from ..closing import Closing
from ..hal_vulkan import CommandBuffer
from ..records import dataclass
from ..runtime.device import Device
from ..status import DataLossError, OutOfRangeError, PumiceError
from .picture import Picture
from .uniforms import Uniforms

_UNDER_WAY: Final = 2
_CALIBRATE_EVERY: Final = 256  # frames, as clocks drift apart


@dataclass(slots=True, frozen=True)
class FrameTiming:
    """Times of one frame.

    Attributes:
        gpu_ns: from the begin of its commands to their end, on the device.
        latency_ns: from the host's call to the end on the device, by calibrated clocks.
    """

    gpu_ns: float
    latency_ns: float


@dataclass(slots=True)
class _Slot:
    commands: CommandBuffer
    payload: int = 0
    called_ns: int = 0


class Renderer(Closing):
    """Records and submits frames.

    Calling sequence: ``draw`` for each frame → ``close``. A frame waits for the one before the last, whose timing it
    returns.

    Attributes:
        failure: what shaders reported of the frame that was waited for last (docs/trusting-results.md), or ``None``.
        is_closed: whether it was closed.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        hal = device.vulkan
        has_clock = hal.plan.timestamp_bits > 0
        self._clock = hal.read_clock() if has_clock else None
        self._count = 0
        self.failure: PumiceError | None = None
        self.is_closed = False
        self._slots = [
            _Slot(hal.create_command_buffer(timing="span" if has_clock else False, name=f"frame {i}"))
            for i in range(_UNDER_WAY)
        ]

    def draw(self, picture: Picture, uniforms: Uniforms) -> FrameTiming | None:
        """Submits a frame; returns the timing of an earlier one, if there are timestamps."""
        slot = self._slots[self._count % _UNDER_WAY]
        self._count += 1
        if self._clock is not None and self._count % _CALIBRATE_EVERY == 0:
            self._clock = self.device.vulkan.read_clock()
        timing = self._finish(slot)
        slot.called_ns = time.monotonic_ns()
        commands = slot.commands.begin()
        picture.record(commands, uniforms)
        commands.end()
        verdicts = [report.next_verdict() for report in picture.reports]
        slot.payload = self.device.submit((commands,))
        for verdict in verdicts:
            verdict.payload = slot.payload
            self.device.verdicts.hold(slot.payload, verdict.alone, self.device.reached)
        picture.image.mark(slot.payload, written=True)
        return timing

    def _finish(self, slot: _Slot) -> FrameTiming | None:
        """Waits for a frame."""
        payload, slot.payload = slot.payload, 0
        if not payload:
            return None
        try:
            self.device.finish(payload)
            self.failure = None
        except (DataLossError, OutOfRangeError) as error:  # the picture is wrong; the next one may be right
            self.failure = error
        if self._clock is None:
            return None
        (timing,) = slot.commands.timings()
        return FrameTiming(timing.duration_ns, self._clock.host_time_ns(timing.end_ticks) - slot.called_ns)

    def close(self) -> None:
        """Leaves frames under way to the device; idempotent."""
        self.is_closed = True
        for slot in self._slots:
            slot.commands.close()
