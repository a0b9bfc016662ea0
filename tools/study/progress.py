"""Progress of a study on stderr: a bar on a terminal, else a line for each point."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ...base.closeable import Closeable
from ...base.terminal import console_environment, printable
from ...study.definition.point import Point
from ...study.results.storage.records import PointStatus
from ...study.sampling.passes import Pass
from ..streams import note


class StudyProgress(Closeable):
    """Shows the progress of ``run_study``; if quiet, only failed, skipped or too noisy points.

    A pair's two points end together, and count as one. ``where`` begins messages about the folder; ``reasons`` adds why
    points ended.
    """

    def __init__(self, where: str = "", *, quiet: bool = False, reasons: bool = True) -> None:
        self._where = where
        self._total = 0
        self._repeats = 1
        self._run = ""
        self._quiet = quiet
        self._reasons = reasons
        self._fractions: dict[int, float] = {}
        self._finished = 0
        self._bar: Progress | None = None
        if sys.stderr is not None and sys.stderr.isatty() and not quiet:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("points"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=Console(stderr=True, markup=False, _environ=console_environment()),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None)
            self._bar.start()

    def planned(self, passes: Sequence[Pass], points: int, repeats: int) -> None:
        self._repeats = repeats
        self._total = sum(_shown(pass_) for pass_ in passes)
        if self._bar is not None:
            self._bar.update(self._task, total=self._total)
        again = sum(_shown(pass_) for pass_ in passes if pass_.continued)
        left, total = self._total - again, points * repeats
        if self._quiet or left == total:
            return
        if left:
            then = f"the other {left} are measured"
        elif again:
            then = ""
        else:
            then = "nothing is left to measure; --continue samples on what is too noisy, --more-time S every point"
        parts = [f"{total - left} of {total} points are done already", then, f"{again} are sampled on" if again else ""]
        note(self._where + "; ".join(part for part in parts if part))

    def begun(self, part: Pass) -> None:
        self._run = f"run {part.repeat} of {self._repeats}: " if self._repeats > 1 else ""
        self._fractions.clear()

    def advance(self, point: Point, fraction: float) -> None:
        if point.is_against:
            return
        self._fractions[point.index] = fraction
        if self._bar is not None:
            done = self._finished + sum(self._fractions.values())
            self._bar.update(
                self._task, completed=min(done, self._total), description=printable(self._run + point.label)[:40]
            )

    def finished(self, point: Point, status: PointStatus, reason: str) -> None:
        if point.is_against:
            return
        self._fractions.pop(point.index, None)
        self._finished += 1
        text = f"[{self._finished}/{self._total}] {status:7} {self._run}{point.label}"
        if self._reasons:
            text += f": {reason}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._finished + sum(self._fractions.values()))
            if status is not PointStatus.DONE:
                self._bar.console.print(printable(text, keep="\n"), highlight=False)
        elif not self._quiet or status is not PointStatus.DONE:
            note(printable(text, keep="\n"))

    def close(self) -> None:
        """Removes the bar; idempotent."""
        if self._bar is not None:
            self._bar.stop()


def _shown(part: Pass) -> int:
    return sum(not point.is_against for point in part.points)
