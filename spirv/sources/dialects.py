"""GLSL in the forms of other programs, as GLSL that compilers take for Vulkan: Godot's sections, OpenGL's versions, and
Shadertoy's functions.

Line numbers stay the same.
"""

from __future__ import annotations

import re
from typing import Final

from .includes import without_comments_in_place
from .shadertoy import is_shadertoy, shadertoy_kernel

_SECTION: Final = re.compile(rb"^[ \t]*#\[[ \t]*(\w+)[ \t]*\][^\n]*", re.MULTILINE)
# Godot writes the macros of a variant in its place.
_PLACEHOLDER: Final = re.compile(rb"^[ \t]*#(?:VERSION_DEFINES|GLOBALS|CODE)\b[^\n]*", re.MULTILINE)
_VERSION: Final = re.compile(rb"^([ \t]*#[ \t]*version[ \t]+)(\d{1,9})([ \t]+\w+)?", re.MULTILINE)
_LEAST: Final = 450
# Engines write such lines in front of shaders.
_HEAD: Final = b"#version 460\n#extension GL_EXT_samplerless_texture_functions : enable\n#line 1\n"


def as_vulkan_glsl(text: bytes) -> bytes:
    """Returns a compute shader as compilers for Vulkan take it.

    - Of a Godot file, the section ``#[compute]`` is left.
    - A version below 4.50, in which OpenGL's compilers take some of 4.50 too, becomes that; the compatibility profile,
      which compute shaders have no more of than the core profile, becomes the core profile.
    - A shader without a version, as engines complete them, gets 4.60.
    - One with Shadertoy's ``mainImage`` and without an entry point gets one.
    """
    bare = without_comments_in_place(text)
    sections = list(_SECTION.finditer(bare))
    if sections:
        index = next((i for i, section in enumerate(sections) if section[1] == b"compute"), None)
        if index is not None:
            start = sections[index].end()
            end = sections[index + 1].start() if index + 1 < len(sections) else len(text)
            text = _blank(text[:start]) + text[start:end]
            for placeholder in reversed(list(_PLACEHOLDER.finditer(text))):
                text = text[: placeholder.start()] + text[placeholder.end() :]
            bare = without_comments_in_place(text)
    if is_shadertoy(bare.decode("utf-8", "replace")):
        return shadertoy_kernel(text.decode("utf-8", "replace")).encode()
    version = _VERSION.search(bare)
    if version is None:
        return _HEAD + text
    profile = (version[3] or b"").strip()
    if profile == b"es":
        return text
    number = b"%d" % max(int(version[2]), _LEAST)
    kept = b"" if profile == b"compatibility" else version[3] or b""
    return text[: version.start()] + version[1] + number + kept + text[version.end() :]


def _blank(text: bytes) -> bytes:
    return b"\n" * text.count(b"\n")
