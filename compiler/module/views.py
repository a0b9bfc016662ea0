"""Buffer views that a function takes: checked against what is declared, and made of what a call writes."""

from __future__ import annotations

from ..ir.element_types import element_type
from ..ir.types import MemRefType
from ..passes.sequencing.steps import Buffer, Schedule
from .function_text import FunctionText
from .lengths import Lengths
from .rodata import Rodata

_ENCODING_DENSE = 1


class Views:
    """The arguments of one function, and then the storages of its results, if it takes these.

    Args:
        text: of the function.
        plan: its schedule.
        rodata: of the module.
    """

    def __init__(self, text: FunctionText, plan: Schedule, rodata: Rodata) -> None:
        self._text = text
        self._plan = plan
        self._rodata = rodata
        self._buffers: dict[str, str] = {}

    def argument(self, lengths: Lengths, index: int) -> str:
        """The buffer of an argument whose type is as it has to be."""
        return self._buffer(lengths, f"%r{index}", self._plan.arguments[index], f"argument {index}")

    def result(self, lengths: Lengths, index: int) -> str:
        """The buffer of a result's storage whose type is as it has to be."""
        return self._buffer(lengths, self.storage(index), self._plan.results[index], f"result {index}")

    def storage(self, index: int) -> str:
        """The register of a result's storage."""
        return f"%r{len(self._plan.arguments) + index}"

    def _buffer(self, lengths: Lengths, view: str, buffer: Buffer, what: str) -> str:
        if view not in self._buffers:
            text = self._text
            message = text.rodata(self._rodata.text(what))
            dims = [(lengths.of(length),) for length in buffer.type.lengths]
            code = [text.i32(element_code(buffer.type)), text.i32(_ENCODING_DENSE)]
            text.call("hal.buffer_view.assert", [view, message, *code, dims])
            self._buffers[view] = text.reference_of("hal.buffer_view.buffer", [view])
        return self._buffers[view]


def view_of(text: FunctionText, lengths: Lengths, buffer: Buffer, memory: str, offset: int | str = 0) -> str:
    """A new view of a buffer that lies in memory at an offset."""
    dims = [(lengths.of(length),) for length in buffer.type.lengths]
    place = [memory, lengths.at(offset), lengths.of(buffer.bytes)]
    code = [text.i32(element_code(buffer.type)), text.i32(_ENCODING_DENSE)]
    return text.reference_of("hal.buffer_view.create", [*place, *code, dims])


def element_code(type: MemRefType) -> int:
    """The HAL's code of a buffer's elements, as a signed number of 32 bits."""
    found = element_type(type.scalar)
    if found is None:
        raise ValueError(f"buffer views have no elements of {type.scalar}")
    return int(found) - (1 << 32) * (int(found) >= 1 << 31)
