"""``pumice run --to-amber``: the run of a kernel as an Amber script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...amber.capture import COMBINED, CapturedBuffer, captured_script
from ...amber.script import Extent
from ...amber.script import Sampler as ScriptSampler
from ...amber.source import Position
from ...amber.writer import format_script
from ...formats.image_texels import to_texels
from ...hal_vulkan.pipelines.specialization import SpecializationValue, pack_constants
from ...runtime import DeviceImage, Sampler, TexelArray
from ...runtime.arrays.spec import ArraySpec
from ...runtime.device import Device
from ...runtime.kernels.kernel import Kernel
from ...runtime.kernels.parameters.arguments import HostGroups, PerElement, inferred_counts
from ...runtime.kernels.parameters.parameter import KernelArgument
from ...status import UnimplementedError
from ..output_files import store
from ..reports import device_text
from .expectations import Tolerances
from .image_arguments import ImageArgument, result_bytes
from .kernel_arguments import Slot
from .keys import Array, BufferArgument

_DIMENSIONS: Final = {"1d": 1, "2d": 2, "3d": 3}
_KINDS: Final = {"storage_buffer": "storage", "uniform_buffer": "uniform"}


def write_script(
    path: Path,
    device: Device,
    kernel: Kernel,
    code: bytes,
    slots: Sequence[Slot],
    bound: Sequence[tuple[BufferArgument | None, KernelArgument]],
    results: Mapping[Slot, tuple[BufferArgument, Array]],
    wanted: Mapping[Slot, Sequence[BufferArgument]],
    *,
    groups: HostGroups | None,
    push: bytes,
    specialization: Mapping[int, SpecializationValue],
    subgroup_size: int | None,
    glsl: tuple[str, str] | None,
    tolerances: Tolerances,
) -> None:
    """Writes a run as a script.

    Args:
        slots: the kernel's arguments, with the values ``bound`` to them.
        results: the values after the run.
        wanted: the values of ``--expect``, which take precedence over ``results``.
        glsl: the source with its target environment, or ``None`` for SPIR-V.
        tolerances: the tolerances of expected floats.
    """
    buffers = []
    for slot, (argument_of, value) in zip(slots, bound, strict=True):
        kind = slot.binding.descriptor_type_name
        if kind not in _KINDS:
            buffers.append(_texels(slot, argument_of, value, results, wanted))
            continue
        if not isinstance(value, (np.ndarray, ArraySpec)):
            raise UnimplementedError(f"--to-amber writes arrays; {slot.label} is given as {type(value).__name__}")
        data = np.zeros(value.shape, value.dtype) if isinstance(value, ArraySpec) else value
        if data.dtype.names is not None:  # a block of several types
            data = data.reshape(-1).view(np.uint8)
        expected, tolerance = None, None
        if slot in wanted:
            argument = wanted[slot][-1]
            expected = np.asarray(argument.data).reshape(-1).view(data.dtype).reshape(data.shape)
            if argument.element_type.is_float:
                tolerance = tolerances.of(argument.element_type)[0]
        elif slot in results:
            argument, result = results[slot]
            packed = np.frombuffer(result_bytes(argument, result), np.uint8)
            expected = packed.view(data.dtype).reshape(data.shape)
            tolerance = tolerances.atol if argument.element_type.is_float else None
        buffers.append(CapturedBuffer(slot.binding.set, slot.binding.binding, _KINDS[kind], data, expected, tolerance))
    grid = kernel.grid(groups)
    if grid is None or isinstance(grid, PerElement):
        grid = _inferred(kernel, slots, buffers, results, grid)
    script = captured_script(
        code,
        kernel.reflection,
        buffers,
        grid,
        entry_point=kernel.pipeline.entry.name,
        push=push,
        specialization=dict(pack_constants(kernel.reflection.specialization_constants, specialization)),
        subgroup_size=subgroup_size,
        glsl=glsl,
    )
    origin = "as --expect gave them" if wanted else "what this device gave"
    comments = (
        f"{kernel.name} on {device_text(device)}, written by pumice run --to-amber.",
        f"Expected values are {origin}.",
    )
    text = format_script(script, comments).encode()
    store(path, lambda file: file.write(text), where="--to-amber")


def _inferred(
    kernel: Kernel,
    slots: Sequence[Slot],
    buffers: Sequence[CapturedBuffer],
    results: Mapping[Slot, tuple[BufferArgument, Array]],
    over: PerElement | None,
) -> tuple[int, int, int]:
    """Returns the workgroup counts inferred by the call: they follow from shapes, which host arrays share."""
    arrays = [results[slot][1] if slot in results else buffer.data for slot, buffer in zip(slots, buffers, strict=True)]
    for index, buffer in enumerate(buffers):
        if buffer.extent is not None:
            extent = buffer.extent
            arrays[index] = np.empty((extent.depth, extent.height, extent.width)[3 - extent.dimensions :], np.uint8)
    local = kernel.pipeline.local_size
    return inferred_counts(kernel.parameters, arrays, local, kernel.name, over)  # type: ignore[arg-type]


def _texels(
    slot: Slot,
    argument: BufferArgument | None,
    value: KernelArgument,
    results: Mapping[Slot, tuple[BufferArgument, Array]],
    wanted: Mapping[Slot, Sequence[BufferArgument]],
) -> CapturedBuffer:
    """Returns an image, texels in a buffer, or a sampler."""
    kind, address = slot.binding.descriptor_type_name, (slot.binding.set, slot.binding.binding)
    nothing = np.zeros(0, np.uint8)
    if isinstance(value, Sampler):
        return CapturedBuffer(*address, "sampler", nothing, sampler=_sampler(value, slot.label))
    if not isinstance(argument, ImageArgument) or not isinstance(value, (DeviceImage, TexelArray)):
        raise UnimplementedError(f"--to-amber does not write {kind} bindings such as {slot.label}")
    texels = argument.resolved_format
    host = np.zeros(argument.shape, argument.element_type.require_dtype()) if argument.data is None else argument.data
    data = to_texels(host, texels).reshape(-1).view(np.uint8)
    expected = None
    if slot in wanted:
        expectation = wanted[slot][-1]
        if isinstance(expectation, ImageArgument):
            expectation = expectation.resolved(slot.binding, f"--expect {expectation.key.text}", texels)
        expected = to_texels(np.asarray(expectation.data), texels)
    elif slot in results:
        expected = to_texels(results[slot][1], texels)
    expected = None if expected is None else expected.reshape(-1).view(np.uint8)
    name = texels.vulkan_name.upper()
    if isinstance(value, TexelArray):
        return CapturedBuffer(*address, kind, data, expected, format=name)
    if value.layout.dim not in _DIMENSIONS or value.levels > 1:
        raise UnimplementedError(
            f"--to-amber: scripts have images of one to three dimensions, without layers, whose first level is given; "
            f"{slot.label} is {value.layout.dim} with {value.levels} level(s)"
        )
    sizes = (*reversed(argument.shape[: _DIMENSIONS[value.layout.dim]]), 1, 1)[:3]
    extent = Extent(_DIMENSIONS[value.layout.dim], *sizes)
    sampler = None
    if kind == COMBINED:
        linear = "linear" if texels.scalar == "float" else "nearest"
        edge = "clamp_to_edge"
        default = ScriptSampler("", Position(0, 0), linear, linear, edge, edge, edge)
        sampler = default if value.sampler is None else _sampler(value.sampler, slot.label)
    return CapturedBuffer(*address, kind, data, expected, format=name, extent=extent, sampler=sampler)


def _sampler(sampler: Sampler, where: str) -> ScriptSampler:
    chosen = sampler.hal.settings
    if chosen.anisotropy > 1 or chosen.reduction != "average":
        raise UnimplementedError(f"--to-amber: scripts have no anisotropy and no reduction; {where} has")
    u, v, w = [mode.replace("mirror_clamp", "mirrored_clamp") for mode in chosen.address]
    kind = "int" if chosen.integer_border else "float"
    return ScriptSampler(
        "",
        Position(0, 0),
        chosen.filter,
        chosen.min_filter,
        u,
        v,
        w,
        border_color=f"{kind}_{chosen.border}",
        min_lod=chosen.min_lod,
        max_lod=chosen.max_lod,
        normalized=not chosen.unnormalized,
        compare=chosen.compare is not None,
        compare_op=chosen.compare or "never",
    )
