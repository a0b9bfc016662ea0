"""Scatters: each element of the result looks for the updates that hit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...spirv.builder import Id
from ..ir.attributes import StructAttr
from ..ir.operation import Operation
from ..ir.sizes import product
from .elements import Frame, Structure, shape_of
from .index import Index, split
from .movement import saturated, vector_index
from .scalars import Scalar


def _scatter(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    count = len(operation.results)
    inputs, indices, updates = operation.operands[:count], operation.operands[count], operation.operands[count + 1 :]
    numbers = operation.attributes["scatter_dimension_numbers"]
    assert isinstance(numbers, StructAttr)
    window, inserted = numbers.ints("update_window_dims"), numbers.ints("inserted_window_dims")
    mapped = numbers.ints("scatter_dims_to_operand_dims")
    input_batch, index_batch = numbers.ints("input_batching_dims"), numbers.ints("scatter_indices_batching_dims")
    vector = numbers.int("index_vector_dim")
    shape, target = shape_of(updates[0]), shape_of(inputs[0])
    scatter = [axis for axis in range(len(shape)) if axis not in window]
    kept = [axis for axis in range(len(target)) if axis not in inserted and axis not in input_batch]
    # Batches go together: only the other places are tried.
    fixed = {
        scatter[source - (source > vector)]: index.parts[axis]
        for axis, source in zip(input_batch, index_batch, strict=True)
    }
    tried = [axis for axis in scatter if axis not in fixed]
    lengths = [shape[axis] for axis in tried]
    block = operation.regions[0].block

    def step(number: Id, found: Sequence[Scalar]) -> Sequence[Scalar]:
        places = {**fixed, **dict(zip(tried, split(frame.builder, number, lengths), strict=True))}
        batch = [places[axis] for axis in scatter]
        offsets = list(index.parts)
        for component, axis in enumerate(mapped):
            start = saturated(frame, indices, vector_index(frame, indices, batch, vector, component))
            offsets[axis] = offsets[axis] - start
        inside = frame.builder.boolean(True)
        for axis in range(len(target)):
            if axis in kept:
                update_axis = window[kept.index(axis)]
                places[update_axis] = offsets[axis]
                if axis in mapped or shape[update_axis] != target[axis]:
                    inside = inside & (offsets[axis] < frame.word(shape[update_axis]))
            elif axis not in input_batch:
                inside = inside & offsets[axis].equals(0)

        def updated() -> Sequence[Scalar]:
            place = frame.index(shape, [places[axis] for axis in range(len(shape))])
            return frame.call(block, [*found, *(frame.at(update, place) for update in updates)])

        return frame.conditional(inside, updated, lambda: found)

    return frame.fold(operation, product(lengths), [frame.at(value, index) for value in inputs], step)


STRUCTURES: Final[Mapping[str, Structure]] = {"scatter": _scatter}
