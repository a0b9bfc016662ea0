"""Command buffers: commands recorded on the host and run by a queue."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

from ..base.closeable import Closeable
from ..base.lazy_dataclass import dataclass
from ..status import ClosedError, FailedPreconditionError, InvalidArgumentError
from .buffer import Buffer
from .logical_device import LogicalDevice


@dataclass(frozen=True, slots=True)
class BindingSlot:
    """A placeholder for a buffer that comes with the submission.

    ``slot`` indexes the binding table; ``offset`` is added to the entry's, and a ``size`` of ``None`` means up to its
    end.
    """

    slot: int
    offset: int = 0
    size: int | None = None


def resolve_slots(argument: object, table: Sequence[object]) -> object:
    """Returns a command's argument, or a sequence of arguments, with the table's entries in place of slots.

    Raises:
        InvalidArgumentError: a part of an entry is not a buffer.
    """
    if isinstance(argument, BindingSlot):
        entry = table[argument.slot]
        if not argument.offset and argument.size is None:
            return entry
        if not isinstance(entry, Buffer):
            raise InvalidArgumentError(f"slot {argument.slot} takes a part of a buffer, got {type(entry).__name__}")
        return entry.subspan(argument.offset, argument.size)
    if isinstance(argument, (list, tuple)) and any(isinstance(item, BindingSlot) for item in argument):
        return [resolve_slots(item, table) for item in argument]
    return argument


def refuse_slot(binding: object) -> None:
    """Raises for a slot in a command buffer without a table."""
    if isinstance(binding, BindingSlot):
        raise InvalidArgumentError("this command buffer has no binding slots; create it with binding_capacity")


class CommandBufferState(enum.Enum):
    """The state of a command buffer."""

    INITIAL = "initial"
    RECORDING = "recording"
    EXECUTABLE = "executable"
    SUBMITTED = "submitted"  # one-shot and submitted
    CLOSED = "closed"


class CommandBuffer(Closeable):
    """Recorded commands.

    Calling sequence: ``begin`` → ``fill``/``copy``/``update``/``execution_barrier``… → ``end`` → ``Queue.submit`` (a
    one-shot buffer once, a reusable one any number of times) → ``close``. Record in one thread at a time.

    Attributes:
        name: the name in messages.
        one_shot: whether it may be submitted at most once.
        binding_capacity: the number of slots; 0 for a buffer whose bindings are all known at recording.
        is_kept: whether it is one-shot and its native commands are kept for equal command buffers.
    """

    device: LogicalDevice
    name: str
    one_shot: bool
    binding_capacity: int
    is_kept: bool = False
    state: CommandBufferState

    @abstractmethod
    def begin(self) -> Self:
        """Starts recording anew and returns itself; FailedPreconditionError while it is being recorded."""

    @abstractmethod
    def end(self) -> Self:
        """Ends recording; the buffer can then be submitted. Returns itself."""

    @abstractmethod
    def check_recording(self) -> None:
        """Raises unless it is being recorded."""

    def check_executable(self) -> None:
        """Raises unless it can be submitted."""
        if self.state is CommandBufferState.CLOSED:
            raise ClosedError(f"command buffer {self.name} was closed")
        if self.state is CommandBufferState.SUBMITTED:
            raise FailedPreconditionError(
                f"command buffer {self.name} is one-shot and was submitted; record it again, or create it reusable"
            )
        if self.state is not CommandBufferState.EXECUTABLE:
            raise FailedPreconditionError(
                f"command buffer {self.name} is {self.state.value}; begin(), record and end() it before submitting"
            )

    @abstractmethod
    def execution_barrier(self) -> None:
        """Makes later commands start after earlier commands are done, and see their writes."""

    @abstractmethod
    def begin_label(self, label: str) -> None:
        """Opens a label for tools."""

    @abstractmethod
    def end_label(self) -> None:
        """Closes the innermost label; FailedPreconditionError if none is open."""

    @abstractmethod
    def fill(self, target: Buffer | BindingSlot, pattern: bytes, offset: int = 0, size: int | None = None) -> None:
        """Fills bytes ``[offset, offset + size)`` with a pattern of 1, 2 or 4 bytes that starts at ``offset``.

        Offset and size need no alignment; ``size`` must be a multiple of the pattern's length.
        """

    @abstractmethod
    def update(self, target: Buffer | BindingSlot, data: bytes, offset: int = 0) -> None:
        """Writes bytes, captured immediately, at any ``offset``."""

    @abstractmethod
    def copy(
        self,
        source: Buffer | BindingSlot,
        target: Buffer | BindingSlot,
        size: int | None = None,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
    ) -> None:
        """Copies bytes at any alignment, by default to the end of the source.

        The ranges must not overlap, unless they are the same: then nothing is done.
        """
