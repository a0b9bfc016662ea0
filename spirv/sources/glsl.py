"""GLSL to SPIR-V: `compile_source` for the language of pumice's own shaders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from . import find
from .compile import compile_source
from .language import Language
from .source_compiler import Compiler

_NO_DEFINES: Final[Mapping[str, str | int]] = MappingProxyType({})


def find_compiler() -> Compiler:
    """Returns the compiler that `compile_glsl` uses. Raises as `find.find_compiler`."""
    return find.find_compiler(Language.GLSL)


def compile_glsl(
    source: str | Path,
    *,
    stage: str = "comp",
    defines: Mapping[str, str | int] = _NO_DEFINES,
    include_dirs: Sequence[str | Path] = (),
    target_env: str = "vulkan1.2",
    optimize: bool = False,
    debug: bool = False,
) -> bytes:
    """Compiles GLSL to a SPIR-V module: arguments, result and errors are those of `compile_source`."""
    return compile_source(
        source,
        Language.GLSL,
        stage=stage,
        defines=defines,
        include_dirs=include_dirs,
        target_env=target_env,
        optimize=optimize,
        debug=debug,
    )
