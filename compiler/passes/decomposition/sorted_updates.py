"""Scatter of rows by sorting the updates by row: for any body and any element type.

Updates of one row stay in order. If the body is one associative operation, they are combined in log₂ n steps. Otherwise
they are applied in rounds: the first update of each row in the first round, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.identities import REPLACED, joined_by
from ...dialects.builder import Builder, Values
from ...ir.operation import Block, Value, tensor_of
from ...ir.types import F32, I32, TensorType
from ..canonical.legacy import over_tensors
from .building import joining, shape_of, taken


def applied_in_order(
    builder: Builder, body: Block, keys: Value, updates: Values, old: Values, is_unique: bool
) -> Values:
    """Applies updates to rows."""
    (total,), places = shape_of(keys), shape_of(old[0])[0]
    order = builder.iota(TensorType((total,), I32), 0)
    keys, order = builder.sort([keys, order], 0, lambda inner, four: inner.compare("LT", four[0], four[1]))
    element = tensor_of(old[0]).scalar
    joined = joined_by(body)
    ordered: Values = [taken(builder, value, order) for value in updates]
    if not is_unique and joined not in ("", REPLACED):
        if joined == "add" and element.kind == "float" and element.bits < 32:
            old, ordered = ([builder.convert(value, F32) for value in values] for values in (list(old), ordered))
            body = joining(builder, "add", F32).block
        ordered = _joined(builder, body, keys, ordered)
    rows = builder.iota(TensorType((places,), I32), 0)
    ends = _bound(builder, keys, rows)
    if is_unique or joined:
        last = builder.elementwise("maximum", builder.elementwise("subtract", ends, 1), 0)
        hit = builder.elementwise(
            "and", builder.compare("GT", ends, 0), builder.compare("EQ", taken(builder, keys, last), rows)
        )
        results = _updated(builder, body, old, ordered, last, hit)
        return [builder.convert(value, element) for value in results] if len(results) == 1 else results
    starts = _bound(builder, keys, builder.elementwise("subtract", rows, 1))
    return _in_rounds(builder, body, old, ordered, starts, ends)


def _joined(builder: Builder, body: Block, keys: Value, values: Values) -> Values:
    """Combines each update with the earlier updates of the same row."""
    (total,) = shape_of(keys)
    distance = 1
    while distance < total:
        before = [builder.piece(value, 0, 0, total - distance) for value in values]
        after = [builder.piece(value, 0, distance, total) for value in values]
        same = builder.compare(
            "EQ", builder.piece(keys, 0, 0, total - distance), builder.piece(keys, 0, distance, total)
        )
        joined = over_tensors(builder, body, [*before, *after])
        values = [
            builder.concatenate([builder.piece(value, 0, 0, distance), _chosen(builder, same, new, old)], 0)
            for value, new, old in zip(values, joined, after, strict=True)
        ]
        distance *= 2
    return values


def _chosen(builder: Builder, predicate: Value, chosen: Value, other: Value) -> Value:
    """Selects rows by a predicate per row."""
    return builder.select(builder.broadcast(predicate, shape_of(chosen), (0,)), chosen, other)


def _bound(builder: Builder, keys: Value, rows: Value) -> Value:
    """Returns the number of sorted keys that are at most each row's index."""
    (total,) = shape_of(keys)
    bound = builder.like(rows, 0)
    step = 1 << (total.bit_length() - 1)
    while step:
        after = builder.elementwise("add", bound, step)
        last = builder.elementwise("minimum", builder.elementwise("subtract", after, 1), total - 1)
        fits = builder.elementwise(
            "and", builder.compare("LE", after, total), builder.compare("LE", taken(builder, keys, last), rows)
        )
        bound = builder.select(fits, after, bound)
        step //= 2
    return bound


def _updated(builder: Builder, body: Block, old: Values, updates: Values, positions: Value, hit: Value) -> list[Value]:
    """Applies one update to each row with a hit."""
    chosen = [taken(builder, value, positions) for value in updates]
    new = over_tensors(builder, body, [*old, *chosen])
    return [_chosen(builder, hit, updated, kept) for updated, kept in zip(new, old, strict=True)]


def _in_rounds(
    builder: Builder, body: Block, old: Values, updates: Values, starts: Value, ends: Value
) -> Sequence[Value]:
    """Applies each row's updates one after another, in parallel for all rows."""
    index = TensorType((), I32)
    counts = builder.elementwise("subtract", ends, starts)
    zero = builder.constant(0, index)
    most = builder.reduce("maximum", counts, 0, (0,))

    def condition(inner: Builder, values: Values) -> Values:
        return [inner.compare("LT", values[0], most)]

    def step(inner: Builder, values: Values) -> Values:
        number, *rows = values
        position = inner.elementwise("add", starts, inner.broadcast(number, shape_of(starts), ()))
        hit = inner.compare("LT", position, ends)
        position = inner.select(hit, position, 0)
        return [inner.elementwise("add", number, 1), *_updated(inner, body, rows, updates, position, hit)]

    return builder.repeat([zero, *old], condition, step)[1:]
