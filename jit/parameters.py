"""The static parameters of a function, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Nums: TypeAlias = "int | Sequence[int] | None"
Names: TypeAlias = "str | Iterable[str] | None"

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class StaticParameters:
    """Parameters of a function chosen by position, by name, or both; ``jax.jit`` has checked them.

    Attributes:
        nums: the positions, from 0, or from -1 for the last argument of a call.
        names: the names of keyword arguments.
    """

    def __init__(self, function: Callable[..., object], nums: Nums, names: Names) -> None:
        """Infers names if only positions are given, and positions if only names are."""
        self.nums: frozenset[int] = frozenset(() if nums is None else (nums,) if isinstance(nums, int) else nums)
        self.names: frozenset[str] = frozenset(() if names is None else (names,) if isinstance(names, str) else names)
        if not self.nums and not self.names:
            return
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (ValueError, TypeError):  # a builtin: nothing is inferred
            parameters = []
        positional = [parameter for parameter in parameters if parameter.kind in _BY_POSITION]
        if nums is None:
            self.nums = frozenset(
                position for position, parameter in enumerate(positional) if parameter.name in self.names
            )
        elif names is None:
            chosen = [parameter for position, parameter in enumerate(positional) if position in self.nums]
            self.names = frozenset(parameter.name for parameter in chosen if parameter.kind in _BY_NAME)

    def has(self, position: int, count: int) -> bool:
        """Whether the argument at ``position`` of ``count`` positional arguments is chosen."""
        return position in self.nums or position - count in self.nums

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)
