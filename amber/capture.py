"""A run of a kernel as a script: a report that driver developers can run without pumice."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..base.lazy_dataclass import dataclass
from ..spirv.checks import tools as spirv_tools
from ..spirv.checks.requirement_tables import CAPABILITIES
from ..spirv.checks.requirements import requirements
from ..spirv.reflection.reflection_types import ShaderModuleReflection
from ..spirv.repair.specialize import specialize
from ..status import InvalidArgumentError, UnavailableError, UnimplementedError
from .script import (
    Binding,
    Buffer,
    Expectation,
    ExpectBuffer,
    ExpectValues,
    Extent,
    Pipeline,
    Requirement,
    Run,
    Sampler,
    Script,
    Shader,
    Specialization,
    Subgroups,
    Tolerance,
)
from .source import Position
from .types import DataType, Kind, Number, layout_of, parse_format

Array = npt.NDArray[np.generic]

COMBINED: Final = "combined_image_sampler"
_NOWHERE: Final = Position(0, 0)
_KINDS: Final[dict[str, Kind]] = {"i": "int", "u": "uint", "f": "float"}
_VALUES_AN_EXPECTATION: Final = 16
_INCLUDE: Final = re.compile(r"^\s*#\s*include\b", re.MULTILINE)
# Amber names a feature by its structure. It has none for features of Vulkan 1.0.
_GROUPS: Final = {
    **dict.fromkeys(("variablePointers", "variablePointersStorageBuffer"), "VariablePointerFeatures"),
    **dict.fromkeys(("shaderFloat16", "shaderInt8"), "Float16Int8Features"),
    **dict.fromkeys(("vulkanMemoryModel", "vulkanMemoryModelDeviceScope"), "VulkanMemoryModelFeatures"),
    **dict.fromkeys(
        ("storageBuffer8BitAccess", "uniformAndStorageBuffer8BitAccess", "storagePushConstant8"), "Storage8BitFeatures"
    ),
    **dict.fromkeys(
        ("storageBuffer16BitAccess", "uniformAndStorageBuffer16BitAccess", "storagePushConstant16"),
        "Storage16BitFeatures",
    ),
    "cooperativeMatrix": "CooperativeMatrixFeaturesKHR",
    "bufferDeviceAddress": "BufferDeviceAddressFeatures",
    "shaderZeroInitializeWorkgroupMemory": "ZeroInitializeWorkgroupMemoryFeatures",
    **dict.fromkeys(("shaderInt16", "shaderInt64", "shaderFloat64"), ""),
}


@dataclass(frozen=True, slots=True)
class CapturedBuffer:
    """The resource bound to one descriptor.

    Attributes:
        set, binding: the descriptor's address. Several buffers in a row with the same address are an array of
            descriptors.
        kind: the binding's kind, by its name in scripts; ``"sampler"`` has no data.
        data: the contents before the run, in bytes; for an image the bytes of its texels.
        expected: the contents after the run, or ``None`` if nothing is expected.
        tolerance: the largest difference of floats from the expected floats; ``None`` if every bit must be equal.
        format: the name that Vulkan gives the format of the texels.
        extent: the image's dimensions; ``None`` for a buffer.
        sampler: the sampler of a ``"sampler"`` binding or of a combined image.
    """

    set: int
    binding: int
    kind: str
    data: Array
    expected: Array | None = None
    tolerance: float | None = None
    format: str = ""
    extent: Extent | None = None
    sampler: Sampler | None = None


def captured_script(
    code: bytes,
    reflection: ShaderModuleReflection,
    buffers: Sequence[CapturedBuffer],
    groups: tuple[int, int, int],
    *,
    entry_point: str = "main",
    push: bytes = b"",
    specialization: Mapping[int, bytes] | None = None,
    subgroup_size: int | None = None,
    glsl: tuple[str, str] | None = None,
) -> Script:
    """Returns the script of one dispatch.

    Args:
        code: the SPIR-V that ran, with its ``reflection``.
        buffers: the bound values, in order.
        groups: the workgroup counts.
        push: the push constants.
        specialization: the values of specialization constants by id, as bytes in the type of each.
        subgroup_size: the requested subgroup size.
        glsl: the source and its target environment, to be written in place of SPIR-V.

    Raises:
        InvalidArgumentError: the dispatch binds nothing.
    """
    if not buffers:
        raise InvalidArgumentError("a kernel without bindings has no results to expect; there is nothing to report")
    constants = {c.constant_id: c for c in reflection.specialization_constants}
    values = dict(specialization or {})
    if any(constants[id].scalar.bits != 32 for id in values):  # scripts only have 32-bit values
        code, values, glsl = specialize(code, values), {}, None
    pipeline = Pipeline("pipeline", _NOWHERE, "kernel", entry_point if entry_point != "main" else "")
    for id, value in values.items():
        pipeline.specialization[id] = _specialization(constants[id].scalar.kind, value)
    pipeline.subgroups = Subgroups(size=subgroup_size)
    declared: dict[str, Buffer] = {}
    expectations: list[Expectation] = []
    if push:
        pipeline.push_constants = "push_constants"
        declared["push_constants"] = _buffer(
            "push_constants", np.frombuffer(push, np.uint8 if len(push) % 4 else np.uint32)
        )
    samplers: dict[str, Sampler] = {}
    bound: dict[tuple[int, int], list[str]] = {}
    for captured in buffers:
        names = bound.setdefault((captured.set, captured.binding), [])
        name = f"binding_{captured.set}_{captured.binding}" + (f"_{len(names)}" if names else "")
        names.append(name)
        if captured.sampler is not None:
            samplers[f"sampler_{name}"] = dataclasses.replace(captured.sampler, name=f"sampler_{name}")
        if captured.kind == "sampler":
            names[-1] = f"sampler_{name}"
            continue
        declared[name] = _texels(name, captured) if captured.format else _buffer(name, captured.data)
        expectations += _expected(name, captured, declared)
    for captured in buffers:
        key = captured.set, captured.binding
        # A script has one sampler for all images of an array.
        beside = tuple(f"sampler_{bound[key][0]}" for _ in bound[key]) if captured.kind == COMBINED else ()
        pipeline.bindings[key] = Binding(captured.kind, tuple(bound[key]), *key, _NOWHERE, beside)
    return Script(
        "<run>",
        tuple(_requirements(reflection)),
        {"kernel": _shader(code, glsl)},
        declared,
        samplers,
        {"pipeline": pipeline},
        (Run("pipeline", groups, False, _NOWHERE), *expectations),
    )


def _shader(code: bytes, glsl: tuple[str, str] | None) -> Shader:
    # A line END would end the shader in the script; a file that is included would be missing.
    if glsl is not None and not _INCLUDE.search(glsl[0]) and not re.search(r"^\s*END\b", glsl[0], re.MULTILINE):
        return Shader("kernel", "compute", "GLSL", glsl[0], glsl[1], _NOWHERE)
    words = np.frombuffer(code, "<u4" if code[:1] == b"\x03" else ">u4")
    version = f"spv1.{int(words[1]) >> 8 & 0xFF}"
    try:
        return Shader("kernel", "compute", "SPIRV-ASM", spirv_tools.disassemble(code), version, _NOWHERE)
    except UnavailableError:
        lines = (" ".join(f"{word:#010x}" for word in words[i : i + 8]) for i in range(0, len(words), 8))
        return Shader("kernel", "compute", "SPIRV-HEX", "\n".join(lines), "", _NOWHERE)


def _specialization(kind: str, value: bytes) -> Specialization:
    bits = int.from_bytes(value, "little")
    if kind == "float":
        number = float(np.frombuffer(value, "<f4")[0])
        if number == number:
            return Specialization("float", number, bits)
    if kind == "int":
        return Specialization("int32", int.from_bytes(value, "little", signed=True), bits)
    return Specialization("uint32", bits, bits)


def _buffer(name: str, data: Array) -> Buffer:
    return Buffer(name, _type_of(data), "STD430", np.ascontiguousarray(data).tobytes(), _NOWHERE)


def _texels(name: str, captured: CapturedBuffer) -> Buffer:
    type = parse_format(captured.format)
    if type is None:
        raise UnimplementedError(f"scripts have no images of format {captured.format}")
    return Buffer(name, type, "STD430", captured.data.tobytes(), _NOWHERE, captured.extent)


def _type_of(data: Array) -> DataType:
    """Returns the type of a buffer's elements; unsigned integers if text would not keep every bit of the array."""
    kind, bits = _KINDS.get(data.dtype.kind), 8 * data.dtype.itemsize
    if kind == "float" and (bits > 64 or np.isnan(data).any() or (bits == 16 and _has_subnormals(data))):
        kind = "uint" if bits <= 64 else None
    if kind is None:
        return Number("uint", 32 if data.nbytes % 4 == 0 else 8)
    return Number(kind, bits)


def _has_subnormals(data: Array) -> bool:
    """Whether an array has numbers that are subnormal as half-precision floats, which Amber reads as zero."""
    magnitudes = np.abs(data)
    return bool(((magnitudes > 0) & (magnitudes < np.finfo(np.float16).tiny)).any())


def _expected(name: str, captured: CapturedBuffer, declared: dict[str, Buffer]) -> list[Expectation]:
    expected = captured.expected
    if expected is None:
        return []
    own = declared[name]
    if captured.format:
        other = f"expected_{name}"
        declared[other] = dataclasses.replace(own, name=other, data=expected.tobytes())
        return [ExpectBuffer(name, other, "EQ_BUFFER", 0.0, _NOWHERE)]
    layout = layout_of(own.type, own.standard)
    is_float = isinstance(own.type, Number) and own.type.kind == "float"
    if captured.tolerance is not None and is_float and not np.isnan(expected).any():
        values = np.ascontiguousarray(expected).reshape(-1).tolist()
        step, size = _VALUES_AN_EXPECTATION, layout.size
        tolerances = (Tolerance(captured.tolerance, False),)
        return [
            ExpectValues(name, i * size, "EQ", tuple(values[i : i + step]), layout, _NOWHERE, tolerances)
            for i in range(0, len(values), step)
        ]
    other = f"expected_{name}"
    declared[other] = Buffer(other, own.type, own.standard, np.ascontiguousarray(expected).tobytes(), _NOWHERE)
    if _type_of(expected) != own.type:  # text keeps every bit of both
        width = expected.dtype.itemsize
        for buffer_name in (name, other):
            declared[buffer_name] = Buffer(
                buffer_name, Number("uint", 8 * width), "STD430", declared[buffer_name].data, _NOWHERE
            )
    return [ExpectBuffer(name, other, "EQ_BUFFER", 0.0, _NOWHERE)]


def _requirements(reflection: ShaderModuleReflection) -> list[Requirement]:
    """Returns the features that the module needs and that Amber has a name for."""
    table = requirements(CAPABILITIES)
    features: dict[str, Requirement] = {}
    for capability in reflection.capabilities:
        for alternative in table.get(capability, ())[:1]:
            group = _GROUPS.get(alternative.feature)
            if group is not None:
                name = f"{group}.{alternative.feature}" if group else alternative.feature
                features[name] = Requirement("feature", name, _NOWHERE)
    return list(features.values())
