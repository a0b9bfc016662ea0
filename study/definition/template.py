"""Templates: JSON values in which texts that begin with ``$`` are expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ...status import InvalidArgumentError, shown
from .expression import Expression
from .messages import located

_MAX_DEPTH: Final = 32


class Template:
    """A value, nested lists and tables included, with expressions in it.

    Attributes:
        expressions: all of them with their paths within the value, such as ``[1].shape[0]``.
        names: the names that they need values for.

    Raises:
        InvalidArgumentError: a text after a ``$`` is not an expression; the location is its path.
    """

    def __init__(self, value: object) -> None:
        expressions: list[tuple[str, Expression]] = []

        def compiled(leaf: object, path: str) -> object:
            if not isinstance(leaf, str) or not leaf.startswith("$"):
                return leaf
            expressions.append((path, Expression(leaf[1:])))
            return expressions[-1][1]

        self._compiled = _map_leaves(value, compiled)
        self.expressions = tuple(expressions)
        self.names: frozenset[str] = frozenset(name for _, one in expressions for name in one.names)

    def fill(self, values: Mapping[str, object]) -> object:
        """The value with each expression replaced by its value.

        Raises:
            InvalidArgumentError: an expression cannot be evaluated; the location is its path.
        """
        return _map_leaves(
            self._compiled, lambda leaf, _: leaf.evaluate(values) if isinstance(leaf, Expression) else leaf
        )


def as_json_value(value: object) -> object:
    """A copy that consists of dicts with text keys, lists, texts, ints, finite floats, truth values and ``None``.

    Tuples become lists, NumPy's numbers Python's, and int keys texts.

    Raises:
        InvalidArgumentError: anything else is in it, or it is nested too deeply; the location is the path.
    """
    return _map_leaves(value, _json_leaf)


def _json_leaf(value: object, _: str) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidArgumentError(
        f"expected a finite number, a text, true, false, a list or a table, got {shown(value)} ({type(value).__name__})"
    )


def _map_leaves(value: object, change: Callable[[object, str], object], path: str = "", depth: int = 0) -> object:
    """A copy with each leaf replaced by ``change(leaf, path)``; errors are located at the path."""
    if depth > _MAX_DEPTH:
        raise InvalidArgumentError(f"expected at most {_MAX_DEPTH} lists and tables within each other", location=path)
    if isinstance(value, Mapping):
        copy = {}
        for key, one in value.items():
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise InvalidArgumentError(
                    f"expected a table with texts for keys, got the key {shown(key)}", location=path
                )
            copy[str(key)] = _map_leaves(one, change, f"{path}.{key}" if path else str(key), depth + 1)
        return copy
    if isinstance(value, (list, tuple)):
        return [_map_leaves(one, change, f"{path}[{i}]", depth + 1) for i, one in enumerate(value)]
    with located(path):
        return change(value, path)
