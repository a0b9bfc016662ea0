"""Progress of a check on stderr: a bar on a terminal, else a line for each failure."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ...base.closeable import Closeable
from ...base.terminal import console_environment, printable
from ..streams import note
from .case import CaseResult


class CheckProgress(Closeable):
    """Shows the running case and the number of finished cases; prints failed cases immediately."""

    def __init__(self, total: int) -> None:
        self._bar: Progress | None = None
        if sys.stderr is not None and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("cases"),
                TimeElapsedColumn(),
                console=Console(stderr=True, markup=False, _environ=console_environment()),
                transient=True,
            )
            self._task = self._bar.add_task("opening the device", total=total)
            self._bar.start()

    def began(self, name: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=printable(name)[:40])

    def ended(self, name: str, outcome: CaseResult) -> None:
        text = f"{outcome.ending.value}: {name}: {outcome.message.partition(chr(10))[0]}"
        if self._bar is not None:
            self._bar.advance(self._task)
            if outcome.ending.is_bad:
                self._bar.console.print(printable(text), highlight=False)
        elif outcome.ending.is_bad:
            note(printable(text))

    def close(self) -> None:
        """Removes the bar; idempotent."""
        if self._bar is not None:
            self._bar.stop()
