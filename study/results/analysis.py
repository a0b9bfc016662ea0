"""Figures of the points of a study, from the samples in the statistics (``PointResult.keep``).

Disturbed samples, taken while threads were preempted or waited for a core, are excluded if at least half of a point's
samples remain. Otherwise disturbance is the normal state of the machine and the rest would be a biased selection: then
all samples are used. ``PointAnalysis.samples_used`` describes the samples used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..definition.point import AxisValue, Point
from ..definition.sample import SEGMENTS
from ..definition.study import Study
from ..statistics.summary import Summary, summarize
from .storage.point_result import PointResult
from .storage.records import DISTURBED, PointStatus, SampleFlag
from .storage.stored_results import StoredResults


class RoofPlace(NamedTuple):
    """The place of a point under the roofline.

    Attributes:
        intensity: the arithmetic intensity, flop/byte.
        ridge: the intensity at which bandwidth and arithmetic limit the device equally.
        share: the GFLOP/s over the roof at this intensity; above 1 if caches serve the point.
    """

    intensity: float
    ridge: float
    share: float

    @property
    def limit(self) -> Literal["memory", "compute"]:
        """Returns the limit of the rate at this intensity; ``"compute"`` at the ridge itself."""
        return "memory" if self.intensity < self.ridge else "compute"

    @property
    def distance(self) -> float:
        """The intensity over that of the ridge: below 1 for points that memory limits."""
        return self.intensity / self.ridge


def place_on_roof(figures: Mapping[str, float], peaks: Mapping[str, float]) -> RoofPlace | None:
    """Places a point with these figures (``bytes``, ``flops``, ``GFLOP/s``) under the roof of a device with these peaks
    (``GB/s``, ``GFLOP/s``); None if one of them is unknown.
    """
    known = [figures.get(name, math.nan) for name in ("bytes", "flops", "GFLOP/s")]
    known += [peaks.get(name, math.nan) for name in ("GB/s", "GFLOP/s")]
    if not all(math.isfinite(value) and value > 0 for value in known):
        return None
    nbytes, flops, reached, memory, arithmetic = known
    intensity = flops / nbytes
    return RoofPlace(intensity, arithmetic / memory, reached / min(memory * intensity, arithmetic))


STACK: Final = (*SEGMENTS[:-1], "device", SEGMENTS[-1])
"""The parts of a sample in time order; ``device`` replaces queue, execute and wake if these are unknown."""

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class PointAnalysis:
    """The figures of one point, computed on demand. Times are nanoseconds of a sample with all its dispatches."""

    def __init__(self, results: StoredResults, result: PointResult, study: Study) -> None:
        self.result: Final = result
        self.keep: Final = result.keep
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
        """The value on each axis of the study. An axis of several names has a text, as on a command line: ``8:8`` on
        ``tx,ty``.
        """
        values = self.point.axes
        joined = {name: axis.names for axis in self._study.axes for name in axis.names if len(axis.names) > 1}
        axes: dict[str, AxisValue] = {}
        for name, value in values.items():
            names = joined.get(name)
            if names is None:
                axes[name] = value
            else:
                axes[",".join(names)] = ":".join(str(values[part]) for part in names)
        return axes

    @cached_property
    def total(self) -> int:
        return self.result.count

    @cached_property
    def kept(self) -> int:
        """The number of samples in the statistics."""
        return int(np.count_nonzero(self.result.mask(keep=self.keep)))

    def flagged(self, flag: SampleFlag) -> int:
        """Counts the measured samples with any bit of a flag."""
        return int(np.count_nonzero(self.result.flags & int(flag)))

    @cached_property
    def uses_disturbed(self) -> bool:
        """Whether disturbed samples are in the statistics because fewer than half are undisturbed."""
        return self.keep is None and self.flagged(DISTURBED) > 0

    @property
    def is_paired(self) -> bool:
        """Whether it was measured in turns with a point of the other side. All samples of a pair are compared."""
        return self.point.is_against or self.point.against is not None

    @property
    def status_text(self) -> str:
        """The status; ``noisy ratio`` for a pair whose ratio, rather than a side, is too noisy."""
        return f"{self.status} ratio" if self.status is PointStatus.NOISY and self.is_paired else str(self.status)

    @property
    def samples_used(self) -> str:
        """Describes the samples used: ``"undisturbed samples only: 970 of 1000"``, or all samples with the reason."""
        disturbed = self.flagged(DISTURBED)
        if not self.total:
            return "no samples"
        if not disturbed:
            return f"all {self.total} samples, none disturbed"
        if self.uses_disturbed:
            return f"all {self.total} samples, {disturbed} disturbed: fewer than half were undisturbed"
        return f"undisturbed samples only: {self.kept} of {self.total}{'; all are compared' if self.is_paired else ''}"

    def values(self, name: str = "headline") -> Array:
        """Returns one duration of the samples in the statistics, in sampling order; see ``PointResult.values``."""
        return self.result.values(name, keep=self.keep)

    @cached_property
    def blocks(self) -> Integers:
        return self.result.blocks_of(keep=self.keep)

    def summary(self, name: str = "headline") -> Summary | None:
        """Returns the statistics of one duration; None if no sample has it."""
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
        """The medians of the parts in ``STACK`` that are known, in its order."""
        divided = "execute" in self.medians
        names = [name for name in STACK if name in self.medians and not (divided and name == "device")]
        return {name: self.medians[name] for name in names}

    @property
    def median(self) -> float | None:
        return self.medians.get(self.point.measure)

    @cached_property
    def baseline_median(self) -> float | None:
        """The median of the empty kernel in this setting; None if it was not measured."""
        baseline = self.result.baseline
        return None if baseline is None else baseline.medians(keep=baseline.keep).get(self.point.measure)

    @cached_property
    def figures(self) -> Mapping[str, float]:
        """The derived figures, including those known before measuring; see ``Results.figures``."""
        return self.figures_at(1.0)

    def figures_at(self, factor: float) -> Mapping[str, float]:
        """Returns the derived figures as if all times were multiplied by ``factor``."""
        return {**self.point.derived, **self._results.figures(self.result, keep=self.keep, times=factor)}

    @cached_property
    def roof(self) -> RoofPlace | None:
        """The place under the device's roofline; None without known peaks, bytes and flops."""
        return place_on_roof(self.figures, self._results.peaks_of(self.point.device))

    @cached_property
    def first_call(self) -> float | None:
        """The headline of the first call, the median if several processes made one; None if it is unknown."""
        values = self.result.values(phase="first")
        return float(np.nanmedian(values)) if np.isfinite(values).any() else None

    @cached_property
    def dispatches(self) -> int:
        counts = self.result.integers("dispatches")
        return int(np.median(counts)) if counts.size else 1

    @cached_property
    def overlapping(self) -> bool:
        """Whether dispatches of a sample may have overlapped: then a dispatch has no separate duration."""
        return self.dispatches > 1 and self.result.overlapping

    @property
    def per_dispatch(self) -> float | None:
        """The headline's median divided by the dispatches of a sample."""
        return None if self.median is None else self.median / max(self.dispatches, 1)


class StudyAnalysis:
    """The points of a study, analysed on demand; ``points`` is in the order of their indices."""

    def __init__(self, results: StoredResults) -> None:
        self.results: Final = results
        self.study: Final = results.as_study()
        self.points: Final = tuple(PointAnalysis(results, result, self.study) for result in results.points)

    @property
    def measured(self) -> tuple[PointAnalysis, ...]:
        """The points with samples of their headline, except baselines and points of the other side."""
        return tuple(
            analysis
            for analysis in self.points
            if not (analysis.point.is_baseline or analysis.point.is_against) and analysis.median is not None
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The axis names of all points except baselines, in order. An axis of several names has an entry for each."""
        points = [analysis.point for analysis in self.points if not analysis.point.is_baseline]
        return tuple(dict.fromkeys(axis for point in points for axis in point.axes))
