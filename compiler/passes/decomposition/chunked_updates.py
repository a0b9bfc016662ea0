"""Scatter of rows by as many copies of the rows as a CPU runs invocations at a time.

Each copy takes a chunk of the updates in order, and the copies are then combined. Where copies are small compared with
the updates, this needs neither sorting nor atomic instructions.
"""

from __future__ import annotations

from typing import Final

from ...analysis.direct_scatters import IN_ORDER
from ...analysis.identities import identity_of
from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, StructAttr, type_shape
from ...ir.operation import Value, tensor_of
from ...ir.types import F32, I64, ScalarType, TensorType
from .row_scatters import joining

COPIES: Final = (32, 16, 8)
"""Numbers of copies, the most first."""

MAX_SHARE: Final = 4
"""Rows of all copies per update, at most."""

MAX_CHUNK: Final = 1 << 15
"""Updates of a chunk, at most: an invocation loops over them."""


def applied_in_chunks(builder: Builder, name: str, keys: Value, update: Value, old: Value) -> Value | None:
    """Applies updates by an operation; returns None if copies of the rows are too large, or it has no identity element.

    Args:
        builder: appends the operations.
        name: of the operation.
        keys: the row of each update; the number of rows for no row.
        update: a row for each key.
        old: the rows.
    """
    (total,), (places, *lengths), element = (
        type_shape(tensor_of(keys)),
        type_shape(tensor_of(old)),
        tensor_of(old).scalar,
    )
    copies = next((number for number in COPIES if number * places <= MAX_SHARE * total), 0)
    wide = _wide(element)
    identity = identity_of(name, wide)
    if not copies or identity is None or -(-total // copies) > MAX_CHUNK:
        return None
    chunk = -(-total // copies)
    missing = chunk * copies - total
    none = [0] * len(lengths)
    keys = builder.pad(keys, builder.constant(places, TensorType((), tensor_of(keys).element)), [0], [missing], [0])
    filling = builder.constant(0, TensorType((), wide))
    update = builder.pad(builder.convert(update, wide), filling, [0, *none], [missing, *none], [0, *none])
    fields = {
        "update_window_dims": tuple(range(2, 2 + len(lengths))),
        "inserted_window_dims": (1,),
        "input_batching_dims": (0,),
        "scatter_indices_batching_dims": (0,),
        "scatter_dims_to_operand_dims": (1,),
        "index_vector_dim": 2,
    }
    attributes: dict[str, Attribute] = {
        "scatter_dimension_numbers": StructAttr("stablehlo.scatter", fields),
        IN_ORDER: True,
    }
    type = TensorType((copies, places, *lengths), wide)
    operands = [
        builder.constant(identity, type),
        builder.reshape(keys, (copies, chunk, 1)),
        builder.reshape(update, (copies, chunk, *lengths)),
    ]
    result = builder.append("scatter", operands, [type], attributes, [joining(builder, name, wide)]).result
    axes: dict[str, Attribute] = {"dimensions": DenseArray(I64, (0,))}
    start = builder.constant(identity, TensorType((), wide))
    joined = builder.append(
        "reduce", [result, start], [TensorType((places, *lengths), wide)], axes, [joining(builder, name, wide)]
    ).result
    return builder.convert(builder.elementwise(name, builder.convert(old, wide), joined), element)


def _wide(element: ScalarType) -> ScalarType:
    """Returns the type in which elements are combined: whole words."""
    if element.bits >= 32:
        return element
    if element.kind == "float":
        return F32
    return ScalarType("i32" if element.kind == "int" else "ui32")
