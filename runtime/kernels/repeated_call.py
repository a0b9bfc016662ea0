"""Calls of a kernel with the same arrays again: what was checked and recorded for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ...hal_vulkan import CommandBuffer
from ..arrays.array import DeviceArray

Serials: TypeAlias = tuple[int, ...]

_MAX_KNOWN: Final = 1024


class RepeatedCall:
    """A call with arrays that were checked, whose commands are recorded.

    It holds no arrays, and is right for as long as nothing was closed and the commands not recorded for others.

    Attributes:
        commands: of the call; the recorder's.
        generation: of the commands, when they were recorded for these arrays.
        epoch: of the device, when the arrays were last found open.
        is_whole: whether none of the arrays is a view of another.
    """

    __slots__ = ("commands", "epoch", "generation", "is_whole")

    def __init__(self, commands: CommandBuffer, epoch: int, arrays: Sequence[DeviceArray]) -> None:
        self.commands = commands
        self.generation = commands.generation
        self.epoch = epoch
        self.is_whole = all(array._base is None for array in arrays)


class RepeatedCalls(dict[Serials, RepeatedCall | None]):
    """The calls of a kernel by the serials of their arrays; ``None`` for arrays that were seen once.

    Thread rule: the kernel's lock, but for ``get``.
    """

    def note(self, commands: CommandBuffer, epoch: int, arrays: Sequence[DeviceArray]) -> None:
        """Notes a call; the second one with the same arrays is kept.

        ``epoch`` is the device's from before the arrays were checked.
        """
        serials = tuple([array.serial for array in arrays])
        known = self.get(serials)
        if known is not None and known.commands is commands:
            known.epoch, known.generation = epoch, commands.generation
            return
        if len(self) >= _MAX_KNOWN:
            self.clear()
        self[serials] = RepeatedCall(commands, epoch, arrays) if serials in self else None
