"""The difference of two arrays as text for a terminal and as a picture for a file."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

_ROWS: Final = 16
_COLUMNS: Final = 64
_MAX_CHANNELS: Final = 4
_NONE, _SOME, _ALL = ".", "+", "#"

_MIN_PIXELS: Final = 128
_MAX_PIXELS: Final = 512
_GAP: Final = 8
_PAPER: Final = 255


def difference_map(wrong: npt.NDArray[np.bool_]) -> list[str]:
    """Returns lines that show where elements differ: a map of at most 16 x 64 cells and the size of a cell.

    For more than two axes it shows the last two at the index with the most differences. A few channels count as one
    element. A single axis is folded into rows. The list is empty for a single element.
    """
    if wrong.size <= 1:
        return []
    flat, where = _plane(wrong)
    height, width = flat.shape
    tall, wide = -(-height // _ROWS), -(-width // _COLUMNS)
    some, every = (_reduced(flat, tall, wide, reduce) for reduce in (np.logical_or, np.logical_and))
    cell = "an element" if tall == wide == 1 else f"{tall} x {wide} elements"
    places = np.argwhere(flat)
    (top, left), (bottom, right) = places.min(axis=0), places.max(axis=0)
    box = f"rows {top} to {bottom}, columns {left} to {right} of {height} x {width}"
    starts = range(0, height, tall)
    if wrong.ndim == 1:
        differing = np.flatnonzero(wrong)
        box = f"elements {differing[0]} to {differing[-1]} of {wrong.size}, in rows of {width}"
        starts = range(0, height * width, tall * width)
    lines = [f"  where{where}: {box}; a cell is {cell}: {_SOME} some differ, {_ALL} all"]
    margin = len(str(starts[-1]))
    for start, some_row, every_row in zip(starts, some, every, strict=True):
        cells = "".join(
            _ALL if whole else _SOME if part else _NONE for part, whole in zip(some_row, every_row, strict=True)
        )
        lines.append(f"  {start:>{margin}} {cells}")
    return lines


def difference_picture(got: np.ndarray, expected: np.ndarray, wrong: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """Returns three panels side by side: the result, the expected array, and in red the size of their difference.

    Greys span the expected values; magenta marks non-finite values. The shape is (height, width, 3).
    """
    plane, _ = _plane(wrong)
    with np.errstate(all="ignore"):
        values = [_plane_of(_real(plane_values), wrong) for plane_values in (got, expected)]
        finite = values[1][np.isfinite(values[1])]
        least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        panels = [_greys(plane_values, least, most) for plane_values in values]
        error = np.abs(values[0] - values[1])
        largest = float(np.max(error[plane & np.isfinite(error)], initial=0.0)) or 1.0
        # Small errors must be visible beside large errors: the largest thousandth takes half of the scale.
        share = np.clip(np.nan_to_num(error / largest, nan=1.0, posinf=1.0), 0, 1) ** 0.1
    red = np.zeros((*plane.shape, 3), np.uint8)
    red[...] = 32
    red[plane] = np.stack([96 + 159 * share, 48 * share, 48 * share], axis=-1).astype(np.uint8)[plane]
    panels.append(red)
    sized = [_sized(panel) for panel in panels]
    gap = np.full((sized[0].shape[0], _GAP, 3), _PAPER, np.uint8)
    return np.concatenate([sized[0], gap, sized[1], gap, sized[2]], axis=1)


def _plane(wrong: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], str]:
    """Returns the differing elements of two axes, and the name of that part of the array."""
    chosen, where = _slice(wrong)
    part = wrong[chosen]
    if _has_channels(wrong):
        part = part.any(axis=-1)
    return _folded(part, fill=False), where


def _slice(wrong: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], str]:
    """Returns the leading indices of the shown part, and their text."""
    shown = 3 if _has_channels(wrong) else 2
    leading = wrong.ndim - shown
    if leading <= 0:
        return (), ""
    counts = wrong.reshape(*wrong.shape[:leading], -1).sum(axis=-1)
    chosen = tuple(int(i) for i in np.unravel_index(int(np.argmax(counts)), counts.shape))
    others = int(np.count_nonzero(counts)) - 1
    rest = f" ({others} other part{'s' * (others != 1)} differ{'s' * (others == 1)})" if others else ""
    return chosen, f" in [{', '.join(map(str, chosen))}]{rest}"


def _has_channels(wrong: npt.NDArray[np.bool_]) -> bool:
    return wrong.ndim >= 3 and wrong.shape[-1] <= _MAX_CHANNELS


def _plane_of(values: np.ndarray, wrong: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Returns the part of a values array that ``_plane`` shows, averaged over channels."""
    part = values[_slice(wrong)[0]]
    if _has_channels(wrong):
        part = part.mean(axis=-1)
    return _folded(part, fill=0.0)


def _folded(part: np.ndarray, fill: float) -> np.ndarray:
    """Folds one axis into rows, with about the proportions of the map."""
    if part.ndim >= 2:
        return part
    flat = part.reshape(-1)
    width = flat.size if flat.size <= _COLUMNS else max(_COLUMNS, 1 << math.ceil(math.log2(math.sqrt(flat.size * 4))))
    padding = -flat.size % width
    return np.concatenate([flat, np.full(padding, fill, flat.dtype)]).reshape(-1, width)


def _reduced(flat: npt.NDArray[np.bool_], tall: int, wide: int, ufunc: np.ufunc) -> npt.NDArray[np.bool_]:
    rows, columns = (np.arange(0, length, step) for length, step in zip(flat.shape, (tall, wide), strict=True))
    reduced: npt.NDArray[np.bool_] = ufunc.reduceat(ufunc.reduceat(flat, rows, axis=0), columns, axis=1)
    return reduced


def _real(values: np.ndarray) -> npt.NDArray[np.float64]:
    return np.abs(values).astype(np.float64) if values.dtype.kind == "c" else values.astype(np.float64)


def _greys(values: npt.NDArray[np.float64], least: float, most: float) -> npt.NDArray[np.uint8]:
    share = np.nan_to_num(np.clip((values - least) / ((most - least) or 1.0), 0, 1))
    panel = np.repeat((share * 255).astype(np.uint8)[..., np.newaxis], 3, axis=-1)
    panel[~np.isfinite(values)] = (255, 0, 255)
    return panel


def _sized(panel: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Scales a panel: skips elements of large panels, and repeats those of small panels."""
    step = max(1, -(-max(panel.shape[:2]) // _MAX_PIXELS))
    panel = panel[::step, ::step]
    times = max(1, _MIN_PIXELS // max(panel.shape[:2]))
    return panel.repeat(times, axis=0).repeat(times, axis=1)
