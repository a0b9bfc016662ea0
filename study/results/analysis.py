"""Figures of the points of a study, from the samples that count (``PointResult.keep``).

Disturbed samples, taken while threads were preempted or waited for a core, are excluded as long as at least half of
a point's samples remain. If fewer remain, disturbance is the normal state of the machine, the rest would be a biased
selection, and all samples are used. ``PointAnalysis.samples_used`` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from ..definition.point import AxisValue, Point
from ..definition.sample import MEASURES, SEGMENTS
from ..definition.study import Study
from ..statistics.summary import Summary, summarize
from .roofline import RoofPlace, place_on_roof
from .storage.point_result import PointResult
from .storage.records import DISTURBED, PointStatus, SampleFlag
from .storage.stored_results import StoredResults

STACK: Final = (*SEGMENTS[:-1], "device", SEGMENTS[-1])
"""The parts of a sample in the order of time: ``device`` stands for queue, execute and wake if these are not known."""

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Keep = SampleFlag | Literal["kept"] | None
"""Which samples are in statistics: ``"kept"`` for those of ``PointResult.keep``, or as in ``PointResult.values``."""


class PointAnalysis:
    """The figures of one point, computed on demand. Times are nanoseconds of a sample with all its dispatches."""

    def __init__(self, results: StoredResults, result: PointResult, study: Study, keep: Keep = "kept") -> None:
        self.result: Final = result
        self.keep: Final = result.keep if isinstance(keep, str) else keep
        self.sampling: Final = study.sampling
        self._study = study
        self._results = results
        self._summaries: dict[str, Summary | None] = {}

    @property
    def point(self) -> Point:
        return self.result.point

    @property
    def status(self) -> PointStatus:
        return self.result.status

    @cached_property
    def axes(self) -> Mapping[str, AxisValue]:
        """The value on each axis of the study; on one of several names they are as on a command line: ``8:8`` on
        ``tx,ty``.
        """
        values = self.point.axes
        together = {name: axis.names for axis in self._study.axes for name in axis.names if len(axis.names) > 1}
        found: dict[str, AxisValue] = {}
        for name, value in values.items():
            names = together.get(name)
            if names is None:
                found[name] = value
            else:
                found[",".join(names)] = ":".join(str(values[each]) for each in names)
        return found

    @cached_property
    def total(self) -> int:
        return self.result.count

    @cached_property
    def kept(self) -> int:
        """The number of samples in the statistics."""
        return int(np.count_nonzero(self.result.mask(keep=self.keep)))

    def flagged(self, flag: SampleFlag) -> int:
        """The number of measured samples with any bit of a flag."""
        return int(np.count_nonzero(self.result.flags & int(flag)))

    @cached_property
    def uses_disturbed(self) -> bool:
        """Whether disturbed samples are in the statistics because fewer than half are undisturbed."""
        return self.keep is None and self.flagged(DISTURBED) > 0

    @property
    def is_paired(self) -> bool:
        """Whether it was measured in turns with a point of the other side, of which all samples are compared."""
        return self.point.is_against or self.point.against is not None

    @property
    def status_text(self) -> str:
        """The status; of a pair that is too noisy with what is: the ratio, whatever the noise of either side."""
        return f"{self.status} ratio" if self.status is PointStatus.NOISY and self.is_paired else str(self.status)

    @property
    def samples_used(self) -> str:
        """``"undisturbed samples only: 970 of 1000"``, or that all are used and why."""
        disturbed = self.flagged(DISTURBED)
        if not self.total:
            return "no samples"
        if not disturbed:
            return f"all {self.total} samples, none disturbed"
        if self.uses_disturbed:
            return f"all {self.total} samples, {disturbed} disturbed: fewer than half were undisturbed"
        return f"undisturbed samples only: {self.kept} of {self.total}{'; all are compared' if self.is_paired else ''}"

    def values(self, name: str = "headline") -> Array:
        """One duration of the samples that count, in the order of sampling; see ``PointResult.values``."""
        return self.result.values(name, keep=self.keep)

    @cached_property
    def blocks(self) -> Integers:
        return self.result.blocks_of(keep=self.keep)

    def summary(self, name: str = "headline") -> Summary | None:
        """The statistics of one duration; ``None`` if no sample has it."""
        if name not in self._summaries:
            values = self.values(name)
            self._summaries[name] = (
                summarize(
                    values,
                    confidence=self.sampling.confidence,
                    blocks=self.blocks,
                    runs=self.result.integers("repeat", keep=self.keep),
                    seed=self.sampling.seed,
                )
                if np.isfinite(values).any()
                else None
            )
        return self._summaries[name]

    @cached_property
    def medians(self) -> Mapping[str, float]:
        return self.result.medians(keep=self.keep)

    @cached_property
    def stack(self) -> Mapping[str, float]:
        """The medians of ``STACK`` that apply, in its order."""
        apart = "execute" in self.medians
        return {name: self.medians[name] for name in STACK if name in self.medians and not (apart and name == "device")}

    @property
    def median(self) -> float | None:
        return self.medians.get(self.point.measure)

    @cached_property
    def baseline_median(self) -> float | None:
        """The same duration of the empty kernel in this setting; ``None`` if it was not measured."""
        baseline = self.result.baseline
        return None if baseline is None else baseline.medians(keep=baseline.keep).get(self.point.measure)

    @cached_property
    def figures(self) -> Mapping[str, float]:
        """The derived figures, those known before measuring included; see ``Results.figures``."""
        return {**self.point.derived, **self._results.figures(self.result, keep=self.keep)}

    def figures_at(self, times: float) -> Mapping[str, float]:
        """The derived figures as if everything had taken so many times as long."""
        return {**self.point.derived, **self._results.figures(self.result, keep=self.keep, times=times)}

    @cached_property
    def roof(self) -> RoofPlace | None:
        """The place under the device's roofline; ``None`` without known peaks, bytes and flops."""
        # Those of the latest run replace earlier ones.
        peaks = {peak.name: peak.value for peak in self._results.peaks if peak.device == self.point.device}
        return place_on_roof(self.figures, peaks)

    @cached_property
    def first(self) -> Mapping[str, float]:
        """The durations of the first call; medians if several processes made one."""
        found = {}
        for name in MEASURES:
            values = self.result.values(name, "first")
            if np.isfinite(values).any():
                found[name] = float(np.nanmedian(values))
        return found

    @property
    def first_call(self) -> float | None:
        return self.first.get(self.point.measure)

    @cached_property
    def dispatches(self) -> int:
        counts = self.result.integers("dispatches")
        return int(np.median(counts)) if counts.size else 1

    @cached_property
    def overlapping(self) -> bool:
        """Whether dispatches of a sample may have overlapped, so that none has a duration of its own."""
        return self.dispatches > 1 and self.result.overlapping

    @property
    def per_dispatch(self) -> float | None:
        """The headline's median divided by the dispatches of a sample."""
        return None if self.median is None else self.median / max(self.dispatches, 1)


class StudyAnalysis:
    """The points of a study, analysed on demand: ``points`` has an analysis of each, by index."""

    def __init__(self, results: StoredResults, keep: Keep = "kept") -> None:
        self.results: Final = results
        self.study: Final = results.as_study()
        self.points: Final = tuple(PointAnalysis(results, one, self.study, keep) for one in results.points)

    @property
    def measured(self) -> tuple[PointAnalysis, ...]:
        """The points with samples of their headline, without baselines and those of the other side."""
        return tuple(
            one for one in self.points if not (one.point.is_baseline or one.point.is_against) and one.median is not None
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of all axes of points, without baselines, in order; of an axis of several names each."""
        return tuple(dict.fromkeys(axis for one in self.points if not one.point.is_baseline for axis in one.point.axes))
