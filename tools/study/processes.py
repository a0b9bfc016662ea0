"""Options of commands that measure two sides: their processes, installations and environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from ...base.terminal import printable
from ...status import shorten
from ..errors import usage, usage_error
from ..options import OptionDecorator, several_options
from ..streams import note
from .against import against

if TYPE_CHECKING:
    from ...study.definition.study import Study
    from .gate import Gate

PROCESS_OPTIONS: Final = ("apart", "against_python", "against_env")
"""The parameter names of ``process_options``."""

process_options: OptionDecorator = several_options(
    click.option("--apart", is_flag=True, help="Measure both versions in processes of their own that take turns."),
    click.option(
        "--against-python",
        metavar="PATH",
        help="The interpreter, with a pumice of its own, that measures the other version.",
    ),
    click.option(
        "--against-env",
        multiple=True,
        metavar="NAME=VALUE",
        help="A variable of the environment of the other version's process; repeatable.",
    ),
)


def wants_processes(options: Mapping[str, Any]) -> bool:
    return any(options[name] for name in PROCESS_OPTIONS)


def with_processes(described: Study, options: Mapping[str, Any], gate: Gate) -> Study:
    """Returns the study with its sides in the processes that the options ask for. By default a side from results is
    measured in the same kind of process again, which a note says. Without another version the other side is the same
    study in another installation or environment; ``gate`` is that of the verdicts.
    """
    from ...study.definition.settings import Process

    variables = {}
    for text in options["against_env"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise usage_error(f"--against-env {shorten(text)}: expected NAME=VALUE")
        variables[name] = value
    asked = None
    if wants_processes(options):
        with usage():
            asked = Process(options["against_python"] or "", variables)
        alone = asked == Process()
        if described.against is None:
            if alone:
                raise usage_error(
                    "--apart measures two versions in processes of their own, and there is one: name the other with "
                    "--against OLD, which may be the same again"
                )
            described = against(described, described, gate)
        other = described.against
        assert other is not None
        old = (other.process if alone else None) or asked
        described = replace(described, process=described.process or Process(), against=replace(other, process=old))
    for side, name in ((described.against, "old"), (described, "new")):
        if side is not None and side.kept is not None and side.kept.origin and side.process not in (None, asked):
            note(printable(f"the {name} side is measured as {side.kept.origin} were, {side.process}"))
    return described
