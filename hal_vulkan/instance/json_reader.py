"""Checked reading of JSON values: a reader takes a value and where it stands, and returns it or raises.

Every error is an ``InvalidArgumentError`` that names the place, what was expected and what came.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from ...status import InvalidArgumentError, shown

MAX_U32: Final = (1 << 32) - 1
MAX_U64: Final = (1 << 64) - 1
_MAX_NAMES: Final = 4096
_MAX_TEXT: Final = 1024
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

Reader = Callable[[object, str], object]


def wrong(where: str, expected: str, value: object) -> InvalidArgumentError:
    """The error for a value that is not what was expected."""
    return InvalidArgumentError(f"{where}: expected {expected}, got {shown(value)}")


def mapping(value: object, where: str) -> dict[str, object]:
    """An object's items."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(where, "an object with text keys", value)
    return dict(value)


def read_object(
    value: object, where: str, readers: Mapping[str, Reader], required: frozenset[str]
) -> dict[str, object]:
    """Reads an object with these keys, of which some are required."""
    data = mapping(value, where)
    if unknown := sorted(set(data) - set(readers)):
        raise InvalidArgumentError(
            f"{where}: unknown key(s) {', '.join(unknown[:8])}; known are {', '.join(sorted(readers))}"
        )
    if missing := sorted(required - set(data)):
        raise InvalidArgumentError(f"{where}: expected the key(s) {', '.join(missing)}, which are missing")
    return {key: readers[key](item, f"{where}.{key}") for key, item in data.items()}


def integer(low: int, high: int) -> Reader:
    """A reader of integers from ``low`` to ``high``."""

    def read(value: object, where: str) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise wrong(where, f"an integer from {low} to {high}", value)
        return value

    return read


def power_of_two(value: object, where: str) -> object:
    """Reads a power of two."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 1 << 63 or value & (value - 1):
        raise wrong(where, "a power of two", value)
    return value


def alignment_or_zero(value: object, where: str) -> object:
    """Reads a power of two or 0."""
    return value if value == 0 and not isinstance(value, bool) else power_of_two(value, where)


def flag(value: object, where: str) -> object:
    """Reads true or false."""
    if not isinstance(value, bool):
        raise wrong(where, "true or false", value)
    return value


def period(value: object, where: str) -> object:
    """Reads a positive number of nanoseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1e12:
        raise wrong(where, "a positive number of nanoseconds", value)
    return float(value)


def text(value: object, where: str) -> object:
    """Reads a text."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise wrong(where, f"text of at most {_MAX_TEXT} characters", value)
    return value


def uuid(value: object, where: str) -> object:
    """Reads a UUID as lower-case text."""
    if not isinstance(value, str) or (value and not _UUID.fullmatch(value.lower())):
        raise wrong(where, "a UUID as 8-4-4-4-12 hexadecimal digits, or an empty text", value)
    return value.lower()


def names(value: object, where: str) -> object:
    """Reads a list of texts as a set."""
    if not isinstance(value, (list, tuple)) or len(value) > _MAX_NAMES:
        raise wrong(where, f"a list of at most {_MAX_NAMES} texts", value)
    return frozenset(str(text(item, f"{where}[{index}]")) for index, item in enumerate(value))


def triple(low: int) -> Reader:
    """A reader of three integers from ``low``."""
    read_item = integer(low, MAX_U32)

    def read(value: object, where: str) -> object:
        if not isinstance(value, (list, tuple)) or len(value) != 3:
            raise wrong(where, "a list of three integers", value)
        return tuple(read_item(item, f"{where}[{index}]") for index, item in enumerate(value))

    return read


def list_of(kind: Callable[..., object], readers: Mapping[str, Reader], maximum: int) -> Reader:
    """A reader of lists of at most ``maximum`` objects, which become ``kind``."""

    def read(value: object, where: str) -> object:
        if not isinstance(value, (list, tuple)) or len(value) > maximum:
            raise wrong(where, f"a list of at most {maximum} objects", value)
        return tuple(
            kind(**read_object(item, f"{where}[{index}]", readers, frozenset(readers)))
            for index, item in enumerate(value)
        )

    return read


def object_of(kind: Callable[..., object], readers: Mapping[str, Reader]) -> Reader:
    """A reader of an object, which becomes ``kind``."""

    def read(value: object, where: str) -> object:
        return kind(**read_object(value, where, readers, frozenset()))

    return read
