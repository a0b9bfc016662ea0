"""Finds the compiler of a language.

The first installed compiler is used, in the order of `_KNOWN`, unless an environment variable names a compiler:
``PUMICE_GLSLC``, ``PUMICE_HLSLC``, ``PUMICE_SLANGC`` or ``PUMICE_WGSLC``, a path or a command's name. SPIR-V's
assembler is that of SPIRV-Tools.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from ...base.install_hints import Component, install_hint
from ...base.lazy_dataclass import dataclass
from ...status import UnavailableError, shown
from . import slang, wgsl
from .commands import dxc, find_assembler, glslang_or_glslc
from .language import Language
from .source_compiler import Compiler

_Opened = Callable[[Path], Compiler | str]


@dataclass(frozen=True, slots=True)
class _Known:
    """The compilers of a language, and the ways to find them.

    Attributes:
        commands: the compilers on PATH, in the order of preference.
        others: functions that find compilers which are not commands.
        component: the component to install.
        last: the commands to use if there is no other compiler.
    """

    variable: str
    commands: dict[str, _Opened]
    others: Sequence[Callable[[], Compiler | None]]
    component: Component
    last: dict[str, _Opened] = field(default_factory=dict)


_GLSLANG: Final[dict[str, _Opened]] = {"glslangValidator": glslang_or_glslc, "glslang": glslang_or_glslc}
_SLANG: Final[dict[str, _Opened]] = {"slangc": slang.from_executable}
_DXC: Final[dict[str, _Opened]] = {"dxc": dxc}
_WGSL: Final[dict[str, _Opened]] = {"naga": wgsl.from_executable, "tint": wgsl.from_executable}
_KNOWN: Final = {
    Language.GLSL: _Known("PUMICE_GLSLC", {**_GLSLANG, "glslc": glslang_or_glslc}, (), "glslang"),
    Language.HLSL: _Known("PUMICE_HLSLC", {**_DXC, **_SLANG}, (slang.from_wheel,), "hlsl", _GLSLANG),
    Language.SLANG: _Known("PUMICE_SLANGC", _SLANG, (slang.from_wheel,), "slang"),
    Language.WGSL: _Known("PUMICE_WGSLC", _WGSL, (wgsl.from_node,), "wgsl"),
}


def find_compiler(language: Language) -> Compiler:
    """Returns the compiler of a language.

    Raises:
        UnavailableError: no compiler is installed, or the variable names something else; the message says how to
            install one.
    """
    if language is Language.ASSEMBLY:
        return find_assembler()
    known = _KNOWN[language]
    override = os.environ.get(known.variable)
    if override:
        return _named(language, known, override)
    compiler = (
        _on_path(language, known, known.commands)
        or next(filter(None, (other() for other in known.others)), None)
        or _on_path(language, known, known.last)
    )
    if compiler is None:
        commands = ", ".join({**known.commands, **known.last})
        raise UnavailableError(f"no {language.title} compiler ({commands}) was found on PATH. {_hint(known)}")
    return compiler


def _on_path(language: Language, known: _Known, commands: Mapping[str, _Opened]) -> Compiler | None:
    for command, opened in commands.items():
        if executable := shutil.which(command):
            return _checked(language, known, Path(executable).absolute(), opened)
    return None


def _named(language: Language, known: _Known, override: str) -> Compiler:
    if language is Language.WGSL and Path(override).is_dir() and (package := wgsl.from_node(Path(override))):
        return package
    executable = shutil.which(override)
    if executable is None:
        raise UnavailableError(f"{known.variable} is {shown(override)}, which is not an executable. {_hint(known)}")
    path = Path(executable).absolute()
    every = {**known.commands, **known.last}
    opened = next((opened for command, opened in every.items() if path.stem.startswith(command)), None)
    return _checked(language, known, path, opened or next(reversed(every.values())))


def _checked(language: Language, known: _Known, path: Path, opened: _Opened) -> Compiler:
    compiler = opened(path)
    if isinstance(compiler, str):
        others = " nor ".join(("glslang", *(["glslc"] if language is Language.GLSL else ["dxc", "slangc"])))
        raise UnavailableError(f"{path} is neither {others}, its --version says {compiler}. {_hint(known)}")
    return compiler


def _hint(known: _Known) -> str:
    return f"{install_hint(known.component)} Or set {known.variable} to the path of a compiler."
