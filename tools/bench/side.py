"""One side of ``pumice bench``: the study of a file with its options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ...status import UnimplementedError
from ...study.definition.axis import parse_axis
from ...study.definition.kept_file import KeptFile, KeptFiles
from ...study.definition.study import Study, make_sampling
from ...study.definition.target_settings import KINDS
from ..errors import usage, usage_error
from ..input_files import FileKind, file_kind
from ..options import fields_of
from ..programs import compiled
from ..study.measuring import sampling_settings
from .study import BenchOptions, bench_study

_MODULES: Final = (FileKind.MODULE, FileKind.PROGRAM)
SOURCE_OPTIONS: Final = ("defines", "include_dirs", "language")
_KERNEL_OPTIONS: Final = (*SOURCE_OPTIONS, "bindings", "size", "pushes", "specs", "groups", "entry", "subgroup_size")
_MODULE_OPTIONS: Final = ("function", "inputs", "parameters")


def side_study(file: Path, options: Mapping[str, Any], on_line: Iterable[click.Parameter], name: str = "") -> Study:
    """Makes the study of a file, with a target of this name or the file's. ``on_line`` are options that the file must
    accept.
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
    """Refuses options for the other kind of file."""
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
