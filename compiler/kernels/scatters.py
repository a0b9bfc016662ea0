"""Scatters: each element of the result searches for its updates, or each update goes to its element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...spirv.binary.expression import Id
from ...spirv.binary.grammar import Op
from ..analysis.special_forms import ScatterAxes
from ..ir.operation import Operation
from ..ir.sizes import product
from .elements import Frame, Structure, scalar_of
from .index import Index, split
from .movement import saturated, vector_index
from .scalars.scalars import Scalar, is_signed


def _scatter(frame: Frame, operation: Operation, index: Index) -> Sequence[Scalar]:
    count = len(operation.results)
    inputs, indices, updates = operation.operands[:count], operation.operands[count], operation.operands[count + 1 :]
    axes = ScatterAxes(operation)
    shape, target, scatter, mapped, kept = axes.shape, axes.target, axes.scatter, axes.mapped, axes.kept
    # Batch dimensions correspond, so only the other indices are tried.
    fixed = {source: index.parts[axis] for axis, source in axes.batches.items()}
    tried = [axis for axis in scatter if axis not in fixed]
    lengths = [shape[axis] for axis in tried]
    block = operation.regions[0].block

    def step(number: Id, values: Sequence[Scalar]) -> Sequence[Scalar]:
        parts_there = {**fixed, **dict(zip(tried, split(frame.builder, number, lengths), strict=True))}
        batch = [parts_there[axis] for axis in scatter]
        offsets = list(index.parts)
        for component, axis in enumerate(mapped):
            start = saturated(frame, indices, vector_index(frame, indices, batch, axes.vector, component))
            offsets[axis] = offsets[axis] - start
        inside = frame.builder.boolean(True)
        for axis in range(len(target)):
            if axis in kept:
                update_axis = axes.window[kept.index(axis)]
                parts_there[update_axis] = offsets[axis]
                if axis in mapped or shape[update_axis] != target[axis]:
                    inside = inside & (offsets[axis] < frame.word(shape[update_axis]))
            elif axis not in axes.batches:
                inside = inside & offsets[axis].equals(0)

        def updated() -> Sequence[Scalar]:
            update_index = frame.index(shape, [parts_there[axis] for axis in range(len(shape))])
            return frame.call(block, [*values, *(frame.at(update, update_index) for update in updates)])

        return frame.conditional(inside, updated, lambda: values)

    return frame.fold(operation, product(lengths), [frame.at(value, index) for value in inputs], step)


def target_of(frame: Frame, operation: Operation, index: Index) -> tuple[Index, Id]:
    """Returns the index in the operand for an element of a scatter's updates, and whether it is in bounds."""
    axes, builder, indices = ScatterAxes(operation), frame.builder, operation.operands[len(operation.results)]
    batch = [index.parts[axis] for axis in axes.scatter]
    parts = [builder.word(0)] * len(axes.target)
    for component, axis in enumerate(axes.mapped):
        parts[axis] = saturated(frame, indices, vector_index(frame, indices, batch, axes.vector, component))
    for axis, source in (*axes.batches.items(), *zip(axes.kept, axes.window, strict=True)):
        parts[axis] = parts[axis] + index.parts[source]
    inside = builder.boolean(True)
    for axis, (part, length) in enumerate(zip(parts, axes.target, strict=True)):
        if axis in axes.mapped:
            inside = inside & (part < builder.word(length))
    return frame.index(axes.target, parts), inside


def write_update(frame: Frame, operation: Operation, index: Index, buffer: int) -> None:
    """Applies an element of a scatter's updates to the result, which holds the operand.

    Args:
        frame: the frame of the region.
        operation: the scatter.
        index: the index of the element.
        buffer: the buffer of the result.
    """
    value, _, updates = operation.operands
    builder, body, type = frame.builder, operation.regions[0].block, scalar_of(value)
    target_index, inside = target_of(frame, operation, index)

    def write() -> None:
        if operation.flag("unique_indices"):
            new = body.terminator.operands[0]
            update = frame.at(updates, index)
            if new is not body.arguments[1]:
                (update,) = frame.call(body, [frame.at(value, target_index), update])
            words = frame.scalars.to_words(type, update)
            for position, word in enumerate(words):
                builder.store(buffer, target_index.linear * len(words) + position, word)
            return
        name = body.operations[0].name.removeprefix("stablehlo.")
        opcode = (_SIGNED if is_signed(type) else _UNSIGNED).get(name) or _ATOMICS[name]
        low, *high = frame.scalars.to_words(type, frame.at(updates, index))
        before = builder.atomic(opcode, buffer, target_index.linear * (1 + len(high)), low)
        for word in high:
            carry = (before + low < low).select(builder.word(1), 0) if name == "add" else builder.word(0)
            builder.atomic(opcode, buffer, target_index.linear * 2 + 1, word + carry)

    builder.when(inside, write)


_ATOMICS: Final = {"add": Op.AtomicIAdd, "and": Op.AtomicAnd, "or": Op.AtomicOr, "xor": Op.AtomicXor}
_SIGNED: Final = {"maximum": Op.AtomicSMax, "minimum": Op.AtomicSMin}
_UNSIGNED: Final = {"maximum": Op.AtomicUMax, "minimum": Op.AtomicUMin}

STRUCTURES: Final[Mapping[str, Structure]] = {"scatter": _scatter}
