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
from ...status import DeviceLostError, InvalidArgumentError, PumiceError, UnimplementedError
from ..definition.point import Point
from ..definition.sample import MEASURES, Sample
from ..definition.settings import Sampling
from ..results.records import DISTURBED, SampleFlag, kept
from ..results.sink import Sink
from ..workloads.clock import RawSample, resolve
from ..workloads.openers import open_workload
from ..workloads.reference_kernel import ReferenceKernel
from ..workloads.thread_delays import since
from ..workloads.workload import Workload, WorkloadContext
from .disturbances import Disturbances
from .stopping import Decision, StopRule

# A block ends after this time, so that slow points do not delay the others.
_MAX_BLOCK_NS: Final = 500_000_000
_READINGS: Final = 3
# Of the time of samples, for the reference; but a few readings whatever they take.
_WATCHING: Final = 0.1
_MIN_READINGS: Final = 8
# Longer kernels have a reference that takes this long.
_MAX_REFERENCE_NS: Final = 20_000_000.0
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
    """One point; see the module. ``count`` includes samples of earlier runs, ``preempted``, ``throttled`` and
    ``starved`` do not.
    """

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
        self.preempted = self.throttled = self.starved = 0
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
        self._disturbed_by = Disturbances()
        self._reference: ReferenceKernel | None = None
        self._throttled = False
        self._readings, self._watched = 0, 0.0

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
        warm: list[Sample] = []
        if raws:
            warm = self._resolve(raws, before)
            self._sink.add_samples(self.point.index, self._block, "warmup", warm)
            self._block += 1
        probe = self._resolve([workload.sample()], self._reading())[0]
        if math.isnan(self._headline(probe)):
            self._explain(probe)
        self._context.pool.delays.refresh()
        if sampling.reference and self._reference is None:
            self._open_reference([*warm, probe])

    def _open_reference(self, samples: Sequence[Sample]) -> None:
        assert self._workload is not None
        execute = self.point.measure == "execute"
        taken = float(np.median([one.execute if execute else one.total for one in samples]))
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
        """Reads the reference like the point's load, if it is due; call it between blocks."""
        reference = self._reference
        if reference is None or (self._readings >= _MIN_READINGS and self._watched > _WATCHING * self._elapsed):
            return
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
        self._watched += (time.monotonic_ns() - reading.started_ns) / 1e9

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

    def take_block(self) -> Decision:
        """Takes a block of samples, adds them to the sink, and decides whether the point is done."""
        workload, sampling = self._workload, self._sampling
        assert workload is not None
        raws: list[RawSample] = []
        before = self._reading()
        delays = self._context.pool.delays
        waits = delays.read()
        begin = time.monotonic_ns()
        wanted = min(sampling.block, max(1, sampling.max_samples - self.count))
        for _ in range(wanted):
            raws.append(workload.sample())
            if time.monotonic_ns() - begin > _MAX_BLOCK_NS:
                break
        self._elapsed += (time.monotonic_ns() - begin) / 1e9
        times = since(waits, delays.read())
        samples = self._resolve(raws, before)
        flags = self._disturbed_by.flags(samples, times[0] if times else None, throttled=self._throttled)
        self._sink.add_samples(self.point.index, self._block, "sample", samples, flags)
        self.count += len(samples)
        for sample, flag in zip(samples, flags, strict=True):
            self.preempted += bool(flag & SampleFlag.PREEMPTED)
            self.throttled += bool(flag & SampleFlag.THROTTLED)
            self.starved += bool(flag & SampleFlag.STARVED)
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
    def disturbances(self) -> str:
        """What was seen, for people; empty for nothing."""
        seen = (
            (self.starved, "while threads waited for a core"),
            (self.preempted, "with a thread preempted"),
            (self.throttled, "while the reference like this load ran at another speed"),
        )
        return ", ".join(f"{count} samples {how}" for count, how in seen if count)

    @property
    def progress(self) -> float:
        sampling = self._sampling
        return min(1.0, max(self.count / sampling.max_samples, self._elapsed / max(sampling.time_limit, 1e-9)))

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
        if self._reference is not None:
            self._reference.close()
            self._reference = None
        if self._workload is not None:
            self._workload.close()
            self._workload = None
