"""Processes of benchmarks that time what they are asked to, and the ratio of two sides that take turns. No benchmark.

``with TimedProcess(command) as process`` → ``process.ask("run", 100)``, any number of times.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import numpy as np
import numpy.typing as npt

from pumice.base.closeable import Closeable

Times = npt.NDArray[np.float64]

_RESAMPLES: Final = 2000


class TimedProcess(Closeable):
    """A process that says ``ready`` and then answers each line with a line of numbers. Use it as a context manager.

    Args:
        command: of the process; its errors go to this one's stderr.
        title: as messages name it.
    """

    def __init__(self, command: Sequence[str | Path], title: str) -> None:
        self._title = title
        self._process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            if self._read() != "ready":
                raise click.ClickException(f"{title} did not say that it is ready")
        except BaseException:
            self.close()
            raise

    def ask(self, command: str, number: int) -> list[float]:
        """Sends a command; returns the numbers that it is answered with."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command} {number}\n")
        self._process.stdin.flush()
        return [float(word) for word in self._read().split()]

    def pause(self) -> None:
        """Stops it until the next ``resume``: threads of a peer's runtime spin while it is idle."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on after ``pause``."""
        self._process.send_signal(signal.SIGCONT)

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise click.ClickException(f"{self._title} ended with status {status}; its error is above")
        return line.strip()

    def close(self) -> None:
        """Ends the process by ending its input."""
        self.resume()
        self._process.communicate()


def ratio(ours: Sequence[Times], theirs: Sequence[Times]) -> tuple[float, float, float]:
    """The median over the rounds of the ratio of the medians of both sides' blocks, and the bounds of its 95 % interval
    by a bootstrap over the rounds.
    """
    ratios = np.array([np.median(one) / np.median(other) for one, other in zip(ours, theirs, strict=True)])
    draws = np.random.default_rng(0).choice(ratios, (_RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(draws, axis=1), (2.5, 97.5))
    return float(np.median(ratios)), float(low), float(high)
