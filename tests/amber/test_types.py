"""Layouts of elements against those that a GLSL compiler gives the same types."""

from __future__ import annotations

import pytest
from support.devices.shader_tools import needs_compiler

from pumice.amber.types import Member, Number, Struct, format_of, layout_of, parse_format, parse_type
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources.glsl import compile_glsl

GLSL = {
    "int32": "int",
    "double": "double",
    "float16": "float16_t",
    "uint8": "uint8_t",
    "vec2<float>": "vec2",
    "vec3<float>": "vec3",
    "vec4<uint16>": "u16vec4",
    "vec3<int8>": "i8vec3",
    "vec3<double>": "dvec3",
    "mat2x2<float>": "mat2",
    "mat3x2<float>": "mat3x2",
    "mat2x3<float>": "mat2x3",
    "mat4x3<double>": "dmat4x3",
    "mat3x4<float>": "mat3x4",
}
EXTENSIONS = "".join(
    f"#extension GL_EXT_{name} : require\n"
    for name in ("shader_16bit_storage", "shader_8bit_storage", "shader_explicit_arithmetic_types")
)


@pytest.mark.sample(10)
@needs_compiler
@pytest.mark.parametrize("standard", ["STD140", "STD430"])
@pytest.mark.parametrize("name", GLSL)
def test_arrays(name: str, standard: str) -> None:
    text = f"#version 450\n{EXTENSIONS}layout({standard.lower()}, binding = 0) buffer B {{ {GLSL[name]} a[]; }}; "
    code = compile_glsl(text + "layout(binding = 1) buffer C { int c; }; void main() { c = a.length(); }")
    member = reflect(code).entry_points[0].bindings[0].members[0]
    number = parse_type(f"{name}[]", {})
    assert isinstance(number, Number)
    layout = layout_of(number, standard)  # type: ignore[arg-type]
    assert layout.size == member.array_stride
    if number.columns > 1:
        assert layout.segments[number.rows].offset == member.matrix_stride


@needs_compiler
@pytest.mark.parametrize("standard", ["STD140", "STD430"])
def test_structures(standard: str) -> None:
    inner = Struct("I", tuple(Member(n, Number(*t)) for n, t in (("a", ("int", 32)), ("b", ("float", 32, 3)))))
    types = {"w": "int32", "x": "vec3<float>", "y": "float", "m": "mat2x2<float>", "z": "float[3]", "d": "double"}
    members = [Member(name, parse_type(type, {})) for name, type in types.items()]  # type: ignore[arg-type]
    struct = Struct("S", (*members[:2], Member("i", inner), *members[2:]))
    glsl = "struct I { int a; vec3 b; }; struct S { int w; vec3 x; I i; float y; mat2 m; float z[3]; double d; };"
    text = f"#version 450\n{glsl} layout({standard.lower()}, binding = 0) buffer B {{ S s[]; }}; "
    code = compile_glsl(text + "layout(binding = 1) buffer C { int c; }; void main() { c = s.length(); }")
    block = reflect(code).entry_points[0].bindings[0].members[0]
    layout = layout_of(struct, standard)  # type: ignore[arg-type]
    assert layout.size == block.array_stride
    starts = {member.name: member.offset for member in block.members}
    first = [layout.segments[i].offset for i in (0, 1, 4, 8, 9, 13, 16)]
    assert first == [starts[name] for name in ("w", "x", "i", "y", "m", "z", "d")]


def test_given_offsets_and_strides() -> None:
    members = (
        Member("a", Number("float", 32), offset=8),
        Member("b", Number("float", 32, length=2), offset=16, array_stride=12),
        Member("c", Number("float", 32, 2, 2), offset=64, matrix_stride=32),
    )
    layout = layout_of(Struct("S", members, stride=256), "STD430")
    assert [s.offset for s in layout.segments] == [8, 16, 28, 64, 68, 96, 100]
    assert layout.size == 256


@pytest.mark.parametrize(
    ("name", "size", "channels"),
    [
        ("R8G8B8A8_UNORM", 4, "RGBA"),
        ("B8G8R8A8_SRGB", 4, "BGRA"),
        ("R16G16B16_SFLOAT", 6, "RGB"),
        ("R64_UINT", 8, "R"),
        ("A2B10G10R10_UNORM_PACK32", 4, "RGBA"),  # from the lowest bit
        ("R5G6B5_UNORM_PACK16", 2, "BGR"),
        ("B10G11R11_UFLOAT_PACK32", 4, "RGB"),
        ("D24_UNORM_S8_UINT", 4, "DS"),
        ("X8_D24_UNORM_PACK32", 4, "DX"),
        ("D32_SFLOAT", 4, "D"),
    ],
)
def test_formats(name: str, size: int, channels: str) -> None:
    found = parse_format(name)
    assert found is not None and str(found) == name
    assert layout_of(found, "STD430").size == size
    assert "".join(channel.upper() for channel, _ in found.texels.fields) == channels


@pytest.mark.parametrize(
    "name", ["R8G8B8A8", "R8_FLOAT", "R5G6B5_UNORM", "R8G8_UNORM_PACK32", "int", "vec3", "mat1x2<float>"]
)
def test_names_of_no_type(name: str) -> None:
    assert parse_type(name, {}) is None


def test_formats_of_data_types() -> None:
    assert format_of(Number("float", 32, 4)) == "R32G32B32A32_SFLOAT"
    assert format_of(Number("int", 8)) == "R8_SINT"
    assert format_of(Number("uint", 16, 2)) == "R16G16_UINT"
