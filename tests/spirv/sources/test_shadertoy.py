"""The GLSL of viewed shaders: what is added, and that lines stay those of the file."""

from __future__ import annotations

import pytest

from pumice.spirv.sources.compile import compile_source
from pumice.spirv.sources.language import Language
from pumice.spirv.sources.shadertoy import viewed_source
from pumice.status import InvalidArgumentError

IMAGE = "void mainImage(out vec4 color, in vec2 position) { color = vec4(position, iTime, 1.0); }\n"


def compiled(text: str, **options: bool) -> bytes:
    source = viewed_source(text, "a.frag", **options)
    return compile_source(source.text, Language.GLSL, parts=source.parts)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("text", "entry"),
    [
        (IMAGE, "mainImage"),
        ("vec4 mainCompute(ivec2 pixel) { return vec4(pixel, iFrame, 1); }", "mainCompute"),
        ("void mainCompute(ivec2 pixel) { imageStore(iPicture, pixel, vec4(iDate.x)); }", "mainCompute"),
        ("layout(local_size_x = 8) in;\nvoid main() {}\n// mainImage(", "main"),
        ("/* void main() */\n" + IMAGE, "mainImage"),
        ("\ufeff#version 460\r\n" + IMAGE, "mainImage"),
        (
            "#version 300 es\nprecision highp float;\nuniform vec3 iResolution;\nuniform highp float iTime;\n" + IMAGE,
            "mainImage",
        ),
        ("#extension GL_EXT_control_flow_attributes : require\nuniform sampler2D iChannel0;\n" + IMAGE, "mainImage"),
        (
            "uniform float iGlobalTime;\nvec4 f() { return texture2D(iChannel0, vec2(iGlobalTime)); }\n" + IMAGE,
            "mainImage",
        ),
        ("float f(float x) { return dFdx(x) + dFdyFine(x) + fwidth(vec3(x)).y; }\n" + IMAGE, "mainImage"),
    ],
)
def test_sources_compile_as_they_are(text: str, entry: str) -> None:
    assert viewed_source(text, "a.frag").entry == entry
    assert compiled(text)


@pytest.mark.slow
@pytest.mark.parametrize("on_cpu", [False, True])
def test_macros_of_a_source_change_it_alone(on_cpu: bool) -> None:
    names = ("at", "bytes", "color", "i", "inside", "pixel", "texel", "word")
    macros = "".join(f"#define {name} 1.0\n" for name in names)
    assert compiled(IMAGE + macros, on_cpu=on_cpu, upward=on_cpu)
    assert compiled(macros + "vec4 mainCompute(ivec2 p) { return vec4(color); }", on_cpu=on_cpu)
    assert compiled(macros + "void mainCompute(ivec2 p) { }", on_cpu=on_cpu)


@pytest.mark.slow
def test_the_picture_has_the_format_that_is_asked_for() -> None:
    assert "layout(rgba32f, set = 3" in viewed_source(IMAGE, "a", picture_format="rgba32f", formatless=False).text
    assert "layout(set = 3, binding = 1) writeonly" in viewed_source(IMAGE, "a").text
    assert compiled(IMAGE, formatless=False) and compiled(IMAGE, upward=True)
    reads = "void mainCompute(ivec2 p) { imageStore(iPicture, p, imageLoad(iPicture, p) + 0.1); }"
    assert compiled(reads)


@pytest.mark.slow
@pytest.mark.parametrize(
    "head", ["", "#version 450\n", "#version 450\n#extension GL_EXT_control_flow_attributes : enable\n"]
)
def test_errors_have_the_lines_of_the_file(head: str) -> None:
    text = head + "\nfloat f() {\n    return missing;\n}\n" + IMAGE
    with pytest.raises(InvalidArgumentError, match="missing") as caught:
        compiled(text)
    line = text[: text.index("return")].count("\n") + 1
    assert caught.value.location == f"a.frag:{line}"
    assert f"{line:6} |     return missing;" in caught.value.message


def test_an_open_bracket_is_missed_after_the_file() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        compiled(IMAGE + "void f() {\n")
    assert str(caught.value.location).startswith("after a.frag:3")


def test_a_source_without_an_entry_point_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="mainImage") as caught:
        viewed_source("// void main()\nfloat x;\n", "a.frag")
    assert caught.value.location == "a.frag"


@pytest.mark.slow
def test_derivatives_need_quads() -> None:
    text = "float f(float x) { return fwidth(x); }\n" + IMAGE
    with pytest.raises(InvalidArgumentError, match="without fwidth"):
        viewed_source(text, "a.frag", quads=False)
    assert compiled("// fwidth\n" + IMAGE, quads=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "tile", "is_packed"),
    [
        (IMAGE, (32, 8), True),
        ("vec4 mainCompute(ivec2 pixel) { return vec4(fwidth(float(pixel.x * pixel.y))); }", (32, 8), True),
        # What names the picture may write it.
        ("void mainCompute(ivec2 pixel) { imageStore(iPicture, pixel, vec4(1)); }", (32, 8), False),
        ("vec4 mainCompute(ivec2 pixel) { return vec4(pixel / imageSize(iPicture), 0, 1); }", (32, 8), False),
    ],
)
def test_on_a_cpu_texels_are_packed(text: str, tile: tuple[int, int], is_packed: bool) -> None:
    source = viewed_source(text, "a.frag", on_cpu=True)
    assert (source.tile, source.is_packed) == (tile, is_packed)
    assert compiled(text, on_cpu=True)
    assert not viewed_source(text, "a.frag").is_packed
    assert not viewed_source(text, "a.frag", on_cpu=True, picture_format="rgba32f").is_packed
