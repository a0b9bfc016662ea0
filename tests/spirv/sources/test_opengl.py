"""GLSL in the forms of OpenGL and Godot: versions and profiles, sections, bindings by kind, initial values."""

from __future__ import annotations

import pytest

from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks import tools as spirv_tools
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.sources.dialects import as_vulkan_glsl
from pumice.spirv.sources.glsl import compile_glsl
from pumice.spirv.sources.opengl import initial_values

SAMPLERLESS = "#extension GL_EXT_samplerless_texture_functions : enable"
MAIN = "layout(local_size_x = 1) in;\nvoid main() {}\n"


def bindings(text: str) -> dict[str, tuple[int, int]]:
    (entry,) = reflect(compile_glsl(text)).entry_points
    return {binding.name: (binding.set, binding.binding) for binding in entry.bindings}


class TestForms:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("#version 450\nx", "#version 450\nx"),
            ("#version 430 compatibility\nx", "#version 450\nx"),
            ("// a\n#version 330 core\nx", "// a\n#version 450 core\nx"),
            ("#version 310 es\nx", "#version 310 es\nx"),
            ("/* #version 450 */\nx", f"#version 460\n{SAMPLERLESS}\n#line 1\n/* #version 450 */\nx"),
            (
                "#[vertex]\n#version 450\nv\n#[compute]\n#version 450\n#VERSION_DEFINES\nx\n",
                "\n\n\n\n#version 450\n\nx\n",
            ),
            ("#[compute]\n#version 450\nx\n#[fragment]\ny", "\n#version 450\nx\n"),
            ("// #[compute]\n#version 450\nx", "// #[compute]\n#version 450\nx"),
        ],
    )
    def test_text(self, text: str, expected: str) -> None:
        assert as_vulkan_glsl(text.encode()).decode().split("\n") == expected.split("\n")

    @pytest.mark.parametrize(
        "head",
        [
            "#version 430 compatibility\n",
            "#version 330\n#extension GL_ARB_compute_shader : require\n",
            "#version 310 es\n",
            "",
            "#[compute]\n#version 450\n#VERSION_DEFINES\n",
            "#[vertex]\n#version 450\nvoid main() { none; }\n#[compute]\n#version 450\n",
        ],
    )
    def test_they_compile_and_errors_keep_their_lines(self, head: str) -> None:
        compile_glsl(head + MAIN)
        with pytest.raises(Exception, match="missing") as caught:
            compile_glsl(head + MAIN + "int y = missing;\n")
        assert caught.value.location == f"<source>:{head.count(chr(10)) + 3}"  # type: ignore[attr-defined]


class TestBindings:
    HEAD = "#version 430\nlayout(local_size_x = 1) in;\n"

    def test_kinds_that_share_numbers_are_moved_apart(self) -> None:
        text = (
            self.HEAD
            + """
layout(binding = 1) buffer Out { float o[]; };
layout(binding = 1, r32f) uniform image2D image;
layout(binding = 0) uniform sampler2D textured;
layout(binding = 1) uniform Sizes { float size; };
void main() { o[0] = size + imageLoad(image, ivec2(0)).x + texelFetch(textured, ivec2(0), 0).x; }
"""
        )
        assert bindings(text) == {"Out": (0, 1), "image": (0, 101), "textured": (0, 200), "Sizes": (0, 301)}

    def test_others_keep_their_numbers(self) -> None:
        text = (
            self.HEAD
            + """
layout(binding = 1) buffer Out { float o[]; };
layout(binding = 1, r32f) uniform image2D unused;
layout(binding = 2, r32f) uniform image2D image;
layout(set = 1, binding = 1, r32f) uniform image2D other;
void main() { o[0] = imageLoad(image, ivec2(0)).x + imageLoad(other, ivec2(0)).x; }
"""
        )
        assert bindings(text) == {"Out": (0, 1), "image": (0, 2), "other": (1, 1)}

    def test_what_has_no_binding_gets_a_free_one(self) -> None:
        text = (
            self.HEAD
            + """
uniform float scale;
uniform sampler2D textured;
buffer Out { float o[]; };
layout(binding = 0, r32f) uniform image2D image;
void main() { o[0] = scale * (imageLoad(image, ivec2(0)).x + texelFetch(textured, ivec2(0), 0).x); }
"""
        )
        placed = bindings(text)
        assert placed["image"] == (0, 0)
        assert len(set(placed.values())) == len(placed) == 4

    def test_locations_and_counters(self) -> None:
        code = compile_glsl(
            self.HEAD
            + """
layout(location = 3) uniform sampler2D textured;
layout(location = 4, r32f) uniform image2D image;
layout(binding = 2) uniform atomic_uint counter;
layout(binding = 0) buffer Out { float o[]; };
uint appended() { uint n = atomicCounterIncrement(counter); return n + atomicCounterDecrement(counter); }
void main() {
    o[appended()] = texelFetch(textured, ivec2(0), 0).x + imageLoad(image, ivec2(0)).x;
}
"""
        )
        spirv_tools.validate(code)
        # Newer validators refuse one that is there twice.
        binary = read_binary(code)
        decorations = [
            binary.words[start:end] for opcode, start, end in binary if opcode in (Op.Decorate, Op.MemberDecorate)
        ]
        assert len({tuple(words) for words in decorations}) == len(decorations)


class TestInitialValues:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [
            ("3", 3),
            ("-0.5f", -0.5),
            ("0x10u", 16),
            ("010", 8),
            ("1e-3", 1e-3),
            ("true", True),
            ("vec2(1, .5)", [1, 0.5]),
            ("ivec3(7)", [7, 7, 7]),
            ("float(2)", 2),
            ("float[3](1., 2., 3.)", [1, 2, 3]),
            ("vec2(1, 2, 3)", None),
            ("SCALE", None),
            ("2 * 3", None),
        ],
    )
    def test_literals(self, expression: str, value: object) -> None:
        values = initial_values(f"uniform highp float x = {expression};\n// uniform float y = 1;\n")
        assert values == ({} if value is None else {"x": value})

    def test_different_values_of_one_uniform(self) -> None:
        text = "uniform int x = 1;\n#else\nuniform int x = 2;\nuniform int y = 1;\nuniform int y = 1;\n"
        assert initial_values(text) == {"y": 1}
