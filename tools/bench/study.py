"""The study of ``pumice bench``: one target, with and without timestamps, and the empty kernel."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType
from ...formats.image_format import ImageFormat
from ...hal_vulkan import Binding, EntryPoint, PushConstantBlock, ShaderModuleReflection, reflect
from ...runtime.kernels.parameters.block import describe, unpack_members
from ...runtime.kernels.shader_source import load_shader, source_text
from ...runtime.values.parse import parse_values
from ...spirv.instrument.printed import PRINT_SET
from ...spirv.reflection.block_dtype import tail
from ...spirv.sources.language import Language
from ...status import NotFoundError, shorten, shown
from ...study.definition.axis import Axis
from ...study.definition.expression import Expression, Template
from ...study.definition.settings import Sampling
from ...study.definition.study import Study, Target
from ...study.workloads.kernel_settings import macros
from ..errors import usage, usage_error
from ..input_files import FileKind
from ..options import parse_sources
from ..run.arguments import parse_buffers, parse_counts
from ..run.block_arguments import BlockArgument
from ..run.kernel_arguments import Slots, override_values, push_bytes, specialised_entry, specialization_values
from ..run.keys import split_key
from ..streams import note

_ADDRESS_BYTES: Final = 8
_UNTIMED: Final = " without timestamps"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """The command line of ``pumice bench``.

    ``settings`` has the specified settings of the workload (``batch``, ``record``, …) by name.
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
    include_dirs: Sequence[Path] = ()
    language: str | None = None
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


def bench_study(options: BenchOptions, name: str = "") -> Study:
    """Makes the study; its target has this name or the file's."""
    name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", options.file.stem).strip("-_") or "bench"
    is_module = options.kind is FileKind.MODULE
    settings = _module_settings(options) if is_module else _kernel_settings(options)
    with usage():
        targets = [Target(name, "module" if is_module else "kernel", settings, _measure(options, is_module))]
        if not is_module and targets[0].headline == "execute" and not _varies(options, "timestamps"):
            # Shows the cost of the timestamps.
            targets.append(Target(name + _UNTIMED, "kernel", {**settings, "timestamps": "none"}, "device"))
        derived = {}
        for text in options.figures:
            figure, _, expression = (part.strip() for part in text.partition("="))
            if not figure or not expression:
                raise usage_error(f"--figure {shown(text)}: expected NAME=EXPRESSION, such as bytes=12*size")
            derived[figure] = expression
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


def without_twins(study: Study) -> Study:
    """Removes the targets that repeat others without timestamps."""
    kept = [target for target in study.targets if not target.name.endswith(_UNTIMED)]
    return replace(study, targets=tuple(kept)) if kept else study


def _varies(options: BenchOptions, name: str) -> bool:
    return name in options.settings or any(name in axis.names for axis in options.axes)


def _measure(options: BenchOptions, is_module: bool) -> str | None:
    """Returns the headline figure.

    Without device timestamps it is an upper bound: from the submit call's return to the host's wake-up.
    """
    if options.measure is not None or is_module:
        return options.measure
    values = {name: [value] for name, value in options.settings.items()}
    values |= {name: list(column) for axis in options.axes for name, column in axis.columns.items()}
    untimed = "none" in values.get("timestamps", ()) or "kernel" in values.get("calls", ())
    return "device" if untimed else None


def _module_settings(options: BenchOptions) -> dict[str, object]:
    parameters = {}
    for text in options.parameters:
        scope, equals, path = text.partition("=")
        parameters[scope if equals else ""] = path if equals else text
    with usage("--input"):
        parse_values([str(_at_first(options, text, "--input")) for text in options.inputs])
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


# -- kernels -----------------------------------------------------------------------------------------


def _kernel_settings(options: BenchOptions) -> dict[str, object]:
    """Returns the settings of kind ``kernel`` in ``study.target_settings`` for these options."""
    # The module for the first values of the axes provides the kernel's declarations.
    entry_point = None if options.entry is None else str(_at_first(options, options.entry, "--entry"))
    sources = parse_sources(
        options.file,
        options.kind,
        defines=options.defines,
        include_dirs=options.include_dirs,
        language=options.language,
        entry_point=entry_point,
    )
    defines = sources.defines
    sources = replace(
        sources, defines=macros({name: _at_first(options, value, "--define") for name, value in defines.items()})
    )
    overrides: dict[str, object] = {}
    if sources.language is Language.WGSL:
        overrides = {str(key): value for key, value in _overrides(options.specs).items()}
        first = {key: _at_first(options, value, "--spec") for key, value in overrides.items()}
        sources = replace(sources, overrides=override_values([f"{key}={value}" for key, value in first.items()]))
    code, name = load_shader(options.file, sources)
    if PRINT_SET.encode() in code:
        note("what the kernel prints is left out, as it would be part of the time")
    reflection = reflect(code)
    with usage("--entry", *([NotFoundError] if entry_point is not None else [])):
        entry = reflection.entry_point(entry_point)
    settings: dict[str, object] = {"source": str(options.file)}
    if options.entry is not None:
        settings["entry_point"] = options.entry
    if options.subgroup_size is not None:
        settings["subgroup_size"] = options.subgroup_size
    if defines:
        settings["defines"] = dict(defines)
    if options.language is not None:
        settings["language"] = options.language
    if sources.include_dirs:
        settings["include_dirs"] = [str(folder.absolute()) for folder in options.include_dirs]
    if overrides:
        settings["specialization"] = overrides
    elif options.specs:
        source = functools.partial(source_text, options.file, sources)
        values = settings["specialization"] = _specialization(options.specs, reflection, code, source)
        first = {key: _at_first(options, value, "--spec") for key, value in values.items()}
        numbers = {int(key): value for key, value in first.items() if isinstance(value, (bool, int, float))}
        entry = specialised_entry(code, reflection, numbers, entry.name)
    if options.groups is not None:
        settings["groups"] = _groups(options.groups.strip())
    if options.settings.get("descriptors") == "address":
        settings |= _by_address(options, entry, name)
    else:
        settings["bindings"] = _bindings(options, entry)
        if push := _push(options.pushes, entry.push_constants, name):
            settings["push"] = push
    return {**settings, **options.settings}


def _at_first(options: BenchOptions, value: object, option: str) -> object:
    """Evaluates an option's value at the first value of each axis."""
    first = {name: values[0] for axis in options.axes for name, values in axis.columns.items()}
    with usage(option):
        return Template(value).fill(first)


def _groups(text: str) -> str | list[str | int]:
    """Parses numbers, an expression, or a list that may contain expressions: ``$n,$n``, ``4,$cdiv(n, 64)``."""
    parts = [part.strip() for part in re.split(r",(?=\s*\$)", text)]
    if len(parts) == 1:
        return text if text.startswith("$") else [*parse_counts(text)]
    return [count for part in parts for count in ([part] if part.startswith("$") else parse_counts(part))]


def _bindings(options: BenchOptions, entry: EntryPoint) -> list[object]:
    """Describes each binding: as specified, or as ``--size`` elements of random data."""
    slots = Slots(entry)
    described: dict[int, object] = {}
    size_varies = _varies(options, "size")
    for text in options.bindings:
        key, value = split_key("--binding", text, "0=4xf32=1,2,3,4")
        first = str(_at_first(options, value.strip(), "--binding"))
        is_sampler = first.partition(":")[0].strip() == "sampler"
        arguments = [] if is_sampler else parse_buffers("--binding", [f"{key.text}={first}"])
        slot = slots.find(key, "--binding")
        if slot.index in described:
            raise usage_error(f"--binding {key.text}: {slot.label} is given twice")
        described[slot.index] = value.strip()
        for argument in arguments:
            if isinstance(argument, BlockArgument) and not value.strip().startswith("$"):
                zeros = _default(slot.binding, argument.count or options.size, size_varies and argument.count is None)
                described[slot.index] = zeros if argument.value is None else {"block": argument.value}
    return [described.get(slot.index) or _default(slot.binding, options.size, size_varies) for slot in slots.slots]


def _default(binding: Binding, size: int, size_varies: bool) -> dict[str, object] | str:
    """Describes ``--size`` elements of a runtime array, about that many texels of an image, else the declared size."""
    init = "random" if binding.readable else "zeros"
    element, image = binding.element, binding.image
    if binding.descriptor_type_name == "sampler":
        return "sampler"
    if image is not None:
        stored = image.storage and image.format != "unknown"
        name = image.format if stored else {"int": "r32sint", "uint": "r32uint"}.get(image.sampled.kind, "rgba8unorm")
        axes = {"1d": 1, "buffer": 1, "3d": 3}.get(image.dim, 2)
        layers = [6] if image.dim == "cube" else [1] if image.arrayed else []
        side = max(1, round(size ** (1 / axes)))
        return {"shape": [*layers, *[side] * axes], "format": ImageFormat.parse(name).name, "init": init}
    last = tail(binding.members)
    if last is not None and (element is None or element.dtype is None):  # structures: bytes
        stride = last.array_stride or 1
        length: object = (
            f"${binding.fixed_size} + {stride} * size" if size_varies else binding.fixed_size + stride * size
        )
        return {"shape": [length], "dtype": "u8", "init": "zeros"}
    if element is None or element.dtype is None:
        return {"shape": [max(4, binding.fixed_size)], "dtype": "u8", "init": "zeros"}
    dtype = ElementType.from_dtype(element.dtype).short_name
    if element.array != "runtime":
        return {"shape": [max(1, binding.fixed_size // element.dtype.itemsize)], "dtype": dtype, "init": init}
    per = element.stride // element.dtype.itemsize if element.stride else element.components * element.columns
    head = binding.fixed_size // element.dtype.itemsize
    length = f"${head} + {per} * size" if size_varies else head + per * size
    return {"shape": [length], "dtype": dtype, "init": init}


def _overrides(texts: Sequence[str]) -> dict[int | str, object]:
    """Returns the values of WGSL's overrides; expressions stay texts."""
    parts = [[part.strip() for part in text.partition("=")] for text in texts]
    plain = [text for text, part in zip(texts, parts, strict=True) if not part[2].startswith("$")]
    return {**override_values(plain), **{part[0]: part[2] for part in parts if part[2].startswith("$")}}


def _specialization(
    texts: Sequence[str], reflection: ShaderModuleReflection, code: bytes, source: Callable[[], str]
) -> dict[str, object]:
    """Returns values by constant id; expressions stay texts."""
    settings: dict[str, object] = {}
    for text in texts:
        key, _, value = (part.strip() for part in text.partition("="))
        # The type of an expression is checked when it has a value; 1 is valid for every type.
        checked = f"{key}=1" if value.startswith("$") else text
        for number, parsed in specialization_values([checked], reflection, code, source).items():
            if str(number) in settings:
                raise usage_error(f"--spec {shorten(key)}: constant {number} is given twice")
            settings[str(number)] = value if value.startswith("$") else np.asarray(parsed).item()
    return settings


def _push(texts: Sequence[str], block: PushConstantBlock | None, name: str) -> dict[str, object]:
    """Returns values by name, parsed as by ``pumice run``; expressions stay texts."""
    if not texts:
        if block is not None and block.size:
            raise usage_error(
                f"{name} has push constants ({describe(block.members)}): give each as --push NAME=VALUE, "
                "where VALUE may be an expression over the axes such as $size"
            )
        return {}
    expressions: dict[str, str] = {}
    checked = []
    for text in texts:
        key, _, value = (part.strip() for part in text.partition("="))
        if value.startswith("$"):
            if block is None or key not in [member.name for member in block.members]:
                known = describe(block.members) if block is not None else "none"
                raise usage_error(f"--push {shorten(text)}: expressions are given by name, and {name} has: {known}")
            expressions[key] = value
            text = f"{key}=0"
        checked.append(text)
    data = push_bytes(checked, block, name)
    values = unpack_members(data, 0, block.members if block is not None else ())
    return {**{name: _plain(value) for name, value in values.items()}, **expressions}


def _plain(value: object) -> object:
    """Converts a block's values to numbers, lists and tables."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    assert isinstance(value, (np.ndarray, np.generic))
    if value.dtype.type is np.void:
        raise usage_error("--push: a member is of a type without numbers, which studies do not support")
    return (value if value.dtype.kind in "iu" else value.astype(np.float64)).tolist()


def _by_address(options: BenchOptions, entry: EntryPoint, name: str) -> dict[str, object]:
    """Returns the bindings in the order of their addresses, and the words after these in the push constants."""
    texts = options.bindings
    keyed = [text.partition("=") for text in texts]
    firsts = [f"{key}{sign}{_at_first(options, value.strip(), '--binding')}" for key, sign, value in keyed]
    if entry.bindings:
        raise usage_error(
            f"--descriptors address is for kernels that take addresses as their first push constants; {name} "
            "declares bindings"
        )
    if options.groups is None:
        raise usage_error("--descriptors address: give --groups, which cannot be inferred without bindings")
    for index, argument in enumerate(parse_buffers("--binding", firsts)):
        slot_key = argument.key
        if slot_key.name or slot_key.set or slot_key.element or slot_key.binding != index:
            raise usage_error(
                f"--binding {slot_key.text}: addresses have no names; give 0=, 1=, … in the order of the push constants"
            )
    block = entry.push_constants
    rest = [
        member
        for member in (block.members if block is not None else ())
        if member.offset >= _ADDRESS_BYTES * len(texts)
    ]
    known = {member.name or f"member at byte {member.offset}": member for member in rest}
    values: dict[str, str] = {}
    for text in options.pushes:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or key not in known or key in values:
            raise usage_error(f"--push {shorten(text)}: expected NAME=VALUE, once, of {', '.join(known) or 'nothing'}")
        values[key] = value
    missing = [key for key in known if key not in values]
    if missing:
        raise usage_error(
            f"{name} has push constants behind {len(texts)} address(es): {', '.join(missing)}; give each as --push "
            "NAME=VALUE, and a --binding for each address"
        )
    words: list[str | int] = []
    for key in known:
        text = values[key]
        if not text.startswith("$") and not (text.isdecimal() and int(text) < 1 << 32):
            raise usage_error(
                f"--push {shorten(key)}={shorten(text)}: expected an unsigned 32-bit number behind the addresses"
            )
        words.append(text if text.startswith("$") else int(text))
    return {"bindings": [value.strip() for _, _, value in keyed], "push": words}
