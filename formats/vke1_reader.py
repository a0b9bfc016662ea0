"""Reads Vulkan executables: from a blob in the format of `vke1` to its definition, checked."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeVar

from ..status import IncompatibleError, InvalidArgumentError
from . import vke1
from .flatbuffer import FlatBuffer, Table, contiguous_bytes

_Enum = TypeVar("_Enum", bound=enum.IntEnum)


def parse_executable(data: bytes | bytearray | memoryview) -> vke1.ExecutableDef:
    """Returns the executable in ``data``, all cross-references checked. Shader code and source files are views of
    ``data``.

    Bytes past the header's content size are padding and are ignored.

    Raises:
        IncompatibleError: the header's version or the BDA ABI version is not one this build knows.
        InvalidArgumentError: anything else about the bytes is wrong; the message names the field and the byte offset
            (from the end of the 64-byte header) or the rule that is broken.
    """
    view = contiguous_bytes(data, "executable")
    if view.nbytes < vke1.HEADER.size:
        raise InvalidArgumentError(f"executable: expected a header of {vke1.HEADER.size} bytes, got {view.nbytes}")
    magic, version, size = vke1.HEADER.unpack_from(view)
    if magic != vke1.FILE_IDENTIFIER:
        raise InvalidArgumentError(
            f"executable: expected a blob that starts with {vke1.FILE_IDENTIFIER!r}, got {magic!r}"
        )
    if version != vke1.FORMAT_VERSION:
        raise IncompatibleError(
            f"executable: found format version {version}, known is {vke1.FORMAT_VERSION}; "
            "recompile the module for this runtime"
        )
    room = view.nbytes - vke1.HEADER.size
    if not 0 < size <= room:
        raise InvalidArgumentError(f"executable: expected a content size of 1 to {room} bytes, got {size}; truncated?")
    buffer = FlatBuffer(
        view[vke1.HEADER.size : vke1.HEADER.size + size], identifier=vke1.FILE_IDENTIFIER, name="executable"
    )
    root = buffer.root()
    executable = vke1.ExecutableDef(
        pipelines=tuple(_read_pipeline(table) for table in root.tables(0, "pipelines")),
        descriptor_set_layouts=tuple(_read_set_layout(table) for table in root.tables(1, "descriptor_set_layouts")),
        pipeline_layouts=tuple(_read_pipeline_layout(table) for table in root.tables(2, "pipeline_layouts")),
        shader_modules=tuple(
            table.vector_bytes(0, "spirv_code", 4) or memoryview(b"") for table in root.tables(3, "shader_modules")
        ),
        source_files=tuple(
            vke1.SourceFile(table.string(0, "path") or "", table.u8s(1, "content"))
            for table in root.tables(4, "source_files")
        ),
    )
    vke1.validate_executable(executable)
    return executable


def _read_enum(kind: type[_Enum], table: Table, slot: int, name: str, read: Callable[..., int] = Table.u8) -> _Enum:
    value = read(table, slot, name)
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f"{member.value} ({member.name})" for member in kind)
        raise table.error(slot, name, f"expected one of {known}, got {value}") from None


def _read_location(table: Table | None) -> vke1.FileLocation | None:
    return None if table is None else vke1.FileLocation(table.string(0, "filename") or "", table.i32(1, "line"))


def _read_debug_info(table: Table | None) -> vke1.ExportDebugInfo | None:
    if table is None:
        return None
    return vke1.ExportDebugInfo(
        name=table.string(0, "name") or "",
        location=_read_location(table.table(1, "location")),
        stage_locations=tuple(
            vke1.StageLocation(stage.string(0, "stage") or "", _read_location(stage.table(1, "location")))
            for stage in table.tables(2, "stage_locations")
        ),
    )


def _read_pipeline(table: Table) -> vke1.PipelineDef:
    return vke1.PipelineDef(
        shader_module=table.u32(0, "shader_module_ordinal"),
        entry_point=table.require_string(1, "entry_point"),
        pipeline_layout=table.u32(2, "pipeline_layout_ordinal"),
        subgroup_size=table.u32(3, "subgroup_size"),
        dispatch_abi=_read_enum(vke1.DispatchAbi, table, 5, "dispatch_abi"),
        bda_layout=_read_bda_layout(table.table(6, "bda_dispatch_layout")),
        debug_info=_read_debug_info(table.table(4, "debug_info")),
    )


def _read_bda_layout(table: Table | None) -> vke1.BdaDispatchLayoutDef | None:
    if table is None:
        return None
    return vke1.BdaDispatchLayoutDef(
        abi_version=table.u32(0, "abi_version", 1),
        root_offset=table.u32(1, "root_push_constant_offset"),
        root_length=table.u32(2, "root_push_constant_length", vke1.BDA_ROOT_BYTES),
        constant_offset=table.u32(3, "constant_push_constant_offset", vke1.BDA_ROOT_BYTES),
        constant_count=table.u32(4, "constant_count"),
        entry_type=_read_enum(vke1.BdaEntryType, table, 5, "binding_table_entry_type"),
        binding_count=table.u32(6, "binding_count"),
        bindings=tuple(
            vke1.BdaBindingDef(binding.u32(0, "minimum_alignment", 1), binding.u64(1, "minimum_length"))
            for binding in table.tables(7, "bindings")
        ),
    )


def _read_set_layout(table: Table) -> vke1.DescriptorSetLayoutDef:
    return vke1.DescriptorSetLayoutDef(
        tuple(
            vke1.DescriptorBindingDef(
                binding=binding.u32(0, "binding"),
                descriptor_type=_read_enum(vke1.DescriptorType, binding, 1, "descriptor_type", Table.u32),
                count=binding.u32(2, "descriptor_count"),
                stage_flags=binding.u32(3, "stage_flags"),
            )
            for binding in table.tables(0, "bindings")
        )
    )


def _read_pipeline_layout(table: Table) -> vke1.PipelineLayoutDef:
    ranges = table.structs(1, "push_constant_ranges", vke1.PUSH_CONSTANT_RANGE)
    return vke1.PipelineLayoutDef(
        set_layouts=table.u32s(0, "descriptor_set_layout_ordinals"),
        push_constant_ranges=tuple(vke1.PushConstantRange(*values) for values in ranges),
    )
