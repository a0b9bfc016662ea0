"""What the options of several commands share: their types, their texts, and which of them were given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

import click

from ..status import shown
from .errors import usage_error

DEVICE_HELP: Final = "vulkan, vulkan://INDEX, vulkan://GPU-UUID, vulkan://NAME or lavapipe."
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def tolerance(text: str) -> float:
    """A finite number of 0 or more."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"expected a finite number of 0 or more, got {shown(text)}")
    return number


def seconds(text: str) -> float:
    """A finite number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise click.BadParameter(f"expected a finite number of seconds above 0, got {shown(text)}")
    return number


def given_options(ctx: click.Context) -> Iterator[click.Parameter]:
    """The parameters that the command line has, without those that have their default."""
    for parameter in ctx.command.params:
        if parameter.name is not None:
            source = ctx.get_parameter_source(parameter.name)
            if source is click.core.ParameterSource.COMMANDLINE:
                yield parameter


def parse_defines(texts: Sequence[str]) -> dict[str, str]:
    """Preprocessor macros by name.

    Raises:
        click.UsageError: a name that GLSL does not allow, or given twice.
    """
    defines: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not _IDENTIFIER.fullmatch(name):
            raise usage_error(f"--define: expected NAME or NAME=VALUE, got {shown(text)}")
        if name in defines:
            raise usage_error(f"--define: {name} is given twice")
        defines[name] = value
    return defines


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
