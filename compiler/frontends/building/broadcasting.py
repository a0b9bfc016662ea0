"""Broadcasting by NumPy's rules."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.builder import Builder
from ...ir.operation import Value
from ...ir.sizes import Dim
from .known_values import lengths_of


def broadcast_shape(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """Returns the shape that shapes broadcast to.

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
    """Broadcasts a value to a shape, whose last dimensions are its own."""
    found = lengths_of(value)
    if found == tuple(shape):
        return value
    if len(found) > len(shape):
        raise ValueError(f"{list(found)} does not broadcast to {list(shape)}")
    return builder.broadcast(value, shape, range(len(shape) - len(found), len(shape)))


def broadcast_all(builder: Builder, values: Sequence[Value]) -> list[Value]:
    """Broadcasts values to one shape."""
    shape = broadcast_shape([lengths_of(value) for value in values])
    return [broadcast_to(builder, value, shape) for value in values]
