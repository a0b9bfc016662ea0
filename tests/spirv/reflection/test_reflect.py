"""Reflection against what glslangValidator, spirv-as, spirv-dis and NumPy say; and against damaged modules."""

from __future__ import annotations

import functools
import json
import re
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.devices.shader_tools import assemble

from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.reflection.reflection_types import Binding, BlockMember, ScalarType, ShaderModuleReflection
from pumice.status import (
    IncompatibleError,
    InvalidArgumentError,
    NotFoundError,
    PumiceError,
    ResourceExhaustedError,
    UnimplementedError,
)

TYPES = "#extension GL_EXT_shader_explicit_arithmetic_types : require\n"
STORAGE = "#extension GL_EXT_shader_16bit_storage : require\n#extension GL_EXT_shader_8bit_storage : require\n"
NESTED = """
struct Inner { vec3 p; float w; mat3 r; };
struct Outer { vec2 a; Inner inner[2]; mat3x2 q; float tail; };
"""

# Names of variables say what the shader does with them: r_ reads, w_ writes, rw_ both, n_ neither.
SHADERS: dict[str, tuple[str, str]] = {
    "saxpy": (
        "vulkan1.1",
        """
        layout(local_size_x = 64) in;
        layout(set = 0, binding = 0) readonly buffer X { float v[]; } r_x;
        layout(set = 0, binding = 1) buffer Y { float v[]; } rw_y;
        layout(set = 0, binding = 7) buffer Unused { float v[]; } unused;
        layout(push_constant) uniform P { float a; uint n; };
        void main() {
          uint i = gl_GlobalInvocationID.x;
          if (i < n) rw_y.v[i] += a * r_x.v[i];
        }""",
    ),
    "buffer_block": (
        "vulkan1.0",
        """
        layout(local_size_x = 4, local_size_y = 3, local_size_z = 2) in;
        layout(set = 1, binding = 3) buffer A { uint head; vec4 v[]; } r_a;
        layout(set = 0, binding = 3) buffer B { vec4 v[]; } w_b;
        layout(std140, set = 0, binding = 0) uniform U { mat4 m; float k[5]; } r_u;
        void main() { w_b.v[r_a.head] = r_u.m * r_a.v[0] * r_u.k[1]; }""",
    ),
    "nested_std140": (
        "vulkan1.2",
        NESTED
        + """
        layout(local_size_x = 1) in;
        layout(std140, set = 0, binding = 0) uniform U { Outer o; layout(row_major) mat3x2 q[2]; vec3 last[2]; } r_u;
        layout(std140, set = 0, binding = 1) buffer B { int n; Outer o[]; } rw_b;
        void main() { rw_b.o[0].inner[1].p = r_u.o.inner[0].p + r_u.last[1] + vec3(rw_b.n); }""",
    ),
    "nested_std430": (
        "vulkan1.2",
        NESTED
        + """
        layout(local_size_x = 1) in;
        layout(std430, set = 0, binding = 1) buffer B { int n; layout(row_major) mat4x3 m; Outer o[3]; } w_b;
        layout(std430, push_constant) uniform P { vec3 a; float b; mat2 m; int idx[3]; Outer o; };
        void main() { w_b.o[0].inner[1].p = a * b + o.inner[0].p + vec3(m[0], idx[2]); }""",
    ),
    "scalar_layout": (
        "vulkan1.2",
        "#extension GL_EXT_scalar_block_layout : require\n"
        + NESTED
        + """
        layout(local_size_x = 1) in;
        layout(scalar, set = 0, binding = 0) buffer B { float f; vec3 v[]; } w_b;
        layout(scalar, push_constant) uniform P { float a; vec3 b; Outer o; };
        void main() { w_b.v[1] = a * b + o.inner[0].p; }""",
    ),
    "types": (
        "vulkan1.2",
        TYPES
        + STORAGE
        + """
        layout(local_size_x = 8) in;
        layout(set = 0, binding = 0) buffer B0 { int8_t v[]; } rw_i8;
        layout(set = 0, binding = 1) buffer B1 { uint8_t v[]; } rw_u8;
        layout(set = 0, binding = 2) buffer B2 { int16_t v[]; } rw_i16;
        layout(set = 0, binding = 3) buffer B3 { uint16_t v[]; } rw_u16;
        layout(set = 0, binding = 4) buffer B4 { int v[]; } rw_i32;
        layout(set = 0, binding = 5) buffer B5 { uint v[]; } rw_u32;
        layout(set = 0, binding = 6) buffer B6 { int64_t v[]; } rw_i64;
        layout(set = 0, binding = 7) buffer B7 { uint64_t v[]; } rw_u64;
        layout(set = 0, binding = 8) buffer B8 { float16_t v[]; } rw_f16;
        layout(set = 0, binding = 9) buffer B9 { float v[]; } rw_f32;
        layout(set = 0, binding = 10) buffer B10 { double v[]; } rw_f64;
        layout(set = 0, binding = 11) buffer B11 { f16vec3 v[6]; } rw_h3;
        layout(set = 0, binding = 12) buffer B12 { dmat3x2 v[]; } rw_d;
        layout(set = 0, binding = 13) buffer B13 { float v[][3][5]; } rw_grid;
        layout(set = 0, binding = 14) buffer B14 { uvec2 v; } rw_one;
        void main() {
          rw_i8.v[0]++; rw_u8.v[0]++; rw_i16.v[0]++; rw_u16.v[0]++; rw_i32.v[0]++; rw_u32.v[0]++; rw_i64.v[0]++;
          rw_u64.v[0]++; rw_f16.v[0]++; rw_f32.v[0]++; rw_f64.v[0]++; rw_h3.v[0]++; rw_d.v[0]++;
          rw_grid.v[0][1][2]++; rw_one.v++;
        }""",
    ),
    "spec_constants": (
        "vulkan1.2",
        TYPES
        + """
        layout(local_size_x_id = 30, local_size_y = 2, local_size_z_id = 31) in;
        layout(constant_id = 0) const bool yes = true;
        layout(constant_id = 1) const bool no = false;
        layout(constant_id = 2) const int8_t i8 = int8_t(-100);
        layout(constant_id = 3) const uint8_t u8 = uint8_t(200);
        layout(constant_id = 4) const int16_t i16 = int16_t(-30000);
        layout(constant_id = 5) const uint16_t u16 = uint16_t(60000);
        layout(constant_id = 6) const int i32 = -2000000000;
        layout(constant_id = 7) const uint u32 = 4000000000u;
        layout(constant_id = 8) const int64_t i64 = -9000000000000000000l;
        layout(constant_id = 9) const uint64_t u64 = 18000000000000000000ul;
        layout(constant_id = 10) const float16_t f16 = 0.1hf;
        layout(constant_id = 11) const float f32 = 0.1;
        layout(constant_id = 12) const double f64 = 0.1lf;
        layout(constant_id = 20) const int n = 4;
        shared float scratch[n * 2 + 1];
        shared vec3 vectors[2];
        shared bool flag;
        layout(set = 0, binding = 0) buffer B { double v[n + 3]; } w_b;
        void main() {
          scratch[0] = f32; flag = yes && no; vectors[1] = vec3(f32); barrier();
          w_b.v[0] = scratch[0] + double(f16) + f64 + double(i8) + double(u8) + double(i16) + double(u16)
            + double(i32) + double(u32) + double(i64) + double(u64) + double(flag) + vectors[0].x;
        }""",
    ),
    "atomics": (
        "vulkan1.1",
        """
        layout(local_size_x = 32) in;
        layout(set = 0, binding = 0) buffer A { uint v[]; } rw_a;
        layout(set = 0, binding = 1) buffer B { int v; } rw_b;
        layout(set = 0, binding = 2, r32ui) uniform uimage2D rw_image;
        layout(set = 0, binding = 3) buffer N { float v[]; } n_length;
        layout(set = 0, binding = 4, r32f) uniform image2D n_size;
        void main() {
          atomicAdd(rw_a.v[0], uint(n_length.v.length()));
          atomicMin(rw_b.v, imageSize(n_size).x);
          imageAtomicOr(rw_image, ivec2(0), 4u);
        }""",
    ),
    "image_kinds": (
        "vulkan1.1",
        """
        #extension GL_EXT_shader_image_int64 : require
        #extension GL_EXT_shader_explicit_arithmetic_types : require
        layout(local_size_x = 1) in;
        layout(binding = 0) uniform sampler1DArray r_line;
        layout(binding = 1) uniform isamplerCubeArray r_cubes;
        layout(binding = 2) uniform sampler2DArrayShadow r_shadow;
        layout(binding = 3) uniform usampler2DMS r_samples;
        layout(binding = 4, rgba16_snorm) uniform writeonly image1DArray w_line;
        layout(binding = 5, rg32i) uniform iimage3D rw_volume;
        layout(binding = 6, r11f_g11f_b10f) uniform imageCube r_cube;
        layout(binding = 7, rgb10_a2ui) uniform uimage2DArray w_layers;
        layout(binding = 8) uniform writeonly image2D w_any;
        layout(binding = 9, r64ui) uniform u64image2D rw_wide;
        layout(binding = 10, r32i) uniform iimageBuffer rw_texels;
        layout(binding = 11) uniform texture2DArray r_texture;
        layout(binding = 12) uniform samplerShadow r_compare;
        layout(binding = 13) uniform utextureBuffer r_buffer;
        void main() {
          vec4 c = textureLod(r_line, vec2(0), 0.0) + textureLod(r_cubes, vec4(0), 0.0)
            + texelFetch(r_samples, ivec2(0), 1) + imageLoad(r_cube, ivec3(0)) + texelFetch(r_buffer, 1);
          c.x += texture(r_shadow, vec4(0)) + texture(sampler2DArrayShadow(r_texture, r_compare), vec4(0));
          imageStore(w_line, ivec2(0), c);
          imageStore(rw_volume, ivec3(0), imageLoad(rw_volume, ivec3(1)));
          imageStore(w_layers, ivec3(0), uvec4(c));
          imageStore(w_any, ivec2(0), c);
          imageAtomicMax(rw_wide, ivec2(0), 5ul);
          imageAtomicAdd(rw_texels, 0, 5);
        }""",
    ),
    "images": (
        "vulkan1.1",
        """
        layout(local_size_x = 8, local_size_y = 8) in;
        layout(set = 0, binding = 0, rgba8) uniform image2D r_read;
        layout(set = 0, binding = 1, rgba8) uniform image2D w_write;
        layout(set = 0, binding = 2, r32f) uniform image2D rw_both;
        layout(set = 0, binding = 3) uniform sampler2D r_combined;
        layout(set = 0, binding = 4) uniform texture2D r_texture;
        layout(set = 0, binding = 5) uniform sampler r_sampler;
        layout(set = 0, binding = 6) uniform samplerBuffer r_texels;
        layout(set = 0, binding = 7, r32f) uniform imageBuffer w_texels;
        layout(set = 0, binding = 8, rgba8) uniform writeonly image3D w_array[5];
        layout(set = 0, binding = 9) uniform sampler2D r_many[2][3];
        void main() {
          vec4 c = imageLoad(r_read, ivec2(0)) + textureLod(r_combined, vec2(0), 0) + texelFetch(r_texels, 3)
            + textureLod(sampler2D(r_texture, r_sampler), vec2(0), 0) + textureLod(r_many[1][2], vec2(0), 0);
          imageStore(w_write, ivec2(0), c);
          imageStore(rw_both, ivec2(0), imageLoad(rw_both, ivec2(1)));
          imageStore(w_texels, 0, c);
          imageStore(w_array[2], ivec3(0), c);
        }""",
    ),
    "descriptor_arrays": (
        "vulkan1.2",
        """
        #extension GL_EXT_nonuniform_qualifier : require
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer A { float v[]; } r_fixed[7];
        layout(set = 0, binding = 1) buffer B { float v[]; } w_runtime[];
        void main() { w_runtime[nonuniformEXT(gl_LocalInvocationID.x)].v[0] = r_fixed[3].v[0]; }""",
    ),
    "functions": (
        "vulkan1.1",
        """
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer A { float v[]; } r_a;
        layout(set = 0, binding = 1) buffer B { float v[]; } w_b;
        layout(set = 0, binding = 2) buffer C { float v[]; } rw_c;
        layout(set = 0, binding = 3) uniform writeonly image2D w_image;
        layout(set = 0, binding = 4) buffer D { float v[]; } unused;
        float twice(float x) { return x * 2.0; }
        void bump(inout float x) { x = twice(x); }
        void paint(writeonly image2D target, float x) { imageStore(target, ivec2(0), vec4(x)); }
        void never() { unused.v[0] = 1.0; }
        void main() { w_b.v[0] = twice(r_a.v[0]); bump(rw_c.v[0]); paint(w_image, 1.0); }""",
    ),
    "qualifiers": (
        "vulkan1.1",
        """
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) readonly buffer A { int n; float v[]; } r_a;
        layout(set = 0, binding = 1) writeonly buffer B { int n; float v[]; } w_b;
        layout(set = 0, binding = 2) buffer C { readonly int n; writeonly float v[]; } rw_c;
        void main() { w_b.v[r_a.n] = r_a.v[0]; rw_c.v[rw_c.n] = 1.0; }""",
    ),
    "device_address": (
        "vulkan1.2",
        TYPES
        + """
        #extension GL_EXT_buffer_reference : require
        layout(local_size_x = 1) in;
        layout(buffer_reference) buffer Node;
        layout(buffer_reference, std430) buffer Node { Node next; float v; };
        layout(push_constant) uniform P { Node first; uint64_t raw; uint n; };
        void main() { Node(first.next).v += float(n); }""",
    ),
}


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name} (packages glslang-tools and spirv-tools)")
    return path


def _run(*command: str, data: bytes | None = None) -> bytes:
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
    return done.stdout


@functools.cache
def _compiled(source: str, target: str, *options: str) -> tuple[bytes, str]:
    """The module, and what the compiler printed."""
    # Extensions come before anything else.
    lines = sorted(source.splitlines(), key=lambda line: not line.strip().startswith("#extension"))
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "shader.comp"), Path(folder, "shader.spv")
        path.write_text("\n".join(["#version 460", *lines]))
        tool = _tool("glslangValidator")
        printed = _run(tool, "-V", *options, "--target-env", target, "-o", str(out), str(path))
        return out.read_bytes(), printed.decode()


def _glsl(source: str, target: str) -> bytes:
    return _compiled(source, target)[0]


@pytest.fixture(params=sorted(SHADERS))
def shader(request: pytest.FixtureRequest) -> bytes:
    target, source = SHADERS[request.param]
    return _glsl(source, target)


def _named(name: str) -> ShaderModuleReflection:
    target, source = SHADERS[name]
    return reflect(_glsl(source, target))


class Disassembly:
    """A module as spirv-dis prints it: instructions as lists of words, found by opcode name."""

    def __init__(self, code: bytes) -> None:
        text = _run(_tool("spirv-dis"), "--raw-id", "--no-color", "-", data=code).decode()
        self.header = text
        self.lines: list[tuple[str, str, list[str]]] = []
        for line in text.splitlines():
            match = re.match(r"\s*(?:(%\d+) = )?(Op\w+)(.*)", line)
            if match:
                operands = re.findall(r'"(?:[^"\\]|\\.)*"|\S+', match[3])
                self.lines.append((match[2], match[1] or "", operands))
        self.by_id = {result: (name, operands) for name, result, operands in self.lines if result}

    def all(self, name: str) -> Iterator[tuple[str, list[str]]]:
        return ((result, operands) for found, result, operands in self.lines if found == name)

    def decorations(self, target: str) -> dict[str, list[str]]:
        return {words[1]: words[2:] for _, words in self.all("OpDecorate") if words[0] == target}

    def member_decorations(self, target: str, index: int) -> dict[str, list[str]]:
        found = (words for _, words in self.all("OpMemberDecorate") if words[:2] == [target, str(index)])
        return {words[2]: words[3:] for words in found}

    def used_in_functions(self) -> set[str]:
        """Ids among the operands of instructions in functions reached from the entry point."""
        functions: dict[str, list[tuple[str, list[str]]]] = {}
        current = ""
        for name, result, operands in self.lines:
            if name == "OpFunction":
                current = result
            if current:
                functions.setdefault(current, []).append((name, operands))
            if name == "OpFunctionEnd":
                current = ""
        pending = [words[1] for _, words in self.all("OpEntryPoint")]
        reached: set[str] = set()
        used: set[str] = set()
        while pending:
            function = pending.pop()
            if function in reached:
                continue
            reached.add(function)
            for name, operands in functions[function]:
                used.update(operands)
                if name == "OpFunctionCall":
                    pending.append(operands[1])
        return used

    def strip_arrays(self, type_id: str) -> tuple[list[tuple[str, str]], str]:
        """Array type ids with their length ids (or ""), outermost first; and the type within."""
        arrays = []
        while self.by_id[type_id][0] in ("OpTypeArray", "OpTypeRuntimeArray"):
            operands = self.by_id[type_id][1]
            arrays.append((type_id, operands[1] if len(operands) > 1 else ""))
            type_id = operands[0]
        return arrays, type_id

    def name(self, target: str) -> str:
        return next((words[1].strip('"') for _, words in self.all("OpName") if words[0] == target), "")


def _check_members(text: Disassembly, struct_id: str, members: tuple[BlockMember, ...]) -> int:
    """Compares a member tree with the disassembly; returns how many members it compared."""
    name, types = text.by_id[struct_id]
    assert name == "OpTypeStruct"
    assert len(types) == len(members)
    compared = 0
    names = {int(w[1]): w[2].strip('"') for _, w in text.all("OpMemberName") if w[0] == struct_id}
    for index, (type_id, member) in enumerate(zip(types, members, strict=True)):
        compared += 1
        decorations = text.member_decorations(struct_id, index)
        assert member.name == names.get(index, "")
        assert [str(member.offset)] == decorations["Offset"]
        assert member.row_major == ("RowMajor" in decorations)
        assert (None if member.matrix_stride is None else [str(member.matrix_stride)]) == decorations.get(
            "MatrixStride"
        )
        arrays, base = text.strip_arrays(type_id)
        assert [[str(stride)] for stride in member.array_strides] == [
            text.decorations(array)["ArrayStride"] for array, _ in arrays
        ]
        assert member.array_length == (member.array_shape[0] if arrays else None)
        assert member.array_stride == (member.array_strides[0] if arrays else None)
        for length, (_, length_id) in zip(member.array_shape, arrays, strict=True):
            if length_id and text.by_id[length_id][0] != "OpSpecConstantOp":
                assert str(length) == text.by_id[length_id][1][-1]
            elif not length_id:
                assert length == 0
        columns = components = 1
        if text.by_id[base][0] == "OpTypeMatrix":
            base, columns = text.by_id[base][1][0], int(text.by_id[base][1][1])
        if text.by_id[base][0] == "OpTypeVector":
            base, components = text.by_id[base][1][0], int(text.by_id[base][1][1])
        assert (member.columns, member.components) == (columns, components)
        kind, operands = text.by_id[base]
        if kind == "OpTypeStruct":
            assert member.scalar is None
            compared += _check_members(text, base, member.members)
        elif kind == "OpTypePointer":
            assert member.scalar == ScalarType("uint", 64)
        else:
            assert member.members == ()
            expected = "float" if kind == "OpTypeFloat" else "int" if operands[1] == "1" else "uint"
            assert member.scalar is not None
            assert (member.scalar.kind, member.scalar.bits, member.scalar.encoding) == (expected, int(operands[0]), "")
    return compared


def _check_image(text: Disassembly, base: str, binding: Binding) -> None:
    kind, operands = text.by_id[base]
    if kind == "OpTypeSampledImage":
        kind, operands = text.by_id[operands[0]]
    image = binding.image
    assert (image is not None) == (kind == "OpTypeImage")
    if image is None:
        return
    sampled, dim, depth, arrayed, multisampled, usage, texels = operands[:7]
    scalar, operands = text.by_id[sampled]
    of = "float" if scalar == "OpTypeFloat" else "int" if operands[1] == "1" else "uint"
    assert image.sampled == ScalarType(of, int(operands[0]))  # type: ignore[arg-type]
    assert (image.dim, image.format) == (dim.lower(), texels.lower())
    assert [image.depth, image.arrayed, image.multisampled, image.storage] == [
        depth == "1",
        arrayed == "1",
        multisampled == "1",
        usage == "2",
    ]
    assert binding.image_aliases == ()


@pytest.mark.sample(6)
def test_equals_disassembly(shader: bytes) -> None:
    text = Disassembly(shader)
    module = reflect(shader)
    entry = module.entry_point()
    assert module.capabilities == tuple(words[0] for _, words in text.all("OpCapability"))
    assert module.extensions == tuple(words[0].strip('"') for _, words in text.all("OpExtension"))
    assert [module.addressing_model, module.memory_model] == next(text.all("OpMemoryModel"))[1]
    assert "; Version: {}.{}".format(*module.version) in text.header
    used = text.used_in_functions()
    expected: dict[tuple[int, int], tuple[str, str]] = {}
    push_constants = []
    for result, operands in text.all("OpVariable"):
        if result not in used:
            continue
        pointee = text.by_id[operands[0]][1][1]
        if operands[1] == "PushConstant":
            push_constants.append(pointee)
        decorations = text.decorations(result)
        if "Binding" in decorations:
            key = int(decorations["DescriptorSet"][0]), int(decorations["Binding"][0])
            expected[key] = result, pointee
    assert [(b.set, b.binding) for b in entry.bindings] == sorted(expected)
    for binding in entry.bindings:
        result, pointee = expected[binding.set, binding.binding]
        arrays, base = text.strip_arrays(pointee)
        assert binding.name == text.name(result)
        count = 1
        for _, length in arrays:
            count *= int(text.by_id[length][1][-1]) if length else 0
        assert binding.count == count
        kind, operands = text.by_id[base]
        if kind == "OpTypeStruct":
            assert _check_members(text, base, binding.members) > 0
            storage = text.by_id[result][1][1] == "StorageBuffer" or "BufferBlock" in text.decorations(base)
            assert binding.descriptor_type_name == ("storage_buffer" if storage else "uniform_buffer")
            assert binding.descriptor_type == (7 if storage else 6)
        else:
            assert binding.members == ()
        _check_image(text, base, binding)
    assert len(push_constants) == (entry.push_constants is not None)
    if entry.push_constants is not None:
        assert _check_members(text, push_constants[0], entry.push_constants.members) > 0


def test_access_is_what_the_shader_does(shader: bytes) -> None:
    for binding in reflect(shader).entry_point().bindings:
        does = binding.name.split("_")[0]
        assert (binding.readable, binding.writable) == ("r" in does, "w" in does), binding.name


@pytest.mark.slow
def test_block_sizes_equal_glslang() -> None:
    compared = 0
    for name, (target, source) in SHADERS.items():
        if name == "spec_constants":
            continue  # glslang's listing does not evaluate them
        code, text = _compiled(source, target, "-l", "-q")
        module = reflect(code)
        blocks = dict(re.findall(r"^(\w+)(?:\[\d+\])?: offset -1, type ffffffff, size (\d+)", text, re.MULTILINE))
        sizes = {re.split(r"\W", b.name)[0]: b for b in module.entry_point().bindings}
        for block, variable in re.findall(r"(?:uniform|buffer) (\w+) \{.*\} (\w+)", source):
            binding = sizes.get(variable)
            # glslang pads a block at its end and mostly counts one element of a run-time sized array.
            if block in blocks and binding is not None and binding.members:
                sizes_allowed = [binding.fixed_size]
                if binding.members[-1].array_length == 0:
                    sizes_allowed.append(binding.fixed_size + (binding.members[-1].array_stride or 0))
                assert any(0 <= int(blocks[block]) - size < 16 for size in sizes_allowed), (block, sizes_allowed)
                compared += 1
        push = module.entry_point().push_constants
        if push is not None and "P" in blocks and "buffer_reference" not in source:
            assert 0 <= int(blocks["P"]) - push.size < 16
            compared += 1
    assert compared > 20


def test_element_dtypes() -> None:
    bindings = {b.name: b for b in _named("types").entry_point().bindings}
    names = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"]
    dtypes = [
        np.dtype(name.replace("i", "<i").replace("u", "<u").replace("f", "<f")[:2] + str(int(name[1:]) // 8))
        for name in names
    ]
    for name, dtype in zip(names, dtypes, strict=True):
        element = bindings[f"rw_{name}"].element
        assert element is not None
        assert element.dtype == dtype
        assert (element.array, element.stride, element.components, element.length) == (
            "runtime",
            dtype.itemsize,
            1,
            None,
        )
    h3, d, grid, one = (bindings[name].element for name in ("rw_h3", "rw_d", "rw_grid", "rw_one"))
    assert h3 is not None and d is not None and grid is not None and one is not None
    assert (h3.array, h3.length, h3.components, h3.dtype) == ("fixed", 6, 3, np.dtype(np.float16))
    assert (d.columns, d.components, d.dtype) == (3, 2, np.dtype(np.float64))
    assert (grid.stride, grid.inner_shape) == (np.zeros((3, 5), np.float32).nbytes, (3, 5))
    assert (one.array, one.components, one.stride) == ("none", 2, 8)


def test_struct_elements() -> None:
    element = _named("nested_std430").entry_point().bindings[0].element
    assert element is not None
    assert [member.name for member in element.struct] == ["a", "inner", "q", "tail"]
    assert element.dtype is None
    assert (element.array, element.length) == ("fixed", 3)
    assert json.loads(json.dumps(element.to_json()))["struct"][1]["members"][0]["name"] == "p"


def test_specialization_constants() -> None:
    module = _named("spec_constants")
    by_name = {constant.name: constant for constant in module.specialization_constants if constant.name}
    source = SHADERS["spec_constants"][1]
    compared = 0
    for number, kind, name, literal in re.findall(r"constant_id = (\d+)\) const (\w+) (\w+) = ([^;]+);", source):
        constant = by_name[name]
        assert constant.constant_id == int(number)
        digits = re.search(r"(?<![a-z0-9])-?\d+\.?\d*", literal)
        value = literal == "true" if digits is None else float(digits[0]) if "." in digits[0] else int(digits[0])
        if kind == "bool":
            assert constant.default is value
        else:
            dtype = constant.scalar.dtype
            assert dtype is not None
            assert constant.default == dtype.type(value).item()
            assert type(constant.default) is (float if constant.scalar.kind == "float" else int)
            glsl = kind.removesuffix("_t")
            assert dtype.name == {"int": "int32", "uint": "uint32", "float": "float32", "double": "float64"}.get(
                glsl, glsl
            )
        compared += 1
    assert compared == 14
    assert {c.constant_id for c in module.specialization_constants} == {*range(13), 20, 30, 31}
    entry = module.entry_point()
    assert entry.local_size == (1, 2, 1)
    assert entry.local_size_spec_ids == (30, None, 31)


def test_specialization_expressions_fold() -> None:
    """Array lengths by expressions of every foldable operation, against NumPy's 32-bit integers."""
    n, u = np.int32(-7), np.uint32(13)
    expressions: dict[str, int | np.integer | np.ndarray] = {
        "n * n": n * n,
        "-n + 5": -n + np.int32(5),
        "20 / -n": 20 // 7,
        "n / -2": 3,
        "(n & 12) | 2": (n & 12) | 2,
        "n ^ -1": n ^ np.int32(-1),
        "~n": ~n,
        "1 << 4": 16,
        "(n >> 1) + 9": (n >> 1) + 9,
        "int(u >> 2u)": u >> np.uint32(2),
        "int(u % 5u)": u % np.uint32(5),
        "int(u / 5u)": u // np.uint32(5),
        "n < 0 ? 3 : 8": np.where(n < 0, 3, 8),
        "u <= 12u ? 3 : 8": np.where(u <= 12, 3, 8),
        "n == -7 && u != 12u ? 6 : 7": 6,
        "!(n > 2) ? 6 : 7": 6,
        "int(u) - 10": int(u) - 10,
        "n + int(gl_WorkGroupSize.y)": 1,
    }
    blocks = "\n".join(
        f"layout(set=0, binding={i}) buffer B{i} {{ float v[{expression}]; }} b{i};"
        for i, expression in enumerate(expressions)
    )
    uses = " ".join(f"b{i}.v[0] = 1.0;" for i in range(len(expressions)))
    source = f"""
    layout(local_size_x = 1, local_size_y_id = 9) in; layout(local_size_y = 8) in;
    layout(constant_id = 0) const int n = -7; layout(constant_id = 1) const uint u = 13;
    {blocks}
    void main() {{ {uses} }}"""
    bindings = reflect(_glsl(source, "vulkan1.1")).entry_point().bindings
    assert len(bindings) == len(expressions)
    for binding, (expression, value) in zip(bindings, expressions.items(), strict=True):
        assert binding.element is not None
        assert binding.element.length == int(value), expression


def test_workgroup_memory() -> None:
    entry = _named("spec_constants").entry_point()
    scratch, vectors, flag = 4 * (4 * 2 + 1), 2 * 16, 4
    assert entry.workgroup_memory_bytes is not None
    parts = scratch + vectors + flag
    assert parts <= entry.workgroup_memory_bytes < parts + 16
    assert _named("saxpy").entry_point().workgroup_memory_bytes == 0


def test_image_descriptor_types() -> None:
    bindings = _named("images").entry_point().bindings
    assert {b.name.split("_", 1)[1]: (b.descriptor_type, b.count) for b in bindings} == {
        "read": (3, 1),
        "write": (3, 1),
        "both": (3, 1),
        "combined": (1, 1),
        "texture": (2, 1),
        "sampler": (0, 1),
        "texels": (5, 1),
        "array": (3, 5),
        "many": (1, 6),
    } | {"texels": (5, 1)}
    assert [b.descriptor_type for b in bindings if b.name == "r_texels"] == [4]


def test_image_types_of_one_binding() -> None:
    source = """
        #extension GL_EXT_nonuniform_qualifier : require
        #extension GL_EXT_samplerless_texture_functions : require
        layout(local_size_x = 1) in;
        layout(set = 1, binding = 2) uniform texture2D flat_textures[];
        layout(set = 1, binding = 2) uniform texture3D volumes[];
        layout(set = 1, binding = 2) uniform utexture2D numbers[];
        layout(set = 0, binding = 0) buffer Out { vec4 v[]; };
        layout(set = 0, binding = 1) uniform sampler s;
        void main() {
          uint i = gl_GlobalInvocationID.x;
          v[i] = textureLod(sampler2D(flat_textures[i], s), vec2(0), 0.0)
            + textureLod(sampler3D(volumes[i], s), vec3(0), 0.0) + texelFetch(numbers[i], ivec2(0), 0);
        }"""
    binding = reflect(_glsl(source, "vulkan1.2")).entry_point().bindings[-1]
    images = [binding.image, *binding.image_aliases]
    assert (binding.count, binding.descriptor_type_name) == (0, "sampled_image")
    assert {(image.dim, image.sampled.kind) for image in images if image} == {
        ("2d", "float"),
        ("3d", "float"),
        ("2d", "uint"),
    }
    assert len(images) == 3


def test_optimized_module_reflects_alike(shader: bytes) -> None:
    if shutil.which("spirv-opt") is None:
        pytest.skip("needs spirv-opt (package spirv-tools)")
    optimized = reflect(_run("spirv-opt", "-O", "-o", "-", "-", data=shader)).entry_point()
    plain = reflect(shader).entry_point()
    assert optimized.push_constants == plain.push_constants
    assert optimized.local_size == plain.local_size
    by_key = {(b.set, b.binding): b for b in plain.bindings}
    for binding in optimized.bindings:
        assert binding.members == by_key[binding.set, binding.binding].members


HEAD = """
OpCapability Shader
OpCapability VariablePointers
OpExtension "SPV_KHR_variable_pointers"
OpMemoryModel Logical GLSL450
{entries}
OpName %a "a"
OpName %b "b"
OpName %c "c"
OpDecorate %a DescriptorSet 0
OpDecorate %a Binding 0
OpDecorate %b DescriptorSet 0
OpDecorate %b Binding {b_binding}
OpDecorate %c DescriptorSet 0
OpDecorate %c Binding 2
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %arr ArrayStride 4
OpDecorate %ptr ArrayStride 4
{decorations}
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%float = OpTypeFloat 32
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%zero = OpConstant %int 0
%one = OpConstant %uint 1
%f = OpConstant %float 1
%t = OpConstantTrue %bool
%arr = OpTypeRuntimeArray %float
%block = OpTypeStruct %arr
%pblock = OpTypePointer StorageBuffer %block
%ptr = OpTypePointer StorageBuffer %float
%slot = OpTypePointer Function %ptr
%a = OpVariable %pblock StorageBuffer
%b = OpVariable %pblock StorageBuffer
%c = OpVariable %pblock StorageBuffer
%take = OpTypeFunction %void %ptr
%give = OpTypeFunction %ptr %pblock
"""
MAIN = 'OpEntryPoint GLCompute %main "main"\nOpExecutionMode %main LocalSize 1 1 1'


def _hand(body: str, entries: str = MAIN, b_binding: int = 1, decorations: str = "") -> ShaderModuleReflection:
    code = assemble(HEAD.format(entries=entries, b_binding=b_binding, decorations=decorations) + body, "spv1.3")
    if shutil.which("spirv-val"):
        _run("spirv-val", "--target-env", "vulkan1.1", "-", data=code)
    return reflect(code)


def _access(module: ShaderModuleReflection, name: str | None = None) -> dict[str, str]:
    return {b.name: "r" * b.readable + "w" * b.writable or "-" for b in module.entry_point(name).bindings}


def _main(body: str, name: str = "main") -> str:
    return f"%{name} = OpFunction %void None %fn\n%{name}_l = OpLabel\n{body}\nOpReturn\nOpFunctionEnd\n"


def test_pointers_passed_to_functions() -> None:
    module = _hand(
        """
        %w = OpFunction %void None %take
        %wp = OpFunctionParameter %ptr
        %wl = OpLabel
        OpStore %wp %f
        OpReturn
        OpFunctionEnd
        %outer = OpFunction %void None %take
        %op = OpFunctionParameter %ptr
        %ol = OpLabel
        %oc = OpCopyObject %ptr %op
        %ox = OpFunctionCall %void %w %oc
        OpReturn
        OpFunctionEnd
        %g = OpFunction %ptr None %give
        %gp = OpFunctionParameter %pblock
        %gl = OpLabel
        %gc = OpAccessChain %ptr %gp %zero %one
        OpReturnValue %gc
        OpFunctionEnd
        """
        + _main(
            """
            %ac = OpAccessChain %ptr %a %zero %one
            %x = OpFunctionCall %void %outer %ac
            %r = OpFunctionCall %ptr %g %b
            %l = OpLoad %float %r
            """
        )
    )
    assert _access(module) == {"a": "w", "b": "r"}


def test_selected_and_merged_pointers() -> None:
    module = _hand(
        _main(
            """
            %ac = OpAccessChain %ptr %a %zero %one
            %bc = OpInBoundsAccessChain %ptr %b %zero %one
            %cc = OpAccessChain %ptr %c %zero %one
            %s = OpSelect %ptr %t %ac %bc
            %pp = OpPtrAccessChain %ptr %s %one
            OpSelectionMerge %end None
            OpBranchConditional %t %then %end
            %then = OpLabel
            OpBranch %end
            %end = OpLabel
            %phi = OpPhi %ptr %cc %main_l %pp %then
            OpStore %phi %f
            %old = OpLoad %float %cc
            """
        )
    )
    assert _access(module) == {"a": "w", "b": "w", "c": "rw"}


def test_copy_memory_array_length_and_escape() -> None:
    module = _hand(
        _main(
            """
            %var = OpVariable %slot Function
            %ac = OpAccessChain %ptr %a %zero %one
            %bc = OpAccessChain %ptr %b %zero %one
            OpCopyMemory %ac %bc
            %n = OpArrayLength %uint %a 0
            %cc = OpAccessChain %ptr %c %zero %one
            OpStore %var %cc
            """
        )
    )
    assert _access(module) == {"a": "w", "b": "r", "c": "rw"}


def test_variable_decorations_limit_access() -> None:
    body = _main("%cc = OpAccessChain %ptr %c %zero %one\n%var = OpCopyObject %ptr %cc\n%l = OpLoad %float %var")
    assert _access(_hand(body, decorations="OpDecorate %c NonWritable")) == {"c": "r"}
    assert _access(_hand(body, decorations="OpDecorate %c NonReadable")) == {"c": "-"}


def test_decoration_groups() -> None:
    module = _hand(
        _main("%cc = OpAccessChain %ptr %c %zero %one\n%l = OpLoad %float %cc\nOpStore %cc %l"),
        decorations="OpDecorate %group NonWritable\n%group = OpDecorationGroup\nOpGroupDecorate %group %c %b",
    )
    assert _access(module) == {"c": "r"}


def test_aliased_bindings_become_one() -> None:
    module = _hand(
        _main(
            """
            %ac = OpAccessChain %ptr %a %zero %one
            %bc = OpAccessChain %ptr %b %zero %one
            %l = OpLoad %float %ac
            OpStore %bc %l
            """
        ),
        b_binding=0,
    )
    (binding,) = module.entry_point().bindings
    assert (binding.binding, binding.readable, binding.writable) == (0, True, True)
    assert binding.element is not None


def test_each_entry_point_has_its_own_bindings() -> None:
    module = _hand(
        """
        %w = OpFunction %void None %fn
        %wl = OpLabel
        %wc = OpAccessChain %ptr %c %zero %one
        OpStore %wc %f
        OpReturn
        OpFunctionEnd
        """
        + _main("%ac = OpAccessChain %ptr %a %zero %one\nOpStore %ac %f\n%x = OpFunctionCall %void %w", "first")
        + _main(
            "%bc = OpAccessChain %ptr %b %zero %one\n%l = OpLoad %float %bc\n%y = OpFunctionCall %void %w", "second"
        ),
        entries="""OpEntryPoint GLCompute %first "first"
        OpEntryPoint GLCompute %second "second"
        OpExecutionMode %first LocalSize 4 1 1
        OpExecutionMode %second LocalSize 2 3 5""",
    )
    assert _access(module, "first") == {"a": "w", "c": "w"}
    assert _access(module, "second") == {"b": "r", "c": "w"}
    assert module.entry_point("second").local_size == (2, 3, 5)
    with pytest.raises(InvalidArgumentError, match="'first', 'second'"):
        module.entry_point(None)
    with pytest.raises(NotFoundError, match=r"no entry point 'third'.*'first' \(GLCompute\)"):
        module.entry_point("third")


def test_local_size_id() -> None:
    code = assemble(
        """
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main"
        OpExecutionModeId %main LocalSizeId %x %y %z
        OpDecorate %x SpecId 4
        %void = OpTypeVoid
        %uint = OpTypeInt 32 0
        %x = OpSpecConstant %uint 16
        %y = OpConstant %uint 4
        %z = OpSpecConstantOp %uint IAdd %y %x
        %fn = OpTypeFunction %void
        %main = OpFunction %void None %fn
        %l = OpLabel
        OpReturn
        OpFunctionEnd""",
        "spv1.6",
    )
    entry = reflect(code).entry_point()
    assert entry.local_size == (16, 4, 20)
    assert entry.local_size_spec_ids == (4, None, None)
    assert (entry.bindings, entry.push_constants) == ((), None)


def test_no_compute_entry_point() -> None:
    code = assemble("OpCapability Shader\nOpCapability Linkage\nOpMemoryModel Logical GLSL450", "spv1.3")
    with pytest.raises(NotFoundError, match="it has: none"):
        reflect(code).entry_point()


def test_json_holds_everything(shader: bytes) -> None:
    module = reflect(shader)
    data = json.loads(json.dumps(module.to_json(), allow_nan=False))
    assert data["version"] == list(module.version)
    assert [b["name"] for b in data["entry_points"][0]["bindings"]] == [b.name for b in module.entry_points[0].bindings]
    assert data["entry_points"] == json.loads(json.dumps([entry.to_json() for entry in module.entry_points]))


def test_buffer_kinds_accepted() -> None:
    target, source = SHADERS["saxpy"]
    code = _glsl(source, target)
    expected = reflect(code)
    assert reflect(bytearray(code)) == expected
    assert reflect(memoryview(code)) == expected
    assert reflect(memoryview(bytes(4) + code)[4:]) == expected
    with pytest.raises(InvalidArgumentError, match="binary mode"):
        reflect("text")  # type: ignore[arg-type]


# Damaged and hostile modules, written word by word.


def _word_module(*instructions: tuple[int, ...], bound: int = 1000, version: int = 0x10300) -> bytes:
    words = [0x07230203, version, 0, bound, 0]
    for opcode, *operands in instructions:
        words += [(len(operands) + 1) << 16 | opcode, *operands]
    return struct.pack(f"<{len(words)}I", *words)


MEMORY_MODEL = (14, 0, 1)


def test_header_errors() -> None:
    good = _word_module(MEMORY_MODEL)
    assert reflect(good).entry_points == ()
    swapped = struct.pack(f">{len(good) // 4}I", *struct.unpack(f"<{len(good) // 4}I", good))
    with pytest.raises(InvalidArgumentError, match=r"big-endian.*swap"):
        reflect(swapped)
    for damaged, message in (
        (b"", "multiple of 4"),
        (good[:16], "at least 20"),
        (good[:-1], "multiple of 4"),
        (b"\0" + good[1:], "magic number"),
        (_word_module(MEMORY_MODEL, bound=0), "bound"),
        (_word_module(MEMORY_MODEL, bound=0xFFFFFFFF), "bound"),
        (_word_module(MEMORY_MODEL, version=0x10301), "reserved"),
        (good[:20], "no OpMemoryModel"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            reflect(damaged)
    for version in (0x10700, 0x20000):
        with pytest.raises(IncompatibleError, match=r"1\.0 to 1\.6"):
            reflect(_word_module(MEMORY_MODEL, version=version))


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        ([(21, 1, 32, 0), (21, 1, 32, 0)], "defined twice"),
        ([(21, 1000, 32, 0)], "outside the header's bound"),
        ([(21, 0, 32, 0)], "outside the header's bound"),
        ([(21, 1, 33, 0)], "33 bits"),
        ([(30, 1, 1)], "no type is defined"),
        ([(30, 1, 2), (30, 2, 1)], "no type is defined"),
        ([(39, 1, 5349), (30, 1, 1)], "announced as a pointer type but is another"),
        ([(39, 1, 5349), (30, 2, 1)], "never defined"),
        ([(21, 1, 32)], "OpTypeInt .* has 3 words, expected at least 4"),
        ([(21, 1, 32, 0), (43, 1, 2, 0), (28, 3, 1, 2)], "length 0"),
        ([(21, 1, 32, 0), (28, 3, 1, 2)], "not an integer constant"),
        ([(21, 1, 64, 0), (43, 1, 2, 0)], "2 literal words"),
        ([(21, 1, 32, 0), (41, 1, 2)], "not of a boolean type"),
        ([(10, 0x41414141)], "not terminated"),
        ([(10, 0x000000FF)], "not UTF-8"),
        ([(15, 5, 1, 0)], "no function is defined"),
        ([(54, 1, 2, 0, 3)], "ends within a function"),
        ([(54, 1, 2, 0, 3), (54, 1, 4, 0, 3)], "within another function"),
        ([(21, 1, 32, 0), (59, 1, 2, 0)], "no pointer to its storage class"),
        ([(15, 5, 2, 0), (19, 1), (33, 3, 1), (54, 1, 2, 0, 3), (57, 1, 4, 9), (56,)], "no function"),
        ([(15, 5, 2, 0), (19, 1), (33, 3, 1), (54, 1, 2, 0, 3), (62, 5), (56,)], "expected at least"),
        ([(15, 5, 2, 0), (19, 1), (33, 3, 1), (54, 1, 2, 0, 3), (56,)], "workgroup size"),
    ],
)
def test_damaged_instructions(instructions: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        reflect(_word_module(MEMORY_MODEL, *instructions))


def test_word_counts() -> None:
    good = _word_module(MEMORY_MODEL)
    with pytest.raises(InvalidArgumentError, match="word count of 0"):
        reflect(good + bytes(4))
    with pytest.raises(InvalidArgumentError, match="truncated or damaged"):
        reflect(good + struct.pack("<I", 9 << 16 | 17))


SHELL = [(15, 5, 2, 0), (16, 2, 17, 1, 1, 1), (19, 1), (33, 3, 1)]


def _main_words(*body: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [(54, 1, 2, 0, 3), (248, 4), *body, (253,), (56,)]


def _block_variable(struct_id: int) -> list[tuple[int, ...]]:
    """A push constant variable 900 of a structure, and a function that uses it."""
    return [(32, 901, 9, struct_id), (59, 901, 900, 9), *_main_words((68, 5, 6, 900, 0))]


def _bounded(code: bytes) -> PumiceError | None:
    start = time.monotonic()
    error: PumiceError | None = None
    try:
        json.dumps(reflect(code).to_json())
    except PumiceError as caught:
        error = caught
    assert time.monotonic() - start < 20
    return error


def test_recursive_calls_end() -> None:
    module = reflect(_word_module(MEMORY_MODEL, *SHELL, *_main_words((57, 1, 9, 2))))
    assert module.entry_point().bindings == ()


@pytest.mark.slow
def test_deeply_nested_arrays() -> None:
    depth = 100_000
    base = [(22, 10, 32), (21, 11, 32, 0), (43, 11, 12, 0xFFFFFFFF)]
    arrays = [(28, 1001 + i, 1000 + i if i else 10, 12) for i in range(depth)]
    last = 1000 + depth
    tail = [(72, last + 1, 0, 35, 0), (30, last + 1, last), *_block_variable(last + 1)]
    code = _word_module(MEMORY_MODEL, *SHELL, *base, *arrays, *tail, bound=200_000)
    assert isinstance(_bounded(code), UnimplementedError)
    workgroup = [(32, 901, 4, last), (59, 901, 900, 4), *_main_words((62, 900, 5))]
    code = _word_module(MEMORY_MODEL, *SHELL, *base, *arrays, *workgroup, bound=200_000)
    assert reflect(code).entry_point().workgroup_memory_bytes is None


@pytest.mark.parametrize(("depth", "width"), [(30, 2), (20_000, 1), (3, 60)])
def test_nested_structures(depth: int, width: int) -> None:
    structs: list[tuple[int, ...]] = [(22, 10, 32)]
    for i in range(depth):
        inner = 1000 + i if i else 10
        structs += [(72, 1001 + i, member, 35, 4 * member) for member in range(width)]
        structs.append((30, 1001 + i, *[inner] * width))
    code = _word_module(MEMORY_MODEL, *SHELL, *structs, *_block_variable(1000 + depth), bound=100_000)
    assert isinstance(_bounded(code), UnimplementedError)


@pytest.mark.slow
def test_many_entry_points_on_much_code() -> None:
    calls = [(57, 1, 10_000 + i, 5) for i in range(20_000)]
    entries: list[tuple[int, ...]] = [(15, 5, 100 + i, 0) for i in range(2_000)]
    entries += [(16, 100 + i, 17, 1, 1, 1) for i in range(2_000)]
    functions = [
        word
        for i in range(2_000)
        for word in ((54, 1, 100 + i, 0, 3), (248, 40_000 + i), (57, 1, 50_000 + i, 5), (253,), (56,))
    ]
    shared = [(54, 1, 5, 0, 3), (248, 6), *[(57, 1, result, 7) for _, _, result, _ in calls], (253,), (56,)]
    leaf = [(54, 1, 7, 0, 3), (248, 8), (253,), (56,)]
    code = _word_module(MEMORY_MODEL, *entries, (19, 1), (33, 3, 1), *functions, *shared, *leaf, bound=100_000)
    assert isinstance(_bounded(code), ResourceExhaustedError)


def _settings(examples: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks)


def _survives(code: bytes) -> bool:
    try:
        module = reflect(code)
    except PumiceError:
        return False
    json.dumps(module.to_json(), allow_nan=False)
    return True


@_settings(300)
@given(st.binary(max_size=400))
def test_random_bytes(data: bytes) -> None:
    assert not _survives(data) or data[:4] == struct.pack("<I", 0x07230203)
    _survives(_word_module(MEMORY_MODEL) + data[: len(data) // 4 * 4])


_OPCODES = [5, 6, 10, 11, 14, 15, 16, *range(19, 35), 39, 41, 42, 43, 44, 46, 48, 49, 50, 51, 52, 54, 55, 56, 57, 59]
_OPCODES += [60, 61, 62, 63, 65, 71, 72, 74, 75, 86, 99, 169, 230, 245, 254, 331, 4418, 4425, 999]


@pytest.mark.slow
@_settings(400)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(_OPCODES),
            st.lists(st.sampled_from([*range(1, 12), 17, 24, 25, 32, 33, 34, 35, 38, 64, 0, 0xFFFFFFFF]), max_size=8),
        ),
        max_size=40,
    )
)
def test_random_instructions(instructions: list[tuple[int, list[int]]]) -> None:
    _survives(_word_module(MEMORY_MODEL, *((opcode, *operands) for opcode, operands in instructions)))


@pytest.mark.sample(6)
@_settings(60)
@given(data=st.data())
def test_bit_flips(shader: bytes, data: st.DataObject) -> None:
    damaged = bytearray(shader)
    for position in data.draw(st.lists(st.integers(0, len(damaged) * 8 - 1), min_size=1, max_size=4)):
        damaged[position // 8] ^= 1 << position % 8
    _survives(bytes(damaged))


@pytest.mark.sample(6)
@_settings(40)
@given(data=st.data())
def test_replaced_words(shader: bytes, data: st.DataObject) -> None:
    words = list(struct.unpack(f"<{len(shader) // 4}I", shader))
    for index in data.draw(st.lists(st.integers(5, len(words) - 1), min_size=1, max_size=6)):
        words[index] = data.draw(st.one_of(st.sampled_from(words), st.integers(0, 0xFFFFFFFF)))
    _survives(struct.pack(f"<{len(words)}I", *words))


@pytest.mark.sample(6)
def test_truncations(shader: bytes) -> None:
    outcomes = [_survives(shader[:length]) for length in range(0, len(shader), 4)]
    assert not any(_survives(shader[:length]) for length in range(1, len(shader), 97) if length % 4)
    # A module cut anywhere before its last function ends is never taken for whole.
    assert not outcomes[-1]


@pytest.mark.peer
def test_iree_executables(tmp_path: Path) -> None:
    pytest.importorskip("iree.compiler", reason="needs the IREE wheels (the peer extra)")
    from iree.compiler import compile_str

    compile_str(
        """
        func.func @f(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %n: tensor<?xi32>)
            -> (tensor<64x64xf32>, tensor<?xi32>) {
          %zero = arith.constant 0.0 : f32
          %init = tensor.empty() : tensor<64x64xf32>
          %fill = linalg.fill ins(%zero: f32) outs(%init: tensor<64x64xf32>) -> tensor<64x64xf32>
          %r = linalg.matmul ins(%a, %b: tensor<64x64xf32>, tensor<64x64xf32>)
            outs(%fill: tensor<64x64xf32>) -> tensor<64x64xf32>
          %m = arith.muli %n, %n : tensor<?xi32>
          return %r, %m : tensor<64x64xf32>, tensor<?xi32>
        }""",
        extra_args=["--iree-hal-target-device=vulkan", f"--iree-hal-dump-executable-binaries-to={tmp_path}"],
    )
    binaries = sorted(tmp_path.glob("*.spv"))
    assert len(binaries) == 2
    accesses: set[tuple[bool, bool]] = set()
    for path in binaries:
        code = path.read_bytes()
        test_equals_disassembly(code)
        bindings: tuple[Binding, ...] = reflect(code).entry_point().bindings
        accesses.update((b.readable, b.writable) for b in bindings)
    assert accesses == {(True, False), (False, True)}
