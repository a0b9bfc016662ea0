"""A module of scheduled functions: bytecode, executables, constants."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ...hal_reference.layout import storage_bytes, store
from ...hal_reference.program import TensorSpec
from ...vm.assembly.assembler import assemble
from ...vm.bytecode.module_def import ModuleDef
from ..ir.attributes import DenseElements
from ..ir.operation import Operation
from ..ir.source import SourceText
from ..passes.sequencing.steps import Schedule
from ..targets.variant import Variant
from .function_text import IMPORTS, FunctionText
from .rodata import Rodata
from .sequence import SequenceWriter

_TYPES: Final = (
    "!hal.allocator !hal.buffer !hal.buffer_view !hal.command_buffer !hal.device !hal.executable !hal.fence !vm.buffer"
)
_HAL_VERSION: Final = 7


def emit_module(
    name: str,
    functions: Sequence[tuple[Operation, Schedule]],
    variants: Mapping[str, Sequence[Variant]],
    source: SourceText,
) -> ModuleDef:
    """A module that exports functions. When it is loaded it takes the first device that runs one of its variants.

    Args:
        name: of the module.
        functions: each function as it was before it became a sequence, for its types, and its schedule.
        variants: what the schedules dispatch, by entry point, ``executable::@function``: for every one an executable of
            each format, for each set of features, the preferred one first.
        source: the program's text, whose lines the debug database names.
    """
    rodata = Rodata()
    kernels = {entry: several[0].kernel for entry, several in variants.items()}
    holders = {entry: entry.partition("::@")[0] for entry in variants}
    choices: dict[tuple[str, tuple[str, ...]], _Choice] = {}
    for entry, several in variants.items():
        for variant in several:
            choice = choices.setdefault((variant.kind, variant.features), _Choice(variant.features, {}, {}, {}))
            choice.formats[variant.format] = None
            choice.blobs[holders[entry]] = rodata.add(variant.data), variant.format
            choice.needs.update(dict.fromkeys(variant.needs))
    for _, plan in functions:
        for buffer, value in plan.constants:
            rodata.add_constant(buffer, _packed(value))
        for buffer, entries in plan.tables:
            counts = [count for entry in entries if isinstance(count := kernels[entry].workgroup_count, tuple)]
            rodata.add_constant(buffer, np.array([(1, 1, 1), *counts], "<u4").tobytes())
    writers = [
        SequenceWriter(
            function,
            plan,
            kernels,
            holders,
            rodata,
            source,
        )
        for function, plan in functions
    ]
    texts = [text for writer in writers for text in (writer.asynchronous(), writer.synchronous())]
    init = _initializer(writers, list(choices.values()), rodata)
    every = [*texts, *(recorder for writer in writers for recorder in writer.recorders), init]
    used = sorted({each for text in every for each in text.imports})
    recordings = [writer.recording_global(index) for writer in writers for index in writer.recorded_at_load]
    globals_ = ["device", *holders.values(), *recordings, *(["constants"] if rodata.pool else [])]
    lines = [
        f"vm.module @{name}",
        f"vm.dependency @hal version {_HAL_VERSION}",
        *(["vm.dependency @check version 0"] if any(each.startswith("check.") for each in used) else []),
        *(f"vm.type {each}" for each in _TYPES.split()),
        *(["vm.type !vm.opaque", "vm.type !vm.list<!vm.opaque>"] if any(writer.globals for writer in writers) else []),
        *(f'vm.import @{each} cconv "{IMPORTS[each]}"' for each in used),
        *(f"vm.global.ref private mutable @{each}" for each in globals_),
        *(each for writer in writers for each in writer.globals),
        *(f"vm.export @{text.name}" for text in texts),
        "vm.export @__init",
        *(text.text() for text in every),
    ]
    module = assemble("\n".join(lines), file_name=f"<{name}>")
    return dataclasses.replace(module, rodata=tuple(memoryview(blob) for blob in rodata.blobs))


@dataclasses.dataclass(frozen=True, slots=True)
class _Choice:
    """Executables for one kind of device.

    Attributes:
        features: that the device must have.
        formats: that it must run.
        needs: features that they declare, without which a device that can be asked does not load them.
        blobs: ordinals of constants, and formats, by executable.
    """

    features: Sequence[str]
    formats: dict[str, None]
    needs: dict[str, None]
    blobs: dict[str, tuple[int, str]]


def _packed(value: DenseElements) -> bytes:
    """The bytes of a constant, in whole words, as they lie in memory."""
    spec = TensorSpec(value.array.dtype, value.array.shape)
    memory = np.zeros(max(-(-storage_bytes(spec) // 4) * 4, 4), np.uint8)
    store(memory, value.array, spec, "a constant")
    return memory.tobytes()


def _initializer(writers: Sequence[SequenceWriter], choices: Sequence[_Choice], rodata: Rodata) -> FunctionText:
    """Finds a device that runs the executables, loads them, uploads the constants, and records command buffers."""
    text = FunctionText("__init", "", "")
    device = text.reference()
    loaded = text.new_label()
    if not choices:
        text.call("hal.devices.get", [text.i32(0)], [device])
        text.line(f"vm.br {loaded}()")
    for choice, label in zip(choices, _find_device(text, device, choices, rodata), strict=True):
        text.label(label)
        names, null = {each: text.rodata(rodata.text(each)) for each in choice.formats}, text.null()
        for symbol, (ordinal, format) in choice.blobs.items():
            arguments = [device, text.i64(-1), names[format], text.rodata(ordinal), null]
            text.store_global(text.reference_of("hal.executable.create", arguments), symbol, "hal.executable")
        text.line(f"vm.br {loaded}()")
    text.label(loaded)
    text.store_global(device, "device", "hal.device")
    if rodata.pool:
        _upload(text, device, rodata)
    for writer in writers:
        for index in writer.recorded_at_load:
            commands = text.reference()
            text.line(f"{commands} = vm.call @{writer.recorders[index].name}()")
            text.store_global(commands, writer.recording_global(index), "hal.command_buffer")
    text.line("vm.return")
    return text


def _find_device(text: FunctionText, device: str, choices: Sequence[_Choice], rodata: Rodata) -> list[str]:
    """Finds the first device that takes one of the choices; returns the labels that it goes on at, by choice."""
    if not choices:
        return []
    text.imports |= {"hal.devices.count", "hal.devices.get", "hal.device.query.i64"}
    count, index, found, good, enough = (text.integer() for _ in range(5))
    value = text.wide()
    test, ask, after, missing = (text.new_label() for _ in range(4))
    text.call("hal.devices.count", [], [count])
    text.line(f"{index} = vm.const.i32.zero")
    text.line(f"vm.br {test}()")
    text.label(test)
    text.line(f"{enough} = vm.cmp.lt.i32.s {index}, {count}")
    text.line(f"vm.cond_br {enough}, {ask}(), {missing}()")
    text.label(ask)
    text.call("hal.devices.get", [index], [device])

    def query(category: str, key: str, otherwise: str, is_required: bool) -> None:
        """Goes on elsewhere where a device does not have something; one that knows no answer has what is optional."""
        names = [text.rodata(rodata.text(each)) for each in (category, key)]
        text.call("hal.device.query.i64", [device, *names], [found, value])
        text.line(f"{good} = vm.cmp.nz.i64 {value}")
        if is_required:
            text.line(f"{good} = vm.and.i32 {good}, {found}")
        else:
            text.line(f"{found} = vm.xor.i32 {found}, {text.i32(1)}")
            text.line(f"{good} = vm.or.i32 {good}, {found}")
        following = text.new_label()
        text.line(f"vm.cond_br {good}, {following}(), {otherwise}()")
        text.label(following)

    labels = []
    for choice in choices:
        another = text.new_label()
        for format in choice.formats:
            query("hal.executable.format", format, another, True)
        for feature in choice.features:
            query("vulkan.feature", _query_key(feature), another, True)
        for feature in choice.needs:
            if feature not in choice.features:
                query("vulkan.feature", _query_key(feature), another, False)
        labels.append(text.new_label())
        text.line(f"vm.br {labels[-1]}()")
        text.label(another)
    text.line(f"vm.br {after}()")
    text.label(after)
    text.line(f"{index} = vm.add.i32 {index}, {text.i32(1)}")
    text.line(f"vm.br {test}()")
    text.label(missing)
    text.line(f'vm.fail {text.i32(14)}, "{_refusal(choices)}"')
    return labels


def _query_key(feature: str) -> str:
    """How devices are asked for a feature: ``shader_int64``."""
    return re.sub("(?=[A-Z])", "_", feature).lower()


def _refusal(choices: Sequence[_Choice]) -> str:
    """What a module says where no device takes it."""
    wanted = []
    for choice in choices:
        features = dict.fromkeys([*choice.features, *choice.needs])
        wanted.append(" with ".join([" and ".join(choice.formats), *([" and ".join(features)] if features else [])]))
    needs = {feature for choice in choices for feature in choice.needs}
    others = "compile the program for all with --target vulkan,reference"
    if "shaderFloat64" in needs:
        others = f"compute in f32 rather than f64, or {others}"
    return (
        f"this module has executables of the format {', and '.join(wanted)}, which no device here runs: open a device "
        f"that does, or {others}"
    )


def _upload(text: FunctionText, device: str, rodata: Rodata) -> None:
    """Copies the pool of constants to the device."""
    pool = text.rodata(rodata.add(bytes(rodata.pool)))
    size = text.i64(len(rodata.pool))
    allocator = text.reference_of("hal.device.allocator", [device])
    memory = [text.i32(48), text.i32(0x80C03)]
    buffer = text.reference_of("hal.allocator.allocate", [allocator, text.i64(-1), *memory, size])
    arguments = [device, text.i64(-1), text.i32(1), pool, text.i64(0), size, text.i32(0)]
    file = text.reference_of("hal.ex.file.from_memory", arguments)
    fence = text.reference_of("hal.fence.create", [device, text.i64(0)])
    zero = text.i64(0)
    text.call("hal.device.queue.read", [device, text.i64(-1), text.null(), fence, file, zero, buffer, zero, size, zero])
    text.await_fence(fence)
    text.store_global(buffer, "constants", "hal.buffer")
