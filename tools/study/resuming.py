"""Options of commands that measure: the number of runs, and whether finished points are sampled further."""

from __future__ import annotations

from typing import Final

import click

from ..options import OptionDecorator, several_options

RESUMPTION_OPTIONS: Final = ("runs", "continue_noisy", "more_time")
"""The parameter names, which are the fields of ``study.sampling.passes.Resumption``."""

resumption_options: OptionDecorator = several_options(
    click.option(
        "--runs",
        type=click.IntRange(1),
        metavar="N",
        help="Measure it N times, each in a process of its own; more may be added later.",
    ),
    click.option(
        "--continue",
        "continue_noisy",
        is_flag=True,
        help="Sample the points on that were too noisy, for another time_limit.",
    ),
    click.option(
        "--more-time",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Sample each finished point for S seconds more; with --continue, those that were too noisy.",
    ),
)
