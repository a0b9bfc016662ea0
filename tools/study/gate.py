"""The gate of a comparison: its options, outputs and exit status.

A comparing command gets the options from ``gating_options``, makes a ``Gate`` of them, compares with its ``limits``,
and exits with the status of the judgement that ``finish`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...base.lazy_dataclass import dataclass
from ...status import shown
from ..errors import usage, usage_error
from ..options import OptionDecorator, several_options
from ..output_files import Outputs
from .judgement import Judgement, judge

if TYPE_CHECKING:
    from ...study.results.comparison.results_comparison import ResultsComparison


def check_folder(option: str, path: Path | None) -> None:
    """Raises a usage error if the folder of a file does not exist; call it before minutes of measuring."""
    if path is not None and not path.absolute().parent.is_dir():
        raise usage_error(f"{option}: there is no folder {path.parent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The options of ``gating_options``.

    Attributes:
        fail_on: the reasons for an exit status above 0: ``"slower"``, ``"unclear"`` (which includes slower) or
            ``"never"``.
        tolerate: the largest slow-down, as a fraction, with which a SLOWER point passes.
        measure, confidence, resolution, threshold: the criteria of the comparison.
        markdown, junit: the files to write, if any.
        github: whether to write annotations.
        as_json: whether to print JSON instead of the table.
    """

    fail_on: str = "unclear"
    tolerate: float = 0.0
    measure: str = "headline"
    confidence: float = 0.99
    resolution: float = 0.025
    threshold: float = 0.01
    markdown: Path | None = None
    junit: Path | None = None
    github: bool = False
    as_json: bool = False

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to fail on or to write."""
        return self.fail_on != "never" or self.markdown is not None or self.junit is not None or self.github

    @property
    def limits(self) -> dict[str, Any]:
        """The keyword arguments of ``compare_results`` and ``compare_sides``."""
        return {name: getattr(self, name) for name in ("measure", "confidence", "resolution", "threshold")}

    def check(self) -> tuple[str, str]:
        """Returns the compared segment and statistic.

        Raises a usage error for values out of range and for files in missing folders; call it before minutes of
        measuring.
        """
        from ...study.results.comparison.point_comparison import criteria_of

        for option, path in (("--markdown", self.markdown), ("--junit", self.junit)):
            if path is not None and str(path) == "-":
                raise usage_error(f"{option}: expected a file, got -; stdout has the comparison (--json)")
            check_folder(option, path)
        with usage():
            criteria = criteria_of(**self.limits)
        return criteria.segment, criteria.statistic

    def finish(self, comparison: ResultsComparison, within: Mapping[str, object] | None = None) -> Judgement:
        """Prints the comparison, writes the requested files, and returns the judgement.

        Args:
            comparison: the compared results.
            within: a JSON document for the comparison, under the key ``comparison``.

        Raises:
            UnavailableError, PermissionDeniedError, ResourceExhaustedError, NotFoundError: an output could not be
                written; the others were.
        """
        from .ci_outputs import write_annotations, write_junit, write_markdown
        from .tables import print_comparison, print_comparison_json

        judged = judge(comparison, self.fail_on, self.tolerate)
        outputs = Outputs()
        with outputs.storing():
            if self.as_json:
                print_comparison_json(judged, within)
            else:
                print_comparison(judged)
        if self.markdown is not None:
            with outputs.storing():
                write_markdown(judged, self.markdown)
        if self.junit is not None:
            with outputs.storing():
                write_junit(judged, self.junit)
        if self.github:
            write_annotations(judged)
        outputs.finish()
        return judged


def _fraction(text: str) -> float:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise click.BadParameter(f"expected a fraction from 0 to below 1, such as 0.05 or 5%; got {shown(text)}")
    return number


def gating_options(*, fail_on: str = "unclear", leave_out: Collection[str] = ()) -> Callable[[Any], Any]:
    """Returns a decorator with the options of ``Gate``, whose parameter names are its fields.

    Args:
        fail_on: the default of ``--fail-on``.
        leave_out: the fields without an option.
    """
    options = {
        "fail_on": click.option(
            "--fail-on",
            type=click.Choice(["slower", "unclear", "never"]),
            default=fail_on,
            show_default=True,
            help="What fails: slower points (status 4), unclear ones too (status 3), or nothing.",
        ),
        "tolerate": click.option(
            "--tolerate",
            type=_fraction,
            default="0",
            metavar="FRACTION",
            help="The slow-down that passes, such as 0.05 or 5%.",
        ),
        "measure": click.option(
            "--measure",
            default="headline",
            metavar="NAME",
            help="A segment or total instead of what each point measures, p99 or minimum instead of the median, "
            "or both: wake:p99.",
        ),
        "confidence": click.option(
            "--confidence", type=float, default=0.99, show_default=True, help="Level of the intervals."
        ),
        "threshold": click.option(
            "--threshold", type=float, default=0.01, show_default=True, help="Smallest change that counts."
        ),
        "resolution": click.option(
            "--resolution",
            type=float,
            default=0.025,
            show_default=True,
            help="Largest half-width of an interval for SAME.",
        ),
        "markdown": click.option(
            "--markdown",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write a summary in Markdown; appended to $GITHUB_STEP_SUMMARY.",
        ),
        "junit": click.option(
            "--junit",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write a JUnit report.",
        ),
        "github": click.option("--github", is_flag=True, help="Write annotations for GitHub Actions to stderr."),
        "as_json": click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    }
    return several_options(*(option for name, option in options.items() if name not in leave_out))


across_option: OptionDecorator = click.option(
    "--across",
    multiple=True,
    type=click.Choice(["device", "driver", "host"]),
    help="What is compared: results that differ in it have no verdict otherwise. Takes five runs of each. Repeatable.",
)
