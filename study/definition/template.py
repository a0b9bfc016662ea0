"""Templates: JSON values in which texts that begin with ``$`` are expressions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ...status import InvalidArgumentError
from .expression import Expression
from .location import located

__all__ = ["Template", "as_json_value"]


class Template:
    """A value, nested lists and tables included, with expressions in it.

    Attributes:
        expressions: all of them with their paths within the value, such as ``[1].shape[0]``.
        names: what they need values for.

    Raises:
        InvalidArgumentError: a text after a ``$`` is no expression; the location is its path.
    """

    def __init__(self, value: object) -> None:
        self._compiled = _compile(value)
        self.expressions: tuple[tuple[str, Expression], ...] = tuple(_walk(self._compiled, ""))
        self.names: frozenset[str] = frozenset(name for _, one in self.expressions for name in one.names)

    def fill(self, values: Mapping[str, object]) -> object:
        """The value with each expression's own in its place.

        Raises:
            InvalidArgumentError: an expression has no value for these; the location is its path.
        """
        return _fill(self._compiled, values)


def as_json_value(value: object) -> object:
    """A copy of nothing but dicts with text keys, lists, texts, ints, finite floats, truth values and ``None``.

    Tuples become lists, numbers of NumPy become Python's, and ints that are keys become texts.

    Raises:
        InvalidArgumentError: something else is in it; the location is its path.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        copy = {}
        for key, one in value.items():
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise InvalidArgumentError(f"expected a table with texts for keys, got the key {key!r}")
            with located(str(key)):
                copy[str(key)] = as_json_value(one)
        return copy
    if isinstance(value, (list, tuple)):
        items = []
        for i, one in enumerate(value):
            with located(f"[{i}]"):
                items.append(as_json_value(one))
        return items
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidArgumentError(
        f"expected a finite number, a text, true, false, a list or a table, got {value!r} ({type(value).__name__})"
    )


def _compile(value: object) -> object:
    if isinstance(value, str) and value.startswith("$"):
        return Expression(value[1:])
    if isinstance(value, Mapping):
        table = {}
        for key, one in value.items():
            with located(str(key)):
                table[key] = _compile(one)
        return table
    if isinstance(value, list):
        items = []
        for i, one in enumerate(value):
            with located(f"[{i}]"):
                items.append(_compile(one))
        return items
    return value


def _walk(value: object, path: str) -> Iterator[tuple[str, Expression]]:
    if isinstance(value, Expression):
        yield path, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _walk(one, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from _walk(one, f"{path}[{i}]")


def _fill(value: object, values: Mapping[str, object]) -> object:
    if isinstance(value, Expression):
        return value.evaluate(values)
    if isinstance(value, Mapping):
        table = {}
        for key, one in value.items():
            with located(str(key)):
                table[key] = _fill(one, values)
        return table
    if isinstance(value, list):
        items = []
        for i, one in enumerate(value):
            with located(f"[{i}]"):
                items.append(_fill(one, values))
        return items
    return value
