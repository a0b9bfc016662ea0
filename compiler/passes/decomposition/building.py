"""Scatters and gathers of rows by one key each, and whole words, of which other decompositions are made."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.identities import REPLACED
from ...dialects.builder import Builder
from ...ir.attributes import Attribute, StructAttr, type_shape
from ...ir.operation import Region, Value, tensor_of
from ...ir.types import F32, ScalarType, TensorType

Values = Sequence[Value]


def scattered(
    builder: Builder, body: Region, keys: Value, updates: Values, old: Values, is_unique: bool = False
) -> Values:
    """Scatters rows by their keys."""
    rank, (total,) = tensor_of(old[0]).rank, type_shape(tensor_of(keys))
    fields = {
        "update_window_dims": tuple(range(1, rank)),
        "inserted_window_dims": (0,),
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
    }
    attributes: dict[str, Attribute] = {"scatter_dimension_numbers": StructAttr("stablehlo.scatter", fields)}
    if is_unique:
        attributes["unique_indices"] = True
    operands = [*old, builder.reshape(keys, (total, 1)), *updates]
    return builder.append("scatter", operands, [value.type for value in old], attributes, [body]).results


def joining(builder: Builder, name: str, element: ScalarType) -> Region:
    """Returns a scatter's body that applies one operation, or returns the update."""
    scalar = TensorType((), element)

    def body(inner: Builder, pair: Values) -> Values:
        return [pair[1] if name == REPLACED else inner.elementwise(name, *pair)]

    return builder.region([scalar, scalar], body)


def taken(builder: Builder, value: Value, positions: Value) -> Value:
    """Gathers rows by their positions in the first dimension."""
    (count,), shape = type_shape(tensor_of(positions)), type_shape(tensor_of(value))
    fields = {
        "offset_dims": tuple(range(1, len(shape))),
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "index_vector_dim": 1,
    }
    return builder.gather(value, builder.reshape(positions, (count, 1)), fields, (1, *shape[1:]), (count, *shape[1:]))


def widened(builder: Builder, value: Value) -> Value:
    """Converts elements of fewer than 32 bits to integers of 32 that hold their bits."""
    element = tensor_of(value).scalar
    if element.bits >= 32:
        return value
    if element.kind == "float":
        if element.bits < 8:
            return builder.convert(value, F32)
        value = builder.bitcast(value, ScalarType(f"ui{element.bits}"))
    return builder.convert(value, ScalarType("i32" if element.kind == "int" else "ui32"))


def narrowed(builder: Builder, value: Value, element: ScalarType) -> Value:
    """Reverses ``widened``."""
    if element.kind != "float" or not 8 <= element.bits < 32:
        return builder.convert(value, element)
    return builder.bitcast(builder.convert(value, ScalarType(f"ui{element.bits}")), element)
