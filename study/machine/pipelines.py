"""The driver's statistics of a point's pipelines (registers, spills, memory), and the occupancy where it follows from
them.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from ...hal_vulkan import Driver
from ...hal_vulkan.instance.plan import PIPELINE_STATISTICS
from ...hal_vulkan.pipelines.pipeline_statistics import occupancy
from ...status import UnavailableError
from ..results.storage.records import Observation
from ..workloads.workload import Workload


class PipelineObserver:
    """An ``Observer`` of the driver's statistics of pipelines."""

    kind: Final = "pipeline"
    asked: Final[Mapping[str, bool]] = {"pipeline_statistics": True}
    notes: Final = ()

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
                details = {"description": statistic.description} if statistic.description else {}
                observations.append(Observation(self.kind, subject, statistic.name, statistic.value, details=details))
            if (derived := occupancy(device, statistics)) is not None:
                details = {"description": f"derived: {derived[1]}"}
                observations.append(Observation(self.kind, subject, "occupancy", derived[0], details=details))
        return observations
