"""The device's performance counters over the dispatches of a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...hal_vulkan import Driver, PlanOptions
from ...hal_vulkan.commands.performance_query import counters_named
from ...hal_vulkan.instance.plan import PERFORMANCE_QUERY, plan_device
from ...status import UnavailableError, UnimplementedError
from ..results.storage.records import Observation
from ..workloads.kernel import KernelWorkload
from ..workloads.workload import Workload


class CounterObserver:
    """An ``Observer`` of counters by their names."""

    kind: Final = "counter"
    asked: Final[Mapping[str, bool]] = {"performance_counters": True}
    notes: Final = ()

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
            Observation(self.kind, counter.category, counter.name, value, counter.unit, _details(counter.description))
            for counter, value in workload.count(self._names)
        ]


def _details(description: str) -> dict[str, object]:
    return {"description": description} if description else {}
