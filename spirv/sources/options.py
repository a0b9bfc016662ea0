"""The options of compiling a shader's source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from .language import Language

TARGET_ENVIRONMENTS: Final = (
    *(f"vulkan1.{minor}" for minor in range(5)),
    *(f"spirv1.{minor}" for minor in range(7)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of compiling a shader's source; a SPIR-V module takes none of them.

    Attributes:
        language: ``None`` goes by the file's name; texts are GLSL.
        entry_point: of HLSL and Slang, the function; ``None`` takes all that are marked as entry points.
        defines: macros by name; an empty text defines a name without a value.
        include_dirs: folders for ``#include``, searched after the including file's own.
        debug: keep names of files and line numbers in the module.

    Raises:
        InvalidArgumentError: a value of another type.
    """

    language: Language | None = None
    entry_point: str | None = None
    defines: Mapping[str, str | int] = field(default_factory=dict)
    include_dirs: Sequence[str | Path] = ()
    debug: bool = False

    def __post_init__(self) -> None:
        defines, folders = self.defines, self.include_dirs
        if not isinstance(defines, Mapping) or not all(
            isinstance(name, str) and isinstance(value, (str, int)) for name, value in defines.items()
        ):
            raise InvalidArgumentError(f"defines is a mapping of macro names to text or ints, got {defines!r}")
        if isinstance(folders, (str, Path)) or not all(isinstance(folder, (str, Path)) for folder in folders):
            raise InvalidArgumentError(f"include_dirs is a list of folders, got {folders!r}")
