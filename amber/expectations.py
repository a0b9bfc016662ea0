"""Comparison of buffers with a script's expected values.

Equality is Amber's: integers by their value; floats within 1e-6 percent unless a tolerance is given, NaN only to NaN;
texels as colours from 0 to 1 within 0.002, sRGB channels in linear light.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from ..formats.image_texels import values_of
from .script import Buffer, ExpectBuffer, ExpectTexels, ExpectValues, Tolerance
from .types import ImageFormat, Layout, Segment
from .values import Bytes, column_of, text_of, unpack

_EPSILON: Final = Tolerance(0.000001, True)
_TEXEL: Final = Tolerance(0.002, False)
_ORDERED: Final[dict[str, Callable[[float, float], bool]]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}
_SIGNS: Final = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_BINS: Final = 256


def compare_values(expectation: ExpectValues, data: Bytes) -> str:
    """Describes the values that differ from the expected values; returns ``""`` if there are none."""
    layout = expectation.layout
    width = len(layout.segments)
    wrong: list[str] = []
    got = _elements(data, expectation.offset, -(-len(expectation.values) // width), layout)
    for index, written in enumerate(expectation.values):
        value = got[index // width][index % width]
        expected = _rounded(written, layout.segments[index % width])
        tolerances = expectation.tolerances
        tolerance = _EPSILON
        if len(tolerances) == 1:
            tolerance = tolerances[0]
        elif tolerances and index % width < len(tolerances):
            tolerance = tolerances[index % width]
        if not _holds(expectation.comparator, value, expected, tolerance, exact=not tolerances):
            wrong.append(
                f"value {index}: got {text_of(value)}, expected {_SIGNS[expectation.comparator]} "
                f"{text_of(expected)}" + _tolerance_text(tolerance, bool(tolerances))
            )
    return _summary(wrong, len(expectation.values))


def _rounded(expected: int | float, segment: Segment) -> int | float:
    """Rounds an expected value to the buffer's precision; halves are compared as floats, as Amber does."""
    if segment.kind != "float" or segment.bits == 64:
        return expected
    with np.errstate(over="ignore"):
        return float(np.float32(expected))


def _elements(data: Bytes, offset: int, count: int, layout: Layout) -> list[list[int | float]]:
    part = data[offset : offset + count * layout.size]
    columns = [column_of(part, layout, i).tolist() for i in range(len(layout.segments))]
    return [list(row) for row in zip(*columns, strict=True)]


def _holds(comparator: str, got: int | float, expected: int | float, tolerance: Tolerance, *, exact: bool) -> bool:
    if comparator in _ORDERED:
        return _ORDERED[comparator](got, expected)
    equal = got == expected if exact and isinstance(got, int) else _close(float(got), float(expected), tolerance)
    return equal == (comparator == "EQ")


def _close(got: float, expected: float, tolerance: Tolerance) -> bool:
    if math.isnan(got) or math.isnan(expected):
        return math.isnan(got) == math.isnan(expected)
    if got == expected:
        return True
    limit = tolerance.value / 100 * abs(expected) if tolerance.percent else tolerance.value
    return abs(got - expected) <= limit


def compare_texels(expectation: ExpectTexels, buffer: Buffer, data: Bytes) -> str:
    """Describes the texels of a rectangle that differ from the expected colour; returns ``""`` if there are none."""
    assert buffer.extent is not None
    channels = _channels(buffer, data)
    rows = slice(expectation.y, expectation.y + expectation.height)
    columns = slice(expectation.x, expectation.x + expectation.width)
    wrong = np.zeros((expectation.height, expectation.width), bool)
    seen: dict[str, npt.NDArray[np.float64]] = {}
    for index, (name, wanted) in enumerate(zip("RGBA", expectation.color, strict=False)):
        if name not in channels:
            continue
        texels = channels[name][: buffer.extent.width * buffer.extent.height]
        seen[name] = texels.reshape(buffer.extent.height, buffer.extent.width)[rows, columns]
        tolerances = expectation.tolerances
        tolerance = tolerances[index if len(tolerances) > index else 0] if tolerances else _TEXEL
        expected = wanted / 255
        limit = tolerance.value / 100 * expected if tolerance.percent else tolerance.value
        with np.errstate(invalid="ignore"):
            wrong |= ~(np.abs(seen[name] - expected) <= limit)
    count = int(wrong.sum())
    if not count:
        return ""
    y, x = (int(axis[0]) for axis in np.nonzero(wrong))
    shown = ", ".join(f"{name} {255 * float(values[y, x]):.4g}" for name, values in seen.items())
    expected_text = ", ".join(f"{name} {value}" for name, value in zip("RGBA", expectation.color, strict=False))
    return (
        f"{count:,} of {wrong.size:,} texels differ; the first is ({expectation.x + x}, {expectation.y + y}): "
        f"got {shown}; expected {expected_text} (of 255)"
    )


def _channels(buffer: Buffer, data: Bytes) -> dict[str, npt.NDArray[np.float64]]:
    """Returns the colour channels of every texel, normalised channels from 0 to 1."""
    if isinstance(buffer.type, ImageFormat):
        texels = buffer.type.texels
        if texels.is_depth or not texels.is_plain:
            return {}
        names = sorted((name.upper() for name, _ in texels.fields), key="RGBASX".index)
        stored = data.view(texels.stored_dtype)
        values = values_of(stored if texels.packed else stored.reshape(-1, *texels.texel_shape()), texels)
        return dict(zip(names, values.reshape(-1, texels.channels).T, strict=True))
    layout = buffer.layout
    return {
        name: column_of(data, layout, i).astype(np.float64)
        for i, name in zip(range(len(layout.segments)), "RGBA", strict=False)
    }


def compare_buffers(expectation: ExpectBuffer, buffer: Buffer, data: Bytes, other: Bytes) -> str:
    """Describes the differences of two buffers beyond the tolerance; returns ``""`` if there are none."""
    if expectation.comparator == "EQ_BUFFER":
        return _byte_difference(buffer.layout, data, other, expectation.other)
    if expectation.comparator == "RMSE_BUFFER":
        with np.errstate(all="ignore"):
            differences = unpack(data, buffer.layout).astype(np.float64) - unpack(other, buffer.layout).astype(
                np.float64
            )
            error = float(np.sqrt(np.mean(differences**2))) if differences.size else 0.0
        # Not `>`: a NaN is an error, too.
        return "" if error <= expectation.tolerance else _beyond("root mean square error", error, expectation)
    distance = max(_emd(data[i::4], other[i::4]) for i in range(4)) if len(data) else 0.0
    return "" if distance <= expectation.tolerance else _beyond("distance of the histograms", distance, expectation)


def _beyond(measure: str, value: float, expectation: ExpectBuffer) -> str:
    return f"the {measure} to {expectation.other} is {value:g}, expected at most {expectation.tolerance:g}"


def _emd(first: Bytes, second: Bytes) -> float:
    """Returns the earth mover's distance of two histograms, from 0 to 1."""
    bins = [np.bincount(data, minlength=_BINS) / len(data) for data in (first, second)]
    return float(np.abs(np.cumsum(bins[0] - bins[1])).sum() / _BINS)


def _byte_difference(layout: Layout, data: Bytes, other: Bytes, name: str) -> str:
    different = np.nonzero(data != other)[0]
    if not len(different):
        return ""
    at = int(different[0])
    element = at // layout.size
    segment = next((i for i, s in enumerate(layout.segments) if 0 <= at % layout.size - s.offset < s.bits // 8), None)
    text = f"{len(different):,} of {len(data):,} bytes differ from {name}; the first is byte {at}, in element {element}"
    if segment is not None:
        got, expected = (column_of(side, layout, segment)[element].item() for side in (data, other))
        text += f": got {text_of(got)}, expected {text_of(expected)}"
    return text


def _tolerance_text(tolerance: Tolerance, is_stated: bool) -> str:
    if not is_stated:
        return ""
    return f" within {tolerance.value:g}{'%' if tolerance.percent else ''}"


def _summary(wrong: list[str], count: int) -> str:
    if not wrong:
        return ""
    return wrong[0] if len(wrong) == 1 else f"{wrong[0]}; {len(wrong)} of {count} values differ"
