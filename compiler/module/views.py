"""Buffer views of what a call writes."""

from __future__ import annotations

from typing import Final

from ..ir.element_types import element_type
from ..ir.types import MemRefType
from ..passes.sequencing.steps import Buffer
from .function_builder import FunctionBuilder, Register
from .lengths import Lengths

ENCODING_DENSE: Final = 1
"""The HAL's code of a dense row-major layout."""


def view_of(
    code: FunctionBuilder, lengths: Lengths, buffer: Buffer, memory: Register, offset: int | Register = 0
) -> Register:
    """Creates a view of a buffer that lies in memory at an offset."""
    dims = [(lengths.of(length),) for length in buffer.type.lengths]
    extent = [memory, lengths.at(offset), lengths.of(buffer.bytes)]
    encoding = [code.i32(element_code(buffer.type)), code.i32(ENCODING_DENSE)]
    return code.reference_of("hal.buffer_view.create", [*extent, *encoding, dims])


def element_code(type: MemRefType) -> int:
    """Returns the HAL's code of a buffer's elements."""
    element = element_type(type.scalar)
    if element is None:
        raise ValueError(f"buffer views have no elements of {type.scalar}")
    return int(element)
