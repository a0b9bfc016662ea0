"""Samples the points of one device, their blocks in random order, until each is done.

Several points are open at a time (``Sampling.interleave``). Each turn goes to one of them, or to a pair (``pair_run``),
drawn at random from those with the fewest turns. So a slow change of the machine affects all points alike, and the
blocks of a point are spread over time, which reveals differences between them.

Between turns reference kernels run for at most a fifth of the time: one of a single workgroup, for the machine, and one
like each point's load. The machine's state and clocks are read, too.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, field
from typing import Any, Protocol, cast

from ...base.lazy_dataclass import dataclass
from ...status import DeviceLostError, PumiceError, ResourceExhaustedError
from ..definition.point import Point, paired
from ..definition.settings import Sampling
from ..machine.machine_state import Watch
from ..results.storage.records import PointStatus, status_of
from ..results.storage.sink import Sink
from ..workloads.workload import DevicePool
from .pair_run import PairRun
from .single_run import SingleRun
from .stopping import Decision
from .turns import Prior, Side, Turns, failure_of


class Progress(Protocol):
    """Receives the progress of a run."""

    def advance(self, point: Point, fraction: float) -> None:
        """Receives the estimated progress of a point, from 0 to 1."""

    def finished(self, point: Point, status: PointStatus, reason: str) -> None:
        """Receives the end of a point."""


@dataclass(slots=True)
class SampleRun:
    """The outcome of sampling: the points by outcome, and the disturbances.

    Attributes:
        done, noisy, failed, skipped: the indices of points; failed and skipped (impossible on the device) with the
            error.
        samples, preempted, throttled, starved: the numbers of samples in this run, and of those that were disturbed.
        sampling_ns, elapsed_ns: the host time of samples and of the run.
    """

    done: list[int] = field(default_factory=list)
    noisy: list[int] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)
    samples: int = 0
    preempted: int = 0
    throttled: int = 0
    starved: int = 0
    sampling_ns: int = 0
    elapsed_ns: int = 0

    def __add__(self, other: SampleRun) -> SampleRun:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return SampleRun(*(mine | its if isinstance(mine, dict) else mine + its for mine, its in pairs))


class Sampler:
    """Samples points of one device; see the module. Each ``repeat`` has its own order. One thread at a time."""

    def __init__(
        self,
        open_side: Callable[[Point, Sink], Side],
        sampling: Sampling,
        pool: DevicePool,
        sink: Sink,
        progress: Progress | None = None,
        repeat: int = 1,
    ) -> None:
        self._open_side = open_side
        self._sampling = sampling
        self._pool = pool
        self._watched = _WatchedSink(sink)
        self._sink = cast(Sink, self._watched)
        self._progress = progress
        self._random = random.Random(sampling.seed + repeat - 1)
        # Samples and failed points when the device was last lost.
        self._at_loss = (-1, -1)

    def run(self, points: Iterable[Point], priors: Mapping[int, Prior] | None = None) -> SampleRun:
        """Samples points, all of one device, until each is done, noisy or failed. Raises if the sink fails, or if the
        device cannot be opened or is lost repeatedly without progress.
        """
        began = time.monotonic_ns()
        waiting = [self._turns(pair, priors or {}) for pair in paired(points)]
        result = SampleRun()
        self._random.shuffle(waiting)
        try:
            while waiting:
                self._run_on_device(waiting, result)
        finally:
            result.elapsed_ns = time.monotonic_ns() - began
        return result

    def _turns(self, points: Sequence[Point], priors: Mapping[int, Prior]) -> Turns:
        new, *old = ((self._open_side(point, self._sink), priors.get(point.index, Prior())) for point in points)
        if not old:
            return SingleRun(new[0], self._sampling, new[1])
        ((other, its),) = old
        return PairRun(new[0], other, self._sampling, self._random, new[1], its)

    def _run_on_device(self, waiting: list[Turns], result: SampleRun) -> None:
        """Samples until no point is left or the device is lost; after a loss, the open points wait for a new device."""
        uri = waiting[0].points[0].device
        watch = Watch(uri, self._pool.open(uri), self._sink, reference=self._sampling.reference)
        active: list[tuple[Turns, int]] = []  # with the number of their turns
        try:
            while active or waiting:
                while waiting and self._has_place(waiting[-1], active):
                    run = waiting.pop()
                    if self._start(run, result):
                        active.append((run, 0))
                if not active:
                    break
                watch.read()
                fewest = min(turns for _, turns in active)
                chosen = self._random.choice([i for i, (_, turns) in enumerate(active) if turns == fewest])
                run, turns = active[chosen]
                active[chosen] = (run, turns + 1)
                if self._take_turn(run, result):
                    del active[chosen]
            watch.end()
        except DeviceLostError as error:
            reached = (result.samples, len(result.failed))
            if self._watched.failure is not None or reached == self._at_loss:
                raise
            self._at_loss = reached
            self._sink.add_note(f"the device was lost and opened again: {error.message}")
            waiting += [run for run, _ in active if run.points[0].index not in result.failed]
        finally:
            for run, _ in active:
                run.close()
            watch.close()

    def _has_place(self, run: Turns, active: Sequence[tuple[Turns, int]]) -> bool:
        """Whether points may be opened beside the open ones; a pair may only be opened alone."""
        wanted = sum(len(other.points) for other, _ in active) + len(run.points)
        return not active or wanted <= self._sampling.interleave

    def _start(self, run: Turns, result: SampleRun) -> bool:
        """Opens points; returns whether that succeeded."""
        for point in run.points:
            self._sink.set_status(point.index, PointStatus.SAMPLING)
        try:
            with _memory_errors():
                run.start()
        except PumiceError as error:
            self._fail(run, error, result)
            return False
        except BaseException:
            run.close()
            raise
        return True

    def _take_turn(self, run: Turns, result: SampleRun) -> bool:
        """Takes a turn; returns whether the points have ended."""
        count, preempted, throttled, starved = run.count, run.preempted, run.throttled, run.starved
        began = time.monotonic_ns()
        try:
            with _memory_errors():
                decision = run.take_turn()
        except PumiceError as error:
            self._fail(run, error, result)
            return True
        result.sampling_ns += time.monotonic_ns() - began
        result.samples += run.count - count
        result.preempted += run.preempted - preempted
        result.throttled += run.throttled - throttled
        result.starved += run.starved - starved
        if self._progress is not None:
            for point in run.points:
                self._progress.advance(point, run.progress)
        if not decision.done:
            return False
        run.close()
        self._finish(run, decision, result)
        return True

    def _finish(self, run: Turns, decision: Decision, result: SampleRun) -> None:
        status = PointStatus.NOISY if decision.noisy else PointStatus.DONE
        reason = run.explain(decision)
        for point in run.points:
            self._sink.set_status(point.index, status, reason)
            (result.noisy if decision.noisy else result.done).append(point.index)
            if self._progress is not None:
                self._progress.finished(point, status, reason)

    def _fail(self, run: Turns, error: PumiceError, result: SampleRun) -> None:
        """Marks points as failed; raises if the error is the sink's or the device's."""
        run.close()
        if self._watched.failure is not None:
            raise error
        reason, status = failure_of(run.at, len(run.points), error), status_of(error)
        for point in run.points:
            self._sink.set_status(point.index, status, reason)
            (result.skipped if status is PointStatus.SKIPPED else result.failed)[point.index] = reason
            if self._progress is not None:
                self._progress.finished(point, status, reason)
        if isinstance(error, DeviceLostError):
            raise error


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    """Raises ResourceExhaustedError for MemoryError: only the point fails."""
    try:
        yield
    except PumiceError:  # ResourceExhaustedError is a MemoryError with a better message
        raise
    except MemoryError as error:
        raise ResourceExhaustedError(f"the host is out of memory: {error}; make the point smaller") from error


class _WatchedSink:
    """Forwards to a sink and keeps its first error, which is not the measured point's."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.failure: BaseException | None = None

    def __getattr__(self, name: str) -> object:
        method = getattr(self._sink, name)

        def call(*arguments: Any, **named: Any) -> object:
            try:
                return method(*arguments, **named)
            except BaseException as error:
                self.failure = self.failure or error
                raise

        return call
