"""Calling conventions: short texts for the arguments and results of functions.

``0`` (the version), the arguments, ``_``, the results: ``i`` i32, ``I`` i64, ``f`` f32, ``F`` f64, ``r`` reference, a
single ``v`` for none, and among the arguments ``C…D`` for a tuple that is repeated any number of times. The ``_`` and
the results may be left out. The notation is that of IREE's runtime/src/iree/vm/module.h, release 3.13.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...status import IncompatibleError, InvalidArgumentError, PumiceError, shown

_SCALARS: Final = frozenset("iIfFr")
# Operand lists have 16-bit counts, so no callable function is longer; the limit also bounds the cost of a forged text.
_MAX_LENGTH: Final = 1 << 16
_MAX_CACHED_LENGTH: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Repeated:
    """A tuple of values that a caller passes any number of times: ``CiID`` is ``Repeated(("i", "I"))``."""

    elements: tuple[str, ...]

    def __str__(self) -> str:
        return f"C{''.join(self.elements)}D"


Element: TypeAlias = str | Repeated


@dataclass(frozen=True, slots=True)
class CallingConvention:
    """A function's arguments and results. Conventions are equal if they mean the same, even if written differently.

    Attributes:
        arguments: the arguments ``i``, ``I``, ``f``, ``F``, ``r`` or ``Repeated``, in order.
        results: the results ``i``, ``I``, ``f``, ``F``, ``r``, in order.
        text: the convention as it was written.
    """

    arguments: tuple[Element, ...]
    results: tuple[str, ...]
    text: str = field(compare=False)

    @staticmethod
    def parse(text: str) -> CallingConvention:
        """Returns the calling convention of a text; equal short texts return the same object.

        An empty text means a function without arguments and results.

        Raises:
            InvalidArgumentError: the text is malformed, or longer than 65,536 characters.
            IncompatibleError: the convention's version is not 0.
        """
        return _parse_cached(text) if len(text) <= _MAX_CACHED_LENGTH else _parse(text)

    @property
    def is_variadic(self) -> bool:
        """Whether an argument is a repeated tuple."""
        return any(isinstance(element, Repeated) for element in self.arguments)

    @property
    def canonical(self) -> str:
        """The full form: ``0v_v`` for ``0``."""
        return f"0{''.join(map(str, self.arguments)) or 'v'}_{''.join(self.results) or 'v'}"

    def __str__(self) -> str:
        return self.text


def parse_named(owner: str, text: str) -> CallingConvention:
    """Parses a calling convention, with its owner in errors."""
    try:
        return CallingConvention.parse(text)
    except PumiceError as error:
        raise type(error)(f"{owner}: {error.message}") from None


def _parse(text: str) -> CallingConvention:
    if len(text) > _MAX_LENGTH:
        raise InvalidArgumentError(
            f"expected a calling convention of at most {_MAX_LENGTH} characters, got {len(text)}"
        )
    if text and text[0] != "0":
        if text[0].isdigit():
            raise IncompatibleError(
                f"calling convention {shown(text)}: expected version 0, got {text[0]}; compile again"
            )
        raise _error(text, 0, "the version digit 0")
    arguments, separator, results = text[1:].partition("_")
    position = 1 + len(arguments) + len(separator)
    return CallingConvention(
        _elements(text, 1, arguments, repeats=True),
        tuple(str(element) for element in _elements(text, position, results, repeats=False)),
        text,
    )


_parse_cached = lru_cache(maxsize=1024)(_parse)


def _elements(text: str, base: int, part: str, *, repeats: bool) -> tuple[Element, ...]:
    if part == "v":
        return ()
    elements: list[Element] = []
    position = 0
    while position < len(part):
        letter = part[position]
        if letter in _SCALARS:
            elements.append(letter)
            position += 1
        elif letter == "C" and repeats:
            end = part.find("D", position)
            inner = part[position + 1 : end]
            if end < 0:
                raise _error(text, base + position, "a D that closes this C")
            if not inner or not _SCALARS.issuperset(inner):
                raise _error(text, base + position, "one or more of i, I, f, F, r between C and D")
            elements.append(Repeated(tuple(inner)))
            position = end + 1
        else:
            raise _error(text, base + position, f"one of i, I, f, F, r{', C' if repeats else ''}, or v alone")
    return tuple(elements)


def _error(text: str, position: int, expected: str) -> InvalidArgumentError:
    character = repr(text[position]) if position < len(text) else "the end"
    return InvalidArgumentError(
        f"calling convention {shown(text)}, character {position}: expected {expected}, got {character}; "
        "write it like '0iI_r'"
    )
