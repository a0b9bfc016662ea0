"""Failed expectations and reports of check functions, as counts, as text in pytest's style and as JUnit XML.

JUnit XML has no standard; Jenkins, GitLab and GitHub's report actions read this form: ``testsuites`` with a
``testsuite`` per file, which has a ``testcase`` per function, with ``failure``, ``error`` or ``skipped`` inside.
"""

from __future__ import annotations

import enum
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Final

from ....base.lazy_dataclass import dataclass

_WIDTH: Final = 80
# Characters that XML 1.0 cannot hold, escaped or not.
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class ElementDifference:
    """An element that differs from its expected value.

    Attributes:
        index: the element's position, one number for each axis.
        lhs, rhs: the two values, with all significant digits; no ``rhs`` for expectations of one value.
        difference: the difference ``|lhs - rhs|``; ``None`` if it is not a number.
        tolerance: the largest allowed difference; ``None`` if values must be equal.
    """

    index: tuple[int, ...]
    lhs: str
    rhs: str | None = None
    difference: float | None = None
    tolerance: float | None = None

    def format(self) -> str:
        """Returns one line."""
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
    """A failed expectation.

    Attributes:
        expectation: the function's name: ``expect_eq``.
        lhs, rhs: the two values as text, shortened if large.
        differing: the number of elements that differ; ``None`` if elements were not compared.
        differences: the first differing elements.
        largest: the element with the largest difference, if tolerances apply.
    """

    expectation: str
    summary: str
    location: str | None = None
    lhs: str | None = None
    rhs: str | None = None
    differing: int | None = None
    differences: tuple[ElementDifference, ...] = ()
    largest: ElementDifference | None = None

    def format(self) -> str:
        """Returns the failure as text of several lines."""
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


class Outcome(enum.Enum):
    """Outcome of a check function; the value is its name in reports."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"

    @property
    def letter(self) -> str:
        """One character of pytest's progress output."""
        return {"passed": ".", "failed": "F", "error": "E", "skipped": "s"}[self.value]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one function.

    Attributes:
        name: the function's name, or ``"(load)"`` for a file that cannot be loaded.
        outcome: ``FAILED`` if expectations failed, ``ERROR`` if the program did not return.
        duration: the time in seconds, with the module's initializers.
        failures: the first failed expectations.
        error, error_type: the text and class of the error, for ``ERROR``; the reason why it was not run, for
            ``SKIPPED``.
    """

    name: str
    outcome: Outcome
    duration: float = 0.0
    expectation_count: int = 0
    failure_count: int = 0
    failures: tuple[CheckFailure, ...] = ()
    error: str | None = None
    error_type: str | None = None

    @property
    def summary(self) -> str:
        """The failure in one line; empty if there is none."""
        if self.error is not None:
            return self.error.partition("\n")[0]
        if not self.failure_count:
            return ""
        first = f"{self.failures[0].expectation}: {self.failures[0].summary}" if self.failures else "not kept"
        return first if self.failure_count == 1 else f"{self.failure_count} expectations failed; the first: {first}"

    def details(self) -> str:
        """Returns all failures and the error."""
        parts = [failure.format() for failure in self.failures]
        if self.failure_count > len(self.failures):
            parts.append(f"and {self.failure_count - len(self.failures)} more expectation(s) failed")
        if self.error is not None:
            parts.append(self.error)
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class FileReport:
    """Results of one file; the module's name is empty if it could not be loaded. ``duration`` is in seconds."""

    path: str
    module_name: str
    results: tuple[CheckResult, ...]
    duration: float


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Results of all files' functions; ``deselected`` are the functions that no filter matched."""

    files: tuple[FileReport, ...]
    device: str
    duration: float
    deselected: int = 0

    @property
    def results(self) -> list[CheckResult]:
        """The results of all files."""
        return [result for file in self.files for result in file.results]

    def count(self, outcome: Outcome) -> int:
        """Returns the number of functions with this outcome."""
        return sum(result.outcome is outcome for result in self.results)

    # -- text ----------------------------------------------------------------------------------------

    def format(self) -> str:
        """Returns all failures and one line of counts, in pytest's style."""
        lines: list[str] = []
        summary: list[str] = []
        for outcome, title in ((Outcome.ERROR, "ERRORS"), (Outcome.FAILED, "FAILURES")):
            if self.count(outcome):
                lines.append(_rule(title, "="))
            for file in self.files:
                for result in file.results:
                    if result.outcome is outcome:
                        name = f"{file.path}::{result.name}"
                        lines += [_rule(name, "_"), result.details()]
                        summary.append(f"{outcome.value.upper()} {name} - {result.summary}")
        if summary:
            lines += [_rule("short summary", "="), *summary]
        lines.append(_rule(self._counts(), "="))
        return "\n".join(lines)

    def _counts(self) -> str:
        """Returns non-zero counts, and the time."""
        errors = self.count(Outcome.ERROR)
        counts = [
            (self.count(Outcome.FAILED), "failed"),
            (self.count(Outcome.PASSED), "passed"),
            (self.count(Outcome.SKIPPED), "skipped"),
            (self.deselected, "deselected"),
            (errors, "error" if errors == 1 else "errors"),
        ]
        text = ", ".join(f"{count} {name}" for count, name in counts if count) or "no check functions"
        expectations = sum(result.expectation_count for result in self.results)
        return f"{text}, {expectations} expectations in {self.duration:.2f} s"

    # -- JUnit XML -----------------------------------------------------------------------------------

    def to_junit_xml(self) -> str:
        r"""Returns the report as a JUnit XML document.

        Characters that XML cannot hold are written as escapes such as ``\x00``.
        """
        root = ET.Element("testsuites", name="pumice checks")
        _set_counts(root, self.results, self.duration)
        for file in self.files:
            suite = ET.SubElement(root, "testsuite", name=_xml(file.path))
            _set_counts(suite, file.results, file.duration)
            properties = ET.SubElement(suite, "properties")
            ET.SubElement(properties, "property", name="device", value=_xml(self.device))
            for result in file.results:
                _add_case(suite, file, result)
        ET.indent(root)
        text: str = ET.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _add_case(suite: ET.Element, file: FileReport, result: CheckResult) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        classname=_xml(file.module_name or file.path),
        name=_xml(result.name),
        assertions=str(result.expectation_count),
        time=f"{result.duration:.3f}",
    )
    summary, details = _xml(result.summary), _xml(result.details())
    if result.outcome is Outcome.SKIPPED:
        ET.SubElement(case, "skipped", message=summary)
    elif result.outcome is Outcome.FAILED:
        kind = result.failures[0].expectation if result.failures else "expectation"
        ET.SubElement(case, "failure", message=summary, type=kind).text = details
    elif result.outcome is Outcome.ERROR:
        ET.SubElement(case, "error", message=summary, type=result.error_type or "error").text = details


def _set_counts(element: ET.Element, results: Iterable[CheckResult], duration: float) -> None:
    outcomes = [result.outcome for result in results]
    element.set("tests", str(len(outcomes)))
    element.set("failures", str(outcomes.count(Outcome.FAILED)))
    element.set("errors", str(outcomes.count(Outcome.ERROR)))
    element.set("skipped", str(outcomes.count(Outcome.SKIPPED)))
    element.set("time", f"{duration:.3f}")


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: match[0].encode("unicode_escape", "backslashreplace").decode(), text)


def _rule(text: str, mark: str) -> str:
    return f" {text} ".center(_WIDTH, mark)
