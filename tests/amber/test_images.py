"""Scripts with images, samplers and texel buffers, and comparisons of texels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.devices.shader_tools import needs_compiler

from pumice.amber import Outcome, ScriptReport, parse_text
from pumice.amber.running import Devices
from pumice.hal_vulkan.instance.driver import Driver

pytestmark = [pytest.mark.vulkan, needs_compiler]


@pytest.fixture
def devices(driver: Driver) -> Iterator[Devices]:
    with Devices(None) as devices:
        yield devices


def check(devices: Devices, text: str) -> ScriptReport:
    return devices.run(parse_text("#!amber\n" + text, "x.amber"))


def shader(declarations: str, body: str, name: str = "s") -> str:
    return f"SHADER compute {name} GLSL\n#version 450\n{declarations}\nvoid main() {{\n{body}\n}}\nEND\n"


STORED = shader(
    "layout(set = 0, binding = 0, rgba8) uniform image2D t;",
    "ivec2 p = ivec2(gl_GlobalInvocationID.xy); imageStore(t, p, imageLoad(t, p).gbra + vec4(0, 0, p.y / 4.0, 0));",
)
STORED_IMAGE = """IMAGE t FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 4 HEIGHT 2 DATA
  255 51 0 255  255 51 0 255  255 51 0 255  255 51 0 255
  255 51 0 255  255 51 0 255  255 51 0 255  255 51 0 255
END
PIPELINE compute p
  ATTACH s
  BIND BUFFER t AS storage_image DESCRIPTOR_SET 0 BINDING 0
END
RUN p 4 2 1
"""


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ("IDX 0 0 SIZE 4 1 EQ_RGBA 51 0 255 255", ""),
        ("IDX 0 0 SIZE 4 1 EQ_RGB 51 0 255", ""),
        ("IDX 0 0 SIZE 4 2 EQ_RGB 51 0 255", ""),  # the sum is clamped to one
        ("IDX 1 1 SIZE 2 1 EQ_RGBA 50 0 255 255", "2 of 2 texels differ; the first is (1, 1): got R 51, G 0"),
        ("IDX 1 1 SIZE 2 1 EQ_RGBA 50 0 255 255 TOLERANCE 0.01", ""),
        ("IDX 0 EQ 51 0 255 255 51", ""),
        ("IDX 0 EQ 51 0 254 255", "value 2: got 255, expected == 254"),
    ],
)
def test_storage_images(devices: Devices, expectation: str, message: str) -> None:
    report = check(devices, f"{STORED}{STORED_IMAGE}EXPECT t {expectation}\n")
    assert report.outcome is (Outcome.FAILED if message else Outcome.PASSED), report.format()
    assert not message or message in report.failures[0].message


def test_an_image_is_kept_between_pipelines_and_read_as_a_buffer(devices: Devices) -> None:
    summed = shader(
        "layout(set = 0, binding = 0, std430) buffer T { uint t[]; };\n"
        "layout(set = 0, binding = 1) buffer O { uint o[]; };",
        "o[gl_GlobalInvocationID.x] = t[gl_GlobalInvocationID.x]; t[gl_GlobalInvocationID.x] = 0xff0000ffu;",
        "sum",
    )
    report = check(
        devices,
        f"""{STORED}{summed}BUFFER o DATA_TYPE uint32 SIZE 8 FILL 0
{STORED_IMAGE}
PIPELINE compute q
  ATTACH sum
  BIND BUFFER t AS storage DESCRIPTOR_SET 0 BINDING 0
  BIND BUFFER o AS storage DESCRIPTOR_SET 0 BINDING 1
END
RUN q 8 1 1
EXPECT o IDX 0 EQ 0xffff0033
EXPECT t IDX 0 0 SIZE 4 2 EQ_RGBA 255 0 0 255
RUN p 4 2 1
EXPECT t IDX 0 0 SIZE 4 1 EQ_RGBA 0 0 255 255
""",
    )
    assert report.outcome is Outcome.PASSED and report.expectations == 3, report.format()


def test_samplers(devices: Devices) -> None:
    source = shader(
        "layout(set = 0, binding = 0) uniform sampler2D both[2];\n"
        "layout(set = 0, binding = 1) uniform texture2D t;\nlayout(set = 0, binding = 2) uniform sampler s;\n"
        "layout(set = 0, binding = 3) buffer O { vec4 o[]; };",
        "o[0] = textureLod(both[0], vec2(0.5), 0); o[1] = textureLod(both[1], vec2(0.5), 0);\n"
        "o[2] = textureLod(sampler2D(t, s), vec2(1.5, 0.25), 0);",
    )
    report = check(
        devices,
        source
        + """IMAGE a DATA_TYPE vec4<float> DIM_2D WIDTH 2 HEIGHT 2 DATA
  0 0 0 1  4 0 0 1
  0 8 0 1  4 8 0 1
END
IMAGE b DATA_TYPE vec4<float> DIM_2D WIDTH 1 HEIGHT 1 FILL 3
SAMPLER linear MAG_FILTER linear MIN_FILTER linear
SAMPLER border ADDRESS_MODE_U clamp_to_border ADDRESS_MODE_V clamp_to_border BORDER_COLOR float_opaque_white
BUFFER o DATA_TYPE vec4<float> SIZE 3 FILL 0
PIPELINE compute p
  ATTACH s
  BIND BUFFER_ARRAY a b AS combined_image_sampler SAMPLER linear DESCRIPTOR_SET 0 BINDING 0
  BIND BUFFER a AS sampled_image DESCRIPTOR_SET 0 BINDING 1
  BIND SAMPLER border DESCRIPTOR_SET 0 BINDING 2
  BIND BUFFER o AS storage DESCRIPTOR_SET 0 BINDING 3
END
RUN p 1 1 1
EXPECT o IDX 0 EQ 2 4 0 1  3 3 3 3  1 1 1 1
""",
    )
    assert report.outcome is Outcome.PASSED, report.format()


def test_texel_buffers_and_mip_levels(devices: Devices) -> None:
    source = shader(
        "layout(set = 0, binding = 0) uniform textureBuffer from;\n"
        "layout(set = 0, binding = 1, r32ui) uniform uimageBuffer to[2];\n"
        "layout(set = 0, binding = 2, r32f) uniform image2D level;\n"
        "layout(set = 0, binding = 3) uniform texture2D all;\n"
        "layout(set = 0, binding = 4) buffer O { int o[]; };",
        "int i = int(gl_GlobalInvocationID.x); uint n = uint(texelFetch(from, i).g * 255 + 0.5);\n"
        "if (i == 0) imageStore(to[0], i, uvec4(n)); else imageStore(to[1], i, uvec4(n));\n"
        "o[0] = imageSize(level).x; o[1] = textureSize(all, 0).x; o[2] = textureSize(all, 1).x;",
    ).replace("#version 450\n", "#version 450\n#extension GL_EXT_samplerless_texture_functions : require\n")
    report = check(
        devices,
        source
        + """BUFFER from DATA_TYPE R8G8_UNORM DATA 1 2 3 4 END
BUFFER first DATA_TYPE uint32 SIZE 2 FILL 9
BUFFER second DATA_TYPE R32_UINT SIZE 2 FILL 9
IMAGE i FORMAT R32_SFLOAT MIP_LEVELS 3 DIM_2D WIDTH 8 HEIGHT 8 FILL 1
BUFFER o DATA_TYPE int32 SIZE 3 FILL 0
PIPELINE compute p
  ATTACH s
  BIND BUFFER from AS uniform_texel_buffer DESCRIPTOR_SET 0 BINDING 0
  BIND BUFFER_ARRAY first second AS storage_texel_buffer DESCRIPTOR_SET 0 BINDING 1
  BIND BUFFER i AS storage_image DESCRIPTOR_SET 0 BINDING 2 BASE_MIP_LEVEL 2
  BIND BUFFER i AS sampled_image DESCRIPTOR_SET 0 BINDING 3 BASE_MIP_LEVEL 1
  BIND BUFFER o AS storage DESCRIPTOR_SET 0 BINDING 4
END
RUN p 2 1 1
EXPECT first IDX 0 EQ 2 9
EXPECT second IDX 0 EQ 9 4
EXPECT o IDX 0 EQ 2 4 2
""",
    )
    assert report.outcome is Outcome.PASSED, report.format()


@pytest.mark.parametrize(
    ("format", "texel", "color", "holds"),
    [
        ("B8G8R8A8_UNORM", "255 102 51 0", "51 102 255 0", True),
        ("R8G8B8A8_SNORM", "127 -127 0 127", "255 0 0 255", False),  # -1 is not 0
        ("R8_UNORM", "51", "51 0 0 255", True),  # only the channels that there are
        ("A8B8G8R8_SRGB_PACK32", "0x80ff00ff", "255 0 255 128", True),
        ("R5G6B5_UNORM_PACK16", "0xf81f", "255 0 255 255", True),
        ("B10G11R11_UFLOAT_PACK32", "0x780003c0", "255 0 255 255", True),
        ("R16G16_SFLOAT", "1 0.5", "255 127 0 0", True),  # within 0.002
        ("R16G16_SFLOAT", "1 0.5", "255 126 0 0", False),
        ("R16G16_SFLOAT", "1 0.4", "255 102 0 0", True),
        ("R8G8_UINT", "1 0", "255 0 0 0", True),
    ],
)
def test_texels_of_formats(devices: Devices, format: str, texel: str, color: str, holds: bool) -> None:
    report = check(
        devices, f"IMAGE t FORMAT {format} DIM_1D WIDTH 1 DATA {texel} END\nEXPECT t IDX 0 0 SIZE 1 1 EQ_RGBA {color}\n"
    )
    assert report.outcome is (Outcome.PASSED if holds else Outcome.FAILED), report.format()


def test_histograms(devices: Devices) -> None:
    text = """IMAGE a FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 2 HEIGHT 1 DATA  0 0 0 0  255 0 0 0 END
IMAGE b FORMAT R8G8B8A8_UNORM DIM_2D WIDTH 2 HEIGHT 1 DATA  0 0 0 0  245 0 0 0 END
EXPECT a EQ_HISTOGRAM_EMD_BUFFER b TOLERANCE {}
"""
    # Half of the texels are ten bins of 256 apart.
    assert check(devices, text.format(0.0196)).outcome is Outcome.PASSED
    report = check(devices, text.format(0.0195))
    assert "the distance of the histograms to b is 0.0195312, expected at most 0.0195" in report.failures[0].message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("AS storage_image", "AS sampled_image", "bound AS sampled_image, and the shader declares the"),
        ("FORMAT R8G8B8A8_UNORM", "FORMAT R8G8B8A8_UINT", "rgba8"),
        ("DIM_2D WIDTH 4 HEIGHT 2", "DIM_1D WIDTH 8", "2d"),
        ("FORMAT R8G8B8A8_UNORM DIM_2D", "FORMAT R8G8B8A8_UNORM SAMPLES 4 DIM_2D", "sample"),
    ],
)
def test_images_that_do_not_fit(devices: Devices, old: str, new: str, message: str) -> None:
    report = check(devices, f"{STORED}{STORED_IMAGE}".replace(old, new))
    assert report.outcome is Outcome.ERROR and message in report.reason, report.format()
