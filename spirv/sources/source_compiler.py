"""The interface of a source compiler: a program with its own command line and messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from ...base.lazy_dataclass import dataclass
from ..checks import tools as spirv_tools
from .diagnostics import Diagnostic
from .language import Language

#: The SPIR-V version of a Vulkan version.
_SPIRV_OF_VULKAN: Final = {"vulkan1.0": "1.0", "vulkan1.1": "1.3", "vulkan1.2": "1.5", "vulkan1.3": "1.6"}
_VULKAN_OF_SPIRV: Final = {"1.3": "vulkan1.1", "1.4": "vulkan1.1", "1.5": "vulkan1.2", "1.6": "vulkan1.3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The options of one compilation.

    Attributes:
        entry_point: ``None`` is all of them, where the compiler finds them by itself.
        macros: ``NAME=VALUE``.
        target_env: ``vulkan1.2`` or ``spirv1.5``.
        register_shifts: numbers added to those of HLSL's registers, by kind.
    """

    language: Language
    stage: str
    entry_point: str | None
    macros: Sequence[str]
    folders: Sequence[Path]
    target_env: str
    debug: bool
    register_shifts: Mapping[str, int] = field(default_factory=dict)

    @property
    def spirv_version(self) -> str:
        return _SPIRV_OF_VULKAN.get(self.target_env, self.target_env.removeprefix("spirv").replace("vulkan1.4", "1.6"))

    @property
    def vulkan_version(self) -> str:
        """The Vulkan version whose rules hold for the target."""
        known = self.target_env.startswith("vulkan")
        return self.target_env if known else _VULKAN_OF_SPIRV.get(self.spirv_version, "vulkan1.0")

    def preprocessor(self) -> list[str]:
        """``-D`` and ``-I``, which most compilers take in this form."""
        return [*(f"-D{macro}" for macro in self.macros), *(f"-I{folder}" for folder in self.folders)]


@dataclass(frozen=True, slots=True)
class Compiler(ABC):
    """An installed compiler.

    Attributes:
        path: the executable.
        version: name and version, the same on every machine that has this build of it.
    """

    path: Path
    version: str

    def prepared(self, text: bytes, name: Path | None) -> bytes:
        """Returns the text that is compiled for a source of a file, or of none, with the same line numbers."""
        del name
        return text

    @abstractmethod
    def command(self, job: Job, source: str, output: Path) -> list[str]:
        """Returns the arguments of the executable."""

    def advice(self, said: str) -> str:
        """Returns advice on an error without a location; ``""`` if there is none."""
        del said
        return ""

    @abstractmethod
    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        """Yields the errors in its messages, warnings left out."""


def version_of(path: Path, option: str = "--version") -> str:
    """Returns the version that an executable prints, or else its file's size and time."""
    said = " ".join(spirv_tools.executable_version(path, option).split())[:200]
    if said:
        return said
    stat = path.stat()
    return f"{path} of {stat.st_size} bytes, {stat.st_mtime_ns}"
