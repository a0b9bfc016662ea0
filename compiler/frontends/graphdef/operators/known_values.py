"""Values that are known while a program is read, and broadcasting by NumPy's rules.

Known values depend on constants and lengths only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from .....hal_reference.operations import DEFINITIONS, evaluate
from ....analysis.reference_program import ProgramWriter
from ....dialects.builder import Builder
from ....ir.attributes import Array, type_shape
from ....ir.operation import Block, Operation, Value, tensor_of
from ....ir.sizes import Dim
from ....ir.types import TensorType
from ....passes.dynamic.known_sizes import Known, is_size

_MAX_KNOWN: Final = 1 << 20
"""Larger values are not computed while a program is read."""

_DIMENSION: Final = "stablehlo.get_dimension_size"
_NOT_COMPUTED: Final = frozenset({"while", "rng", "rng_bit_generator"})


def lengths_of(value: Value) -> tuple[Dim, ...]:
    """Returns the lengths of a tensor, some of which may be call-dependent."""
    return tensor_of(value).lengths


def known_array(value: Value) -> Array | None:
    """Returns the elements of a value that depends only on constants; None for other or large values."""
    operations = _definitions(value)
    if operations is None:
        return None
    if any(operation.name == _DIMENSION for operation in operations):
        lengths = _followed(operations, value)
        numbers = [length for length in lengths or () if isinstance(length, int)]
        if lengths is None or len(numbers) < len(lengths):
            return None
        type = tensor_of(value)
        return np.array(numbers, type.scalar.dtype).reshape(type_shape(type))
    block = Block()
    block.operations = [*operations, Operation("func.return", [value])]
    (array,) = evaluate(ProgramWriter({}).block(block), [])
    return np.asarray(array)


def known_lengths(value: Value) -> tuple[Dim, ...] | None:
    """Returns the elements of an integer vector that depends only on constants and lengths; else None."""
    operations = _definitions(value)
    if operations is None or not tensor_of(value).scalar.is_integer:
        return None
    if any(operation.name == _DIMENSION for operation in operations):
        return _followed(operations, value)
    array = known_array(value)
    return None if array is None else tuple(int(item) for item in array.reshape(-1))


def _followed(operations: Sequence[Operation], value: Value) -> tuple[Dim, ...] | None:
    """Returns the elements of a value as sizes."""
    known = Known()
    for operation in operations:
        if operation.name == _DIMENSION:
            length = lengths_of(operation.operands[0])[operation.integer("dimension")]
            known.sizes[operation.result] = known.scalar(length)
        else:
            known.note(operation)
    elements = known.elements(value)
    items = [] if elements is None else [item for item in elements.reshape(-1) if is_size(item)]
    return tuple(items) if elements is not None and len(items) == elements.size else None


def _definitions(value: Value) -> list[Operation] | None:
    """Returns the operations that a value depends on, in order, or None if an operation cannot be evaluated.

    Operands of lengths are not followed.
    """
    operations: list[Operation] = []
    seen: set[Value] = set()
    stack = [(value, False)]
    while stack:
        current, is_done = stack.pop()
        owner = current.owner
        if isinstance(owner, Block):
            return None
        if is_done:
            operations.append(owner)
            continue
        if current in seen:
            continue
        if owner.name == _DIMENSION:
            seen.add(current)
            operations.append(owner)
            continue
        name = owner.name.removeprefix("stablehlo.")
        if name not in DEFINITIONS or name in _NOT_COMPUTED or (owner.regions and not _is_closed(owner)):
            return None
        for result in owner.results:
            type = result.type
            if not isinstance(type, TensorType) or not type.is_static or math.prod(type_shape(type)) > _MAX_KNOWN:
                return None
        seen.update(owner.results)
        stack.append((current, True))
        stack.extend((operand, False) for operand in owner.operands)
    return operations


def _is_closed(operation: Operation) -> bool:
    """Whether the regions use no values from outside."""
    defined: set[Value] = set()
    for inner in operation.walk():
        for region in inner.regions:
            for block in region.blocks:
                defined.update(block.arguments)
        if inner is not operation and not defined.issuperset(inner.operands):
            return False
        defined.update(inner.results)
    return True


def broadcast_shape(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """Returns the shape that shapes broadcast to.

    Raises:
        ValueError: two lengths are incompatible.
    """
    rank = max(map(len, shapes))
    lengths: list[Dim] = [1] * rank
    for shape in shapes:
        for axis, length in enumerate(shape, rank - len(shape)):
            if length != 1 and lengths[axis] not in (1, length):
                raise ValueError(f"shapes {' and '.join(str(list(dims)) for dims in shapes)} do not broadcast")
            lengths[axis] = length if length != 1 else lengths[axis]
    return tuple(lengths)


def broadcast_to(builder: Builder, value: Value, shape: Sequence[Dim]) -> Value:
    """Broadcasts a value to a shape, aligned at the last dimensions."""
    lengths = lengths_of(value)
    if lengths == tuple(shape):
        return value
    if len(lengths) > len(shape):
        raise ValueError(f"{list(lengths)} does not broadcast to {list(shape)}")
    return builder.broadcast(value, shape, range(len(shape) - len(lengths), len(shape)))


def broadcast_all(builder: Builder, values: Sequence[Value]) -> list[Value]:
    """Broadcasts values to one shape."""
    shape = broadcast_shape([lengths_of(value) for value in values])
    return [broadcast_to(builder, value, shape) for value in values]
