"""Observers: figures of points that are measured separately from their samples.

They are the energy of samples by NVML's counter of a device and RAPL's of processors, the device's performance
counters, and the driver's statistics of pipelines.

Sources: ``nvmlDeviceGetTotalEnergyConsumption`` of NVML's API reference; Documentation/power/powercap of Linux.
"""

from __future__ import annotations

import abc
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...hal_vulkan import DeviceProfile, Driver, PlanOptions
from ...hal_vulkan.commands.performance_query import counters_named
from ...hal_vulkan.instance.plan import PERFORMANCE_QUERY, PIPELINE_STATISTICS, plan_device
from ...hal_vulkan.pipelines.pipeline_statistics import occupancy
from ...status import UnavailableError, UnimplementedError
from ..results.storage.records import Observation
from ..workloads.kernel import KernelWorkload
from ..workloads.workload import Workload
from .device_clocks import nvml_device

_POWERCAP: Final = Path("/sys/class/powercap")
_SPAN_NS: Final = 1_000_000_000
_EVERY_NS: Final = 5_000_000


class Observer(abc.ABC):
    """Measures figures of one kind.

    Attributes:
        kind: the kind of its observations.
        asked: the options that devices are opened with, see ``PlanOptions``.
        notes: the figures that this machine lacks, known after ``check``.
    """

    kind: str
    asked: Mapping[str, bool] = MappingProxyType({})
    notes: Sequence[str] = ()

    @abc.abstractmethod
    def check(self, driver: Driver, index: int) -> None:
        """Raises UnavailableError, before anything is measured, if the device of the index, or the machine, has no such
        figures.
        """

    @abc.abstractmethod
    def observe(self, workload: Workload) -> Sequence[Observation]:
        """Returns the figures of a workload that was opened and has not run."""


@dataclass(frozen=True, slots=True)
class Meter:
    """An energy counter: ``read`` returns joules, which restart from 0 after ``wraps`` joules, if that is not 0."""

    name: str
    read: Callable[[], float]
    wraps: float = 0.0


def energy_meters(profile: DeviceProfile) -> tuple[list[Meter], list[str]]:
    """Returns the meters that can be read, and the reasons why others cannot."""
    meters, lacking = _rapl()
    try:
        pynvml, handle = nvml_device(profile)
        meters.insert(0, _checked("device (NVML)", lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3))
    except UnavailableError as error:
        lacking.append(error.message)
    return meters, lacking


def _checked(name: str, read: Callable[[], float]) -> Meter:
    try:
        read()
    except Exception as error:  # of a binding
        raise UnavailableError(f"{name} has no counter of energy: {error}") from error
    return Meter(name, read)


def _rapl() -> tuple[list[Meter], list[str]]:
    """Returns the zones of whole packages and platforms; zones below them are parts of the same energy."""
    meters: list[Meter] = []
    zones = sorted(zone for zone in _POWERCAP.glob("*-rapl:*") if zone.name.count(":") == 1)
    for zone in zones:
        file = zone / "energy_uj"
        try:
            name = (zone / "name").read_text().strip()
            wraps = float((zone / "max_energy_range_uj").read_text()) / 1e6
            file.read_text()
        except PermissionError:
            why = f"{file} is for root alone: run as root, or `sudo chmod a+r {_POWERCAP}/*/energy_uj`"
            return meters, [f"RAPL: {why}"]
        except (OSError, ValueError) as error:
            return meters, [f"RAPL: {error}"]
        meters.append(Meter(f"{name} (RAPL)", lambda file=file: float(file.read_text()) / 1e6, wraps))  # type: ignore[misc]
    return meters, [] if zones else [f"RAPL: {_POWERCAP} has no such zones"]


class EnergyObserver(Observer):
    """Observes the energy of samples, which it takes in succession for a second."""

    kind = "energy"

    def __init__(self) -> None:
        self._meters: dict[str, list[Meter]] = {}

    def check(self, driver: Driver, index: int) -> None:
        profile = driver.profiles[index]
        meters, lacking = energy_meters(profile)
        if not meters:
            raise UnavailableError(
                f"the energy of {profile.name} cannot be read: {'; '.join(lacking)}. Leave --energy out"
            )
        self._meters[profile.device_uuid] = meters
        self.notes: Sequence[str] = [text for text in lacking if "is for root alone" in text]

    def observe(self, workload: Workload) -> Sequence[Observation]:
        """Measures the energy of a sample and of a dispatch, and the mean power, by each meter that moved."""
        meters = self._meters[workload.device.profile.device_uuid]
        workload.first()
        before = [meter.read() for meter in meters]
        joules, steps = [0.0] * len(meters), [float("inf")] * len(meters)
        began = read_at = time.monotonic_ns()
        count = dispatches = 0
        while True:
            dispatches = workload.sample().dispatches
            count += 1
            now = time.monotonic_ns()
            if now - read_at < _EVERY_NS:
                continue
            read_at = now
            for index, meter in enumerate(meters):
                value = meter.read()
                change = value - before[index]
                if change < 0:
                    change += meter.wraps
                before[index] = value
                joules[index] += change
                if change > 0:
                    steps[index] = min(steps[index], change)
            if now - began >= _SPAN_NS:
                break
        seconds = (read_at - began) / 1e9
        observations = []
        for meter, used, step in zip(meters, joules, steps, strict=True):
            if used > 0:
                observations += self._figures(meter.name, used, step, count, dispatches, seconds)
        if not observations:
            raise UnavailableError(f"no counter of energy moved in {seconds:.1f} s of samples")
        return observations

    def _figures(
        self, meter: str, joules: float, step: float, count: int, dispatches: int, seconds: float
    ) -> list[Observation]:
        facts = {"joules": joules, "samples": count, "seconds": seconds, "step_joules": step}
        figures = [("energy of a sample", count, "J"), ("mean power", seconds, "W")]
        if dispatches > 1:
            figures.insert(1, ("energy of a dispatch", count * dispatches, "J"))
        return [
            Observation(
                self.kind,
                meter,
                name,
                joules / over,
                unit,
                {"description": f"± {step / over:.2g} {unit}, a step of the counter", **facts},
            )
            for name, over, unit in figures
        ]


class CounterObserver(Observer):
    """Observes the device's performance counters over the dispatches of a point."""

    kind = "counter"
    asked: Mapping[str, bool] = MappingProxyType({"performance_counters": True})

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def check(self, driver: Driver, index: int) -> None:
        """Raises as ``Observer.check``; NotFoundError and UnimplementedError as ``counters_named``."""
        profile = driver.profiles[index]
        if PERFORMANCE_QUERY not in profile.extensions:
            raise UnavailableError(
                f"{profile.name} has no performance counters: its driver {profile.driver_name} lacks "
                f"{PERFORMANCE_QUERY}. Take another device, or leave --counters out"
            )
        plan = plan_device(profile, PlanOptions(**self.asked))  # type: ignore[arg-type]  # switches
        counters_named(driver, index, plan.compute_family, self._names)

    def observe(self, workload: Workload) -> Sequence[Observation]:
        if not isinstance(workload, KernelWorkload):
            raise UnimplementedError("counters are of kernels, not of programs and other targets")
        workload.first()
        return [
            Observation(self.kind, counter.category, counter.name, value, counter.unit, _described(counter.description))
            for counter, value in workload.count(self._names)
        ]


def _described(description: str) -> dict[str, object]:
    return {"description": description} if description else {}


class PipelineObserver(Observer):
    """Observes the driver's statistics of pipelines: registers, spills, memory; and the occupancy that follows."""

    kind = "pipeline"
    asked: Mapping[str, bool] = MappingProxyType({"pipeline_statistics": True})

    def check(self, driver: Driver, index: int) -> None:
        profile = driver.profiles[index]
        if PIPELINE_STATISTICS not in profile.extensions:
            raise UnavailableError(
                f"{profile.name} has no statistics of pipelines: its driver {profile.driver_name} lacks "
                f"{PIPELINE_STATISTICS}. Take another device, or leave --statistics out"
            )

    def observe(self, workload: Workload) -> Sequence[Observation]:
        """Returns the statistics of the pipelines that the first call creates. Occupancy is the share of resident
        subgroups.
        """
        device = workload.device.vulkan
        before = len(device.pipeline_statistics)
        workload.first()
        observations = []
        made = dict.fromkeys(device.pipeline_statistics[before:])
        for (pipeline, executable), rows in itertools.groupby(
            made, lambda statistic: (statistic.pipeline, statistic.executable)
        ):
            subject = f"{pipeline}: {executable}" if executable != pipeline else pipeline
            statistics = list(rows)
            for statistic in statistics:
                details = _described(statistic.description)
                observations.append(Observation(self.kind, subject, statistic.name, statistic.value, details=details))
            if (derived := occupancy(device, statistics)) is not None:
                details = _described(f"derived: {derived[1]}")
                observations.append(Observation(self.kind, subject, "occupancy", derived[0], details=details))
        return observations
