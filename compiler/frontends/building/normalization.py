"""Softmax of the last dimension."""

from __future__ import annotations

from ...dialects.builder import Builder
from ...ir.operation import Value, tensor_of
from ...passes.formulas.expression import Expression
from .known_values import lengths_of
from .reductions import reduced, wide


def softmax(builder: Builder, value: Value, *, is_log: bool = False) -> Value:
    """Returns the softmax of the last dimension, or its logarithm; computed in f32 for narrow floats.

    The largest element is subtracted first, so that nothing overflows.
    """
    x = Expression(builder, wide(builder, value))
    last = tensor_of(value).rank - 1

    def spread(reduction: Value) -> Expression:
        return Expression(builder, builder.broadcast(reduction, lengths_of(x.value), range(last)))

    x = x - spread(reduced(builder, x.value, [last], "maximum"))
    power = x.call("exponential")
    total = spread(reduced(builder, power.value, [last], "add"))
    result = x - total.call("log") if is_log else power / total
    return result.convert(tensor_of(value).scalar).value
