"""Pictures of compute shaders and compiled programs, live: in a window, in a notebook, or as files.

Windows need GLFW, files and text need Pillow: each is imported when it is used.

Read: movies, overlay, playback, uniforms, picture, program, reloading, renderer, canvas, offscreen, shader, window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .canvas import CanvasView
    from .offscreen import render
    from .picture import Picture, pixels_of
    from .program import ProgramPicture
    from .renderer import FrameTiming, Renderer
    from .shader import ShaderOptions, ShaderPicture
    from .uniforms import Uniforms
    from .window import Window

__all__ = [
    "CanvasView",
    "FrameTiming",
    "Picture",
    "ProgramPicture",
    "Renderer",
    "ShaderOptions",
    "ShaderPicture",
    "Uniforms",
    "Window",
    "pixels_of",
    "render",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".canvas": ("CanvasView",),
            ".offscreen": ("render",),
            ".picture": ("Picture", "pixels_of"),
            ".program": ("ProgramPicture",),
            ".renderer": ("FrameTiming", "Renderer"),
            ".shader": ("ShaderOptions", "ShaderPicture"),
            ".uniforms": ("Uniforms",),
            ".window": ("Window",),
        },
    )
