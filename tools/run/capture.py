"""``pumice run --to-amber``: the run of a kernel as an Amber script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...amber.capture import CapturedBuffer, captured_script
from ...amber.writer import format_script
from ...hal_vulkan.commands.specialization import SpecializationValue, pack_constants
from ...runtime.arrays.spec import ArraySpec
from ...runtime.device import Device
from ...runtime.kernels.arguments import Groups, given_counts, inferred_counts
from ...runtime.kernels.kernel import Kernel
from ...runtime.kernels.parameter import KernelArgument
from ...status import UnimplementedError
from ..output_files import store
from ..reports import device_text
from .expectations import Tolerances
from .image_arguments import result_bytes
from .kernel_arguments import Slot
from .keys import Array, BufferArgument

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
    groups: Groups | None,
    push: bytes,
    specialization: Mapping[int, SpecializationValue],
    subgroup_size: int | None,
    glsl: tuple[str, str] | None,
    tolerances: Tolerances,
) -> None:
    """Writes a run as a script.

    Args:
        slots: the kernel's arguments, with what was ``bound`` to each.
        results: what came out.
        wanted: what ``--expect`` says, which goes before what came out.
        glsl: the source with its target environment, or ``None`` for SPIR-V.
        tolerances: of floats that are expected.
    """
    buffers = []
    for slot, (_, value) in zip(slots, bound, strict=True):
        kind = _KINDS.get(slot.binding.descriptor_type_name)
        if kind is None or not isinstance(value, (np.ndarray, ArraySpec)):
            raise UnimplementedError(f"--to-amber writes buffers; {slot.label} is {slot.binding.descriptor_type_name}")
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
        buffers.append(CapturedBuffer(slot.binding.set, slot.binding.binding, kind, data, expected, tolerance))
    if groups is None:
        arrays = [buffer.data for buffer in buffers]  # counts follow from shapes and sizes, which host arrays have too
        counts = inferred_counts(kernel.parameters, arrays, kernel.pipeline.local_size, kernel.name)  # type: ignore[arg-type]
    else:
        counts = given_counts(groups, kernel.name)
    script = captured_script(
        code,
        kernel.reflection,
        buffers,
        counts,
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
