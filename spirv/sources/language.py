"""The languages that kernels are written in, and how a file tells its own."""

from __future__ import annotations

import enum
from pathlib import PurePath
from typing import Final

from ...status import InvalidArgumentError, shown


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
        """Whether any function can be made the entry point by the compiler."""
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
    """Returns the language that a file's name tells; ``None`` for others."""
    return _BY_SUFFIX.get(path.suffix.lower())


def parse_language(name: object) -> Language:
    """Returns the language of a name.

    Raises:
        InvalidArgumentError: there is none of that name; the message lists those that exist.
    """
    try:
        return Language(name)
    except ValueError:
        raise InvalidArgumentError(f"expected a language of {', '.join(LANGUAGES)}; got {shown(str(name))}") from None


def described_languages() -> str:
    """Returns the languages with their files' endings, for messages."""
    return ", ".join(f"{language.title} ({', '.join(language.suffixes)})" for language in Language)
