"""The study that ``pumice bench`` measures: one target, with and without timestamps, beside the empty kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..hal_vulkan import Binding, EntryPoint, reflect
from ..hal_vulkan.element_type import ElementType
from ..runtime.shader_source import load_shader
from ..status import NotFoundError
from ..study.axis import Axis
from ..study.settings import Sampling
from ..study.study import Study, Target
from .arguments import parse_defines, parse_groups
from .errors import usage, usage_error
from .kernel_arguments import push_bytes
from .kernel_files import FileKind

__all__ = ["BenchOptions", "bench_study"]

_KEY: Final = re.compile(r"\s*(?:([0-9]{1,9})\.)?([0-9]{1,9}|[A-Za-z_]\w*)\s*", re.ASCII)
_UNTIMED: Final = " without timestamps"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The command line of ``pumice bench``, texts as they were written.

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


def bench_study(options: BenchOptions) -> Study:
    """The study.

    Raises:
        click.UsageError: the options are malformed or not what the file declares.
        PumiceError: the file cannot be read or compiled.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", options.file.stem).strip("-") or "bench"
    title = f"{options.file.name}"
    if options.kind is FileKind.MODULE:
        targets = [Target(name, "module", _module_settings(options), options.measure)]
    else:
        settings = _kernel_settings(options)
        targets = [Target(name, "kernel", settings, options.measure)]
        asked = "timestamps" in settings or any(axis.name == "timestamps" for axis in options.axes)
        if not asked and options.measure in (None, "execute"):
            # What the timestamps themselves cost shows beside.
            targets.append(Target(name + _UNTIMED, "kernel", {**settings, "timestamps": "none"}, "device"))
    with usage():
        return Study(
            name,
            tuple(targets),
            axes=tuple(options.axes),
            title=title,
            sampling=options.sampling,
            baseline=options.baseline and options.kind is not FileKind.MODULE,
            folder=Path.cwd(),
        )


def _module_settings(options: BenchOptions) -> dict[str, object]:
    parameters = {}
    for text in options.parameters:
        scope, equals, path = text.partition("=")
        parameters[scope if equals else ""] = path if equals else text
    return {
        "source": str(options.file),
        "inputs": list(options.inputs),
        **({"function": options.function} if options.function else {}),
        **({"parameters": parameters} if parameters else {}),
        **options.settings,
    }


def _kernel_settings(options: BenchOptions) -> dict[str, object]:
    defines = parse_defines(options.defines)
    code, name = load_shader(options.file, defines=defines, include_dirs=())
    reflection = reflect(code)
    with usage("--entry", *([NotFoundError] if options.entry is not None else [])):
        entry = reflection.entry_point(options.entry)
    settings: dict[str, object] = {"source": str(options.file), "bindings": _bindings(options, entry)}
    if options.entry is not None:
        settings["entry_point"] = options.entry
    if defines:
        settings["defines"] = defines
    if options.subgroup_size is not None:
        settings["subgroup_size"] = options.subgroup_size
    if options.specs:
        settings["specialization"] = dict(_named("--spec", text) for text in options.specs)
    if options.groups is not None:
        expression = options.groups.strip()
        settings["groups"] = expression if expression.startswith("$") else list(parse_groups(expression))
    if options.pushes:
        simple = [_simple(text) for text in options.pushes]
        if all(one is not None for one in simple):
            settings["push"] = dict(one for one in simple if one is not None)
        else:
            settings["push"] = "hex:" + push_bytes(options.pushes, entry.push_constants, name).hex()
    elif entry.push_constants is not None and entry.push_constants.size:
        members = ", ".join(member.name or "?" for member in entry.push_constants.members)
        raise usage_error(f"{name} has push constants ({members}): give each as --push NAME=VALUE")
    return {**settings, **options.settings}


def _named(option: str, text: str) -> tuple[str, object]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise usage_error(f"{option} {text!r}: expected NAME=VALUE, such as 0=64")
    return name, _number(option, text, value)


def _number(option: str, text: str, value: str) -> object:
    if value.startswith("$"):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    raise usage_error(
        f"{option} {text!r}: expected a number, or an expression over the axes such as $size; got {value!r}"
    )


def _simple(text: str) -> tuple[str, object] | None:
    """``NAME=NUMBER`` or ``NAME=$EXPRESSION``; ``None`` for what says its type."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier() or re.fullmatch(r"(?:bf|[siuf])\d+", name):
        return None
    return (name, _number("--push", text, value)) if "," not in value and "=" not in value else None


def _bindings(options: BenchOptions, entry: EntryPoint) -> list[object]:
    given: dict[int, str] = {}
    for text in options.bindings:
        key, equals, value = text.partition("=")
        match = _KEY.fullmatch(key)
        if match is None or not equals:
            raise usage_error(f"--binding {text[:80]!r}: expected BINDING=VALUE such as 0=4xf32=1,2,3,4")
        set_index, name = int(match[1] or 0), match[2]
        found = [
            index
            for index, binding in enumerate(entry.bindings)
            if binding.name == name or (name.isdecimal() and (binding.set, binding.binding) == (set_index, int(name)))
        ]
        if not found:
            known = ", ".join(f"{b.binding}" + (f" ({b.name})" if b.name else "") for b in entry.bindings)
            raise usage_error(f"--binding {key}: no such binding; {entry.name} has: {known or 'no bindings'}")
        if found[0] in given:
            raise usage_error(f"--binding {key} is given twice")
        given[found[0]] = value.strip()
    swept = any(axis.name == "size" for axis in options.axes)
    descriptions: list[object] = []
    for index, binding in enumerate(entry.bindings):
        one = given.get(index)
        descriptions += [_default(binding, options.size, swept) if one is None else one] * binding.count
    return descriptions


def _default(binding: Binding, size: int, swept: bool) -> dict[str, object]:
    """``--size`` elements where the shader declares any number, and as many as it declares otherwise."""
    init = "random" if binding.readable else "zeros"
    element = binding.element
    if element is None or element.dtype is None:
        return {"shape": [max(4, binding.fixed_size)], "dtype": "u8", "init": "zeros"}
    dtype = ElementType.from_dtype(element.dtype).short_name
    per = element.stride // element.dtype.itemsize if element.stride else element.components * element.columns
    head = binding.fixed_size // element.dtype.itemsize if element.array == "runtime" else 0
    if element.array == "runtime":
        length: object = f"${head} + {per} * size" if swept else head + per * size
    else:
        length = max(1, binding.fixed_size // element.dtype.itemsize)
    return {"shape": [length], "dtype": dtype, "init": init}
