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
    lengths: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, rank - len(shape)):
            if length != 1 and lengths[axis] not in (1, length):
                raise ValueError(f"shapes {' and '.join(str(list(dims)) for dims in shapes)} do not broadcast")
            lengths[axis] = length if length != 1 else lengths[axis]
    return tuple(lengths)


def broadcast_to(builder: Builder, value: Value, shape: Sequence[Dim]) -> Value:
    """Broadcasts a value to a shape, whose last dimensions are its own."""
    lengths = lengths_of(value)
    if lengths == tuple(shape):
        return value
    if len(lengths) > len(shape):
        raise ValueError(f"{list(lengths)} does not broadcast to {list(shape)}")
    return builder.broadcast(value, shape, range(len(shape) - len(lengths), len(shape)))


def broadcast_all(builder: Builder, values: Sequence[Value]) -> list[Value]:
    """Broadcasts values to one shape."""
    shape = broadcast_shape([lengths_of(value) for value in values])
    return [broadcast_to(builder, value, shape) for value in values]
