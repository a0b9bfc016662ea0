"""Which parameters of a function are static or donated, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ..status import InvalidArgumentError

Nums: TypeAlias = "int | Sequence[int] | None"
Names: TypeAlias = "str | Iterable[str] | None"

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """Parameters of a function chosen by position, by name, or both.

    Attributes:
        nums: positions, from 0, or from -1 for the last argument of a call.
        names: keywords.
    """

    def __init__(self, function: Callable[..., object], kind: str, nums: Nums, names: Names) -> None:
        """``kind`` is what errors call them. What is given by position alone is inferred by name, and the reverse."""
        self.nums = frozenset(_positions(nums, kind))
        self.names = frozenset(_keywords(names, kind))
        if not self.nums and not self.names:
            return
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (ValueError, TypeError):  # a builtin: JAX takes what is given as it is
            parameters = []
        positional = [one for one in parameters if one.kind in _BY_POSITION]
        if nums is None:
            self.nums = frozenset(place for place, one in enumerate(positional) if one.name in self.names)
        elif names is None:
            chosen = [one for place, one in enumerate(positional) if place in self.nums]
            self.names = frozenset(one.name for one in chosen if one.kind in _BY_NAME)

    def has(self, place: int, count: int) -> bool:
        """Whether one of ``count`` arguments by position is chosen."""
        return place in self.nums or place - count in self.nums

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)


def _positions(nums: object, kind: str) -> Sequence[int]:
    several = () if nums is None else (nums,) if isinstance(nums, int) else nums
    listed = list(several) if isinstance(several, Iterable) else [several]
    found = [one for one in listed if isinstance(one, int) and not isinstance(one, bool)]
    if len(found) != len(listed):
        raise InvalidArgumentError(f"{kind}_argnums is an int or a sequence of ints, got {nums!r}")
    return found


def _keywords(names: object, kind: str) -> Sequence[str]:
    several = () if names is None else (names,) if isinstance(names, str) else names
    listed = list(several) if isinstance(several, Iterable) else [several]
    found = [one for one in listed if isinstance(one, str)]
    if len(found) != len(listed):
        raise InvalidArgumentError(f"{kind}_argnames is a str or several, got {names!r}")
    return found
