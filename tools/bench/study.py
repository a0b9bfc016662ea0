"""The study of ``pumice bench``: one target, with and without timestamps, and the empty kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...runtime.values.parse import parse_values
from ...status import shown
from ...study.definition.axis import Axis
from ...study.definition.expression import Expression
from ...study.definition.settings import Sampling
from ...study.definition.study import Study, Target
from ..errors import usage, usage_error
from ..input_files import FileKind
from .kernel import kernel_settings

_UNTIMED: Final = " without timestamps"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The command line of ``pumice bench``.

    ``settings`` are the workload's that were given (``batch``, ``record``, …), by name.
    """

    file: Path
    kind: FileKind
    bindings: Sequence[str] = ()
    size: int = 65536
    pushes: Sequence[str] = ()
    specs: Sequence[str] = ()
    groups: str | None = None
    entry: str | None = None
    defines: Sequence[str] = ()
    subgroup_size: int | None = None
    function: str | None = None
    inputs: Sequence[str] = ()
    parameters: Sequence[str] = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    measure: str | None = None
    axes: Sequence[Axis] = ()
    sampling: Sampling = field(default_factory=Sampling)
    baseline: bool = True
    figures: Sequence[str] = ()
    peaks: bool = False


def bench_study(options: BenchOptions) -> Study:
    """The study.

    Raises:
        click.UsageError: the options are malformed or not what the file declares.
        PumiceError: the file cannot be read or compiled.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", options.file.stem).strip("-_") or "bench"
    is_module = options.kind is FileKind.MODULE
    settings = _module_settings(options) if is_module else _kernel_settings(options)
    with usage():
        targets = [Target(name, "module" if is_module else "kernel", settings, _measure(options, is_module))]
        if not is_module and targets[0].headline == "execute" and not _varies(options, "timestamps"):
            # Shows the cost of the timestamps.
            targets.append(Target(name + _UNTIMED, "kernel", {**settings, "timestamps": "none"}, "device"))
        derived = dict(_figure(text) for text in options.figures)
        axes = tuple(options.axes)
        if any("size" in Expression(text).names for text in derived.values()) and not _varies(options, "size"):
            axes = (*axes, Axis("size", (options.size,)))
        return Study(
            name,
            tuple(targets),
            axes=axes,
            derived=derived,
            peaks=options.peaks,
            title=options.file.name,
            sampling=options.sampling,
            baseline=options.baseline and not is_module,
            folder=Path.cwd(),
        )


def _figure(text: str) -> tuple[str, str]:
    name, equals, expression = (part.strip() for part in text.partition("="))
    if not equals or not name or not expression:
        raise usage_error(f"--figure {shown(text)}: expected NAME=EXPRESSION, such as bytes=12*size")
    return name, expression


def _varies(options: BenchOptions, name: str) -> bool:
    return name in options.settings or any(axis.name == name for axis in options.axes)


def _measure(options: BenchOptions, is_module: bool) -> str | None:
    """The headline: without device timestamps the time from the submit call's return to the host awake, a bound."""
    if options.measure is not None or is_module:
        return options.measure
    values = {name: [value] for name, value in options.settings.items()}
    values |= {axis.name: list(axis.values) for axis in options.axes}
    untimed = "none" in values.get("timestamps", ()) or "kernel" in values.get("calls", ())
    return "device" if untimed else None


def _kernel_settings(options: BenchOptions) -> dict[str, object]:
    settings = kernel_settings(
        options.file,
        bindings=options.bindings,
        size=options.size,
        size_varies=any(axis.name == "size" for axis in options.axes),
        pushes=options.pushes,
        specs=options.specs,
        groups=options.groups,
        entry=options.entry,
        defines=options.defines,
        addresses=options.settings.get("descriptors") == "address",
    )
    if options.subgroup_size is not None:
        settings["subgroup_size"] = options.subgroup_size
    return {**settings, **options.settings}


def _module_settings(options: BenchOptions) -> dict[str, object]:
    parameters = {}
    for text in options.parameters:
        scope, equals, path = text.partition("=")
        parameters[scope if equals else ""] = path if equals else text
    with usage("--input"):
        parse_values(options.inputs)
    settings = dict(options.settings)
    depth = settings.get("in_flight", 1)
    if depth != 1 and settings.setdefault("path", "async") != "async":
        raise usage_error(f"--in-flight {depth}: calls overlap with --path async alone, got --path {settings['path']}")
    return {
        "source": str(options.file),
        "inputs": list(options.inputs),
        **({"function": options.function} if options.function else {}),
        **({"parameters": parameters} if parameters else {}),
        **settings,
    }
