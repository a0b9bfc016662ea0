"""Memory that a call allocates, in the order of a queue."""

from __future__ import annotations

from typing import Final, NamedTuple

from .function_text import FunctionText


class Memory(NamedTuple):
    """Where memory is, and what it is used for, as the HAL numbers them."""

    type: int
    usage: int


DEVICE: Final = Memory(48, 0xC03)
"""What the device works with."""

INDIRECT: Final = Memory(48, 0xD03)
"""What the device takes workgroup counts from, too."""

HOST: Final = Memory(86, 0x9000C03)
"""What the device and the host read and write."""

STRIDE: Final = 256
"""Bytes from one number in memory of the host to the next: what devices bind buffers at."""


def allocate(text: FunctionText, device: str, wait: str, memory: Memory, size: str) -> tuple[str, str]:
    """Registers of a new buffer and of the fence from which on it may be used.

    Args:
        text: of the function.
        device: its register.
        wait: the fence that this one follows.
        memory: what it is for.
        size: in bytes, a register of 64 bits.
    """
    fence = new_fence(text, device)
    kind = [text.i64(0), text.i32(memory.type), text.i32(memory.usage)]
    arguments = [device, text.i64(-1), wait, fence, *kind, size, text.i64(0)]
    return text.reference_of("hal.device.queue.alloca", arguments), fence


def new_fence(text: FunctionText, device: str) -> str:
    """The register of a fence that is not signalled."""
    return text.reference_of("hal.fence.create", [device, text.i64(0)])
