"""Images: resizing, and rearrangement of blocks to and from channels or the batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ....ir.operation import Value, tensor_of
from ....ir.sizes import Dim, is_multiple, number_of, quotient
from ....ir.types import F32, I32, TensorType
from ....passes.formulas.expression import Expression
from .indexing import take
from .known_values import lengths_of
from .node import Node, Translate
from .pieces import padded, pairs_of


def _split_depth(node: Node, shape: Sequence[Dim], block: int) -> tuple[tuple[Dim, int, int, int], bool]:
    """Returns the shape as batch, height, width and depth, and whether the layout is NHWC."""
    layout = node.text("data_format", "NHWC")
    if layout not in ("NHWC", "NCHW") or len(shape) != 4 or block < 1:
        raise node.error(f"expected four dimensions as NHWC or NCHW, got {node.type(0)} as {layout}")
    batch, first, second, third = shape[0], *map(number_of, shape[1:])
    return ((batch, first, second, third), True) if layout == "NHWC" else ((batch, second, third, first), False)


def _depth_to_space(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    block = node.integer("block_size")
    (batch, height, width, depth), is_last = _split_depth(node, node.shape(0), block)
    inner = depth // block**2
    if is_last:
        split = node.builder.reshape(value, (batch, height, width, block, block, inner))
        moved = node.builder.transpose(split, (0, 1, 3, 2, 4, 5))
        return [node.builder.reshape(moved, (batch, height * block, width * block, inner))]
    split = node.builder.reshape(value, (batch, block, block, inner, height, width))
    moved = node.builder.transpose(split, (0, 3, 4, 1, 5, 2))
    return [node.builder.reshape(moved, (batch, inner, height * block, width * block))]


def _space_to_depth(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    block = node.integer("block_size")
    (batch, height, width, depth), is_last = _split_depth(node, node.shape(0), block)
    rows, columns = height // block, width // block
    if is_last:
        split = node.builder.reshape(value, (batch, rows, block, columns, block, depth))
        moved = node.builder.transpose(split, (0, 1, 3, 2, 4, 5))
        return [node.builder.reshape(moved, (batch, rows, columns, block**2 * depth))]
    split = node.builder.reshape(value, (batch, depth, rows, block, columns, block))
    moved = node.builder.transpose(split, (0, 3, 5, 1, 2, 4))
    return [node.builder.reshape(moved, (batch, block**2 * depth, rows, columns))]


def _space_to_batch(node: Node) -> Sequence[Value]:
    value = node.expect(2 + (node.op == "SpaceToBatchND"))[0]
    blocks = _blocks(node)
    pads = pairs_of(node, len(node.operands) - 1, len(blocks))
    shape = node.shape(0)
    extra = len(shape) - 1 - len(blocks)
    if min(map(min, pads), default=0) < 0:
        raise node.error(f"expected paddings that are not negative, got {pads}")
    whole = padded(node.builder, value, [(0, 0), *pads, *[(0, 0)] * extra])
    batch, *lengths = lengths_of(whole)
    split: list[Dim] = [batch]
    for length, block in zip(lengths, blocks, strict=False):
        split += [number_of(length) // block, block]
    inner = lengths[len(blocks) :]
    moved = node.builder.transpose(
        node.builder.reshape(whole, [*split, *inner]),
        [
            *range(2, len(split), 2),
            0,
            *range(1, len(split), 2),
            *range(len(split), len(split) + extra),
        ],
    )
    return [node.builder.reshape(moved, [batch * math.prod(blocks), *split[1::2], *inner])]


def _batch_to_space(node: Node) -> Sequence[Value]:
    value = node.expect(2 + (node.op == "BatchToSpaceND"))[0]
    blocks = _blocks(node)
    count = len(blocks)
    crops = pairs_of(node, len(node.operands) - 1, count)
    batch, *lengths = node.shape(0)
    if not is_multiple(batch, math.prod(blocks)):
        raise node.error(f"the batch of {node.type(0)} does not split into blocks of {math.prod(blocks)}")
    outer = quotient(batch, math.prod(blocks))
    inner = lengths[count:]
    order = [count]
    for index in range(count):
        order += [count + 1 + index, index]
    moved = node.builder.transpose(
        node.builder.reshape(value, [*blocks, outer, *lengths]),
        [*order, *range(2 * count + 1, 2 * count + 1 + len(inner))],
    )
    spatial = [number_of(length) * block for length, block in zip(lengths, blocks, strict=False)]
    whole = node.builder.reshape(moved, [outer, *spatial, *inner])
    ranges: list[tuple[Dim, Dim, int]] = [(0, outer, 1)]
    ranges += [(low, length - high, 1) for (low, high), length in zip(crops, spatial, strict=True)]
    return [node.builder.slice(whole, [*ranges, *((0, length, 1) for length in inner)])]


def _blocks(node: Node) -> tuple[int, ...]:
    if node.has("block_size"):
        blocks: tuple[int, ...] = (node.integer("block_size"),) * 2
    else:
        blocks = node.known_integers(1, "the block's shape")
    if min(blocks, default=1) < 1 or len(blocks) >= node.type(0).rank:
        raise node.error(f"expected blocks of at least 1 for dimensions of {node.type(0)}, got {list(blocks)}")
    return blocks


BLOCKS: Final[Mapping[str, Translate]] = {
    "BatchToSpace": _batch_to_space,
    "BatchToSpaceND": _batch_to_space,
    "DepthToSpace": _depth_to_space,
    "SpaceToBatch": _space_to_batch,
    "SpaceToBatchND": _space_to_batch,
    "SpaceToDepth": _space_to_depth,
}


Coordinates = npt.NDArray[np.float32]


def _sizes(node: Node) -> tuple[int, int]:
    node.expect(2)
    sizes = node.known_integers(1, "the size")
    if node.type(0).rank != 4 or len(sizes) != 2 or min(sizes) < 1 or 0 in node.shape(0)[1:3]:
        raise node.error(f"expected images as NHWC and a height and width, got {node.type(0)} and {list(sizes)}")
    return node.counted(sizes[0], "the height"), node.counted(sizes[1], "the width")


def _coordinates(node: Node, length: int, size: int, shift: float) -> Coordinates:
    """Returns coordinates of the new pixels in the old image, in single precision as in TensorFlow.

    Args:
        node: the node, whose flags determine the alignment of ends.
        length: the length of the old dimension, in pixels.
        size: the length of the new dimension, in pixels.
        shift: the number to subtract if coordinates refer to pixel centres.
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
