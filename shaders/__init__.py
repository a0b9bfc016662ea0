"""The kernels that come with pumice: GLSL sources with their SPIR-V built beside them.

A shader's name is its path in this folder without the suffix: ``mul``, ``builtin/fill_unaligned``,
``examples/saxpy``. The header of its ``.comp`` file describes what it computes, its bindings, push constants and
groups. The SPIR-V is of version 1.3 (Vulkan 1.1), which every device that pumice supports takes.

Loading a shader needs no compiler; ``python -m pumice.shaders.build`` rebuilds them.

Read: build.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from ..status import NotFoundError, shown

__all__ = ["names", "path", "source_path", "spirv"]

_FOLDER: Final = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """Returns the names of all shaders, sorted."""
    return tuple(sorted(p.relative_to(_FOLDER).with_suffix("").as_posix() for p in _FOLDER.rglob("*.comp")))


def source_path(name: str) -> Path:
    """Returns the GLSL source file of a shader.

    Raises:
        NotFoundError: no shader has this name; the message lists all names.
    """
    if name not in names():
        raise NotFoundError(f"there is no shader {shown(name)}; there are {', '.join(names())}")
    return _FOLDER / f"{name}.comp"


def path(name: str) -> Path:
    """Returns the built SPIR-V file of a shader; `spirv` reads it. Errors are those of `source_path`."""
    return source_path(name).with_suffix(".spv")


@cache
def spirv(name: str) -> bytes:
    """Returns the SPIR-V module of a shader, little-endian; its entry point is ``main``.

    Raises:
        NotFoundError: no shader has this name, or it was not built.
    """
    file = path(name)
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"the shader {name!r} has no SPIR-V file {file}; build it with python -m pumice.shaders.build"
        ) from None
