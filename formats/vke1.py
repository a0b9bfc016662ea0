"""Vulkan executables of IREE's compiler (``vulkan-spirv-fb``, ``vulkan-spirv-bda-v1``): their parts and rules.

A blob is a 64-byte header (``VKE1``, a u32 version, a u64 content size, 48 bytes reserved) and a FlatBuffer with the
identifier ``VKE1``. Facts: ``runtime/src/iree/schemas/{vulkan_executable_def,executable_debug_info}.fbs``,
``runtime/src/iree/base/internal/flatcc/parsing.h`` and the checks of ``runtime/src/iree/hal/drivers/vulkan/
executable.c``, IREE 3.13.

`vke1_reader` turns a blob into an ``ExecutableDef``, `vke1_writer` does the reverse. Numbers like
``shader_module`` and ``pipeline_layout`` index the tuples of the ``ExecutableDef`` that holds them.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

from ..base.lazy_dataclass import dataclass
from ..status import IncompatibleError, InvalidArgumentError, shown

#: ``VK_SHADER_STAGE_COMPUTE_BIT``.
STAGE_COMPUTE: Final = 0x20
#: In both the header and the FlatBuffer.
FILE_IDENTIFIER: Final = b"VKE1"
#: The only version of the header that is known.
FORMAT_VERSION: Final = 0
#: Identifier, format version and the FlatBuffer's size in bytes.
HEADER: Final = struct.Struct("<4sIQ48x")
#: Stage flags, offset and size, as ``PushConstantRange``.
PUSH_CONSTANT_RANGE: Final = struct.Struct("<III")
#: Bytes of push constants that the root of a ``BDA_V1`` pipeline takes.
BDA_ROOT_BYTES: Final = 32

_SPIRV_MAGIC: Final = 0x07230203
_SPIRV_HEADER_BYTES: Final = 20
_BDA_ABI_VERSION: Final = 1
_MAX_COUNT: Final = 0xFFFF
_U32_MAX: Final = 0xFFFFFFFF
_U64_MAX: Final = 0xFFFFFFFFFFFFFFFF


class DispatchAbi(enum.IntEnum):
    """A pipeline's way of accessing its bindings."""

    DESCRIPTOR = 0
    """Through descriptor sets."""
    BDA_V1 = 1
    """Through buffer device addresses in a table whose own address is in the push constants."""


class DescriptorType(enum.IntEnum):
    """The ``VkDescriptorType`` values that executables may use."""

    SAMPLER = 0
    UNIFORM_BUFFER = 6
    STORAGE_BUFFER = 7


class BdaEntryType(enum.IntEnum):
    """The kind of a binding in the table of a ``BDA_V1`` pipeline."""

    ADDRESS64 = 0
    """A u64 device address."""
    ADDRESS64_LENGTH64 = 1
    """A u64 device address and a u64 byte length (checked builds only)."""


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A line of a source file."""

    filename: str
    line: int


@dataclass(frozen=True, slots=True)
class StageLocation:
    """The source location of a function, as one compilation stage saw it."""

    stage: str
    location: FileLocation | None


@dataclass(frozen=True, slots=True)
class ExportDebugInfo:
    """The producer's name for a pipeline and where it came from."""

    name: str
    location: FileLocation | None = None
    stage_locations: tuple[StageLocation, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file embedded for debugging."""

    path: str
    content: memoryview


@dataclass(frozen=True, slots=True)
class DescriptorBindingDef:
    """One binding of a descriptor set layout; ``stage_flags`` are ``VkShaderStageFlags``."""

    binding: int
    descriptor_type: DescriptorType = DescriptorType.STORAGE_BUFFER
    count: int = 1
    stage_flags: int = STAGE_COMPUTE


@dataclass(frozen=True, slots=True)
class DescriptorSetLayoutDef:
    """The bindings of one descriptor set."""

    bindings: tuple[DescriptorBindingDef, ...]


@dataclass(frozen=True, slots=True)
class PushConstantRange:
    """A ``VkPushConstantRange``; offset and size in bytes."""

    stage_flags: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class PipelineLayoutDef:
    """Descriptor set layouts by ordinal, set 0 first, and push constant ranges."""

    set_layouts: tuple[int, ...] = ()
    push_constant_ranges: tuple[PushConstantRange, ...] = ()


@dataclass(frozen=True, slots=True)
class BdaBindingDef:
    """A shader's requirements of the buffer range at one binding, in bytes."""

    minimum_alignment: int = 1
    minimum_length: int = 0


@dataclass(frozen=True, slots=True)
class BdaDispatchLayoutDef:
    """Push constants of a ``BDA_V1`` pipeline: the 32-byte root, then ``constant_count`` u32 constants.

    Offsets and lengths are bytes. ``bindings`` is empty or has ``binding_count`` entries.
    """

    constant_count: int = 0
    binding_count: int = 0
    bindings: tuple[BdaBindingDef, ...] = ()
    entry_type: BdaEntryType = BdaEntryType.ADDRESS64
    root_offset: int = 0
    root_length: int = BDA_ROOT_BYTES
    constant_offset: int = BDA_ROOT_BYTES
    abi_version: int = _BDA_ABI_VERSION


@dataclass(frozen=True, slots=True)
class PipelineDef:
    """One compute pipeline. ``subgroup_size`` 0 leaves the size to the driver."""

    shader_module: int
    entry_point: str
    pipeline_layout: int
    subgroup_size: int = 0
    dispatch_abi: DispatchAbi = DispatchAbi.DESCRIPTOR
    bda_layout: BdaDispatchLayoutDef | None = None
    debug_info: ExportDebugInfo | None = None


@dataclass(frozen=True, slots=True)
class ExecutableDef:
    """A whole executable. ``shader_modules`` are the SPIR-V bytes (little-endian words), read-only."""

    pipelines: tuple[PipelineDef, ...]
    descriptor_set_layouts: tuple[DescriptorSetLayoutDef, ...]
    pipeline_layouts: tuple[PipelineLayoutDef, ...]
    shader_modules: tuple[memoryview, ...]
    source_files: tuple[SourceFile, ...] = ()


def validate_executable(executable: ExecutableDef) -> None:
    """Checks every rule that needs no device: ordinals, ranges, ABIs and the outline of each SPIR-V module.

    Raises:
        IncompatibleError: this build does not know the BDA ABI version.
        InvalidArgumentError: a rule is broken; the message names the first one, with the path of the field.
    """
    if not executable.pipelines:
        raise InvalidArgumentError("pipelines: expected at least one pipeline, got none")
    for index, code in enumerate(executable.shader_modules):
        _check_shader(code, f"shader_modules[{index}]")
    for index, set_layout in enumerate(executable.descriptor_set_layouts):
        _check_set_layout(set_layout, f"descriptor_set_layouts[{index}]")
    for index, layout in enumerate(executable.pipeline_layouts):
        _check_pipeline_layout(layout, len(executable.descriptor_set_layouts), f"pipeline_layouts[{index}]")
    for index, pipeline in enumerate(executable.pipelines):
        _check_pipeline(pipeline, executable, f"pipelines[{index}]")


def _require(condition: bool, path: str, expected: str, got: object) -> None:
    if not condition:
        raise InvalidArgumentError(f"{path}: expected {expected}, got {got}")


def _check_u32(value: int, path: str) -> None:
    _require(0 <= value <= _U32_MAX, path, "an unsigned 32-bit number", value)


def _check_ordinal(value: int, count: int, path: str, noun: str) -> None:
    _require(0 <= value < count, path, f"the ordinal of one of {count} {noun}", value)


def _check_compute(stage_flags: int, path: str) -> None:
    _check_u32(stage_flags, f"{path}.stage_flags")
    _require(bool(stage_flags & STAGE_COMPUTE), f"{path}.stage_flags", "the compute stage (0x20)", hex(stage_flags))


def _check_shader(code: memoryview, path: str) -> None:
    size = code.nbytes
    _require(size >= _SPIRV_HEADER_BYTES, path, f"SPIR-V of at least {_SPIRV_HEADER_BYTES} bytes", f"{size} bytes")
    _require(size % 4 == 0, path, "SPIR-V of whole 32-bit words", f"{size} bytes")
    (magic,) = struct.unpack_from("<I", code)
    _require(magic == _SPIRV_MAGIC, path, f"SPIR-V's magic number {_SPIRV_MAGIC:#010x}", f"{magic:#010x}")


def _check_set_layout(layout: DescriptorSetLayoutDef, path: str) -> None:
    seen: set[int] = set()
    for index, binding in enumerate(layout.bindings):
        at = f"{path}.bindings[{index}]"
        _check_u32(binding.binding, f"{at}.binding")
        _require(binding.binding not in seen, f"{at}.binding", "a number used once in the set", binding.binding)
        seen.add(binding.binding)
        _require(1 <= binding.count <= _MAX_COUNT, f"{at}.count", f"1 to {_MAX_COUNT} descriptors", binding.count)
        _check_compute(binding.stage_flags, at)


def _check_pipeline_layout(layout: PipelineLayoutDef, set_layout_count: int, path: str) -> None:
    for index, ordinal in enumerate(layout.set_layouts):
        _check_ordinal(ordinal, set_layout_count, f"{path}.set_layouts[{index}]", "descriptor set layouts")
    # A shader stage may be in one range of a layout only (VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-00292),
    # and here every range must be the compute stage's.
    _require(
        len(layout.push_constant_ranges) <= 1,
        f"{path}.push_constant_ranges",
        "at most one range for the compute stage",
        len(layout.push_constant_ranges),
    )
    for index, constants in enumerate(layout.push_constant_ranges):
        at = f"{path}.push_constant_ranges[{index}]"
        _check_compute(constants.stage_flags, at)
        _require(
            constants.offset >= 0 and constants.size > 0 and constants.offset % 4 == 0 and constants.size % 4 == 0,
            at,
            "offset and size to be multiples of 4 and the size above 0",
            f"offset {constants.offset}, size {constants.size}",
        )
        end = constants.offset + constants.size
        _require(end <= 4 * _MAX_COUNT, at, f"an end of at most {4 * _MAX_COUNT} bytes", end)


def _check_pipeline(pipeline: PipelineDef, executable: ExecutableDef, path: str) -> None:
    modules, layouts = executable.shader_modules, executable.pipeline_layouts
    _check_ordinal(pipeline.shader_module, len(modules), f"{path}.shader_module", "shader modules")
    _check_ordinal(pipeline.pipeline_layout, len(layouts), f"{path}.pipeline_layout", "pipeline layouts")
    _require(bool(pipeline.entry_point), f"{path}.entry_point", "a name", "an empty string")
    _require("\0" not in pipeline.entry_point, f"{path}.entry_point", "no NUL", shown(pipeline.entry_point))
    size = pipeline.subgroup_size
    power_of_two = size & (size - 1) == 0
    _require(0 <= size <= _MAX_COUNT and power_of_two, f"{path}.subgroup_size", "0 or a power of two", size)
    layout, bda = layouts[pipeline.pipeline_layout], pipeline.bda_layout
    if pipeline.dispatch_abi == DispatchAbi.DESCRIPTOR:
        _require(bda is None, f"{path}.bda_layout", "none with the descriptor ABI", "a BDA layout")
        return
    sets = len(layout.set_layouts)
    _require(sets == 0, f"{path}.pipeline_layout", "a layout without descriptor sets for the BDA ABI", f"{sets} sets")
    if bda is None:
        raise InvalidArgumentError(f"{path}.bda_layout: expected a layout with the BDA ABI, got none")
    _check_bda_layout(bda, layout, f"{path}.bda_layout")


def _check_bda_layout(bda: BdaDispatchLayoutDef, layout: PipelineLayoutDef, path: str) -> None:
    if bda.abi_version != _BDA_ABI_VERSION:
        raise IncompatibleError(
            f"{path}.abi_version: found {bda.abi_version}, known is {_BDA_ABI_VERSION}; recompile for this runtime"
        )
    root, constants = bda.root_offset, bda.constant_offset
    _require(bda.root_length == BDA_ROOT_BYTES, f"{path}.root_length", f"{BDA_ROOT_BYTES} bytes", bda.root_length)
    _require(root >= 0 and root % 4 == 0, f"{path}.root_offset", "a multiple of 4", root)
    _require(constants >= 0 and constants % 4 == 0, f"{path}.constant_offset", "a multiple of 4", constants)
    for name, count in (("constant_count", bda.constant_count), ("binding_count", bda.binding_count)):
        _require(0 <= count <= _MAX_COUNT, f"{path}.{name}", f"0 to {_MAX_COUNT}", count)
    root_end, constant_end = root + bda.root_length, constants + 4 * bda.constant_count
    spans = [("root", root, root_end)]
    if bda.constant_count:
        spans.append(("constants", constants, constant_end))
        apart = constant_end <= root or root_end <= constants
        _require(apart, f"{path}.constant_offset", f"constants outside the root at {root} to {root_end}", constants)
    for name, start, end in spans:
        inside = any(item.offset <= start and end <= item.offset + item.size for item in layout.push_constant_ranges)
        ranges = [(item.offset, item.offset + item.size) for item in layout.push_constant_ranges]
        _require(inside, f"{path}: {name}", f"bytes inside the push constant ranges {ranges}", (start, end))
    counts = (0, bda.binding_count)
    _require(len(bda.bindings) in counts, f"{path}.bindings", f"0 or {bda.binding_count} entries", len(bda.bindings))
    for index, binding in enumerate(bda.bindings):
        at, alignment = f"{path}.bindings[{index}]", binding.minimum_alignment
        power_of_two = 0 < alignment <= _U32_MAX and alignment & (alignment - 1) == 0
        _require(power_of_two, f"{at}.minimum_alignment", "a power of two", alignment)
        length = binding.minimum_length
        _require(0 <= length <= _U64_MAX, f"{at}.minimum_length", "an unsigned 64-bit number", length)
