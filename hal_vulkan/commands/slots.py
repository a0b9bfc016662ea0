"""Binding slots: places for buffers that come with a submission, in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...status import InvalidArgumentError
from ..memory.buffer import Buffer


@dataclass(frozen=True, slots=True)
class BindingSlot:
    """A place for a buffer that comes with the submission.

    Attributes:
        slot: index into the binding table.
        offset: bytes added to the table entry's offset.
        size: bytes; ``None`` goes to the end of the table entry.
    """

    slot: int
    offset: int = 0
    size: int | None = None


def resolve_slots(argument: object, table: Sequence[Buffer]) -> object:
    """An argument of a command, or a sequence of such, with the table's buffers in place of slots."""
    if isinstance(argument, BindingSlot):
        entry = table[argument.slot]
        return entry if not argument.offset and argument.size is None else entry.subspan(argument.offset, argument.size)
    if isinstance(argument, (list, tuple)) and any(isinstance(item, BindingSlot) for item in argument):
        return [resolve_slots(item, table) for item in argument]
    return argument


def refuse_slot(binding: object) -> None:
    """Raises for a slot in a command buffer without a table."""
    if isinstance(binding, BindingSlot):
        raise InvalidArgumentError("this command buffer has no binding slots; create it with binding_capacity")
