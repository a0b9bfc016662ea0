"""Measures one point: first call, warm-up, then block after block of samples.

Calling sequence: ``PointRun`` → ``start`` → ``take_block`` until its decision is done → ``close``.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...hal.clock import ClockCalibration
from ...hal_vulkan.submit.calibration import calibrate_monotonic
from ...records import dataclass
from ...runtime.profiling.clock import ClockRelation
from ...status import InvalidArgumentError, UnimplementedError
from ..definition.point import Point
from ..definition.sample import MEASURES, Sample
from ..definition.settings import Sampling
from ..results.records import DISTURBED, SampleFlag, kept
from ..results.sink import Sink
from ..workloads.clock import RawSample, resolve
from ..workloads.openers import open_workload
from ..workloads.workload import Workload, WorkloadContext
from .stopping import Decision, StopRule

# A block ends after this time, so that slow points do not delay the others.
_MAX_BLOCK_NS: Final = 500_000_000
_READINGS: Final = 3
# A larger deviation, as a fraction of the total, puts device times in doubt.
_UNSURE: Final = 0.05
_HAD_WITH: Final = {
    "create": ", which targets of kind pipeline have",
    "update": ", which it has with update = true",
    "record": ', which it has with record = "each"',
    "read": ", which it has with read = true",
}


@dataclass
class Prior:
    """The samples of a point from earlier runs: headline, block and disturbance of each, and the first unused block."""

    values: Sequence[float] = ()
    blocks: Sequence[int] = ()
    disturbed: Sequence[int] = ()
    next_block: int = 0


class PointRun:
    """One point; see the module. ``count`` includes samples of earlier runs, ``preempted`` and ``throttled`` do not."""

    def __init__(
        self,
        kind: str,
        point: Point,
        context: WorkloadContext,
        sampling: Sampling,
        sink: Sink,
        prior: Prior | None = None,
    ) -> None:
        self.point = point
        self.preempted = self.throttled = 0
        self._kind = kind
        self._context = context
        self._sampling = sampling
        self._sink = sink
        self._rule = StopRule(sampling)
        self._elapsed = 0.0
        prior = prior or Prior()
        # Arrays, which NumPy reads without a copy: converting long lists after each block took longer than samples.
        self._values = array("d", prior.values)
        self._blocks = array("q", prior.blocks)
        self._disturbed = array("b", prior.disturbed)
        self._block = prior.next_block
        self.count = len(prior.values)
        self._workload: Workload | None = None
        self._timestamps = True

    def start(self) -> None:
        """Opens the workload, makes the first call, and warms up."""
        sampling = self._sampling
        workload = self._workload = open_workload(self._kind, self.point, self._context, sampling)
        before = self._reading()
        first = self._resolve([workload.first()], before)
        if math.isnan(self._headline(first[0])) and self.point.measure == "execute":
            self._explain(first[0])
        self._sink.add_samples(self.point.index, self._block, "first", first)
        self._block += 1
        raws: list[RawSample] = []
        begin = time.monotonic()
        before = self._reading()
        while len(raws) < sampling.warmup_count or time.monotonic() - begin < sampling.warmup_time:
            raws.append(workload.sample())
            if time.monotonic() - begin > max(sampling.warmup_time, sampling.time_limit):
                break
        if raws:
            self._sink.add_samples(self.point.index, self._block, "warmup", self._resolve(raws, before))
            self._block += 1
        probe = self._resolve([workload.sample()], self._reading())[0]
        if math.isnan(self._headline(probe)):
            self._explain(probe)

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

    def take_block(self, *, throttled: bool) -> Decision:
        """Takes a block of samples, adds them to the sink, and decides whether the point is done."""
        workload, sampling = self._workload, self._sampling
        assert workload is not None
        raws: list[RawSample] = []
        before = self._reading()
        begin = time.monotonic_ns()
        wanted = min(sampling.block, max(1, sampling.max_samples - self.count))
        for _ in range(wanted):
            raws.append(workload.sample())
            if time.monotonic_ns() - begin > _MAX_BLOCK_NS:
                break
        self._elapsed += (time.monotonic_ns() - begin) / 1e9
        samples = self._resolve(raws, before)
        flags = [self._flags(sample, throttled) for sample in samples]
        self._sink.add_samples(self.point.index, self._block, "sample", samples, flags)
        self.count += len(samples)
        for sample, flag in zip(samples, flags, strict=True):
            self.preempted += bool(flag & SampleFlag.PREEMPTED)
            self.throttled += bool(flag & SampleFlag.THROTTLED)
            self._values.append(self._headline(sample))
            self._blocks.append(self._block)
            self._disturbed.append(bool(flag & DISTURBED))
        self._block += 1
        keep = kept(np.frombuffer(self._disturbed, np.bool_))
        # Excluded samples count too, so that a machine that disturbs every sample does not keep the point open.
        elapsed = math.inf if self.count >= sampling.max_samples else self._elapsed
        values, blocks = np.frombuffer(self._values), np.frombuffer(self._blocks, np.int64)
        return self._rule.update(values[keep], blocks=blocks[keep], elapsed=elapsed)

    @property
    def workload(self) -> Workload | None:
        """What runs for a sample, between ``start`` and ``close``."""
        return self._workload

    @property
    def prior(self) -> Prior:
        """The samples so far, for another run of the point."""
        return Prior(self._values, self._blocks, self._disturbed, self._block)

    @property
    def progress(self) -> float:
        sampling = self._sampling
        return min(1.0, max(self.count / sampling.max_samples, self._elapsed / max(sampling.time_limit, 1e-9)))

    def _flags(self, sample: Sample, throttled: bool) -> SampleFlag:
        flag = SampleFlag.THROTTLED if throttled else SampleFlag(0)
        if sample.preemptions > 0:
            flag |= SampleFlag.PREEMPTED
        if sample.deviation > _UNSURE * sample.total or sample.wake < -max(sample.deviation, 0.0) - 1000:
            flag |= SampleFlag.CLOCK_UNSURE
        return flag

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

    def close(self) -> None:
        if self._workload is not None:
            self._workload.close()
            self._workload = None
