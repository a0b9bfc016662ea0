"""Checks of the arguments that programs pass."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from ...status import InvalidArgumentError, OutOfRangeError

Ref: TypeAlias = Any
"""The value of a program's variable. Code that runs at each call checks it by using it, as checks are expensive."""

_T = TypeVar("_T")


def require(value: Ref, kind: type[_T], name: str, where: str = "") -> _T:
    """Returns the reference if it is a ``!hal.<name>``; InvalidArgumentError for other values."""
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"{where}expected a !hal.{name}, got {got(value)}")
    return value


def pattern_of(pattern: int, size: int) -> bytes:
    """Returns the low bytes of a fill pattern."""
    if size not in (1, 2, 4):
        raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {size}")
    return (pattern & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def check_range(offset: int, size: int, total: int, where: str, owner: str = "buffer") -> None:
    """Raises OutOfRangeError unless bytes ``[offset, offset + size)`` lie within ``total``."""
    if offset < 0 or size < 0 or offset + size > total:
        raise OutOfRangeError(
            f"{where}: bytes [{offset}, {offset + size}) do not lie within the {owner} of {total} bytes"
        )


def got(value: object) -> str:
    """Describes a value, for messages."""
    return "null" if value is None else type(value).__name__
