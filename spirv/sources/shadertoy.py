"""The GLSL of Shadertoy's sources, and of those that the viewer shows: the names that they use before it, and a
``main`` after it if it has none.

A source has one of three entry points: ``void main()`` of a compute shader, Shadertoy's ``mainImage``, or
``mainCompute(ivec2 pixel)``. Lines in messages of the compiler are those of the file.

Everything that is added is in descriptor set 3, which leaves the sets 0 to 2 to the shader.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError

SET: Final = 3
UNIFORMS: Final = 0
PICTURE: Final = 1
CHANNELS: Final = (4, 5, 6, 7)

Entry = Literal["main", "mainImage", "mainCompute"]

_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ENTRIES: Final[tuple[tuple[Entry, re.Pattern[str]], ...]] = (
    ("main", re.compile(r"\bvoid\s+main\s*\(")),
    ("mainImage", re.compile(r"\bvoid\s+mainImage\s*\(")),
    ("mainCompute", re.compile(r"\b(?:void|vec4)\s+mainCompute\s*\(")),
)
_VERSION: Final = re.compile(r"^[ \t]*#[ \t]*version[ \t]+(\d+)([ \t]+es)?[^\n]*", re.MULTILINE)
_EXTENSION: Final = re.compile(r"^[ \t]*#[ \t]*extension\b[^\n]*", re.MULTILINE)
# Declarations of Shadertoy's uniforms: its site needs none, but sources for other tools have them.
_DECLARED: Final = re.compile(
    r"^[ \t]*(?:layout[ \t]*\([^)\n]*\)[ \t]*)?uniform[ \t]+(?:(?:low|medium|high)p[ \t]+)?\w+[ \t]+"
    r"i(?:Resolution|TimeDelta|GlobalTime|Time|FrameRate|Frame|SampleRate|Mouse|Date|ChannelTime|ChannelResolution|Channel[0-3])"
    r"[ \t]*(?:\[\w*\][ \t]*)?;",
    re.MULTILINE,
)
# Names that a block of the source's own has.
_OWN: Final = re.compile(r"\b(?:float|u?int|vec[234])[ \t]+(i[A-Z]\w*)[ \t]*[;\[]")
_DERIVATIVE: Final = re.compile(r"\b(?:dFd[xy]|fwidth)(?:Fine|Coarse)?\b")
_MIN_VERSION: Final = 450

_UNIFORMS: Final = f"""\
layout(std140, set = {SET}, binding = {UNIFORMS}) uniform Shadertoy {{
    vec3 iResolution; float iTime; vec4 iMouse; vec4 iDate;
    float iTimeDelta; float iFrameRate; float iSampleRate; int iFrame;
    float iChannelTime[4]; vec3 iChannelResolution[4];
}};
"""
# A compute shader has no implicit level of detail, and no bias of it (SPIR-V refuses that): the largest level stands
# for it. Then names of earlier times, which sources still have; in GLSL for Vulkan texture2D is a type.
_TEXTURES: Final = """\
vec4 _texture(sampler2D s, vec2 p) { return textureLod(s, p, 0.0); }
vec4 _texture(sampler2D s, vec2 p, float bias) { return textureLod(s, p, max(bias, 0.0)); }
#define texture _texture
#define texture2D _texture
#define texture2DLod textureLod
#define texture2DLodEXT textureLod
#define iGlobalTime iTime"""
# A compute shader has no discard; the invocation continues, and its colour is not used.
_DISCARD: Final = "bool _is_discarded = false;\n#define discard _is_discarded = true"
_DISCARDED: Final = re.compile(r"\bdiscard\b")
_NO_COLOR: Final = "    if (_is_discarded) _color = vec4(0, 0, 0, 1);\n"
# A compute shader has no derivatives, but the four invocations of a quad hold a square of 2 x 2 pixels. Functions of
# the built-in names are refused in any stage.
_DERIVATIVES: Final = "".join(
    f"""\
{kind} _difference({kind} v, {kind} other, uint bit) {{
    return (gl_SubgroupInvocationID & bit) == 0 ? other - v : v - other;
}}
{kind} _dFdx({kind} v) {{ return _difference(v, subgroupQuadSwapHorizontal(v), 1); }}
{kind} _dFdy({kind} v) {{ return _difference(v, subgroupQuadSwapVertical(v), 2); }}
{kind} _fwidth({kind} v) {{ return abs(_dFdx(v)) + abs(_dFdy(v)); }}
"""
    for kind in ("float", "vec2", "vec3", "vec4")
) + "\n".join(f"#define {name}{kind} _{name}" for name in ("dFdx", "dFdy", "fwidth") for kind in ("", "Fine", "Coarse"))
_FRAG_COORD: Final = re.compile(r"\bgl_FragCoord\b")
_PICTURE: Final = re.compile(r"\biPicture\b")
# Along a Z-shaped curve, so that each four invocations in a row are a square.
_CURVE: Final = """\
layout(local_size_x = 8, local_size_y = 8) in;
ivec2 _pixel() {
    uint i = gl_LocalInvocationIndex;
    return 8 * ivec2(gl_WorkGroupID.xy)
        + ivec2(i & 1 | i >> 1 & 2 | i >> 2 & 4, i >> 1 & 1 | i >> 2 & 2 | i >> 3 & 4);
}
"""
# On a CPU a workgroup costs more than a vector of invocations of a simple shader, and a vector writes a row best.
_ROWS: Final = """\
layout(local_size_x = 32, local_size_y = 8) in;
ivec2 _pixel() { return ivec2(gl_GlobalInvocationID.xy); }
"""
_ROWS_OF_QUADS: Final = """\
layout(local_size_x = 256) in;
ivec2 _pixel() {
    uint i = gl_LocalInvocationIndex;
    return ivec2(32, 8) * ivec2(gl_WorkGroupID.xy) + ivec2(i & 1 | i >> 1 & 30, i >> 1 & 1 | i >> 5 & 6);
}
"""
_CURVE_TILE: Final = (8, 8)
_ROWS_TILE: Final = (32, 8)
WIDEST_GROUP: Final = 256
"""Invocations of the largest workgroup."""
# The bytes of a texel of bgra8unorm; the sum's last bits are the rounded number. Drivers on a CPU store one invocation
# after the other, and LLVM moves what one instruction a vector would do into that loop, but never past a shuffle: this
# one leaves every word where it is.
_PACKED: Final = """\
uint _packed(vec4 color) {
    uvec4 bytes = floatBitsToUint(clamp(color, 0.0, 1.0) * 255.0 + 8388608.0) & 255;
    uint word = bytes.b | bytes.g << 8 | bytes.r << 16 | bytes.a << 24;
    return subgroupShuffle(word, gl_SubgroupInvocationID);
}
"""
# Outside, too: derivatives take all of a quad. The source may have macros by any name without an underscore.
_MAIN: Final = """\
void main() {
    ivec2 _at = _pixel();
    bool _inside = all(lessThan(_at, imageSize(iPicture)));
"""
# Shadertoy's alpha means nothing.
_IMAGE: Final = """\
    vec4 _color = vec4(0, 0, 0, 1);
    _FragCoord = vec4(vec2(_at) + 0.5, 0, 1);
    mainImage(_color, _FragCoord.xy);
    _color.a = 1;
"""
_UPSIDE_DOWN: Final = "    _at.y = imageSize(iPicture).y - 1 - _at.y;\n"
_COLOR: Final = "    vec4 _color = mainCompute(_at);\n"
_STORE: Final = "    if (_inside) imageStore(iPicture, _at, _color);\n}"
_STORE_PACKED: Final = (
    "    uvec4 _texel = uvec4(_packed(_color));\n    if (_inside) imageStore(iPicture, _at, _texel);\n}"
)
_CALL: Final = "    if (_inside) mainCompute(_at);\n}"


@dataclass(frozen=True, slots=True)
class ViewedSource:
    """A source that is ready to compile.

    Attributes:
        text: the GLSL source.
        entry: the entry point that the file has.
        tile: the pixels that a workgroup of the added ``main`` draws, across and down.
        is_packed: whether the source writes the words of bgra8unorm, into an image of r32uint.
        parts: the texts that ``text`` holds under names, for ``compile_source``.
    """

    text: str
    entry: Entry
    tile: tuple[int, int]
    is_packed: bool
    parts: dict[str, str]


def viewed_source(
    text: str,
    name: str,
    *,
    picture_format: str = "rgba8",
    formatless: bool = True,
    upward: bool = False,
    quads: bool = True,
    on_cpu: bool = False,
) -> ViewedSource:
    """Returns the source of a file.

    Args:
        text: the file's text.
        name: the file's name, for messages of the compiler.
        picture_format: the format of the picture that ``mainImage`` and ``mainCompute`` write, in GLSL.
        formatless: whether to leave it open where the source only writes the picture, which takes a feature of the
            device.
        upward: whether the first row of the picture that ``mainImage`` draws is the lowest one, else the highest.
        quads: whether the device has subgroup operations over quads, which derivatives take.
        on_cpu: whether the device is a CPU, with shuffles and workgroups of ``WIDEST_GROUP``.

    Raises:
        InvalidArgumentError: the shader has no entry point, or needs derivatives that the device lacks.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    bare = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    entry = next((entry for entry, pattern in _ENTRIES if pattern.search(bare)), None)
    if entry is None:
        raise InvalidArgumentError(
            "expected a shader with void main(), void mainImage(out vec4 color, in vec2 position), or "
            "vec4 mainCompute(ivec2 pixel); found none of them",
            location=name,
        )
    version = _VERSION.search(bare)
    number = int(version[1]) if version is not None and not version[2] else 0
    extensions = ["#extension GL_GOOGLE_cpp_style_line_directive : require", *_EXTENSION.findall(bare)]
    derivatives = entry != "main" and _DERIVATIVE.search(bare)
    if derivatives:
        if not quads:
            raise InvalidArgumentError(
                f"expected a shader without {derivatives[0]}: this device has no subgroup operations over quads in "
                "compute shaders, which take the place of derivatives",
                location=name,
            )
        extensions.append("#extension GL_KHR_shader_subgroup_quad : require")
    stores = entry == "mainCompute" and not re.search(r"\bvec4\s+mainCompute\b", bare)
    is_packed = on_cpu and picture_format == "rgba8" and entry != "main" and not _PICTURE.search(bare)
    if is_packed:
        extensions.append("#extension GL_KHR_shader_subgroup_shuffle : require")
    uniforms = _UNIFORMS
    if entry == "main":
        for own in set(_OWN.findall(bare)):
            uniforms = re.sub(rf"\b{own}\b", f"_{own}", uniforms)
    head = [f"#version {max(number, _MIN_VERSION)}", *extensions, uniforms]
    head += [f"layout(set = {SET}, binding = {at}) uniform sampler2D iChannel{i};" for i, at in enumerate(CHANNELS)]
    if is_packed:
        head.append(f"layout(r32ui, set = {SET}, binding = {PICTURE}) writeonly uniform uimage2D iPicture;")
    elif entry != "main":
        is_open = formatless and not stores
        declared, access = ("", "writeonly ") if is_open else (f"{picture_format}, ", "")
        head.append(f"layout({declared}set = {SET}, binding = {PICTURE}) {access}uniform image2D iPicture;")
    if entry != "main":
        head.append((_ROWS_OF_QUADS if derivatives else _ROWS) if on_cpu else _CURVE)
    if is_packed:
        head.append(_PACKED)
    if derivatives:
        head.append(_DERIVATIVES)
    body = text
    taken = [match.span() for pattern in (_VERSION, _EXTENSION, _DECLARED) for match in pattern.finditer(bare)]
    for start, end in sorted(taken, reverse=True):
        body = body[:start] + body[end:]
    if entry == "mainImage":
        head.append(_TEXTURES)
        body = _FRAG_COORD.sub("_FragCoord", body)  # a compute shader has none, and no macro may have its name
        head.append("vec4 _FragCoord;")
    discards = entry == "mainImage" and _DISCARDED.search(bare)
    if discards:
        head.append(_DISCARD)
    main = ""
    if entry != "main":
        main = _MAIN
        if stores:
            main += _CALL
        else:
            main += _COLOR if entry == "mainCompute" else _IMAGE if upward else _IMAGE + _UPSIDE_DOWN
            main += _NO_COLOR if discards else ""
            main += _STORE_PACKED if is_packed else _STORE
    quoted = re.sub(r'["\\\n]', "_", name)
    last = text.count("\n") + 1
    whole = "\n".join(head) + f'\n#line 1 "{quoted}"\n{body}\n#line {last} "after {quoted}"\n{main}\n'
    tile = _ROWS_TILE if on_cpu else _CURVE_TILE
    return ViewedSource(whole, entry, tile, is_packed, {quoted: text, f"after {quoted}": text})


# -- kernels -----------------------------------------------------------------------------------------

_INPUTS: Final = {
    "iResolution": "#define iResolution vec3(imageSize(iPicture), 1)",
    "iMouse": "uniform vec4 iMouse;",
    "iDate": "uniform vec4 iDate;",
    "iFrame": "uniform int iFrame;",
    "iChannelTime": "uniform float iChannelTime[4];",
    "iChannelResolution": "uniform vec3 iChannelResolution[4];",
    **{name: f"uniform float {name};" for name in ("iTime", "iTimeDelta", "iFrameRate", "iSampleRate")},
    **{name: f"uniform sampler2D {name};" for name in ("iChannel0", "iChannel1", "iChannel2", "iChannel3")},
}
_GRID: Final = """\
layout(local_size_x = 8, local_size_y = 8) in;
ivec2 _pixel() { return ivec2(gl_GlobalInvocationID.xy); }
"""


def is_shadertoy(bare: str) -> bool:
    """Whether a text without comments has ``mainImage``, and no entry point."""
    return next((entry for entry, pattern in _ENTRIES if pattern.search(bare)), None) == "mainImage"


def shadertoy_kernel(text: str) -> str:
    """Returns a source with ``mainImage`` as a compute shader that writes the image ``iPicture``.

    Inputs that the source uses are uniforms by their names; ``iResolution`` is the picture's. Rows count from below, as
    on Shadertoy: the first row of the image is the lowest one. Lines of the source keep their numbers.
    """
    bare = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    version = _VERSION.search(bare)
    derivatives = _DERIVATIVE.search(bare) is not None
    discards = _DISCARDED.search(bare) is not None
    number = int(version[1]) if version is not None and not version[2] else 0
    head = [f"#version {max(number, _MIN_VERSION)}", *_EXTENSION.findall(bare)]
    head += ["#extension GL_KHR_shader_subgroup_quad : require"] if derivatives else []
    head.append("layout(rgba32f) writeonly uniform image2D iPicture;")
    used = set(re.findall(r"\bi[A-Z]\w*", _DECLARED.sub("", bare)))
    used |= {"iTime"} if "iGlobalTime" in used else set()
    head += [declared for name, declared in _INPUTS.items() if name in used]
    head += [_CURVE, _DERIVATIVES] if derivatives else [_GRID]
    head += [_TEXTURES, "vec4 _FragCoord;", *([_DISCARD] if discards else [])]
    body = text
    taken = [match.span() for pattern in (_VERSION, _EXTENSION, _DECLARED) for match in pattern.finditer(bare)]
    for start, end in sorted(taken, reverse=True):
        body = body[:start] + body[end:]
    main = _MAIN + _IMAGE.replace("    _color.a = 1;\n", "") + (_NO_COLOR if discards else "") + _STORE
    return "\n".join(head) + "\n#line 1\n" + _FRAG_COORD.sub("_FragCoord", body) + "\n" + main + "\n"
