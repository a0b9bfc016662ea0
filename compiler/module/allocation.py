"""Memory that a call allocates, in the order of a queue."""

from __future__ import annotations

from typing import Final, NamedTuple

from .function_builder import FunctionBuilder, Register


class Memory(NamedTuple):
    """The type and the usage of memory, as the HAL numbers them."""

    type: int
    usage: int


DEVICE: Final = Memory(48, 0xC03)
"""Memory of the device."""

INDIRECT: Final = Memory(48, 0xD03)
"""Memory of the device from which it may also take workgroup counts."""

HOST: Final = Memory(86, 0x9000C03)
"""Memory that the device and the host read and write."""

STRIDE: Final = 256
"""Bytes from one number in memory of the host to the next: the alignment at which devices bind buffers."""


def allocate(
    code: FunctionBuilder, device: Register, wait: Register, memory: Memory, size: Register
) -> tuple[Register, Register]:
    """Allocates a buffer.

    Args:
        code: of the function.
        device: to allocate on.
        wait: the fence that the allocation waits for.
        memory: its kind.
        size: in bytes, 64 bits.

    Returns:
        The buffer, and the fence after which it may be used.
    """
    fence = new_fence(code, device)
    kind = [code.i64(0), code.i32(memory.type), code.i32(memory.usage)]
    arguments = [device, code.i64(-1), wait, fence, *kind, size, code.i64(0)]
    return code.reference_of("hal.device.queue.alloca", arguments), fence


def new_fence(code: FunctionBuilder, device: Register) -> Register:
    """Creates a fence that is not signalled."""
    return code.reference_of("hal.fence.create", [device, code.i64(0)])
