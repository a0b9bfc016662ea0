"""Buffer views of what a call writes."""

from __future__ import annotations

from typing import Final

from ..ir.element_types import element_type
from ..ir.types import MemRefType
from ..passes.sequencing.steps import Buffer
from .function_text import FunctionText
from .lengths import Lengths

ENCODING_DENSE: Final = 1
"""The HAL's code of elements that lie row after row."""


def view_of(text: FunctionText, lengths: Lengths, buffer: Buffer, memory: str, offset: int | str = 0) -> str:
    """A new view of a buffer that lies in memory at an offset."""
    dims = [(lengths.of(length),) for length in buffer.type.lengths]
    place = [memory, lengths.at(offset), lengths.of(buffer.bytes)]
    code = [text.i32(element_code(buffer.type)), text.i32(ENCODING_DENSE)]
    return text.reference_of("hal.buffer_view.create", [*place, *code, dims])


def element_code(type: MemRefType) -> int:
    """The HAL's code of a buffer's elements, as a signed number of 32 bits."""
    found = element_type(type.scalar)
    if found is None:
        raise ValueError(f"buffer views have no elements of {type.scalar}")
    return int(found) - (1 << 32) * (int(found) >= 1 << 31)
