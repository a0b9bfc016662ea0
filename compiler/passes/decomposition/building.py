"""Building blocks of decompositions: scatters and gathers of rows by keys, and whole words."""

from __future__ import annotations

from collections.abc import Mapping

from ...analysis.identities import REPLACED
from ...dialects.builder import Builder, Values
from ...ir.attributes import Attribute, StructAttr, type_shape
from ...ir.operation import Region, Value, tensor_of
from ...ir.types import F32, ScalarType, TensorType


def shape_of(value: Value) -> tuple[int, ...]:
    """Returns the static shape of a tensor."""
    return type_shape(tensor_of(value))


def scattered(
    builder: Builder,
    body: Region,
    keys: Value,
    updates: Values,
    old: Values,
    attributes: Mapping[str, Attribute] | None = None,
    batch: int = 0,
) -> Values:
    """Scatters rows by their keys.

    Args:
        builder: the builder that appends the operations.
        body: a function from an element and its update to the new element.
        keys: the keys, one for each update, in any shape.
        updates: the rows in the order of the keys.
        old: the rows to update.
        attributes: further attributes of the operation.
        batch: the number of leading dimensions that updates and rows share.
    """
    shape = shape_of(updates[0])[: batch + 1]
    shared = {"input_batching_dims": tuple(range(batch)), "scatter_indices_batching_dims": tuple(range(batch))}
    fields = {
        "update_window_dims": tuple(range(batch + 1, tensor_of(old[0]).rank)),
        "inserted_window_dims": (batch,),
        **(shared if batch else {}),
        "scatter_dims_to_operand_dims": (batch,),
        "index_vector_dim": batch + 1,
    }
    numbers = {"scatter_dimension_numbers": StructAttr("stablehlo.scatter", fields), **(attributes or {})}
    operands = [*old, builder.reshape(keys, (*shape, 1)), *updates]
    return builder.append("scatter", operands, [value.type for value in old], numbers, [body]).results


def joining(builder: Builder, name: str, element: ScalarType) -> Region:
    """Returns the body of a scatter or a reduction that applies one operation, or returns the second argument."""
    scalar = TensorType((), element)

    def body(inner: Builder, pair: Values) -> Values:
        return [pair[1] if name == REPLACED else inner.elementwise(name, *pair)]

    return builder.region([scalar, scalar], body)


def converted(builder: Builder, values: Values, like: Values) -> Values:
    """Converts each value to the element type of another."""
    return [builder.convert(value, tensor_of(other).scalar) for value, other in zip(values, like, strict=True)]


def taken(builder: Builder, value: Value, positions: Value, axis: int = 0) -> Value:
    """Gathers slices by their positions along a dimension."""
    lengths, (count,) = tensor_of(value).lengths, tensor_of(positions).lengths
    fields = {
        "offset_dims": tuple(other for other in range(len(lengths)) if other != axis),
        "collapsed_slice_dims": (axis,),
        "start_index_map": (axis,),
        "index_vector_dim": 1,
    }
    sizes, shape = ((*lengths[:axis], number, *lengths[axis + 1 :]) for number in (1, count))
    return builder.gather(value, builder.reshape(positions, (count, 1)), fields, sizes, shape)


def widened(builder: Builder, value: Value) -> Value:
    """Converts elements of fewer than 32 bits to 32-bit integers that hold their bits."""
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
