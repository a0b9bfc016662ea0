"""What the options of several commands share: their types, their texts, and which of them were given."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from ..status import shown
from .errors import usage_error

_VULKAN: Final = "vulkan, vulkan://INDEX, vulkan://GPU-UUID, vulkan://NAME"
DEVICE_HELP: Final = f"{_VULKAN}, lavapipe, or reference (programs only)."
TIMED_DEVICE_HELP: Final = f"{_VULKAN} or lavapipe."
device_option = click.option("--device", metavar="URI", help=DEVICE_HELP)
validation_option = click.option(
    "--validation/--no-validation",
    default=None,
    help="The Khronos validation layers, which cost time; as PUMICE_VALIDATION says without it.",
)
define_option = click.option(
    "--define", "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro for GLSL."
)
parameters_option = functools.partial(
    click.option,
    "--parameters",
    multiple=True,
    metavar="[SCOPE=]FILE",
    help="Parameters: an .irpa, .safetensors, .gguf, .npy or .npz file.",
)
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


def fields_of(kind: type[object], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are fields of a dataclass by the same name."""
    return {name: options[name] for name in kind.__annotations__ if name in options}


def parse_defines(texts: Sequence[str]) -> dict[str, str]:
    """Preprocessor macros by name."""
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
