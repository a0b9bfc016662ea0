"""The parameters of a kernel, from a text such as ``"float a, T[] x, raw T y"``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shorten
from .types import NAMES

_TOKEN: Final = re.compile(r"[A-Za-z_]\w*|\[\s*\]|\S")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_GENERIC: Final = re.compile(r"[A-Z]")
# Names that generated code or GLSL uses itself.
_RESERVED_TEXT: Final = """
i attribute const uniform buffer shared coherent volatile restrict readonly writeonly layout centroid flat smooth
noperspective patch sample invariant precise break continue do for while switch case default if else subroutine in out
inout void true false discard return lowp mediump highp precision struct common partition active asm class union enum
typedef template this resource goto inline noinline public static extern external interface fixed superp input output
filter sizeof cast namespace using main vec2 vec3 vec4 ivec2 ivec3 ivec4 uvec2 uvec3 uvec4 bvec2 bvec3 bvec4 dvec2 dvec3
dvec4 mat2 mat3 mat4
"""
_RESERVED: Final = frozenset(_RESERVED_TEXT.split())


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter.

    Attributes:
        dtype: the dtype; ``None`` for a generic type.
        generic: the letter, or empty.
        is_array: whether the parameter takes only arrays, not numbers.
        is_raw: whether the expression indexes the array itself.
        is_writable: whether the parameter is raw, and not declared ``const``.
    """

    name: str
    dtype: np.dtype[np.generic] | None
    generic: str
    is_array: bool
    is_raw: bool
    is_writable: bool

    @property
    def type_name(self) -> str:
        return self.generic or str(self.dtype)


def parse_parameters(text: object, where: str, *, known: Sequence[Declared] = ()) -> tuple[Declared, ...]:
    """Parses the parameters of a text.

    Each is a type and a name. The type is a name from NumPy or C, or a capital letter for any type. ``TYPE name`` takes
    an array, which is broadcast, or a number; ``TYPE[] name`` an array; ``raw TYPE name``, or ``TYPE *name`` as in C,
    an array that the expression indexes.

    Args:
        where: the name of the text, for messages.
        known: the parameters of an earlier text.

    Raises:
        InvalidArgumentError: a text is wrong; the message shows the place.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{where} is a text such as 'float a, float[] x', got {type(text).__name__}")
    if not text.strip():
        return ()
    parameters: list[Declared] = []
    start = 0
    for part in text.split(","):
        parameter = _parse_one(part, _Place(text, where, start))
        if any(parameter.name == other.name for other in (*known, *parameters)):
            raise _Place(text, where, start).wrong(
                f"the parameter {parameter.name} is declared twice", part, parameter.name
            )
        parameters.append(parameter)
        start += len(part) + 1
    return tuple(parameters)


@dataclass(frozen=True, slots=True)
class _Place:
    """A declaration within a text, for the location of errors."""

    text: str
    where: str
    start: int

    def wrong(self, message: str, part: str, token: str, at: int | None = None) -> InvalidArgumentError:
        offset = self.start + (part.rfind(token) if at is None else at)
        line = self.text.count("\n", 0, offset)
        begin = self.text.rfind("\n", 0, offset) + 1
        content = self.text.splitlines()[line].replace("\t", " ") if self.text else ""
        caret = " " * (offset - begin) + "^" * max(1, len(token))
        where = f"{self.where}:{line + 1}:{offset - begin + 1}"
        return InvalidArgumentError(f"{message}\n  {content}\n  {caret}", location=where)


def _parse_one(part: str, origin: _Place) -> Declared:
    tokens = [(match[0], match.start()) for match in _TOKEN.finditer(part)]
    if not tokens:
        raise origin.wrong("expected a type and a name, such as float x; found nothing between the commas", part, "", 0)
    words = [(token, at) for token, at in tokens if _WORD.fullmatch(token)]
    marks = [(re.sub(r"\s", "", token), at) for token, at in tokens if not _WORD.fullmatch(token)]
    for mark, at in marks:
        if mark not in ("[]", "*"):
            raise origin.wrong(f"expected a type and a name, such as float[] x; got {mark!r}", part, mark, at)
    if len(marks) > 1:
        raise origin.wrong("expected one [] or * at most: arrays have any number of axes", part, *marks[1])
    qualifiers = {"raw": False, "const": False, "__global": False, "restrict": False}
    while words and words[0][0] in qualifiers:
        qualifiers[words.pop(0)[0]] = True
    if not words:
        raise origin.wrong("expected a type and a name after it", part, tokens[0][0], tokens[0][1])
    name, name_at = words.pop()
    type_name = " ".join(word for word, _ in words)
    if not words:
        expected = "a name after the type" if name in NAMES or _GENERIC.fullmatch(name) else f"a type before {name}"
        raise origin.wrong(f"expected {expected}", part, name, name_at)
    dtype = NAMES.get(type_name)
    if dtype is None and not _GENERIC.fullmatch(type_name):
        close = get_close_matches(type_name, NAMES, 1)
        known_types = "types are those of NumPy (float32, int8, ...), of C, or a capital letter"
        hint = f"did you mean {close[0]}?" if close else known_types
        raise origin.wrong(f"{shorten(type_name)!r} is no type of elements; {hint}", part, type_name, words[0][1])
    taken = name in _RESERVED or name in NAMES or _GENERIC.fullmatch(name)
    if taken or name.startswith(("_", "gl_")) or "__" in name:
        raise origin.wrong(
            f"{name} cannot be the name of a parameter: it has a meaning in kernels", part, name, name_at
        )
    mark, mark_at = marks[0] if marks else ("", 0)
    if mark and mark_at < words[-1][1]:
        raise origin.wrong(f"expected {mark} between the type and the name, or after the name", part, mark, mark_at)
    is_pointer = mark == "*"
    return Declared(
        name=name,
        dtype=dtype,
        generic="" if dtype is not None else type_name,
        is_array=bool(mark) or qualifiers["raw"],
        is_raw=is_pointer or qualifiers["raw"],
        is_writable=is_pointer and not qualifiers["const"],
    )
