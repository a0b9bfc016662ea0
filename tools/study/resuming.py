"""The options of commands that measure: how often, and whether finished points are sampled on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., object])

RESUMPTION_OPTIONS: Final = ("runs", "continue_noisy", "more_time")
"""The names of the options."""


def resumption_options(command: _Command) -> _Command:
    """``--runs``, ``--continue`` and ``--more-time``; the fields of ``study.sampling.passes.Resumption``."""
    for option in (
        click.option(
            "--more-time",
            type=click.FloatRange(0, min_open=True),
            metavar="S",
            help="Sample each finished point for S seconds more; with --continue, those that were too noisy.",
        ),
        click.option(
            "--continue",
            "continue_noisy",
            is_flag=True,
            help="Sample the points on that were too noisy, for another time_limit.",
        ),
        click.option(
            "--runs",
            type=click.IntRange(1),
            metavar="N",
            help="Measure it N times, each in a process of its own; more may be added later.",
        ),
    ):
        command = option(command)
    return command
