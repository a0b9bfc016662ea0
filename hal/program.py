"""Objects of a device that compiled programs hold: they close with their last reference, and any thread may use them.

They differ from users' objects, as a program allocates its results at each call, in the same sizes, and replays the
same commands, which a device may exploit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Sequence
from typing import TypeAlias

from ..base.memory_budget import MemoryBudget
from ..status import ClosedError, InvalidArgumentError, OutOfRangeError
from .buffer import Buffer
from .command_buffer import BindingSlot, CommandBuffer
from .logical_device import LogicalDevice
from .mirror import Mirror, Use
from .semaphore import Semaphore

TableEntry: TypeAlias = tuple[Buffer | None, int, int]
"""A buffer, or ``None`` for an unused slot; offset and length in bytes, -1 for up to the end."""

BindingReference: TypeAlias = tuple[int, int, Buffer | None, int, int]
"""Reserved, slot, buffer (``None``: the slot's), offset and length in bytes, -1 for up to the end."""


class Executable:
    """Functions of a program for one device."""

    device: LogicalDevice

    @abstractmethod
    def lookup(self, name: str) -> int:
        """Returns the function id of a name; NotFoundError lists the existing names."""


class ProgramAllocator:
    """The memory of one VM context on one device.

    Attributes:
        timeline: the context's semaphore.
        last_signal: the number on the queue, and the payload of ``timeline``, of the last submission that signalled it;
            set by the submitter.
        is_closed: whether the allocator keeps nothing.
        limit: the budget for programs' memory; None means no limit.
    """

    device: LogicalDevice
    timeline: Semaphore
    last_signal: tuple[int, int]
    is_closed: bool
    limit: MemoryBudget | None = None

    @abstractmethod
    def allocate(self, memory_type: int, usage: int, size: int) -> Buffer:
        """Returns a buffer with undefined contents; ``memory_type`` and ``usage`` are bits as in modules."""

    @abstractmethod
    def adopt(self, buffer: Buffer) -> Buffer:
        """Takes over the memory of a buffer that has no other owner."""

    @abstractmethod
    def trim(self) -> None:
        """Frees kept memory."""

    @abstractmethod
    def close(self) -> None:
        """Frees kept memory; live buffers free theirs later. Idempotent."""


class ProgramCommandBuffer(CommandBuffer):
    """A command buffer of a program; its creator calls ``begin``. Its binding tables consist of ``TableEntry``.

    Attributes:
        peers: the other devices whose buffers it accepts.
        mirrors: the stand-ins for recorded buffers of other devices.
        uses: the access to the ranges of slots, noted if the command buffer accepts buffers of other devices.
        used_slots: the slots that a table must fill.
    """

    peers: Container[LogicalDevice]
    mirrors: dict[Buffer, Mirror]
    uses: dict[int, set[Use]]
    used_slots: set[int]

    @abstractmethod
    def new_mirror(self, foreign: Buffer) -> Mirror:
        """Returns a stand-in for a buffer of a peer."""

    def reference(
        self, slot: int, buffer: Buffer | None, offset: int, size: int, *, written: bool = True
    ) -> Buffer | BindingSlot:
        """Returns a range of a buffer, or of the slot's for ``None``; ``written`` is whether the command may write."""
        if buffer is None:
            if self.binding_capacity == 0:
                raise InvalidArgumentError(
                    f"{self.name}: a null buffer stands for slot {slot} of a binding table, but the command buffer was "
                    "created with no binding capacity"
                )
            if size < -1:
                raise OutOfRangeError(f"{self.name}: a range of slot {slot} has a length of {size} bytes")
            self.used_slots.add(slot)
            if self.peers:
                self.uses.setdefault(slot, set()).add((offset, size, written))
            return BindingSlot(slot, offset, None if size == -1 else size)
        part = subspan(check_buffer(buffer, self.name), offset, size)
        if part.device is not self.device and part.device in self.peers:
            root = root_of(buffer)
            mirror = self.mirrors.get(root)
            if mirror is None:
                mirror = self.mirrors[root] = self.new_mirror(root)
            part = mirror.part(part.offset - root.offset, part.size, written)
        return part

    @abstractmethod
    def dispatch_function(
        self,
        executable: Executable,
        function: int,
        groups: tuple[int, int, int],
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> None:
        """Runs a function of an executable over workgroups; a count of 0 runs nothing. Keeps the executable alive."""

    @abstractmethod
    def dispatch_function_indirect(
        self,
        executable: Executable,
        function: int,
        counts: Buffer | BindingSlot,
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> None:
        """Records ``dispatch_function`` with the workgroup counts in a buffer, three uint32, read when it runs."""


def check_buffer(buffer: object, subject: str) -> Buffer:
    """Returns the buffer; InvalidArgumentError for other values, ClosedError for a closed buffer."""
    if not isinstance(buffer, Buffer):
        got = "null" if buffer is None else type(buffer).__name__
        raise InvalidArgumentError(f"{subject}: expected a !hal.buffer, got {got}")
    if buffer.is_closed:
        raise ClosedError(f"{subject}: {buffer.moved_text or f'this buffer of {buffer.size} bytes was closed'}")
    return buffer


def root_of(buffer: Buffer) -> Buffer:
    """Returns the buffer that owns the memory: itself, or its parent."""
    while buffer.parent is not None:
        buffer = buffer.parent
    return buffer


def subspan(buffer: Buffer, offset: int, size: int) -> Buffer:
    """Returns bytes ``[offset, offset + size)`` of a buffer, to its end for a size of -1; the buffer itself if that is
    all of it.
    """
    if not offset and (size == buffer.size or size == -1):
        return buffer
    return buffer.subspan(offset, None if size == -1 else size)
