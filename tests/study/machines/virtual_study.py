"""Studies on virtual machines: the real sampler on a virtual clock, with simulated workloads.

Whatever touches a device or the system is replaced: workloads, the reference kernel's runs, devices, and the readers of
clocks. Whatever decides is real: turns, rounds, stop rules, flags, results and comparisons.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from machine import Machine
from memory_results import MemoryResults

from pumice.runtime.device import Device
from pumice.status import UnimplementedError
from pumice.study.definition.expansion import expand
from pumice.study.definition.point import Point
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.machine import machine_state
from pumice.study.runs.runner import sample_points
from pumice.study.sampling import point_run
from pumice.study.workloads.clock import RawSample
from pumice.study.workloads.reference_kernel import ReferenceKernel
from pumice.study.workloads.thread_delays import ThreadTimes
from pumice.study.workloads.workload import Load, WorkloadContext

DEVICE = "virtual"
EQUAL, SLOWER = "equal", "slower"
"""The targets of a study: both sides do the same work, or the new one does more."""


class VirtualRun:
    """Runs studies on one machine at a time; ``machine`` and the work of both sides may change between runs."""

    def __init__(self, machine: Machine, work: float, slower: float) -> None:
        self.machine = machine
        self.work = work
        self.slower = slower
        self.is_new = True

    def work_of(self, point: Point) -> float:
        new = self.is_new and not point.is_against
        return self.work * (self.slower if new and point.target == SLOWER else 1.0)


def study(sampling: Sampling, *, paired: bool) -> Study:
    """Returns a study of both targets; for pairs, its other side is the same study."""
    targets = tuple(Target(name, "submit", {}, measure="total") for name in (EQUAL, SLOWER))
    single = Study("virtual", targets, sampling=sampling)
    return Study("virtual", targets, sampling=sampling, against=single) if paired else single


def measure(run: VirtualRun, study: Study, results: MemoryResults | None = None, *, repeat: int = 1) -> MemoryResults:
    """Samples all points of a study on the machine, within ``virtual_time``."""
    points = expand(study, (DEVICE,))
    kept = MemoryResults(study, points) if results is None else results
    kept.begin_run({}, repeat=repeat)
    kept.add_device(DEVICE, name=DEVICE, driver=DEVICE, facts={"type": "CPU"})
    sample_points(study, points, _VirtualPool(run), kept)  # type: ignore[arg-type]
    kept.end_run()
    return kept


@contextlib.contextmanager
def virtual_time(run: VirtualRun) -> Iterator[None]:
    """Replaces the clock and the devices of all studies by those of a machine."""

    def open_workload(kind: str, point: Point, context: WorkloadContext, sampling: Sampling) -> _VirtualWorkload:
        return _VirtualWorkload(run, run.work_of(point))

    def no_timestamps(*arguments: object, **named: object) -> None:
        raise UnimplementedError("a virtual device has no timestamps")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(point_run, "open_workload", open_workload)
        patch.setattr(point_run, "calibrate_monotonic", no_timestamps)
        patch.setattr(machine_state, "clock_reader", lambda device: lambda: {"cpu_mhz": run.machine.see().cpu_mhz})
        patch.setattr(machine_state, "MachineState", partial(_VirtualState, run))
        patch.setattr(machine_state, "ReferenceKernel", partial(_VirtualReference, run, "compute"))
        patch.setattr(point_run, "ReferenceKernel", partial(_VirtualReference, run, "like"))
        clock = _Clock(run)
        for name, module in list(sys.modules.items()):
            if name.startswith("pumice.study.") and getattr(module, "time", None) is time:
                patch.setattr(module, "time", clock)
        yield


class _Clock:
    """The module ``time`` of a machine."""

    def __init__(self, run: VirtualRun) -> None:
        self._run = run

    def monotonic_ns(self) -> int:
        return int(self._run.machine.now)

    def monotonic(self) -> float:
        return self._run.machine.now / 1e9

    def sleep(self, seconds: float) -> None:
        self._run.machine.pass_time(seconds)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a virtual clock has no {name}: a study reads a clock that it does not replace")


def _device() -> Device:
    limits = SimpleNamespace(
        max_compute_work_group_invocations=256,
        max_compute_work_group_size=(256, 1, 1),
        max_storage_buffer_range=1 << 20,
    )
    plan = SimpleNamespace(calibrated_timestamps=None, timestamp_bits=0)
    vulkan = SimpleNamespace(compute_queue=None, plan=plan)
    return SimpleNamespace(vulkan=vulkan, profile=SimpleNamespace(limits=limits))  # type: ignore[return-value]


class _VirtualPool:
    """Devices, and the time that the process's threads waited for a core."""

    def __init__(self, run: VirtualRun) -> None:
        self._run = run
        self.delays = self

    def open(self, uri: str, options: object = None) -> Device:
        return _device()

    def refresh(self) -> None:
        pass

    def read(self) -> ThreadTimes:
        machine = self._run.machine
        return {"1": (int(machine.waited), int(machine.ran))}


class _VirtualWorkload:
    """Work on a machine, with the factor of its opening."""

    load = Load()

    def __init__(self, run: VirtualRun, work: float) -> None:
        self.device = _device()
        self._run = run
        self._work = work
        self._instance = run.machine.opened()

    def first(self) -> RawSample:
        self._run.machine.pass_time(0.005)
        return self.sample()

    def sample(self) -> RawSample:
        machine = self._run.machine
        begin = int(machine.now)
        taken = machine.run(self._work, instance=self._instance)
        return RawSample(
            begin,
            called=begin,
            returned=begin,
            awake=begin + round(taken.total),
            preemptions=int(taken.waited > 0),
            cpu=taken.cpu,
        )

    def close(self) -> None:
        pass


class _VirtualReference(ReferenceKernel):
    """A reference kernel whose runs are work of a machine: a fixed part, and one for each round."""

    def __init__(
        self, run: VirtualRun, kind: str, device: Device, load: Load, wanted_ns: float, *, execute: bool = True
    ) -> None:
        self._run_on, self._kind, self._instance = run, kind, 1.0
        super().__init__(device, load, wanted_ns, execute=execute)
        self._execute = execute

    def _open(self) -> None:
        self._instance = self._run_on.machine.opened()

    def _run(self, rounds: int) -> float:
        taken = self._run_on.machine.run(500.0 + 100.0 * rounds, self._kind, self._instance)
        return taken.execute if self._execute else taken.total


class _VirtualState:
    """The machine's state as readers would see it by its model."""

    def __init__(self, run: VirtualRun) -> None:
        self._run = run
        self._before = run.machine.now

    def read(self) -> dict[str, float | None]:
        machine = self._run.machine
        machine.pass_time(0.007)
        seen: dict[str, float | None] = dict(vars(machine.see()))
        span, self._before = machine.now - self._before, machine.now
        return {**seen, "span_ns": span}

    def close(self) -> None:
        pass
