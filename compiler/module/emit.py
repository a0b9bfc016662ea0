"""The module of scheduled functions: bytecode, executables, constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...hal_reference.layout import storage_bytes, store
from ...hal_reference.program import TensorSpec
from ...status import InvalidArgumentError
from ...vm.bytecode.encoder import BytecodeBuilder
from ...vm.bytecode.isa import IMPORT_BIT, FieldKind
from ...vm.bytecode.module_def import DependencyDef, ExportDef, ImportDef, ModuleDef, Signature
from ..ir.attributes import DenseElements
from ..ir.operation import Operation
from ..ir.source import SourceText
from ..kernels.kernel import Variant
from ..passes.sequencing.steps import Schedule
from .context import ModuleContext, Rodata
from .dynamic_call import ELEMENT, LIST
from .function_builder import BYTECODE_VERSION, FunctionBuilder, Register
from .imports import HAL_VERSION, IMPORTS
from .sequence import SequenceWriter

_TYPES: Final = (
    "!hal.allocator",
    "!hal.buffer",
    "!hal.buffer_view",
    "!hal.command_buffer",
    "!hal.device",
    "!hal.executable",
    "!hal.fence",
    "!vm.buffer",
)
_UNAVAILABLE: Final = 14


def emit_module(
    name: str,
    functions: Sequence[tuple[Operation, Schedule]],
    variants: Mapping[str, Sequence[Variant]],
    source: SourceText,
) -> ModuleDef:
    """Makes a module that exports functions. When loaded, it selects the first device that runs one of its variants.

    Args:
        name: the module's name.
        functions: the functions, each with its original types and its schedule.
        variants: the executables of the kernels that the schedules dispatch, by entry point, ``executable::@function``:
            one per format and set of features, the preferred executable first.
        source: the program's text, whose lines the debug database names.
    """
    rodata = Rodata()
    kernels = {entry: several[0].kernel for entry, several in variants.items()}
    executables = {entry: entry.partition("::@")[0] for entry in variants}
    context = ModuleContext(kernels, executables, rodata, source)
    choices = _choices(variants, context)
    for _, plan in functions:
        for buffer, value in plan.constants:
            rodata.add_constant(buffer, _packed(value))
        for buffer, entries in plan.tables:
            counts = [count for entry in entries if isinstance(count := kernels[entry].workgroup_count, tuple)]
            rodata.add_constant(buffer, np.array([(1, 1, 1), *counts], "<u4").tobytes())
    writers = [SequenceWriter(function, plan, context) for function, plan in functions]
    exported = [code for writer in writers for code in (writer.asynchronous(), writer.synchronous())]
    initializer = _initializer(writers, choices, rodata)
    recorders = chain.from_iterable(writer.recorders for writer in writers)
    by_call = [writer.recorded_by_call for writer in writers if writer.recorded_by_call is not None]
    at_load = [writer.recording_global(index) for writer in writers for index in writer.recorded_at_load]
    globals_ = ["device", *executables.values(), *at_load, *(["constants"] if rodata.pool else []), *by_call]
    types = [*_TYPES, *((ELEMENT, LIST) if by_call else ())]
    return _module(name, [*exported, *recorders, initializer], [*exported, initializer], globals_, types, rodata)


def _module(
    name: str,
    functions: Sequence[FunctionBuilder],
    exported: Sequence[FunctionBuilder],
    globals_: Sequence[str],
    types: Sequence[str],
    rodata: Rodata,
) -> ModuleDef:
    """Makes a module of functions; numbers the functions, imports, globals and types that they name."""
    imports = sorted({name for function in functions for name in function.imports})
    dependencies = [DependencyDef("hal", HAL_VERSION)]
    if any(imported.startswith("check.") for imported in imports):
        dependencies.append(DependencyDef("check"))
    ordinals = {
        FieldKind.FUNCTION: _numbered("function", [function.name for function in functions])
        | {imported: IMPORT_BIT | index for index, imported in enumerate(imports)},
        FieldKind.GLOBAL: _numbered("global", globals_),
        FieldKind.TYPE: _numbered("type", types),
    }
    bytecode = BytecodeBuilder()
    for function in functions:
        bytecode.add(function.name, function.encode(ordinals), *function.register_counts)
    return ModuleDef(
        name=name,
        requirements=bytecode.requirements,
        types=tuple(types),
        dependencies=tuple(dependencies),
        imports=tuple(ImportDef(imported, Signature(IMPORTS[imported])) for imported in imports),
        exports=tuple(ExportDef(builder.name, ordinals[FieldKind.FUNCTION][builder.name]) for builder in exported),
        signatures=tuple(function.signature for function in functions),
        rodata=tuple(memoryview(blob) for blob in rodata.blobs),
        global_refs=len(globals_),
        functions=tuple(bytecode.functions),
        bytecode_version=BYTECODE_VERSION,
        bytecode=bytecode.code(),
        debug=bytecode.debug(),
    )


def _numbered(kind: str, names: Sequence[str]) -> dict[str, int]:
    numbers = {name: index for index, name in enumerate(names)}
    if len(numbers) < len(names):
        twice = next(name for index, name in enumerate(names) if numbers[name] != index)
        raise InvalidArgumentError(f"expected one {kind} @{twice} in the module, got two: rename one of them")
    return numbers


@dataclass(frozen=True, slots=True)
class _Choice:
    """Executables for one kind of device.

    Attributes:
        features: the features that the device must have.
        formats: the formats that it must run.
        needs: the features that the executables declare; a device that answers feature queries must have them.
        blobs: for each executable, the ordinal of its constant and its format.
    """

    features: Sequence[str]
    formats: dict[str, None]
    needs: dict[str, None]
    blobs: dict[str, tuple[int, str]]


def _choices(variants: Mapping[str, Sequence[Variant]], context: ModuleContext) -> list[_Choice]:
    """Returns the executables for each kind of device, and adds them to the constants."""
    choices: dict[tuple[str, tuple[str, ...]], _Choice] = {}
    for entry, several in variants.items():
        for variant in several:
            choice = choices.setdefault((variant.kind, variant.features), _Choice(variant.features, {}, {}, {}))
            choice.formats[variant.format] = None
            choice.blobs[context.executables[entry]] = context.rodata.add(variant.data), variant.format
            choice.needs.update(dict.fromkeys(variant.needs))
    return list(choices.values())


def _packed(value: DenseElements) -> bytes:
    """Returns the in-memory bytes of a constant, in whole words."""
    spec = TensorSpec(value.array.dtype, value.array.shape)
    memory = np.zeros(max(-(-storage_bytes(spec) // 4) * 4, 4), np.uint8)
    store(memory, value.array, spec, "a constant")
    return memory.tobytes()


def _initializer(writers: Sequence[SequenceWriter], choices: Sequence[_Choice], rodata: Rodata) -> FunctionBuilder:
    """Finds a device that runs the executables, loads them, uploads the constants, and records command buffers."""
    code = FunctionBuilder("__init", "", "")
    device = code.reference()
    loaded = code.new_label()
    if not choices:
        code.call("hal.devices.get", [code.i32(0)], [device])
        code.jump(loaded)
    for choice, label in zip(choices, _find_device(code, device, choices, rodata), strict=True):
        code.label(label)
        names, null = {format: code.rodata(rodata.text(format)) for format in choice.formats}, code.null()
        for executable, (ordinal, format) in choice.blobs.items():
            arguments = [device, code.i64(-1), names[format], code.rodata(ordinal), null]
            code.store_global(code.reference_of("hal.executable.create", arguments), executable, "!hal.executable")
        code.jump(loaded)
    code.label(loaded)
    code.store_global(device, "device", "!hal.device")
    if rodata.pool:
        _upload(code, device, rodata)
    for writer in writers:
        for index in writer.recorded_at_load:
            commands = code.reference_of(writer.recorders[index].name, [])
            code.store_global(commands, writer.recording_global(index), "!hal.command_buffer")
    code.emit("return", ())
    return code


def _find_device(code: FunctionBuilder, device: Register, choices: Sequence[_Choice], rodata: Rodata) -> list[int]:
    """Finds the first device that supports one of the choices; returns the label of each choice's block."""
    if not choices:
        return []
    count, index = code.integer(), code.integer()
    test, ask, after, missing = (code.new_label() for _ in range(4))
    code.call("hal.devices.count", [], [count])
    code.emit("const.i32.zero", index)
    code.jump(test)
    code.label(test)
    code.jump_if(code.compute("cmp.lt.i32.s", index, count), ask, missing)
    code.label(ask)
    code.call("hal.devices.get", [index], [device])
    labels = []
    for choice in choices:
        another = code.new_label()
        for format in choice.formats:
            _query(code, device, rodata, ("hal.executable.format", format), another, is_required=True)
        for feature in choice.features:
            _query(code, device, rodata, ("vulkan.feature", _query_key(feature)), another, is_required=True)
        for feature in choice.needs:
            if feature not in choice.features:
                _query(code, device, rodata, ("vulkan.feature", _query_key(feature)), another, is_required=False)
        labels.append(code.new_label())
        code.jump(labels[-1])
        code.label(another)
    code.jump(after)
    code.label(after)
    code.emit("add.i32", index, code.i32(1), index)
    code.jump(test)
    code.label(missing)
    code.fail(code.i32(_UNAVAILABLE), _refusal(choices))
    return labels


def _query(
    code: FunctionBuilder, device: Register, rodata: Rodata, key: tuple[str, str], otherwise: int, *, is_required: bool
) -> None:
    """Branches to a label if a device lacks a feature. A device that does not know the query counts as having an
    optional feature.
    """
    is_known, value = code.integer(), code.wide()
    names = [code.rodata(rodata.text(name)) for name in key]
    code.call("hal.device.query.i64", [device, *names], [is_known, value])
    answer = code.compute("cmp.nz.i64", value)
    if is_required:
        has = code.compute("and.i32", answer, is_known)
    else:
        has = code.compute("or.i32", answer, code.compute("xor.i32", is_known, code.i32(1)))
    following = code.new_label()
    code.jump_if(has, following, otherwise)
    code.label(following)


def _query_key(feature: str) -> str:
    """Returns the key of a query for a feature, such as ``shader_int64``."""
    return re.sub("(?=[A-Z])", "_", feature).lower()


def _refusal(choices: Sequence[_Choice]) -> str:
    """Returns the error message for a module that no device runs."""
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


def _upload(code: FunctionBuilder, device: Register, rodata: Rodata) -> None:
    """Copies the pool of constants to the device."""
    pool = code.rodata(rodata.add(bytes(rodata.pool)))
    size = code.i64(len(rodata.pool))
    allocator = code.reference_of("hal.device.allocator", [device])
    memory = [code.i32(48), code.i32(0x80C03)]
    buffer = code.reference_of("hal.allocator.allocate", [allocator, code.i64(-1), *memory, size])
    arguments = [device, code.i64(-1), code.i32(1), pool, code.i64(0), size, code.i32(0)]
    file = code.reference_of("hal.ex.file.from_memory", arguments)
    fence = code.reference_of("hal.fence.create", [device, code.i64(0)])
    zero = code.i64(0)
    code.call("hal.device.queue.read", [device, code.i64(-1), code.null(), fence, file, zero, buffer, zero, size, zero])
    code.await_fence(fence)
    code.store_global(buffer, "constants", "!hal.buffer")
