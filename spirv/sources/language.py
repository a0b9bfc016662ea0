"""The languages of kernels, their file names, and the options of compiling a source."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path, PurePath
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shown
from .overrides import OverrideValue

TARGET_ENVIRONMENTS: Final = (
    *(f"vulkan1.{minor}" for minor in range(5)),
    *(f"spirv1.{minor}" for minor in range(7)),
)


class Language(enum.Enum):
    """A language that compiles to SPIR-V; the value is its name in options."""

    GLSL = "glsl"
    HLSL = "hlsl"
    SLANG = "slang"
    WGSL = "wgsl"
    ASSEMBLY = "spvasm"

    @property
    def title(self) -> str:
        """The name in messages."""
        return _TITLES[self]

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File name suffixes of this language."""
        return tuple(suffix for suffix, language in _BY_SUFFIX.items() if language is self)

    @property
    def has_preprocessor(self) -> bool:
        """Whether sources take macros and include files."""
        return self in (Language.GLSL, Language.HLSL, Language.SLANG)

    @property
    def compiles_entry_point(self) -> bool:
        """Whether the compiler can make any function the entry point."""
        return self in (Language.HLSL, Language.SLANG)


_TITLES: Final = {
    Language.GLSL: "GLSL",
    Language.HLSL: "HLSL",
    Language.SLANG: "Slang",
    Language.WGSL: "WGSL",
    Language.ASSEMBLY: "SPIR-V assembly",
}
_BY_SUFFIX: Final = {
    ".comp": Language.GLSL,
    ".glsl": Language.GLSL,
    ".hlsl": Language.HLSL,
    ".slang": Language.SLANG,
    ".wgsl": Language.WGSL,
    ".spvasm": Language.ASSEMBLY,
}
LANGUAGES: Final = tuple(language.value for language in Language)


def language_of(path: PurePath) -> Language | None:
    """Returns the language by a file name's suffix; ``None`` if unknown."""
    return _BY_SUFFIX.get(path.suffix.lower())


def parse_language(name: object) -> Language:
    """Returns the language of a name.

    Raises:
        InvalidArgumentError: there is no language of that name; the message lists those that exist.
    """
    try:
        return Language(name)
    except ValueError:
        raise InvalidArgumentError(f"expected a language of {', '.join(LANGUAGES)}; got {shown(str(name))}") from None


def described_languages() -> str:
    """Returns the languages with their files' endings, for messages."""
    return ", ".join(f"{language.title} ({', '.join(language.suffixes)})" for language in Language)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of compiling a shader's source; they do not apply to SPIR-V modules.

    Attributes:
        language: the language; ``None`` infers it from the file's name, and takes texts as GLSL.
        entry_point: the entry function of HLSL and Slang; ``None`` takes all functions marked as entry points.
        defines: the macros by name; an empty text defines a name without a value.
        include_dirs: the folders for ``#include``, searched after the including file's own.
        debug: whether to keep names of files and line numbers in the module.
        overrides: the values of WGSL's overrides, by name or id.

    Raises:
        InvalidArgumentError: a value has another type.
    """

    language: Language | None = None
    entry_point: str | None = None
    defines: Mapping[str, str | int] = field(default_factory=dict)
    include_dirs: Sequence[str | Path] = ()
    debug: bool = False
    overrides: Mapping[int | str, OverrideValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defines, folders = self.defines, self.include_dirs
        if not isinstance(defines, Mapping) or not all(
            isinstance(name, str) and isinstance(value, (str, int)) for name, value in defines.items()
        ):
            raise InvalidArgumentError(f"defines is a mapping of macro names to text or ints, got {defines!r}")
        if isinstance(folders, (str, Path)) or not all(isinstance(folder, (str, Path)) for folder in folders):
            raise InvalidArgumentError(f"include_dirs is a list of folders, got {folders!r}")
