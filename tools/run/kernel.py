"""Runs one kernel with the arguments of a command line: bind, call, time, print, compare."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ...base.lazy_dataclass import dataclass
from ...hal_vulkan import DispatchTiming, SpecializationValue, reflect
from ...runtime import Device, DeviceArray, DeviceImage, TexelArray
from ...runtime.kernels.kernel import Kernel
from ...runtime.kernels.parameters.uniforms import with_initial_values
from ...runtime.kernels.parameters.unused import Unused
from ...runtime.kernels.shader_source import load_shader, source_text
from ...spirv.sources.language import Language, SourceOptions, language_of
from ...status import NotFoundError, UnimplementedError
from ..errors import ExpectationError, usage, usage_error
from ..input_files import FileKind
from ..options import parse_sources
from ..output_files import Outputs
from ..reports import device_text, open_asked, repeat, say_time, seconds_text
from ..streams import note
from .arguments import OutputArgument, parse_buffers, parse_groups, parse_outputs, store_array
from .block_arguments import BlockArgument
from .expectations import Tolerances, difference
from .image_arguments import ImageArgument, parse_samplers, result_bytes, result_picture, result_text
from .kernel_arguments import (
    Slot,
    Slots,
    bind,
    from_kernel,
    override_values,
    push_bytes,
    specialised_entry,
    specialization_values,
)
from .keys import Array, BufferArgument

_Keyed = TypeVar("_Keyed", BufferArgument, OutputArgument)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRun:
    """The command line of ``pumice run`` for a kernel, as unparsed texts."""

    file: Path
    kind: FileKind
    bindings: Sequence[str] = ()
    samplers: Sequence[str] = ()
    pushes: Sequence[str] = ()
    specs: Sequence[str] = ()
    groups: str | None = None
    entry: str | None = None
    defines: Sequence[str] = ()
    include_dirs: Sequence[Path] = ()
    language: str | None = None
    subgroup_size: int | None = None
    outputs: Sequence[str] = ()
    expectations: Sequence[str] = ()
    atol: float | None = None
    rtol: float | None = None
    device: str | None = None
    timed: bool = False
    validation: bool | None = None
    to_amber: Path | None = None
    sanitize: bool | None = None


def run_kernel(options: KernelRun) -> None:
    """Runs a kernel; results go to stdout and to files, the device's name and times to stderr."""
    arguments = parse_buffers("--binding", options.bindings)
    expectations = parse_buffers("--expect", options.expectations)
    for expected in expectations:
        if expected.data is None and not (isinstance(expected, BlockArgument) and expected.value is not None):
            raise usage_error(f"--expect {expected.key.text}: expected values too; for zeros write e.g. 4xf32=0")
    samplers = parse_samplers(options.samplers)
    outputs = parse_outputs("--output", options.outputs)
    groups = None if options.groups is None else parse_groups(options.groups)
    sources = parse_sources(
        options.file,
        options.kind,
        defines=options.defines,
        include_dirs=options.include_dirs,
        language=options.language,
        entry_point=options.entry,
    )
    specs = options.specs
    if sources.language is Language.WGSL:
        sources, specs = replace(sources, overrides=override_values(specs)), ()
    with open_asked(options.device, options.validation, sanitize=options.sanitize) as device:
        start = time.perf_counter()
        sources = replace(sources, debug=sources.debug or device.names_lines)
        code, name = load_shader(options.file, sources, minor=device.profile.version[1])
        load_seconds = time.perf_counter() - start
        reflection = reflect(code)
        with usage("--entry", *([NotFoundError] if options.entry is not None else [])):
            entry = reflection.entry_point(options.entry)
        specialization = specialization_values(
            specs, reflection, code, functools.partial(source_text, options.file, sources)
        )
        if specialization:
            entry = specialised_entry(code, reflection, specialization, entry.name)
        unused = Unused(reflection, entry, name)
        arguments = [a for a in arguments if not unused.ignores(a.key.name, (a.key.set, a.key.binding))]
        pushes = [text for text in options.pushes if not unused.ignores(text.partition("=")[0].strip())]
        slots = Slots(entry, [argument.key for argument in arguments])
        bound = bind(slots, arguments, samplers, device)
        targets = _by_slot(slots, outputs, "--output")
        wanted = _by_slot(slots, expectations, "--expect")
        for slot, several in wanted.items():
            wanted[slot] = [
                expectation.resolved(slot.binding, f"--expect {expectation.key.text}")
                if isinstance(expectation, BlockArgument)
                else expectation
                for expectation in several
            ]
        defaults = None
        if entry.loose_uniforms is not None:
            defaults = with_initial_values(None, entry, source_text(options.file, sources))
        push = push_bytes(pushes, entry.constants, name, defaults)
        start = time.perf_counter()
        kernel = Kernel(
            device,
            code,
            name=name,
            entry_point=options.entry,
            specialization=dict[int | str, SpecializationValue](specialization.items()),
            subgroup_size=options.subgroup_size,
            source=functools.partial(source_text, options.file, sources),
        )
        load_seconds += time.perf_counter() - start
        values = slots.in_call([value for _, value in bound])
        images = any(isinstance(argument, ImageArgument) for argument, _ in bound)

        def call() -> object:
            returned = kernel(*values, groups=groups, push=push)
            if images:  # on the device, so that the call does not wait
                device.wait()
            return returned

        with kernel:
            start = time.perf_counter()
            with usage():
                returned = call()
            first_seconds = time.perf_counter() - start
            arrays = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
            written = [(s, argument) for s in slots.slots if s.binding.writable and (argument := bound[s.index][0])]
            results: dict[Slot, tuple[BufferArgument, Array]] = {}
            for (slot, argument), array in zip(written, arrays, strict=True):
                host = array.numpy() if isinstance(array, (DeviceArray, DeviceImage, TexelArray)) else array
                results[slot] = argument, from_kernel(host, argument)
            note(f"ran on {device_text(device)}")
            if options.timed:
                runs = not values or any(getattr(value, "nbytes", 1) for value in values)
                dispatch = functools.partial(kernel.time, *values, groups=groups, push=push)
                _report_times(load_seconds, first_seconds, call, dispatch if runs else None)
            tolerances = Tolerances(options.atol, options.rtol)
            if options.to_amber is not None:
                from .capture import write_script  # imported here: few runs need it

                write_script(
                    options.to_amber,
                    device,
                    kernel,
                    code,
                    slots.slots,
                    bound,
                    results,
                    wanted,
                    groups=groups,
                    push=push,
                    specialization=specialization,
                    subgroup_size=options.subgroup_size,
                    glsl=_glsl_source(options.file, sources, device),
                    tolerances=tolerances,
                )
    _put_results(results, targets)
    differences = _differences(results, wanted, tolerances)
    if differences:
        raise ExpectationError("\n".join(differences))


def _put_results(
    results: Mapping[Slot, tuple[BufferArgument, Array]], targets: Mapping[Slot, list[OutputArgument]]
) -> None:
    """Prints results, and stores those that go to files."""
    printed = Outputs()
    for slot, (argument, result) in results.items():
        for target in targets.get(slot, [OutputArgument(argument.key, None)]):
            if target.path is None:
                printed.put(f"{slot.label}: {result_text(argument, result)}")
                continue
            where = f"--output {target.key.text}"
            with printed.storing():
                is_png = target.path.suffix.lower() == ".png"
                stored = result_picture(argument, result, where) if is_png else result
                store_array(target.path, stored, functools.partial(result_bytes, argument, result), where=where)
    printed.finish()


def _differences(
    results: Mapping[Slot, tuple[BufferArgument, Array]],
    wanted: Mapping[Slot, Sequence[BufferArgument]],
    tolerances: Tolerances,
) -> list[str]:
    differences: list[str] = []
    for slot, several in wanted.items():
        argument, result = results[slot]
        like = argument.format if isinstance(argument, ImageArgument) else None
        for expectation in several:
            where = f"--expect {expectation.key.text}"
            if isinstance(expectation, ImageArgument):
                expectation = expectation.resolved(slot.binding, where, like)
            if isinstance(expectation, BlockArgument):
                differences.append(expectation.difference(slot.label, result, tolerances))
                continue
            if isinstance(argument, BlockArgument):
                raise usage_error(f"{where}: the binding is a block of several types; write it as JSON")
            differences.append(difference(slot.label, result, argument.element_type, expectation, tolerances))
    return list(filter(None, differences))


def _glsl_source(file: Path, sources: SourceOptions, device: Device) -> tuple[str, str] | None:
    """Returns the text of a GLSL kernel without includes or macros, with its target environment."""
    language = sources.language or language_of(file)
    if language is not Language.GLSL or sources.defines or sources.include_dirs:
        return None
    text = file.read_text(encoding="utf-8", errors="replace")
    return text, f"vulkan1.{device.profile.version[1]}"


def _by_slot(slots: Slots, arguments: Sequence[_Keyed], option: str) -> dict[Slot, list[_Keyed]]:
    """Returns the arguments by the slot that they refer to, which the kernel must write."""
    by_slot: dict[Slot, list[_Keyed]] = {}
    for argument in arguments:
        slot = slots.find(argument.key, option)
        if not slot.binding.writable:
            raise usage_error(f"{option} {argument.key.text}: the kernel only reads {slot.label}")
        by_slot.setdefault(slot, []).append(argument)
    return by_slot


def _report_times(
    load: float, first: float, call: Callable[[], object], dispatch: Callable[[], tuple[object, DispatchTiming]] | None
) -> None:
    """Measures warm calls and dispatches, and explains each figure."""
    say_time("load", f"{seconds_text(load)} host: read or compile the source, make the shader module and the pipeline")
    say_time("first call", f"{seconds_text(first)} host: move arguments to the device, run, bring results back")
    warm = repeat(call)
    say_time("warm call", f"{seconds_text(statistics.median(warm))} host: the same again; median of {len(warm)}")
    if dispatch is None:
        say_time("dispatch", "not measured: all bindings are empty, so nothing runs")
        return
    timings: list[DispatchTiming] = []
    try:
        repeat(lambda: timings.append(dispatch()[1]))
    except UnimplementedError as error:
        say_time("dispatch", f"not measured: {error.message}")
        return
    kind = timings[0].device_type
    clock = f"{'CPU' if kind == 'CPU' else 'GPU'} timestamps, device type {kind} ({timings[0].clock})"
    seconds = [timing.duration_ns / 1e9 for timing in timings]
    median, least = seconds_text(statistics.median(seconds)), seconds_text(min(seconds))
    say_time("dispatch", f"{median} device: the kernel alone; median of {len(timings)}, least {least}; {clock}")
