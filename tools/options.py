"""Common parts of commands' options: types, texts, and the options on the command line."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import click

from ..spirv.sources.language import LANGUAGES
from ..status import shown
from .errors import usage_error

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ..spirv.sources.language import SourceOptions
    from .input_files import FileKind

_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)


class OptionDecorator(Protocol):
    """Adds one or several options to a command."""

    def __call__(self, command: _Command, /) -> _Command: ...


def complete_files(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Completes a file name."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_values(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Completes a value, or the file name after its ``@``."""
    _, at, path = incomplete.rpartition("@")
    return complete_files(ctx, parameter, path) if at else []


def complete_named_files(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Completes a file name, after ``NAME=`` if that is present."""
    return complete_files(ctx, parameter, incomplete.rpartition("=")[2])


def complete_timed_devices(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes the URIs of Vulkan devices without listing devices, which would take too long."""
    return [uri for uri in ("vulkan", "lavapipe") if uri.startswith(incomplete)]


def complete_devices(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes the same URIs, and the reference device."""
    return [*complete_timed_devices(ctx, parameter, incomplete), *["reference"] * "reference".startswith(incomplete)]


def complete_functions(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes the functions of the compiled program on the command line."""
    from ..status import PumiceError
    from ..vm.bytecode.archive import ModuleArchive
    from ..vm.bytecode.reader import read_module

    words = (word for value in ctx.params.values() for word in (value if isinstance(value, tuple) else (value,)))
    for path in (str(word) for word in words if isinstance(word, str | Path)):
        if path.endswith(".vmfb"):
            with contextlib.suppress(PumiceError), ModuleArchive.open(path) as archive:
                names = [export.name for export in read_module(archive).exports]
                return [name for name in names if name.startswith(incomplete) and not name.startswith("__")]
    return []


_VULKAN: Final = "vulkan, vulkan://INDEX, vulkan://GPU-UUID, vulkan://NAME"
DEVICE_HELP: Final = f"{_VULKAN}, lavapipe, or reference (programs only)."
TIMED_DEVICE_HELP: Final = f"{_VULKAN} or lavapipe."
device_option: OptionDecorator = click.option(
    "--device", metavar="URI", shell_complete=complete_devices, help=DEVICE_HELP
)
validation_option: OptionDecorator = click.option(
    "--validation/--no-validation",
    default=None,
    help="The Khronos validation layers, which cost time; as PUMICE_VALIDATION says without it.",
)
SANITIZE_HELP: Final = "Report accesses that go wrong, with the kernel, the index and the invocation; it costs time."


def _set_loop_guard(ctx: click.Context, parameter: click.Parameter, value: bool | None) -> None:
    if value is not None:
        os.environ["PUMICE_LOOP_GUARD"] = str(int(value))  # also for workers


loop_guard_option: OptionDecorator = click.option(
    "--loop-guard/--no-loop-guard",
    default=None,
    expose_value=False,
    callback=_set_loop_guard,
    help="Errors for loops that the driver ends before their time; on lavapipe without it.",
)
parameters_option: Callable[..., OptionDecorator] = functools.partial(
    click.option,
    "--parameters",
    multiple=True,
    metavar="[SCOPE=]FILE",
    shell_complete=complete_named_files,
    help="Parameters: an .irpa, .safetensors, .gguf, .npy or .npz file.",
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def tolerance(text: str) -> float:
    """Returns a finite number of 0 or more."""
    number = _number(text)
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"expected a finite number of 0 or more, got {shown(text)}")
    return number


def seconds(text: str) -> float:
    """Returns a finite number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise click.BadParameter(f"expected a finite number of seconds above 0, got {shown(text)}")
    return number


def given_options(ctx: click.Context) -> Iterator[click.Parameter]:
    """Yields the parameters on the command line, without those at their default."""
    for parameter in ctx.command.params:
        if parameter.name is not None:
            source = ctx.get_parameter_source(parameter.name)
            if source is click.core.ParameterSource.COMMANDLINE:
                yield parameter


def fields_of(kind: type[object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that are fields of a dataclass by the same name."""
    return {name: options[name] for name in kind.__annotations__ if name in options}


def several_options(*options: Callable[[Any], Any]) -> OptionDecorator:
    """Returns a decorator that adds options to a command, in the order of its help."""
    return lambda command: functools.reduce(lambda decorated, option: option(decorated), reversed(options), command)


def source_options(option: Callable[..., Callable[[Any], Any]] = click.option) -> OptionDecorator:
    """Returns the options of a shader's source, which `parse_sources` takes."""
    return several_options(
        option("--define", "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="A macro for the source."),
        option(
            "--include",
            "-I",
            "include_dirs",
            multiple=True,
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="A folder for the source's #include.",
        ),
        option(
            "--language",
            type=click.Choice(LANGUAGES),
            help="The source's language, where the name of the file does not tell.",
        ),
    )


def parse_sources(
    file: Path,
    kind: FileKind,
    *,
    defines: Sequence[str],
    include_dirs: Sequence[Path],
    language: str | None,
    entry_point: str | None = None,
) -> SourceOptions:
    """Parses the `source_options` of a command, which are wrong usage for other kinds of files."""
    from ..spirv.sources.language import SourceOptions, language_of, parse_language
    from .input_files import FileKind

    preprocessing = {"--define": defines, "--include": include_dirs}
    if kind is not FileKind.SOURCE:
        for name, value in {**preprocessing, "--language": language}.items():
            if value:
                raise usage_error(f"{name} is for shader sources; {file} is a {kind.value}")
        return SourceOptions()
    spoken = language_of(file) if language is None else parse_language(language)
    if spoken is not None and not spoken.has_preprocessor:
        for name, value in preprocessing.items():
            if value:
                raise usage_error(f"{name}: {spoken.title} has no preprocessor")
    return SourceOptions(
        language=spoken, entry_point=entry_point, defines=parse_defines(defines), include_dirs=include_dirs
    )


def parse_defines(texts: Sequence[str]) -> dict[str, str]:
    """Returns preprocessor macros by name."""
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
