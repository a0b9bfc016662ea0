"""Writes Vulkan executables: from a definition to a blob in the format of `vke1`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from flatbuffers import builder as flatbuffer_builder  # type: ignore[import-untyped]

from ..status import InvalidArgumentError, ResourceExhaustedError
from .vke1 import (
    BDA_ROOT_BYTES,
    FILE_IDENTIFIER,
    FORMAT_VERSION,
    HEADER,
    PUSH_CONSTANT_RANGE,
    BdaDispatchLayoutDef,
    DescriptorSetLayoutDef,
    ExecutableDef,
    ExportDebugInfo,
    FileLocation,
    PipelineDef,
    PipelineLayoutDef,
    SourceFile,
    validate_executable,
)


def build_executable(executable: ExecutableDef) -> bytes:
    """Returns the blob of ``executable``, from which ``parse_executable`` returns an equal one.

    Raises:
        InvalidArgumentError: a rule of ``validate_executable`` is broken, or a number does not fit its field.
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
    return HEADER.pack(FILE_IDENTIFIER, FORMAT_VERSION, len(content)) + content


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
        self._builder.Finish(self._table(*fields), file_identifier=FILE_IDENTIFIER)
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
            _u32(layout.root_length, BDA_ROOT_BYTES),
            _u32(layout.constant_offset, BDA_ROOT_BYTES),
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
        self._builder.StartVector(PUSH_CONSTANT_RANGE.size, len(layout.push_constant_ranges), 4)
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
