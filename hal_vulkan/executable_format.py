"""Vulkan executables as IREE's compiler writes them (``vulkan-spirv-fb``, ``vulkan-spirv-bda-v1``): reader and writer.

A blob is a 64-byte header (``VKE1``, a u32 version, a u64 content size, 48 bytes reserved) and a FlatBuffer with the
identifier ``VKE1``. Facts: ``runtime/src/iree/schemas/{vulkan_executable_def,executable_debug_info}.fbs``,
``runtime/src/iree/base/internal/flatcc/parsing.h`` and the checks of ``runtime/src/iree/hal/drivers/vulkan/
executable.c``, IREE 3.13.

Numbers like ``shader_module`` and ``pipeline_layout`` index the tuples of the :class:`ExecutableDef` that holds them.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
from flatbuffers import builder as flatbuffer_builder  # type: ignore[import-untyped]

from ..flatbuffer import FlatBuffer, Table
from ..status import IncompatibleError, InvalidArgumentError, ResourceExhaustedError

__all__ = [
    "STAGE_COMPUTE",
    "BdaBindingDef",
    "BdaDispatchLayoutDef",
    "BdaEntryType",
    "DescriptorBindingDef",
    "DescriptorSetLayoutDef",
    "DescriptorType",
    "DispatchAbi",
    "ExecutableDef",
    "ExportDebugInfo",
    "FileLocation",
    "PipelineDef",
    "PipelineLayoutDef",
    "PushConstantRange",
    "SourceFile",
    "StageLocation",
    "build_executable",
    "parse_executable",
    "validate_executable",
]

STAGE_COMPUTE: Final = 0x20
"""``VK_SHADER_STAGE_COMPUTE_BIT``."""

_IDENTIFIER: Final = b"VKE1"
_VERSION: Final = 0
_HEADER: Final = struct.Struct("<4sIQ48x")
_PUSH_CONSTANT_RANGE: Final = struct.Struct("<III")
_SPIRV_MAGIC: Final = 0x07230203
_SPIRV_HEADER_BYTES: Final = 20
_BDA_ABI_VERSION: Final = 1
_BDA_ROOT_BYTES: Final = 32
_MAX_COUNT: Final = 0xFFFF
_U32_MAX: Final = 0xFFFFFFFF
_U64_MAX: Final = 0xFFFFFFFFFFFFFFFF

_Enum = TypeVar("_Enum", bound=enum.IntEnum)


class DispatchAbi(enum.IntEnum):
    """How a pipeline gets at its bindings."""

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
    """What one binding is in the table of a ``BDA_V1`` pipeline."""

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
    """Where a function came from, as one compilation stage saw it."""

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
    """What a shader demands of the buffer range bound to one binding, in bytes."""

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
    root_length: int = _BDA_ROOT_BYTES
    constant_offset: int = _BDA_ROOT_BYTES
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


def parse_executable(data: bytes | bytearray | memoryview) -> ExecutableDef:
    """The executable in ``data``, all cross-references checked. Shader code and source files stay views of ``data``.

    Bytes past the header's content size are padding and are ignored.

    Raises:
        IncompatibleError: the header's version or the BDA ABI version is not one this build knows.
        InvalidArgumentError: anything else about the bytes is wrong; the message names the field and the byte offset
            (from the end of the 64-byte header) or the rule that is broken.
    """
    view = memoryview(data).toreadonly()
    if not view.c_contiguous:
        raise InvalidArgumentError("executable: expected contiguous bytes, got a strided view; copy it first")
    if view.nbytes < _HEADER.size:
        raise InvalidArgumentError(f"executable: expected a header of {_HEADER.size} bytes, got {view.nbytes}")
    view = view.cast("B")
    magic, version, size = _HEADER.unpack_from(view)
    if magic != _IDENTIFIER:
        raise InvalidArgumentError(f"executable: expected a blob that starts with {_IDENTIFIER!r}, got {magic!r}")
    if version != _VERSION:
        raise IncompatibleError(
            f"executable: found format version {version}, known is {_VERSION}; recompile the module for this runtime"
        )
    room = view.nbytes - _HEADER.size
    if not 0 < size <= room:
        raise InvalidArgumentError(f"executable: expected a content size of 1 to {room} bytes, got {size}; truncated?")
    buffer = FlatBuffer(view[_HEADER.size : _HEADER.size + size], identifier=_IDENTIFIER, name="executable")
    root = buffer.root()
    executable = ExecutableDef(
        pipelines=tuple(_read_pipeline(table) for table in root.tables(0, "pipelines")),
        descriptor_set_layouts=tuple(_read_set_layout(table) for table in root.tables(1, "descriptor_set_layouts")),
        pipeline_layouts=tuple(_read_pipeline_layout(table) for table in root.tables(2, "pipeline_layouts")),
        shader_modules=tuple(
            table.vector_bytes(0, "spirv_code", 4) or memoryview(b"") for table in root.tables(3, "shader_modules")
        ),
        source_files=tuple(
            SourceFile(table.string(0, "path") or "", table.u8s(1, "content"))
            for table in root.tables(4, "source_files")
        ),
    )
    validate_executable(executable)
    return executable


def _read_enum(kind: type[_Enum], value: int, table: Table, slot: int, name: str) -> _Enum:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{member.value} ({member.name})" for member in kind)
        raise table.error(slot, name, f"expected one of {known}, got {value}") from None


def _read_location(table: Table | None) -> FileLocation | None:
    return None if table is None else FileLocation(table.string(0, "filename") or "", table.i32(1, "line"))


def _read_debug_info(table: Table | None) -> ExportDebugInfo | None:
    if table is None:
        return None
    return ExportDebugInfo(
        name=table.string(0, "name") or "",
        location=_read_location(table.table(1, "location")),
        stage_locations=tuple(
            StageLocation(stage.string(0, "stage") or "", _read_location(stage.table(1, "location")))
            for stage in table.tables(2, "stage_locations")
        ),
    )


def _read_pipeline(table: Table) -> PipelineDef:
    return PipelineDef(
        shader_module=table.u32(0, "shader_module_ordinal"),
        entry_point=table.require_string(1, "entry_point"),
        pipeline_layout=table.u32(2, "pipeline_layout_ordinal"),
        subgroup_size=table.u32(3, "subgroup_size"),
        dispatch_abi=_read_enum(DispatchAbi, table.u8(5, "dispatch_abi"), table, 5, "dispatch_abi"),
        bda_layout=_read_bda_layout(table.table(6, "bda_dispatch_layout")),
        debug_info=_read_debug_info(table.table(4, "debug_info")),
    )


def _read_bda_layout(table: Table | None) -> BdaDispatchLayoutDef | None:
    if table is None:
        return None
    entry_type = table.u8(5, "binding_table_entry_type")
    return BdaDispatchLayoutDef(
        abi_version=table.u32(0, "abi_version", 1),
        root_offset=table.u32(1, "root_push_constant_offset"),
        root_length=table.u32(2, "root_push_constant_length", _BDA_ROOT_BYTES),
        constant_offset=table.u32(3, "constant_push_constant_offset", _BDA_ROOT_BYTES),
        constant_count=table.u32(4, "constant_count"),
        entry_type=_read_enum(BdaEntryType, entry_type, table, 5, "binding_table_entry_type"),
        binding_count=table.u32(6, "binding_count"),
        bindings=tuple(
            BdaBindingDef(binding.u32(0, "minimum_alignment", 1), binding.u64(1, "minimum_length"))
            for binding in table.tables(7, "bindings")
        ),
    )


def _read_set_layout(table: Table) -> DescriptorSetLayoutDef:
    return DescriptorSetLayoutDef(
        tuple(
            DescriptorBindingDef(
                binding=binding.u32(0, "binding"),
                descriptor_type=_read_enum(
                    DescriptorType, binding.u32(1, "descriptor_type"), binding, 1, "descriptor_type"
                ),
                count=binding.u32(2, "descriptor_count"),
                stage_flags=binding.u32(3, "stage_flags"),
            )
            for binding in table.tables(0, "bindings")
        )
    )


def _read_pipeline_layout(table: Table) -> PipelineLayoutDef:
    ranges = table.structs(1, "push_constant_ranges", _PUSH_CONSTANT_RANGE)
    return PipelineLayoutDef(
        set_layouts=table.u32s(0, "descriptor_set_layout_ordinals"),
        push_constant_ranges=tuple(PushConstantRange(*values) for values in ranges),
    )


def validate_executable(executable: ExecutableDef) -> None:
    """Checks every rule that needs no device: ordinals, ranges, ABIs and the outline of each SPIR-V module.

    Raises:
        IncompatibleError: a BDA ABI version that this build does not know.
        InvalidArgumentError: the first rule broken, with the path of the field.
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


def _check_ordinal(value: int, count: int, path: str, what: str) -> None:
    _require(0 <= value < count, path, f"the ordinal of one of {count} {what}", value)


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
    _require("\0" not in pipeline.entry_point, f"{path}.entry_point", "no NUL", repr(pipeline.entry_point))
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
    _require(bda.root_length == _BDA_ROOT_BYTES, f"{path}.root_length", f"{_BDA_ROOT_BYTES} bytes", bda.root_length)
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


def build_executable(executable: ExecutableDef) -> bytes:
    """The blob of ``executable``: what :func:`parse_executable` reads back equal.

    Raises:
        InvalidArgumentError: a rule of :func:`validate_executable` is broken, or a number does not fit its field.
        ResourceExhaustedError: the blob would pass the 2 GiB that a FlatBuffer can hold.
    """
    validate_executable(executable)
    writer = _Writer(sum(code.nbytes for code in executable.shader_modules) + 1024)
    try:
        content = writer.write(executable)
    except flatbuffer_builder.BuilderSizeError as error:
        raise ResourceExhaustedError("expected an executable below 2 GiB; split it into several") from error
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidArgumentError(f"executable: expected values that fit their fields: {error}") from error
    return _HEADER.pack(_IDENTIFIER, _VERSION, len(content)) + content


_Field = tuple[str, int, int]
"""Builder method, value and default of one field; a slot's place in the list is its number."""


class _Writer:
    """Writes one executable; a FlatBuffer is built from the leaves up, so every method returns a finished offset."""

    def __init__(self, size_hint: int) -> None:
        self._builder = flatbuffer_builder.Builder(size_hint)

    def write(self, executable: ExecutableDef) -> bytes:
        fields = (
            _offset(self._offsets([self._pipeline(pipeline) for pipeline in executable.pipelines])),
            _offset(self._offsets([self._set_layout(layout) for layout in executable.descriptor_set_layouts])),
            _offset(self._offsets([self._pipeline_layout(layout) for layout in executable.pipeline_layouts])),
            _offset(self._offsets([self._shader(code) for code in executable.shader_modules])),
            _offset(self._offsets([self._source_file(file) for file in executable.source_files])),
        )
        self._builder.Finish(self._table(*fields), file_identifier=_IDENTIFIER)
        return bytes(self._builder.Output())

    def _table(self, *fields: _Field) -> int:
        self._builder.StartObject(len(fields))
        for slot, (method, value, default) in enumerate(fields):
            getattr(self._builder, method)(slot, value, default)
        return int(self._builder.EndObject())

    def _offsets(self, offsets: Sequence[int]) -> int:
        if not offsets:
            return 0
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _string(self, text: str) -> int:
        return int(self._builder.CreateString(text))

    def _words(self, words: npt.NDArray[np.uint32]) -> int:
        return int(self._builder.CreateNumpyVector(words))

    def _location(self, location: FileLocation | None) -> int:
        if location is None:
            return 0
        return self._table(_offset(self._string(location.filename)), ("PrependInt32Slot", location.line, 0))

    def _debug_info(self, info: ExportDebugInfo | None) -> int:
        if info is None:
            return 0
        stages = [
            self._table(_offset(self._string(stage.stage)), _offset(self._location(stage.location)))
            for stage in info.stage_locations
        ]
        name, location = self._string(info.name), self._location(info.location)
        return self._table(_offset(name), _offset(location), _offset(self._offsets(stages)))

    def _pipeline(self, pipeline: PipelineDef) -> int:
        return self._table(
            _u32(pipeline.shader_module),
            _offset(self._string(pipeline.entry_point)),
            _u32(pipeline.pipeline_layout),
            _u32(pipeline.subgroup_size),
            _offset(self._debug_info(pipeline.debug_info)),
            ("PrependUint8Slot", pipeline.dispatch_abi, 0),
            _offset(self._bda_layout(pipeline.bda_layout)),
        )

    def _bda_layout(self, layout: BdaDispatchLayoutDef | None) -> int:
        if layout is None:
            return 0
        bindings = [
            self._table(_u32(binding.minimum_alignment, 1), ("PrependUint64Slot", binding.minimum_length, 0))
            for binding in layout.bindings
        ]
        return self._table(
            _u32(layout.abi_version, 1),
            _u32(layout.root_offset),
            _u32(layout.root_length, _BDA_ROOT_BYTES),
            _u32(layout.constant_offset, _BDA_ROOT_BYTES),
            _u32(layout.constant_count),
            ("PrependUint8Slot", layout.entry_type, 0),
            _u32(layout.binding_count),
            _offset(self._offsets(bindings)),
        )

    def _set_layout(self, layout: DescriptorSetLayoutDef) -> int:
        bindings = [
            self._table(
                _u32(binding.binding), _u32(binding.descriptor_type), _u32(binding.count), _u32(binding.stage_flags)
            )
            for binding in layout.bindings
        ]
        return self._table(_offset(self._offsets(bindings)))

    def _pipeline_layout(self, layout: PipelineLayoutDef) -> int:
        ordinals = self._words(np.array(layout.set_layouts, "<u4"))
        self._builder.StartVector(_PUSH_CONSTANT_RANGE.size, len(layout.push_constant_ranges), 4)
        for constants in reversed(layout.push_constant_ranges):
            # Prepending: the last member of each struct goes first.
            for value in (constants.size, constants.offset, constants.stage_flags):
                self._builder.PrependUint32(value)
        return self._table(_offset(ordinals), _offset(int(self._builder.EndVector())))

    def _shader(self, code: memoryview) -> int:
        return self._table(_offset(self._words(np.frombuffer(code, "<u4"))))

    def _source_file(self, file: SourceFile) -> int:
        content = int(self._builder.CreateByteVector(bytes(file.content)))
        return self._table(_offset(self._string(file.path)), _offset(content))


def _offset(offset: int) -> _Field:
    return ("PrependUOffsetTRelativeSlot", offset, 0)


def _u32(value: int, default: int = 0) -> _Field:
    return ("PrependUint32Slot", value, default)
