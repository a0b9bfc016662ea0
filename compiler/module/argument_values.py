"""Integer arguments whose values are lengths: the host reads them when a call begins.

A check on the device would need no wait, but lengths decide what is recorded for it; and where no dimension of an
argument has that length, nothing else tells it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.types import ScalarType
from .allocation import HOST, allocate, new_fence
from .function_builder import FunctionBuilder, Register
from .scalars import load_scalar, widened

_SLOT = 8


def read_values(
    code: FunctionBuilder, device: Register, wait: Register, arguments: Mapping[int, tuple[Register, ScalarType]]
) -> dict[int, Register]:
    """Reads the values of arguments.

    Args:
        code: of the function.
        device: to copy on.
        wait: the fence before which they are not read.
        arguments: buffers, and types of 8 bits or more, by argument number.

    Returns:
        The values in 64 bits, by argument number.
    """
    if not arguments:
        return {}
    # What a caller passes may be where the host cannot read.
    copies, fence = allocate(code, device, wait, HOST, code.i64(_SLOT * len(arguments)))
    every = code.i64(-1)
    for slot, (buffer, scalar) in enumerate(arguments.values()):
        wait, fence = fence, new_fence(code, device)
        ranges = [buffer, code.i64(0), copies, code.i64(_SLOT * slot), code.i64(scalar.bits // 8), code.i64(0)]
        code.call("hal.device.queue.copy", [device, every, wait, fence, *ranges])
    code.await_fence(fence)
    values = {}
    for slot, (number, (_, scalar)) in enumerate(arguments.items()):
        values[number] = widened(code, load_scalar(code, copies, _SLOT * slot, scalar), scalar)
    wait, fence = fence, new_fence(code, device)
    code.call("hal.device.queue.dealloca", [device, every, wait, fence, copies, code.i64(0)])
    return values
