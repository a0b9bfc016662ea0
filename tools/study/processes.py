"""The options of commands that measure two sides: in which processes, by which installation, in which environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ...status import shorten
from ..errors import usage, usage_error
from .against import against

if TYPE_CHECKING:
    from ...study.definition.study import Study

_Command = TypeVar("_Command", bound=Callable[..., object])

PROCESS_OPTIONS: Final = ("apart", "against_python", "against_env")
"""The names of the options."""


def process_options(command: _Command) -> _Command:
    """``--apart``, ``--against-python`` and ``--against-env``."""
    for option in (
        click.option(
            "--against-env",
            multiple=True,
            metavar="NAME=VALUE",
            help="A variable of the environment of the other version's process; repeatable.",
        ),
        click.option(
            "--against-python",
            metavar="PATH",
            help="The interpreter, with a pumice of its own, that measures the other version.",
        ),
        click.option("--apart", is_flag=True, help="Measure both versions in processes of their own that take turns."),
    ):
        command = option(command)
    return command


def wants_processes(options: Mapping[str, Any]) -> bool:
    return any(options[name] for name in PROCESS_OPTIONS)


def with_processes(described: Study, options: Mapping[str, Any], resolution: float) -> Study:
    """The study with its sides in the processes that the options ask for. Without another version the other side is the
    same in another installation or environment; ``resolution`` is that of verdicts.
    """
    from ...study.definition.process import Process

    variables = {}
    for text in options["against_env"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise usage_error(f"--against-env {shorten(text)}: expected NAME=VALUE")
        variables[name] = value
    if not wants_processes(options):
        return described
    if described.against is None:
        if not options["against_python"] and not variables:
            raise usage_error(
                "--apart measures two versions in processes of their own, and there is one: name the other with "
                "--against OLD, which may be the same again"
            )
        described = against(described, described, resolution)
    assert described.against is not None
    with usage():
        new = described.process or Process()
        old = Process(options["against_python"] or "", variables)
        return replace(described, process=new, against=replace(described.against, process=old))
