"""A gate's judgement of compared results: the points that pass, and the exit status."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...base.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from ...study.results.comparison.results_comparison import PointComparison, ResultsComparison

UNCLEAR: Final = 3
"""Exit status if a point is unclear, and none is slower."""

SLOWER: Final = 4
"""Exit status if a point is slower."""


class Outcome(enum.StrEnum):
    """The meaning of a verdict for the gate, worst first."""

    SLOWER = "slower"
    UNCLEAR = "unclear"
    PASSED = "passed"
    SKIPPED = "skipped"
    """Skipped on both sides, because no device could run it; it does not count."""


@dataclass(frozen=True, slots=True)
class JudgedPoint:
    """A compared point, and its outcome.

    Attributes:
        label: the point's name, with its device if there are several.
        verdict: the comparison's verdict, or ``"SLOWER, tolerated"`` if the gate tolerates it; a point that cannot be
            compared is UNCLEAR.
        reason: the explanation of the comparison, or the reason for its absence.
    """

    point: PointComparison
    outcome: Outcome
    label: str
    verdict: str
    reason: str

    @property
    def is_broken(self) -> bool:
        """Whether the new side has no figures because it failed or was skipped, and the old side did not.

        The points of a pair fail together, whichever side has the error.
        """
        from ...study.results.storage.records import PointStatus

        old, new, failed = self.point.a.status, self.point.b.status, PointStatus.FAILED
        if self.point.a.point.is_against:
            return new is failed
        return new in (failed, PointStatus.SKIPPED) and old not in (failed, new)

    @property
    def left_out(self) -> tuple[int, ...]:
        """Returns the number of samples of each side that are not compared; ``""`` without a comparison."""
        point, compared = self.point, self.point.comparison
        return (point.a.count - compared.count_a, point.b.count - compared.count_b) if compared else ()

    @property
    def ratio(self) -> str:
        """``"1.050"``, or ``"-"`` if unknown."""
        return _number(self.point.comparison.ratio) if self.point.comparison else "-"

    @property
    def interval(self) -> str:
        """``"[1.040, 1.060]"``, or ``"-"`` if unknown, as for runs that cannot be compared."""
        ends = [_number(end) for end in self.point.comparison.interval] if self.point.comparison else ["-"]
        return "-" if "-" in ends else f"[{', '.join(ends)}]"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a gate on compared results.

    Attributes:
        points: the judged points, in the order of the comparison.
        fail_on, tolerate: as in ``Gate``.
    """

    comparison: ResultsComparison
    points: Sequence[JudgedPoint]
    fail_on: str
    tolerate: float

    def fails(self, judged_point: JudgedPoint) -> bool:
        """Whether a point does not pass."""
        if self.fail_on == "never":
            return False
        return (
            judged_point.outcome is Outcome.SLOWER
            or judged_point.is_broken
            or (judged_point.outcome is Outcome.UNCLEAR and self.fail_on == "unclear")
        )

    @property
    def status(self) -> int:
        """The exit status: 0, 3 or 4; without counted points, that of an unclear point."""
        failing = {result.outcome for result in self.points if self.fails(result)}
        counts = any(result.outcome is not Outcome.SKIPPED for result in self.points)
        if Outcome.SLOWER in failing:
            return SLOWER
        return UNCLEAR if failing or (self.fail_on == "unclear" and not counts) else 0

    def count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.points)

    @property
    def verdict(self) -> str:
        """``SLOWER``, ``UNCLEAR`` or ``PASSED``, whatever the command fails on."""
        if self.count(Outcome.SLOWER):
            return "SLOWER"
        return "PASSED" if self.count(Outcome.PASSED) and not self.count(Outcome.UNCLEAR) else "UNCLEAR"

    @property
    def summary(self) -> str:
        """``SLOWER: 1 slower, 2 unclear, 9 passed``."""
        counts = [f"{count} {outcome}" for outcome in Outcome if (count := self.count(outcome))]
        tolerated = f"; slow-downs up to {100 * self.tolerate:.4g} % are tolerated" if self.tolerate else ""
        return f"{self.verdict}: {', '.join(counts) or 'nothing to compare'}{tolerated}"


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-"


def judge(comparison: ResultsComparison, fail_on: str = "unclear", tolerate: float = 0.0) -> Judgement:
    """Judges each point. A point that failed or was skipped on the new side only never passes."""
    return Judgement(
        comparison,
        [_judge(compared, comparison.by_device, tolerate) for compared in comparison.points],
        fail_on,
        tolerate,
    )


def _judge(point: PointComparison, by_device: bool, tolerate: float) -> JudgedPoint:
    from ...study.results.storage.records import PointStatus
    from ...study.statistics.comparison import Verdict

    label = point.b.point.label + (f" on {point.b.point.device}" if by_device else "")
    compared = point.comparison
    if point.a.status is point.b.status is PointStatus.SKIPPED:
        return JudgedPoint(point, Outcome.SKIPPED, label, "-", point.why_not)
    if compared is None:
        return JudgedPoint(point, Outcome.UNCLEAR, label, "UNCLEAR", point.why_not)
    verdict, reason = str(compared.verdict), compared.explanation
    if compared.verdict in (Verdict.SAME, Verdict.FASTER):
        return JudgedPoint(point, Outcome.PASSED, label, verdict, reason)
    most = 1 + tolerate
    if compared.verdict is Verdict.SLOWER and compared.ratio > most:
        return JudgedPoint(point, Outcome.SLOWER, label, verdict, reason)
    # The interval is NaN if it is unknown or if the runs are not comparable.
    if tolerate and compared.interval.high <= most:
        return JudgedPoint(point, Outcome.PASSED, label, f"{verdict}, tolerated", reason)
    if compared.verdict is Verdict.SLOWER:
        reason += f"; whether by more than the tolerated {100 * tolerate:.4g} % is not certain: take more samples"
    return JudgedPoint(point, Outcome.UNCLEAR, label, verdict, reason)
