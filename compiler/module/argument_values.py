"""Integer arguments whose values are lengths: the host reads them when a call begins.

A check on the device would need no wait, but lengths decide what is recorded for it; and where no dimension of an
argument is that length, nothing else says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.types import ScalarType
from .allocation import HOST, allocate, new_fence
from .function_text import FunctionText
from .scalars import load_scalar, widened

_SLOT = 8


def read_values(
    text: FunctionText, device: str, wait: str, arguments: Mapping[int, tuple[str, ScalarType]]
) -> dict[int, str]:
    """Registers of 64 bits with the values of arguments.

    Args:
        text: of the function, to which this is added.
        device: its register.
        wait: the fence before which they are not read.
        arguments: registers of their buffers, and types of 8 bits or more, by number.
    """
    if not arguments:
        return {}
    # What a caller passes may be where the host cannot read.
    copies, fence = allocate(text, device, wait, HOST, text.i64(_SLOT * len(arguments)))
    every = text.i64(-1)
    for slot, (buffer, scalar) in enumerate(arguments.values()):
        wait, fence = fence, new_fence(text, device)
        places = [buffer, text.i64(0), copies, text.i64(_SLOT * slot), text.i64(scalar.bits // 8), text.i64(0)]
        text.call("hal.device.queue.copy", [device, every, wait, fence, *places])
    text.await_fence(fence)
    found = {}
    for slot, (number, (_, scalar)) in enumerate(arguments.items()):
        found[number] = widened(text, load_scalar(text, copies, _SLOT * slot, scalar), scalar)
    wait, fence = fence, new_fence(text, device)
    text.call("hal.device.queue.dealloca", [device, every, wait, fence, copies, text.i64(0)])
    return found
