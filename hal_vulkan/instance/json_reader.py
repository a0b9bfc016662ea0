"""Reads JSON values into dataclasses, and checks each value against the type of its field.

Every error is an ``InvalidArgumentError`` that names the field, the expected and the actual value.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Container, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final, NamedTuple, TypeVar, cast, get_args, get_origin, get_type_hints

from ...status import InvalidArgumentError, shown

_MAX_NAMES: Final = 4096
_MAX_TEXT: Final = 1024
_MAX_NANOSECONDS: Final = 1e12

T = TypeVar("T")


class Among(NamedTuple):
    """The allowed values of an integer field, in ``Annotated``."""

    expected: str
    values: Container[int]


def integers(low: int, high: int) -> Among:
    """Returns the integers from ``low`` to ``high``."""
    return Among(f"an integer from {low} to {high}", range(low, high + 1))


def read_object(kind: type[T], value: object, where: str) -> T:
    """Returns an object's items as a dataclass; fields without defaults are required."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _wrong(where, "an object with text keys", value)
    hints = get_type_hints(kind, include_extras=True)
    if unknown := sorted(set(value) - set(hints)):
        raise InvalidArgumentError(
            f"{where}: unknown key(s) {', '.join(unknown[:8])}; known are {', '.join(sorted(hints))}"
        )
    required = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}  # type: ignore[arg-type]  # a dataclass
    if missing := sorted(required - set(value)):
        raise InvalidArgumentError(f"{where}: expected the key(s) {', '.join(missing)}, which are missing")
    return kind(**{key: _read(hints[key], item, f"{where}.{key}") for key, item in value.items()})


def _read(hint: Any, value: Any, where: str) -> Any:
    """Returns a field's value. ``Annotated`` declares an integer's values, a text's pattern or the most items."""
    limit = None
    if hasattr(hint, "__metadata__"):
        hint, limit = get_args(hint)
    if get_origin(hint) in (tuple, frozenset):
        return _read_list(hint, limit or _MAX_NAMES, value, where)
    if is_dataclass(hint):
        return read_object(cast("type", hint), value, where)
    if isinstance(limit, Among):
        fits, expected = type(value) is int and value in limit.values, limit.expected
    elif hint is float:
        fits = not isinstance(value, bool) and isinstance(value, (int, float)) and 0.0 < value < _MAX_NANOSECONDS
        expected = "a positive number of nanoseconds"
    elif hint is bool:
        fits, expected = isinstance(value, bool), "true or false"
    elif issubclass(hint, enum.Enum):
        fits, expected = value in list(hint.__members__), f"one of {', '.join(hint.__members__)}"
    elif isinstance(limit, re.Pattern):
        fits = isinstance(value, str) and (not value or limit.fullmatch(value.lower()) is not None)
        expected = "a UUID as 8-4-4-4-12 hexadecimal digits, or an empty text"
    else:
        fits = isinstance(value, str) and len(value) <= _MAX_TEXT
        expected = f"text of at most {_MAX_TEXT} characters"
    if not fits:
        raise _wrong(where, expected, value)
    if issubclass(hint, enum.Enum):
        return hint[value]
    return value.lower() if isinstance(limit, re.Pattern) else hint(value)


def _read_list(hint: Any, most: int, value: object, where: str) -> object:
    """Returns a tuple of three values, or a tuple or set of any number up to ``most``."""
    items = get_args(hint)
    fixed = len(items) == 3
    if not isinstance(value, (list, tuple)) or len(value) > most or (fixed and len(value) != 3):
        raise _wrong(where, "a list of three integers" if fixed else f"a list of at most {most} items", value)
    read = (_read(items[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    return frozenset(read) if get_origin(hint) is frozenset else tuple(read)


def _wrong(where: str, expected: str, value: object) -> InvalidArgumentError:
    return InvalidArgumentError(f"{where}: expected {expected}, got {shown(value)}")
