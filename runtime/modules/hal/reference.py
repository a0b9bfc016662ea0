"""Checks of what programs pass to the exports of the ``hal`` module."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

from ....status import InvalidArgumentError
from .fence import AnyFence, check_fence

Ref: TypeAlias = Any
"""What a VM register holds. Exports that run at each call check it by using it: a check costs as much as the use."""

_T = TypeVar("_T")


def require(value: Ref, kind: type[_T], name: str) -> _T:
    """The reference, which has to be a ``!hal.<name>``; InvalidArgumentError for anything else."""
    if not isinstance(value, kind):
        raise InvalidArgumentError(f"expected a !hal.{name}, got {_got(value)}")
    return value


def memory_of(buffer: Ref, what: str) -> memoryview:
    """The bytes of a VM buffer, in place."""
    try:
        view: memoryview = buffer.as_memoryview()
    except AttributeError:
        raise InvalidArgumentError(f"{what}: expected a !vm.buffer, got {_got(buffer)}") from None
    return view


def text_of(buffer: Ref, what: str) -> str:
    """The text in a VM buffer."""
    return memory_of(buffer, what).tobytes().decode("utf-8", "replace")


def optional_fence(fence: Ref) -> AnyFence | None:
    """The fence, or ``None`` for null."""
    return None if fence is None else check_fence(fence)


def pattern_of(pattern: int, size: int) -> bytes:
    """The low bytes of a fill pattern."""
    if size not in (1, 2, 4):
        raise InvalidArgumentError(f"a fill pattern has 1, 2 or 4 bytes, got {size}")
    return (pattern & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _got(value: object) -> str:
    return "null" if value is None else type(value).__name__
