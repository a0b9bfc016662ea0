"""Scatters of rows: the choice of the method.

A few updates are first combined with each other, each with the earlier updates, and then written to their rows. Bodies
whose result does not depend on the order are applied by atomic instructions: integer operations; assignment, as the
maximum of the updates' numbers; maxima and minima of floats, as integers of the same order; sums of floats, in fixed
point. Other updates are sorted. A CPU may scatter to copies of the rows: each copy takes a chunk of the updates in
order, and the copies are then combined. This needs neither sorting nor atomics, but the copies must be small compared
with the updates.

All functions take the keys, which are the row of each update, or the number of rows for an update without a row; the
updates, a row for each key; and the old rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...analysis.identities import REPLACED, identity_of, joined_by
from ...analysis.special_forms import ATOMIC, ATOMIC_IN_HALVES, IN_ORDER
from ...analysis.weights import iterations_of
from ...dialects.builder import Builder, Values
from ...ir.attributes import Attribute
from ...ir.copying import copy_region
from ...ir.operation import Block, Region, Value, tensor_of
from ...ir.sizes import number_of
from ...ir.types import F32, I32, ScalarType, TensorType
from ...kernels.scalars.target import Target
from .building import converted, joining, narrowed, scattered, shape_of, taken, widened
from .exact_sums import sums_by_place
from .sorted_updates import applied_in_order

_UNIQUE: Final[Mapping[str, Attribute]] = {"unique_indices": True}

MAX_UPDATES: Final = 1024
"""The most updates that each element of a result inspects."""

_MAX_PAIRS: Final = 1 << 20
"""The most pairs of updates that inspect each other; the number of elements if that is more."""


def most_looks(body: Block) -> int:
    """Returns the largest number of updates that an element may inspect, by the cost of the body."""
    return MAX_UPDATES // (1 + sum(iterations_of(operation) for operation in body.operations))


def applied(
    builder: Builder, body: Block, keys: Value, updates: Values, old: Values, is_unique: bool, device: Target
) -> Values:
    """Applies updates to rows."""
    (total,), count = shape_of(keys), number_of(old[0].tensor.count)
    pairs = total * number_of(updates[0].tensor.count)
    if total <= most_looks(body) and pairs <= max(_MAX_PAIRS, count):
        return _few(builder, body, keys, updates, old)
    if len(old) == 1:
        name, kind = joined_by(body), tensor_of(old[0]).scalar.kind
        is_rounded = name == "multiply" or (name == "add" and kind in ("float", "complex"))
        is_chunked = is_rounded and device.family == "cpu" and not is_unique
        result = applied_in_chunks(builder, name, keys, updates[0], old[0]) if is_chunked else None
        if result is not None:
            return [result]
        result = _in_any_order(builder, body, keys, updates[0], old[0], is_unique)
        if result is not None:
            return [result]
    return applied_in_order(builder, body, keys, updates, old, is_unique)


def _few(builder: Builder, body: Block, keys: Value, updates: Values, old: Values) -> Values:
    """Applies the updates of each key to a copy of its row, at the first update; then writes the copies back."""
    (total,), places = shape_of(keys), old[0].tensor.lengths[0]
    square = TensorType((total, total), I32)
    same = builder.compare(
        "EQ", builder.broadcast(keys, square.shape, (0,)), builder.broadcast(keys, square.shape, (1,))
    )
    numbers = builder.select(same, builder.iota(square, 1), total)
    first = builder.reduce("minimum", numbers, total, (1,))
    rows, region = [taken(builder, value, keys) for value in old], copy_region(Region([body]), {})
    element = tensor_of(old[0]).scalar
    if element.kind == "float" and element.bits < 32 and joined_by(body) == "add":
        # Narrow sums are rounded once.
        region = joining(builder, "add", F32)
        rows, updates = ([builder.convert(value, F32) for value in values] for values in (rows, updates))
    copies = scattered(builder, region, first, updates, rows)
    copies = converted(builder, copies, old)
    is_first = builder.compare("EQ", first, builder.iota(TensorType((total,), I32), 0))
    goes = builder.select(is_first, keys, number_of(places))
    return [_put(builder, goes, copy, value) for copy, value in zip(copies, old, strict=True)]


def _put(builder: Builder, keys: Value, rows: Value, old: Value) -> Value:
    """Replaces rows at distinct indices."""
    wide = [widened(builder, value) for value in (rows, old)]
    region = joining(builder, REPLACED, tensor_of(wide[0]).scalar)
    return narrowed(builder, scattered(builder, region, keys, wide[:1], wide[1:], _UNIQUE)[0], tensor_of(old).scalar)


# -- in any order ----------------------------------------------------------------------------------------


def _in_any_order(
    builder: Builder, body: Block, keys: Value, update: Value, old: Value, is_unique: bool
) -> Value | None:
    """Applies updates whose order does not matter or can be made irrelevant; returns None for other bodies."""
    name, element = joined_by(body), tensor_of(old).scalar
    if is_unique and element.bits >= 32:
        return scattered(builder, copy_region(Region([body]), {}), keys, [update], [old], _UNIQUE)[0]
    if name == REPLACED:
        return _last(builder, keys, update, old)
    if element.kind == "bool":
        name, wide = _LOGICAL.get(name, ""), ScalarType("ui32")
    elif element.kind == "float" and element.bits <= 32:
        if name == "add":
            return sums_by_place(builder, keys, update, old)
        return _extreme(builder, name, keys, update, old) if name in ("maximum", "minimum") else None
    elif element.kind == "complex" and element.bits == 64 and name == "add":
        parts = [[builder.part(part, value) for value in (update, old)] for part in ("real", "imag")]
        real, imaginary = (sums_by_place(builder, keys, *pair) for pair in parts)
        return builder.complex(real, imaginary)
    elif element.kind in ("int", "uint"):
        wide = element if element.bits >= 32 else ScalarType("i32" if element.kind == "int" else "ui32")
    else:
        return None
    if name not in (ATOMIC_IN_HALVES if element.bits == 64 else ATOMIC):
        return None
    converted, before = (builder.convert(value, wide) for value in (update, old))
    return builder.convert(scattered(builder, joining(builder, name, wide), keys, [converted], [before])[0], element)


_LOGICAL: Final = {
    "add": "or",
    "maximum": "or",
    "or": "or",
    "and": "and",
    "minimum": "and",
    "multiply": "and",
    "xor": "xor",
}
"""Integer operations that equal logical operations on booleans."""


def _last(builder: Builder, keys: Value, update: Value, old: Value) -> Value:
    """Replaces each row by its last update."""
    (total,), shape, word = shape_of(keys), tensor_of(old).lengths, ScalarType("ui32")
    numbers = builder.elementwise("add", builder.iota(TensorType((total,), word), 0), 1)
    none = builder.constant(0, TensorType(shape[:1], word))
    (last,) = scattered(builder, joining(builder, "maximum", word), keys, [numbers], [none])
    rows = taken(builder, update, builder.convert(builder.elementwise("subtract", last, 1), I32))
    return builder.select(builder.broadcast(builder.compare("NE", last, 0), shape, (0,)), rows, old)


def _extreme(builder: Builder, name: str, keys: Value, update: Value, old: Value) -> Value:
    """Returns the maximum or the minimum of each row and its updates; NaN if any of these is NaN."""
    element = tensor_of(old).scalar
    nan = 2**31 - 1 if name == "maximum" else -(2**31)

    def flipped(bits: Value) -> Value:
        """Maps the bits of floats to integers of the same order, and back."""
        sign = builder.elementwise("shift_right_arithmetic", bits, 31)
        return builder.elementwise("xor", bits, builder.elementwise("and", sign, 2**31 - 1))

    def ordered(value: Value) -> Value:
        value = builder.convert(value, F32)
        return builder.select(builder.compare("NE", value, value), nan, flipped(builder.bitcast(value, I32)))

    region = joining(builder, name, I32)
    (extreme,) = scattered(builder, region, keys, [ordered(update)], [ordered(old)])
    return builder.convert(builder.bitcast(flipped(extreme), F32), element)


COPIES: Final = (32, 16, 8)
"""Numbers of copies, in descending order."""

MAX_SHARE: Final = 4
"""The most rows of all copies per update."""

MAX_CHUNK: Final = 1 << 15
"""The most updates of a chunk, over which an invocation loops."""


def applied_in_chunks(builder: Builder, name: str, keys: Value, update: Value, old: Value) -> Value | None:
    """Applies updates by an operation; returns None if copies of the rows are too large or there is no identity."""
    (total,), (places, *lengths), element = (
        shape_of(keys),
        shape_of(old),
        tensor_of(old).scalar,
    )
    copies = next((number for number in COPIES if number * places <= MAX_SHARE * total), 0)
    wide = _wide(element)
    identity = identity_of(name, wide)
    if not copies or identity is None or -(-total // copies) > MAX_CHUNK:
        return None
    chunk = -(-total // copies)
    missing = chunk * copies - total
    keys = builder.lengthen(keys, 0, missing, places)
    update = builder.lengthen(builder.convert(update, wide), 0, missing)
    update = builder.reshape(update, (copies, chunk, *lengths))
    rows = builder.constant(identity, TensorType((copies, places, *lengths), wide))
    (result,) = scattered(builder, joining(builder, name, wide), keys, [update], [rows], {IN_ORDER: True}, 1)
    joined = builder.reduce(name, result, identity, (0,))
    return builder.convert(builder.elementwise(name, builder.convert(old, wide), joined), element)


def _wide(element: ScalarType) -> ScalarType:
    """Returns the whole-word type in which elements are combined."""
    if element.bits >= 32:
        return element
    if element.kind == "float":
        return F32
    return ScalarType("i32" if element.kind == "int" else "ui32")
