"""The sides of ``pumice bench``: the study of a file with its options, and the other side, which is a program with
options as one text, results, or another revision of the file. Options that the text lacks are those of the new side.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ...spirv.sources.language import language_of
from ...status import UnimplementedError, shown
from ...study.definition.axis import parse_axis
from ...study.definition.kept_file import KeptFile, KeptFiles
from ...study.definition.study import Study, Target, make_sampling
from ...study.definition.target_settings import KINDS
from ...study.workloads.study_files import map_files
from ..errors import usage, usage_error
from ..input_files import FileKind, file_kind
from ..options import fields_of, given_options
from ..programs import compiled
from ..streams import note
from ..study.against import against, is_program, read_results, results_at
from ..study.baselines import baseline_names
from ..study.gate import Gate
from ..study.measuring import sampling_settings
from .revision import Revision, revision
from .study import BenchOptions, bench_study, without_twins

_MODULES: Final = (FileKind.MODULE, FileKind.PROGRAM)
SOURCE_OPTIONS: Final = ("defines", "include_dirs", "language")
_KERNEL_OPTIONS: Final = (*SOURCE_OPTIONS, "bindings", "size", "pushes", "specs", "groups", "entry", "subgroup_size")
_MODULE_OPTIONS: Final = ("function", "inputs", "parameters")


def side_study(file: Path, options: Mapping[str, Any], on_line: Iterable[click.Parameter], name: str = "") -> Study:
    """Makes the study of a file; its target has this name or the file's.

    ``on_line`` are options that the file must accept.
    """
    kind = file_kind(file, options["language"])
    if kind in (FileKind.EXECUTABLE, FileKind.SCRIPT):
        raise UnimplementedError(
            f"{file} is a {kind.value}; expected a compiled program, or a kernel in SPIR-V or as source"
        )
    _reject(on_line, file, kind)
    with usage("--axis"):
        axes = tuple(parse_axis(text) for text in options["axes"])
    with usage("--set"):
        sampling = make_sampling(
            {**({"cache": "cold"} if options["cold"] else {}), **sampling_settings(options["sampling"])}
        )
    settings = {name: options[name] for name in _settings(kind) if options.get(name) is not None}
    source = file.resolve()
    kept = None
    if kind is FileKind.PROGRAM:
        module = KeptFile.of(str(source), compiled(file, [options["device"]]), "module")
        kind, kept = FileKind.MODULE, KeptFiles({module.name: module})
    described = bench_study(
        BenchOptions(
            **fields_of(BenchOptions, options)
            | {"file": source, "kind": kind, "settings": settings, "axes": axes, "sampling": sampling}
        ),
        name,
    )
    return replace(described, kept=kept)


def side_options(parameters: Iterable[click.Parameter]) -> list[click.Parameter]:
    """Returns the options in which the sides may differ."""
    names = {*_KERNEL_OPTIONS, *_MODULE_OPTIONS, *_settings(FileKind.SOURCE), *_settings(FileKind.MODULE)}
    return [parameter for parameter in parameters if parameter.name in names]


def _reject(on_line: Iterable[click.Parameter], file: Path, kind: FileKind) -> None:
    """Rejects options for the other kind of file."""
    is_module = kind in _MODULES
    refused = {*_settings(FileKind.SOURCE if is_module else FileKind.MODULE)}.difference(_settings(kind))
    refused |= {*_KERNEL_OPTIONS, "cold", "subtract_baseline"} if is_module else {*_MODULE_OPTIONS, "profile"}
    for parameter in on_line:
        if parameter.name in refused:
            others = "kernels" if is_module else "modules"
            raise usage_error(f"{parameter.opts[0]} is of {others}, and {file} is a {kind.value}")


def _settings(kind: FileKind) -> list[str]:
    names = KINDS["module" if kind in _MODULES else "kernel"].names
    return [name for name in names if name not in (*_KERNEL_OPTIONS, *_MODULE_OPTIONS)]


_KEYED: Final = ("bindings", "pushes", "specs", "defines", "parameters")
"""Options of the form ``NAME=VALUE``, which are merged by name."""


@contextlib.contextmanager
def with_other_side(
    new: Study,
    file: Path,
    options: Mapping[str, Any],
    on_line: Sequence[click.Parameter],
    parameters: Sequence[Any],
    gate: Gate,
) -> Iterator[Study]:
    """Yields the study of the new side against the other side; the files of both sides exist within the block.

    Args:
        new: the new side's study, of the file and the options, without twins.
        file, options: the file and the options of the new side, by name.
        on_line: the parameters that the command line sets.
        parameters: all parameters that the command has.
        gate: the gate of the verdicts.
    """
    if options["against_rev"] is not None:
        with revision(file, options["against_rev"], options["build"]) as at:
            yield _against(new, _at_revision(at, file, options, on_line, new.name), options, gate)
        return
    folder = None if is_program(options["against"]) else results_at(options["against"], options["baselines"])
    if folder is not None:
        old = read_results(folder)
    else:
        old = _program(file, options, on_line, side_options(parameters), new.name)
    yield _against(new, old, options, gate)


def _against(new: Study, old: Study, options: Mapping[str, Any], gate: Gate) -> Study:
    old = without_twins(old)
    headlines = {target.headline for side in (new, old) for target in side.targets}
    if len(headlines) > 1 and options["measure"] is None:
        note(f"the sides measure {' and '.join(sorted(headlines))}; they are compared by total")
        new, old = (_measuring_total(side) for side in (new, old))
    return against(
        new,
        old,
        gate,
        alike="--size, --binding, --input, --batch and the like as these were measured with",
        named="side's program and options, such as --against 'FILE --size N'",
    )


def _measuring_total(study: Study) -> Study:
    return replace(study, targets=tuple(replace(target, measure="total") for target in study.targets))


# -- programs ----------------------------------------------------------------------------------------


def _program(
    file: Path, options: Mapping[str, Any], on_line: Sequence[click.Parameter], sides: list[click.Parameter], name: str
) -> Study:
    """Makes the study of ``'OLD [OPTIONS]'``."""
    text = options["against"]
    named, values, theirs = (Path(text), dict(options), []) if is_program(text) else _parse(text, sides, options)
    old = named or file
    if not old.exists() or (old.is_dir() and old != file):
        folder = options["baselines"]
        known = ", ".join(baseline_names(folder)) or "none"
        raise usage_error(
            f"--against {shown(text)}: {old} is no file, no folder with results and no baseline (in {folder}: {known})"
        )
    has = {parameter.name for parameter in theirs}
    if named is not None:
        # A macro or a language of the new side may not apply to the other side.
        if language_of(old) is not None and "language" not in has:
            values["language"] = None
        if file_kind(old, values["language"]) is not FileKind.SOURCE:
            values.update(
                {
                    parameter: None if parameter == "language" else ()
                    for parameter in SOURCE_OPTIONS
                    if parameter not in has
                }
            )
    return side_study(old, values, theirs, name)


def _parse(
    text: str, parameters: Iterable[click.Parameter], options: Mapping[str, Any]
) -> tuple[Path | None, dict[str, Any], list[click.Parameter]]:
    """Parses the text.

    Returns its file if it has one, the options (by default those of the new side), and the options in the text.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise usage_error(f"--against {shown(text)}: expected words as in a shell: {error}") from None
    argument = click.Argument(["file"], required=False, type=click.Path(path_type=Path))
    command = click.Command("--against", params=[argument, *parameters], add_help_option=False)
    try:
        context = command.make_context("--against", words)
    except click.UsageError as error:
        raise usage_error(f"--against {shown(text)}: {error.format_message()}") from None
    on_line = [option for option in given_options(context) if option is not argument]
    values = dict(options)
    for parameter in on_line:
        name = str(parameter.name)
        value = context.params[name]
        values[name] = _merged(options[name], value) if name in _KEYED else value
    return context.params["file"], values, on_line


def _merged(new: Sequence[str], old: Sequence[str]) -> Sequence[str]:
    """Merges ``NAME=VALUE`` texts by name, where the old side's win; if names repeat, only the old side's are kept."""
    merged = {}
    for texts in (new, old):
        named = {text.partition("=")[0].strip(): text for text in texts}
        if len(named) < len(texts):
            return old
        merged.update(named)
    return tuple(merged.values())


# -- revisions ---------------------------------------------------------------------------------------


def _at_revision(
    at: Revision, file: Path, options: Mapping[str, Any], on_line: Sequence[click.Parameter], name: str
) -> Study:
    """Makes the study of the file at a revision. Names are relative to the worktree, so the next run has the same."""
    old = at.path(file)
    if old is None or not old.is_file():
        since = f"{options['against_rev']} ({at.commit})"
        if options["build"] is not None:
            raise usage_error(f"--against-rev: {file} is not in {since}, and --build has not made it there")
        raise usage_error(
            f"--against-rev: {file} is new since {since}: nothing to compare it with. If it is built, --build CMD "
            "makes it there"
        )
    if not old.resolve().is_relative_to(at.root):
        raise usage_error(
            f"--against-rev: at revision {options['against_rev']} ({at.commit}) {file} is a link to {old.resolve()}, "
            "which is outside of the revision and the same as today; name the file that it links to"
        )
    values = dict(options)
    folders = [at.path(folder) or folder for folder in options["include_dirs"]]
    values["include_dirs"] = tuple(folder for folder in folders if folder.is_dir())
    for option in ("bindings", "inputs"):
        values[option] = tuple(_input_at(at, text) for text in options[option])
    values["parameters"] = tuple(_parameters_at(at, text) for text in options["parameters"])
    study = side_study(old, values, on_line, name)
    targets = tuple(_relative(target, at.root) for target in study.targets)
    kept = study.kept
    if kept is not None:
        files = {
            _within(at.root, name): replace(file, name=_within(at.root, name)) for name, file in kept.files.items()
        }
        kept = replace(kept, files=files)
    return replace(study, targets=targets, folder=at.root, kept=kept)


def _input_at(at: Revision, text: str) -> str:
    """Replaces the file of an input by that of the revision, if the revision has it."""
    head, sign, name = text.partition("@")
    input_file = at.path(Path(name)) if sign else None
    return f"{head}@{input_file}" if input_file is not None and input_file.is_file() else text


def _parameters_at(at: Revision, text: str) -> str:
    scope, equals, name = text.rpartition("=")
    parameter_file = at.path(Path(name))
    return f"{scope}{equals}{parameter_file}" if parameter_file is not None and parameter_file.is_file() else text


def _relative(target: Target, root: Path) -> Target:
    settings = map_files(target.kind, target.settings, lambda name, role: _within(root, name), working_folder=True)
    folders = settings.get("include_dirs")
    if isinstance(folders, (list, tuple)):
        settings["include_dirs"] = [_within(root, str(folder)) for folder in folders]
    return replace(target, settings=settings)


def _within(root: Path, name: str) -> str:
    path = Path(name).absolute()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
