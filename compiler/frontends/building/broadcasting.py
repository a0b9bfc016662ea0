"""Shapes made equal by NumPy's rules of broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.builder import Builder
from ...ir.operation import Value
from ...ir.sizes import Dim
from .known_values import lengths_of


def broadcast_shape(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The shape of all, where lengths of 1 are repeated and missing ones are put in front.

    Raises:
        ValueError: two lengths differ.
    """
    rank = max(map(len, shapes))
    found: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, rank - len(shape)):
            if length != 1 and found[axis] not in (1, length):
                raise ValueError(f"shapes {' and '.join(str(list(each)) for each in shapes)} do not broadcast")
            found[axis] = length if length != 1 else found[axis]
    return tuple(found)


def broadcast_to(builder: Builder, value: Value, shape: Sequence[Dim]) -> Value:
    """A value repeated to a shape, its dimensions the last ones of it."""
    found = lengths_of(value)
    if found == tuple(shape):
        return value
    if len(found) > len(shape):
        raise ValueError(f"{list(found)} does not broadcast to {list(shape)}")
    return builder.broadcast(value, shape, range(len(shape) - len(found), len(shape)))


def broadcast_all(builder: Builder, values: Sequence[Value]) -> list[Value]:
    """Values of one shape."""
    shape = broadcast_shape([lengths_of(value) for value in values])
    return [broadcast_to(builder, value, shape) for value in values]
