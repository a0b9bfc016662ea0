"""Resizing of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ....ir.operation import Value, tensor_of
from ....ir.sizes import number_of
from ....ir.types import F32, I32, TensorType
from ....passes.formulas.expression import Expression
from .known_values import lengths_of
from .movement import take
from .node import Node, Translate

Coordinates = npt.NDArray[np.float32]


def _sizes(node: Node) -> tuple[int, int]:
    node.expect(2)
    sizes = node.known_integers(1, "the size")
    if node.type(0).rank != 4 or len(sizes) != 2 or min(sizes) < 1 or 0 in node.shape(0)[1:3]:
        raise node.error(f"expected images as NHWC and a height and width, got {node.type(0)} and {list(sizes)}")
    return node.counted(sizes[0], "the height"), node.counted(sizes[1], "the width")


def _coordinates(node: Node, length: int, size: int, shift: float) -> Coordinates:
    """Returns coordinates of the new pixels in the old image, in single precision like TensorFlow's.

    Args:
        node: whose flags say how ends are aligned.
        length: of the old dimension.
        size: of the new one.
        shift: to subtract where coordinates are those of the pixels' centres.
    """
    positions = np.arange(size, dtype=np.float32)
    if node.flag("align_corners") and size > 1:
        return positions * np.float32((length - 1) / np.float32(size - 1))
    scale = np.float32(length / np.float32(size))
    if node.flag("half_pixel_centers"):
        return (positions + np.float32(0.5)) * scale - np.float32(shift)
    return positions * scale


def _taken(node: Node, value: Value, positions: npt.NDArray[np.generic], axis: int) -> Value:
    indices = node.builder.constant(positions, TensorType(positions.shape, I32))
    return take(node.builder, value, indices, axis, 0)


def _nearest(node: Node) -> Sequence[Value]:
    value = node.operand(0)
    for axis, size in enumerate(_sizes(node), 1):
        length = number_of(node.shape(0)[axis])
        where = _coordinates(node, length, size, 0)
        whole = np.floor(where + np.float32(0.5)) if node.flag("align_corners") else np.floor(where)
        value = _taken(node, value, np.clip(whole, 0, length - 1).astype(np.int32), axis)
    return [value]


def _bilinear(node: Node) -> Sequence[Value]:
    value = node.builder.convert(node.operand(0), F32)
    for axis, size in reversed(list(enumerate(_sizes(node), 1))):
        length = number_of(node.shape(0)[axis])
        where = _coordinates(node, length, size, 0.5)
        low = np.floor(where)
        before = _taken(node, value, np.maximum(low, 0).astype(np.int32), axis)
        after = _taken(node, value, np.minimum(np.ceil(where), length - 1).astype(np.int32), axis)
        weights = node.builder.constant((where - low).astype(np.float32), TensorType((size,), F32))
        weight = Expression(node.builder, node.builder.broadcast(weights, lengths_of(before), [axis]))
        start = Expression(node.builder, before)
        value = (start + (Expression(node.builder, after) - start) * weight).value
    assert tensor_of(value).element is F32
    return [value]


IMAGES: Final[Mapping[str, Translate]] = {
    "ResizeBilinear": _bilinear,
    "ResizeNearestNeighbor": _nearest,
}
