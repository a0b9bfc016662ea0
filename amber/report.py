"""The result of running a script."""

from __future__ import annotations

import enum

from ..base.lazy_dataclass import dataclass


class Outcome(enum.Enum):
    """The outcome of a script; its value is the word that reports print."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that did not hold; ``where`` is its file and line."""

    where: str
    message: str


@dataclass(frozen=True, slots=True)
class RunTime:
    """The device time of a ``RUN TIMED_EXECUTION``."""

    pipeline: str
    line: int
    nanoseconds: float


@dataclass(frozen=True, slots=True)
class ScriptReport:
    """The result of running a script.

    Attributes:
        path: the script.
        outcome: ``PASSED``; ``FAILED`` if an expectation did not hold, or the device failed; ``SKIPPED`` if the device
            lacks something; ``UNSUPPORTED`` if pumice does not run it; ``ERROR`` if the script is wrong.
        reason: the reason why it did not pass, apart from the expectations; ``""`` if there is none.
        failures: the expectations that did not hold, up to a hundred.
        expectations: the number of expectations that were compared.
        timings: the timings, in the order of the runs.
        seconds: the whole time on the host.
    """

    path: str
    outcome: Outcome
    reason: str = ""
    failures: tuple[Failure, ...] = ()
    expectations: int = 0
    timings: tuple[RunTime, ...] = ()
    seconds: float = 0.0

    def format(self) -> str:
        """Returns a line of text, and a further line for each failure and timing."""
        text = f"{self.path}: {self.outcome.value}"
        if self.outcome is Outcome.PASSED:
            text += f", {self.expectations:,} expectation{'s' * (self.expectations != 1)}"
        if self.reason:
            text += f": {self.reason}"
        lines = [text, *(f"  {failure.where}: {failure.message}" for failure in self.failures)]
        lines += [f"  {t.pipeline} (line {t.line}): {t.nanoseconds / 1000:.3f} us" for t in self.timings]
        return "\n".join(lines)
