"""``PIPELINE compute`` and ``DERIVE_PIPELINE`` of AmberScript: their lines up to ``END``."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from typing import Final, Literal, get_args

from ..status import shown
from .buffer_parser import BufferParser
from .script import (
    BUFFER_KINDS,
    IMAGE_KINDS,
    TEXEL_KINDS,
    WHOLE,
    Binding,
    Pipeline,
    Shader,
    SizeChoice,
    Specialization,
    SpecializationType,
    Subgroups,
)
from .source import Source, Statement, Token, as_integer

_GRAPHICS: Final = ("color", "depth_stencil", "resolve", "vertex", "index")
_KINDS: Final = (*BUFFER_KINDS, *TEXEL_KINDS, *IMAGE_KINDS, "push_constant", *_GRAPHICS)
_OF_GRAPHICS: Final = (
    *("VERTEX_DATA", "INDEX_DATA", "FRAMEBUFFER_SIZE", "VIEWPORT", "POLYGON_MODE", "PATCH_CONTROL_POINTS"),
    *("DEPTH", "STENCIL", "BLEND", "SHADER_GROUP", "SHADER_BINDING_TABLE", "FLAGS", "USE_LIBRARY"),
    *("MAX_RAY_PAYLOAD_SIZE", "MAX_RAY_HIT_ATTRIBUTE_SIZE", "MAX_RAY_RECURSION_DEPTH"),
)
_BOUND: Final = ("BUFFER", "BUFFER_ARRAY", "SAMPLER", "SAMPLER_ARRAY", "ACCELERATION_STRUCTURE")
_LINES: Final = ("ATTACH", "BIND", "SUBGROUP", "SHADER_OPTIMIZATION", "COMPILE_OPTIONS", "SET", "END")
_SIZE_NAMES: Final[dict[str, Literal["MIN", "MAX"]]] = {"MIN": "MIN", "MAX": "MAX"}
_MAX_U64: Final = (1 << 64) - 1
_OPENCL: Final = "arguments of OpenCL C kernels are bound by name; pumice runs no OpenCL C: use DESCRIPTOR_SET, BINDING"


class PipelineParser:
    """Reads the body of a pipeline into it."""

    def __init__(self, source: Source, data: BufferParser, shaders: Mapping[str, Shader], pipeline: Pipeline) -> None:
        self._source = source
        self._data = data
        self._shaders = shaders
        self._pipeline = pipeline

    def body(self, opened: Token) -> None:
        """Reads everything up to ``END``."""
        for line in self._source.block(f"{opened.text} {self._pipeline.name}", opened.position):
            self._line(line.take("a command"), line)
        if not self._pipeline.shader:
            self._source.fail(
                f"the pipeline {self._pipeline.name} attaches no shader: expected ATTACH", opened.position
            )

    def _line(self, token: Token, line: Statement) -> None:
        if token.text == "ATTACH":
            self._attach(line)
        elif token.text == "BIND":
            self._bind(line)
        elif token.text == "SUBGROUP":
            self._subgroup(line)
        elif token.text == "SHADER_OPTIMIZATION":
            self._optimization(line)
        elif token.text in ("COMPILE_OPTIONS", "SET"):
            raise self._source.unsupported(_OPENCL, token.position)
        elif token.text in _OF_GRAPHICS:
            self._source.fail(
                f"{token.text} is for graphics and ray-tracing pipelines; this is compute", token.position
            )
        else:
            raise line.unknown("a command of PIPELINE", token, _LINES)

    # -- shaders -------------------------------------------------------------------------------------

    def _attach(self, line: Statement) -> None:
        pipeline = self._pipeline
        position = line.position
        shader = line.choice("the name of a SHADER", self._shaders)
        if pipeline.shader and pipeline.shader != shader.name:
            self._source.fail(f"a compute pipeline has one shader, and {pipeline.shader} is attached already", position)
        kind = line.take("the shader's type").text if line.accept("TYPE") else None
        if kind not in (None, "compute"):
            self._source.fail(f"a compute pipeline takes shaders of TYPE compute, not {shown(kind)}", position)
        if shader.kind == "multi" and kind is None:
            self._source.fail(f"{shader.name} is a multi shader: expected TYPE compute and ENTRY_POINT", line.position)
        pipeline.shader = shader.name
        if line.accept("ENTRY_POINT"):
            pipeline.entry_point = line.take("the entry point's name").text
        while line.accept("SPECIALIZE"):
            self._specialize(line)
        line.finish()

    def _specialize(self, line: Statement) -> None:
        constant = line.integer("the constant's id")
        line.expect("AS")
        kind = line.word("a type of 32 bits", get_args(SpecializationType))
        value: int | float
        if kind == "float":
            value = line.number("the constant's value")
            bits = int.from_bytes(struct.pack("<f", value), "little")
        else:
            value = line.integer("the constant's value", -(1 << 31), (1 << 32) - 1)
            bits = value & 0xFFFFFFFF
        self._pipeline.specialization[constant] = Specialization(kind, value, bits)

    def _attached(self, line: Statement, keyword: str) -> None:
        """Reads a shader's name, which must be that of the attached shader."""
        position = line.position
        name = line.choice("the name of a SHADER", self._shaders).name
        if name != self._pipeline.shader:
            self._source.fail(f"{keyword}: {name} is not attached to this pipeline; ATTACH it first", position)
        line.finish()

    def _optimization(self, line: Statement) -> None:
        self._attached(line, "SHADER_OPTIMIZATION")
        passes: list[str] = []
        for option in self._source.block(line.first.text, line.first.position):
            token = option.take("a pass")
            option.finish()
            passes.append(token.text if token.text.startswith("-") else f"--{token.text}")
        self._pipeline.optimizations += tuple(passes)

    def _subgroup(self, line: Statement) -> None:
        self._attached(line, "SUBGROUP")
        subgroups = Subgroups()
        for option in self._source.block(line.first.text, line.first.position):
            name = option.word("a setting of subgroups", ("FULLY_POPULATED", "VARYING_SIZE", "REQUIRED_SIZE"))
            if name == "FULLY_POPULATED":
                subgroups = dataclasses.replace(subgroups, full=option.switch("on or off"))
            elif name == "VARYING_SIZE":
                subgroups = dataclasses.replace(subgroups, varying=option.switch("on or off"))
            else:
                subgroups = dataclasses.replace(subgroups, size=self._subgroup_size(option))
            option.finish()
        self._pipeline.subgroups = subgroups

    def _subgroup_size(self, option: Statement) -> SizeChoice:
        token = option.take("the subgroup size")
        if token.text in _SIZE_NAMES:
            return _SIZE_NAMES[token.text]
        size = as_integer(token.text)
        if size is None or size < 1 or size & (size - 1):
            raise self._source.error(
                f"expected the subgroup size, MIN, MAX or a power of two, got {shown(token.text)}", token.position
            )
        return size

    # -- bindings ------------------------------------------------------------------------------------

    def _bind(self, line: Statement) -> None:
        keyword = line.word("what to bind", _BOUND)
        if keyword == "ACCELERATION_STRUCTURE":
            raise self._source.unsupported("ray tracing is not run: pumice runs compute pipelines", line.first.position)
        names = self._names(line, keyword)
        if keyword.startswith("SAMPLER"):
            self._opencl(line)
            set_index, binding = self._address(line)
            bound = Binding("sampler", names, set_index, binding, line.first.position)
            self._pipeline.bindings[set_index, binding] = bound
            line.finish()
            return
        if not line.accept("AS"):
            self._opencl(line)
            raise line.wrong("expected AS and the buffer's kind")
        position = line.position
        kind = line.word("the buffer's kind", _KINDS)
        if kind in _GRAPHICS:
            self._source.fail(f"AS {kind} is for graphics pipelines; this is a compute pipeline", position)
        if kind == "push_constant":
            if len(names) > 1:
                self._source.fail("push constants are one buffer", position)
            self._pipeline.push_constants = names[0]
            line.finish()
            return
        for name in names if kind in IMAGE_KINDS else ():
            if self._data.buffers[name].extent is None:
                self._source.fail(
                    f"AS {kind} takes images, and {name} is a buffer; declare it as IMAGE with its size", position
                )
        samplers: tuple[str, ...] = ()
        if kind == "combined_image_sampler":
            line.expect("SAMPLER")
            samplers = (line.choice("the name of a SAMPLER", self._data.samplers).name,) * len(names)
        self._opencl(line)
        set_index, binding = self._address(line)
        bound = Binding(kind, names, set_index, binding, line.first.position, samplers)
        self._pipeline.bindings[set_index, binding] = self._with_options(bound, line)
        line.finish()

    def _names(self, line: Statement, keyword: str) -> tuple[str, ...]:
        is_array = keyword.endswith("_ARRAY")
        known = self._data.samplers if keyword.startswith("SAMPLER") else self._data.buffers
        kind = keyword.removesuffix("_ARRAY")
        names: list[str] = []
        while not names or is_array:
            token = line.peek()
            if names and (token is None or token.text in ("AS", "KERNEL", "DESCRIPTOR_SET")):
                break
            names.append(line.word(f"the name of a {kind}", known))
        if is_array and len(names) < 2:
            raise line.wrong(f"expected two names or more after {keyword}")
        return tuple(names)

    def _opencl(self, line: Statement) -> None:
        token = line.peek()
        if token is not None and token.text == "KERNEL":
            raise self._source.unsupported(_OPENCL, token.position)

    def _address(self, line: Statement) -> tuple[int, int]:
        line.expect("DESCRIPTOR_SET")
        set_index = line.integer("the descriptor set")
        line.expect("BINDING")
        return set_index, line.integer("the binding")

    def _with_options(self, binding: Binding, line: Statement) -> Binding:
        count = len(binding.resources)

        def several(noun: str) -> tuple[int, ...]:
            return tuple(line.integer(f"the {noun} of {name}", 0, _MAX_U64) for name in binding.resources)

        if binding.kind in IMAGE_KINDS and line.accept("BASE_MIP_LEVEL"):
            levels = min(getattr(self._data.buffers[n].extent, "mip_levels", 1) for n in binding.resources)
            level = line.integer("the mip level, which the image has to have", 0, levels - 1)
            return dataclasses.replace(binding, base_mip_level=level)
        if binding.kind not in BUFFER_KINDS:
            return binding
        offsets = descriptor_offsets = (0,) * count
        ranges = (WHOLE,) * count
        if binding.kind.endswith("_dynamic"):
            line.expect("OFFSET")
            offsets = several("OFFSET")
        if line.accept("DESCRIPTOR_OFFSET"):
            descriptor_offsets = several("DESCRIPTOR_OFFSET")
        if line.accept("DESCRIPTOR_RANGE"):
            ranges = several("DESCRIPTOR_RANGE")
        for name, *starts, length in zip(binding.resources, offsets, descriptor_offsets, ranges, strict=True):
            size = len(self._data.buffers[name].data)
            start = sum(starts)
            if start >= max(size, 1) or (length != WHOLE and start + length > size):
                self._source.fail(
                    f"the range that is bound goes past the end of {name} ({size} bytes)", binding.position
                )
        return dataclasses.replace(binding, offsets=offsets, descriptor_offsets=descriptor_offsets, ranges=ranges)
