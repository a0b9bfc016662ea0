"""Long scans: one pass with look-back if that is faster (``strategies/scans``), else three dispatches.

The three dispatches reduce parts, scan the results, and scan the parts from there. They read the elements twice, and
run on every device. Elements stay in order, so bodies need only be associative.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from ...analysis.identities import identity_of, joined_by
from ...analysis.rows import MAX_LENGTH
from ...analysis.scans import (
    LOOK_BACK,
    LOOK_BACK_CODE,
    LOOK_BACK_INVOCATIONS,
    LOOK_BACK_RUNS,
    Scan,
    constant_of,
    look_back_words,
    scan_of,
)
from ...analysis.weights import lanes_of, words_of
from ...dialects.builder import Builder, Values
from ...dialects.rewrite import rewrite_named
from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr
from ...ir.copying import copy_region
from ...ir.operation import Block, Operation, Region, tensor_of
from ...ir.types import F32, I64, TensorType
from ...kernels.scalars.target import Target
from ..canonical.legacy import over_tensors
from .building import converted, joining, shape_of
from .staged_reductions import even_part, in_parts

ROW: Final = 1 << 12
"""Elements of a row that a few invocations scan fast enough."""

MAX_ROW: Final = 1 << 14
"""The most elements of a part of a longer row."""

COLUMN: Final = 1 << 7
"""Elements of a column that an invocation scans fast enough."""

MAX_COLUMN: Final = 1 << 11
"""The most elements of a part of a longer column."""


LOOK_BACK_FAMILIES: Final = frozenset({"amd", "intel", "nvidia"})
"""Families of devices that scan long rows in one pass: their workgroups run concurrently and share a cache."""

MAX_TILES: Final = 1 << 13
"""The most tiles of a row in one pass: in the worst case a workgroup computes all tiles before its own."""


def shorten_scans(block: Block, target: Target) -> None:
    """Replaces scans too long for a kernel, or with elements narrower than words, in a block and its regions."""
    rewrite_named(block, {"stablehlo.reduce_window": partial(_scan, target)})


def _scan(target: Target, builder: Builder, operation: Operation) -> Values | None:
    scan = scan_of(operation)
    if scan is None:
        return None
    count = len(operation.results)
    values, starts = operation.operands[:count], operation.operands[count:]
    body = operation.regions[0]
    element = tensor_of(values[0]).scalar
    narrow = joined_by(body.block) == "add" and element.kind == "float" and element.bits < 32
    if narrow:
        number = constant_of(starts[0])
        assert number is not None
        body = joining(builder, "add", F32)
        starts = [builder.constant(number, TensorType((), F32))]
    last = len(scan.shape) - 1
    lanes = max(lanes_of(value.tensor) for value in operation.results)
    length = scan.shape[last]
    if length % lanes:
        fillings = [builder.constant(0, TensorType((), element))] if narrow else _neutral(builder, body, starts)
        values = [
            builder.lengthen(item, last, -length % lanes, like) for item, like in zip(values, fillings, strict=True)
        ]
    size = _part_of(scan, target)
    if size and _looks_back(operation, scan, target):
        result = scanned(builder, body, converted(builder, values, starts), starts, scan.axis, scan)
        made = result[0].owner
        assert isinstance(made, Operation)
        tiles = -(-scan.length // (LOOK_BACK_RUNS[-1] * min(LOOK_BACK_INVOCATIONS, target.max_workgroup_invocations)))
        words = look_back_words(made, math.prod(scan.outer) * tiles)
        made.attributes = {**made.attributes, LOOK_BACK: IntegerAttr(words, I64)}
    elif size:
        result = _in_parts(builder, body, values, starts, scan, size)
    elif narrow or length % lanes:
        result = scanned(builder, body, converted(builder, values, starts), starts, scan.axis, scan)
    else:
        return None
    if length % lanes:
        result = [builder.piece(item, last, 0, length) for item in result]
    return converted(builder, result, operation.results)


def _looks_back(operation: Operation, scan: Scan, target: Target) -> bool:
    """Whether one pass with look-back computes a scan that is too long for a kernel."""
    tiles = -(-scan.length // (LOOK_BACK_RUNS[-1] * min(LOOK_BACK_INVOCATIONS, target.max_workgroup_invocations)))
    return (
        target.family in LOOK_BACK_FAMILIES
        and "reference" not in target.kinds  # the reference device computes windows by definition
        and scan.is_of_rows
        and scan.length % LOOK_BACK_RUNS[0] == 0
        and tiles <= MAX_TILES
        and words_of(operation) <= LOOK_BACK_CODE
    )


def _part_of(scan: Scan, target: Target) -> int:
    """Returns the part size of a scan that is too long, or that keeps the target busy only in parts; else 0."""
    most, largest = (ROW, MAX_ROW) if scan.is_of_rows else (COLUMN, MAX_COLUMN)
    # Each row has a subgroup's number of invocations, and each invocation a few columns.
    count = math.prod(scan.outer) if scan.is_of_rows else math.prod(scan.outer + scan.inner) // 4
    busy = target.compute_units * 8 * (1 if scan.is_of_rows else max(target.subgroup_size, 8))
    if scan.length <= most or (count >= busy and scan.length <= MAX_LENGTH // 2):
        return 0
    return even_part(scan.length, min(max(most // 2, scan.length * count // busy), largest))


def _in_parts(builder: Builder, body: Region, values: Values, starts: Values, scan: Scan, size: int) -> Values:
    neutral = _neutral(builder, body, starts)
    axis, length = scan.axis, shape_of(values[0])[scan.axis]

    def parts_of() -> Values:
        """Returns the parts, built anew for each user, which then computes them itself."""
        pairs = zip(converted(builder, values, neutral), neutral, strict=True)
        return [in_parts(builder, value, axis, size, like) for value, like in pairs]

    parts = parts_of()
    shape = shape_of(parts[0])
    totals = builder.reduction(parts, neutral, (axis + 1,), copy_region(body, {}))
    before = scanned(builder, body, totals, starts, axis, scan._replace(is_exclusive=True))
    inside = scanned(builder, body, parts_of(), neutral, axis + 1, scan)
    kept = [value for value in range(len(shape)) if value != axis + 1]
    firsts = [builder.broadcast(value, shape, kept) for value in before]
    pairs = [*inside, *firsts] if scan.is_reverse else [*firsts, *inside]
    result = over_tensors(builder, body.block, pairs)
    whole = (*shape[:axis], shape[axis] * size, *shape[axis + 2 :])
    return [builder.piece(builder.reshape(value, whole), axis, 0, length) for value in result]


def scanned(builder: Builder, body: Region, values: Values, starts: Values, axis: int, scan: Scan) -> Values:
    """Scans along a dimension, in the direction of another scan."""
    shape = shape_of(values[0])
    length = shape[axis]
    far, near = (length, -1) if scan.is_exclusive else (length - 1, 0)
    padding = [0] * (2 * len(shape))
    padding[2 * axis : 2 * axis + 2] = (near, far) if scan.is_reverse else (far, near)
    attributes: dict[str, Attribute] = {
        "window_dimensions": DenseArray(I64, tuple(length if value == axis else 1 for value in range(len(shape)))),
        "padding": DenseElements.of(np.reshape(padding, (-1, 2)), TensorType((len(shape), 2), I64)),
    }
    types = [tensor_of(value) for value in values]
    return builder.append("reduce_window", [*values, *starts], types, attributes, [copy_region(body, {})]).results


def _neutral(builder: Builder, body: Region, starts: Values) -> Values:
    """Returns the identity elements of a body; the initial values if the body is not a known operation."""
    element = tensor_of(starts[0]).scalar
    identity = identity_of(joined_by(body.block), element)
    return starts if identity is None else [builder.constant(identity, TensorType((), element))]
