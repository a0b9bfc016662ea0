"""Values of scripts as bytes of buffers, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..status import shown
from .source import Source, Statement, Token, as_number
from .types import Layout, Segment

Value: TypeAlias = int | float
Bytes: TypeAlias = npt.NDArray[np.uint8]


def parse_value(source: Source, token: Token, segment: Segment) -> Value:
    """Returns the value of a token for a segment; integers may be written as any bits of their width."""
    value = as_number(token.text)
    kind = f"{segment.bits}-bit {'float' if segment.kind == 'float' else 'integer'}"
    if value is None:
        source.fail(f"expected a {kind}, got {shown(token.text)}", token.position)
    if segment.kind == "float":
        return float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, float):
        source.fail(f"expected a {kind}, got {shown(token.text)}", token.position)
    low, high = -(1 << (segment.bits - 1)), (1 << segment.bits) - 1
    if not low <= value <= high:
        source.fail(f"expected a {kind} ({low} to {high}), got {shown(token.text)}", token.position)
    return wrap(value, segment)


def wrap(value: int, segment: Segment) -> int:
    """Returns an integer with the bits of another, in the sign of the segment."""
    value &= (1 << segment.bits) - 1
    if segment.kind == "int" and value >> (segment.bits - 1):
        value -= 1 << segment.bits
    return value


def parse_values(statement: Statement, layout: Layout) -> tuple[Value, ...]:
    """Returns the remaining values of a statement, for the segments of elements in turn."""
    values: list[Value] = []
    while (token := statement.peek()) is not None:
        statement.take("a value")
        values.append(parse_value(statement.source, token, layout.segments[len(values) % len(layout.segments)]))
    if not values:
        raise statement.wrong("expected values")
    return tuple(values)


def pack(values: Sequence[Value], layout: Layout) -> bytes:
    """Returns the bytes of whole elements; bytes without a value are zero."""
    width = len(layout.segments)
    count = -(-len(values) // width)
    data = np.zeros(count * layout.size, np.uint8)
    for index, segment in enumerate(layout.segments):
        column = values[index::width]
        view = column_of(data, layout, index)[: len(column)]
        if segment.kind == "float":
            view[...] = _floats(np.array(column, np.float64), segment)
        else:
            view[...] = np.array(column, object).astype(segment.dtype)
    return data.tobytes()


def _floats(values: npt.NDArray[np.float64], segment: Segment) -> npt.NDArray[np.generic]:
    """Rounds values to the width of a segment: to nearest, but halves towards zero, as Amber does.

    Khronos's expected values follow from it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if segment.bits != 16:
            return values.astype(segment.dtype)
        singles = values.astype(np.float32)  # to the nearest of these before
        halves = singles.astype(np.float16)
        return np.where(np.abs(halves) > np.abs(singles), np.nextafter(halves, np.float16(0)), halves)


def unpack(data: Bytes, layout: Layout) -> npt.NDArray[np.object_] | npt.NDArray[np.generic]:
    """Returns the values of whole elements, ``[element, segment]``, in one dtype that holds them all."""
    columns = [column_of(data, layout, i) for i in range(len(layout.segments))]
    if len({column.dtype for column in columns}) == 1:
        return np.stack(columns, axis=1)
    return np.stack([column.astype(object) for column in columns], axis=1)


def column_of(data: Bytes, layout: Layout, index: int) -> npt.NDArray[np.generic]:
    """Returns a view of one segment of every element."""
    segment = layout.segments[index]
    count = len(data) // layout.size
    return np.ndarray((count,), segment.dtype, buffer=data, offset=segment.offset, strides=(layout.size,))


def pack_series(start: Value, step: Value, count: int, layout: Layout) -> bytes:
    """Returns the bytes of ``count`` scalars from ``start``, each ``step`` more than the last; integers wrap."""
    segment = layout.segments[0]
    data = np.zeros(count * layout.size, np.uint8)
    view = column_of(data, layout, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        if segment.kind == "float":
            values = np.full(count, step, np.float64)
            values[:1] = start
            view[...] = _floats(np.add.accumulate(values), segment)  # one addition after the other
        else:
            mask = (1 << 64) - 1
            bits = np.arange(count, dtype=np.uint64) * np.uint64(int(step) & mask) + np.uint64(int(start) & mask)
            view[...] = bits.astype(f"u{segment.bits // 8}").view(segment.dtype)
    return data.tobytes()


def text_of(value: Value) -> str:
    """Returns a value as scripts have it; floats read back the same."""
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return str(value)
        return repr(value)
    return str(value)
