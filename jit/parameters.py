"""Which parameters of a function are static, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Nums: TypeAlias = "int | Sequence[int] | None"
Names: TypeAlias = "str | Iterable[str] | None"

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class StaticParameters:
    """Parameters of a function chosen by position, by name, or both, as ``jax.jit`` has checked them.

    Attributes:
        nums: positions, from 0, or from -1 for the last argument of a call.
        names: keywords.
    """

    def __init__(self, function: Callable[..., object], nums: Nums, names: Names) -> None:
        """What is given by position alone is inferred by name, and the reverse."""
        self.nums = frozenset(() if nums is None else (nums,) if isinstance(nums, int) else nums)
        self.names = frozenset(() if names is None else (names,) if isinstance(names, str) else names)
        if not self.nums and not self.names:
            return
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (ValueError, TypeError):  # a builtin: nothing is inferred
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
