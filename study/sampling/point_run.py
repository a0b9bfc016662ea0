"""Measures one point in this process: first call, warm-up, then block after block of samples. See ``turns.Side``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...hal.clock import ClockCalibration
from ...hal_vulkan.submit.calibration import calibrate_monotonic
from ...runtime.profiling.clock import ClockRelation
from ...status import DeviceLostError, InvalidArgumentError, PumiceError, UnimplementedError
from ..definition.point import Point
from ..definition.sample import MEASURES, Sample
from ..definition.settings import Sampling
from ..machine.disturbances import Disturbances
from ..results.storage.sink import Sink
from ..workloads.clock import RawSample, resolve
from ..workloads.openers import open_workload
from ..workloads.reference_kernel import ReferenceKernel
from ..workloads.thread_delays import since
from ..workloads.workload import Workload, WorkloadContext
from .turns import Block

MAX_BLOCK_NS: Final = 500_000_000
"""A block ends after this time, so that slow points do not delay the others."""

_MAX_WARMUP_AGAIN_NS: Final = 50_000_000
_READINGS: Final = 3
# The share of the samples' time for the reference, whose readings are spread over them, with a few at the beginning.
_WATCHING: Final = 0.15
_MIN_READINGS: Final = 3
# The longest time of a reference.
_MAX_REFERENCE_NS: Final = 20_000_000.0
_HAD_WITH: Final = {
    "create": ", which targets of kind pipeline have",
    "update": ", which it has with update = true",
    "record": ', which it has with record = "each"',
    "read": ", which it has with read = true",
}


class PointRun:
    """A side in this process; see the module."""

    is_apart = False

    def __init__(self, kind: str, point: Point, context: WorkloadContext, sampling: Sampling, sink: Sink) -> None:
        self._point = point
        self._kind = kind
        self._context = context
        self._sampling = sampling
        self._sink = sink
        self._workload: Workload | None = None
        self._timestamps = True
        self._disturbed_by = Disturbances()
        self._reference: ReferenceKernel | None = None
        self._is_referenced = not sampling.reference
        self._throttled = False
        self._readings, self._watched, self._elapsed = 0, 0.0, 0.0

    @property
    def point(self) -> Point:
        return self._point

    def start(self, block: int = 0, *, again: bool = False) -> None:
        """Opens the workload, makes the first call, and warms up; see ``Side``."""
        self.release()
        sampling = self._sampling
        workload = self._workload = open_workload(self._kind, self.point, self._context, sampling)
        before = self._reading()
        first = self._resolve([workload.first()], before)
        if math.isnan(self._headline(first[0])) and self.point.measure == "execute":
            self._explain(first[0])
        self._sink.add_samples(self.point.index, block, "first", first)
        raws: list[RawSample] = []
        begin = time.monotonic_ns()
        before = self._reading()
        warmup_ns = 0.0 if again else 1e9 * sampling.warmup_time
        most_ns = _MAX_WARMUP_AGAIN_NS if again else 1e9 * max(sampling.warmup_time, sampling.time_limit)
        while len(raws) < sampling.warmup_count or time.monotonic_ns() - begin < warmup_ns:
            raws.append(workload.sample())
            if time.monotonic_ns() - begin > most_ns:
                break
        warm: list[Sample] = []
        if raws:
            warm = self._resolve(raws, before)
            self._sink.add_samples(self.point.index, block + 1, "warmup", warm)
        self._context.pool.delays.refresh()
        if again and self._is_referenced:
            return
        probe = self._resolve([workload.sample()], self._reading())[0]
        if math.isnan(self._headline(probe)):
            self._explain(probe)
        if not self._is_referenced:
            self._open_reference([*warm, probe])

    def _open_reference(self, samples: Sequence[Sample]) -> None:
        assert self._workload is not None
        self._is_referenced = True
        execute = self.point.measure == "execute"
        taken = float(np.median([sample.execute if execute else sample.total for sample in samples]))
        try:
            self._reference = ReferenceKernel(
                self._workload.device, self._workload.load, min(taken, _MAX_REFERENCE_NS), execute=execute
            )
        except DeviceLostError:
            raise
        except PumiceError as error:
            text = f"no reference like this point's load: {error.message}"
            self._sink.add_note(text, point=self.point.index, kind="info")

    def read_reference(self) -> None:
        """Reads the reference like the point's load if it is due; call this between blocks."""
        reference = self._reference
        if reference is None or (self._readings >= _MIN_READINGS and self._watched > _WATCHING * self._elapsed):
            return
        began = time.monotonic_ns()
        reading = reference.read()
        self._sink.add_reference(
            self.point.device,
            started_ns=reading.started_ns,
            duration_ns=reading.duration_ns,
            kind="own",
            point=self.point.index,
            load=reading.load,
        )
        self._throttled = reference.changed(self._sampling.reference_limit)
        self._readings += 1
        self._watched += (time.monotonic_ns() - began) / 1e9

    def _explain(self, sample: Sample) -> None:
        measure = self.point.measure
        assert self._workload is not None
        known = [name for name in MEASURES if not math.isnan(getattr(sample, name))]
        if not sample.stage and measure in ("queue", "execute", "wake"):
            why = (
                "this target takes none"
                if self._timestamps
                else "the device writes none on its compute queue (timestampValidBits 0)"
            )
            raise UnimplementedError(
                f"{measure} needs device timestamps, and {why}; without them there is an upper bound, device (the "
                'submit call returned to the host awake): set measure = "device" or "total"'
            )
        how = _HAD_WITH.get(measure, "") if self._kind == "kernel" else ""
        raise InvalidArgumentError(f"this {self._kind} target has no {measure!r}{how}; it has {', '.join(known)}")

    def take_block(self, block: int, samples: int, *, most_ns: int = MAX_BLOCK_NS) -> Block:
        """Takes a block of samples and adds them to the sink; see ``Side``."""
        workload = self._workload
        assert workload is not None
        raws: list[RawSample] = []
        before = self._reading()
        delays = self._context.pool.delays
        waits = delays.read()
        begin = time.monotonic_ns()
        for _ in range(samples):
            raws.append(workload.sample())
            if time.monotonic_ns() - begin > most_ns:
                break
        elapsed = time.monotonic_ns() - begin
        self._elapsed += elapsed / 1e9
        times = since(waits, delays.read())
        taken = self._resolve(raws, before)
        flags = self._disturbed_by.flags(taken, times[0] if times else None, throttled=self._throttled)
        self._sink.add_samples(self.point.index, block, "sample", taken, flags)
        return Block([self._headline(sample) for sample in taken], flags, elapsed)

    @property
    def workload(self) -> Workload | None:
        """The open workload, between ``start`` and ``close``."""
        return self._workload

    def _headline(self, sample: Sample) -> float:
        return float(getattr(sample, self.point.measure))

    # -- clocks --------------------------------------------------------------------------------------

    def _reading(self) -> ClockCalibration | None:
        workload = self._workload
        if workload is None or not self._timestamps:
            return None
        hal = workload.device.vulkan
        try:
            return calibrate_monotonic(hal.compute_queue, samples=_READINGS if hal.plan.calibrated_timestamps else 1)
        except UnimplementedError:
            self._timestamps = False
            return None

    def _resolve(self, raws: Sequence[RawSample], before: ClockCalibration | None) -> list[Sample]:
        after = self._reading() if before is not None else None
        if before is None or after is None:
            return resolve(raws, None)
        self._sink.add_clock(
            self.point.device,
            host_ns=after.host_ns,
            device_ticks=after.device_ticks,
            deviation_ns=float(after.max_deviation_ns),
            ns_per_tick=after.ns_per_tick,
            calibrated=after.calibrated,
        )
        return resolve(raws, ClockRelation(self.point.device, (before, after)))

    def release(self) -> None:
        """Closes the workload; the reference stays."""
        if self._workload is not None:
            self._workload.close()
            self._workload = None

    def close(self) -> None:
        """Releases everything; idempotent."""
        if self._reference is not None:
            self._reference.close()
            self._reference = None
        self._is_referenced = not self._sampling.reference
        self.release()
