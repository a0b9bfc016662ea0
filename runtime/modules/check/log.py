"""Failed expectations with the values that differ, and the recorder that collects them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ElementDifference:
    """An element that is not as expected.

    Attributes:
        index: its position, one number for each axis.
        lhs, rhs: both values, with all significant digits; no ``rhs`` for expectations of one value.
        difference: ``|lhs - rhs|``; ``None`` if it is not a number.
        tolerance: the largest allowed difference; ``None`` where values have to be equal.
    """

    index: tuple[int, ...]
    lhs: str
    rhs: str | None = None
    difference: float | None = None
    tolerance: float | None = None

    def format(self) -> str:
        """One line."""
        text = f"[{','.join(map(str, self.index))}]: {self.lhs}"
        if self.rhs is not None:
            text += f" and {self.rhs}"
        if self.difference is not None:
            text += f", difference {self.difference:.6g}"
            if self.tolerance is not None:
                text += f", tolerance {self.tolerance:.6g}"
        return text


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """An expectation that did not hold.

    Attributes:
        expectation: the function's name: ``expect_eq``.
        summary: what is wrong, in one line.
        location: in the program, if the module has it.
        lhs, rhs: both values as text, shortened if large.
        differing, total: how many elements differ, of how many; ``None`` where elements were not compared.
        differences: the first of these elements.
        largest: the element with the largest difference, where tolerances apply.
    """

    expectation: str
    summary: str
    location: str | None = None
    lhs: str | None = None
    rhs: str | None = None
    differing: int | None = None
    total: int | None = None
    differences: tuple[ElementDifference, ...] = ()
    largest: ElementDifference | None = None

    def format(self) -> str:
        """The failure as text of several lines."""
        lines = [f"{self.expectation}: {self.summary}"]
        if self.location:
            lines.append(f"  at {self.location}")
        if self.rhs is None:
            lines += [f"  value: {self.lhs}"] if self.lhs is not None else []
        else:
            lines += [f"  lhs: {self.lhs}", f"  rhs: {self.rhs}"]
        lines += [f"  {difference.format()}" for difference in self.differences]
        if self.differing is not None and self.differing > len(self.differences) > 0:
            lines.append(f"  and {self.differing - len(self.differences)} more")
            if self.largest is not None:
                lines.append(f"  the largest difference is at {self.largest.format()}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class CheckLog:
    """What was recorded since the last ``take``.

    Attributes:
        failures: the first failed expectations.
        failure_count: of all failed expectations.
        expectation_count: of all expectations.
    """

    failures: tuple[CheckFailure, ...]
    failure_count: int
    expectation_count: int


class CheckRecorder:
    """Records expectations. Thread rule: that of its context.

    Attributes:
        max_failures: failures to keep; all are counted.
        max_differences: elements of each to show.
        max_elements: elements of a tensor to print before ``...``.
    """

    max_failures = 100
    max_differences = 10
    max_elements = 64

    def __init__(self) -> None:
        self._failures: list[CheckFailure] = []
        self._failure_count = 0
        self._expectation_count = 0

    def expected(self) -> None:
        """Counts an expectation."""
        self._expectation_count += 1

    def failed(self, make: Callable[[], CheckFailure]) -> None:
        """Counts a failure, and keeps it if there is room."""
        self._failure_count += 1
        if len(self._failures) < self.max_failures:
            self._failures.append(make())

    def take(self) -> CheckLog:
        """Returns what was recorded, and starts afresh."""
        log = CheckLog(tuple(self._failures), self._failure_count, self._expectation_count)
        self._failures = []
        self._failure_count = self._expectation_count = 0
        return log
