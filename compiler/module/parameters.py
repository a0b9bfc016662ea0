"""What a function takes, by its ABI: views, bare buffers and numbers, checked against what is declared."""

from __future__ import annotations

from ..abi.function_abi import Abi, FunctionAbi
from ..passes.sequencing.steps import Buffer, Schedule
from .allocation import STRIDE
from .function_text import FunctionText
from .lengths import Lengths
from .rodata import Rodata
from .scalars import letter_of, store_scalar, widened
from .views import ENCODING_DENSE, element_code

_DEVICE_VISIBLE, _USAGE = 16, 0xC03
"""What memory and usage a bare buffer has to have: the device copies it, and dispatches read and write it."""


class Parameters:
    """The arguments of one function, and then the storages of its results, if it takes these.

    Args:
        text: of the function.
        plan: its schedule.
        abi: of it.
        rodata: of the module.

    Attributes:
        numbers: arguments that are passed in registers.
    """

    def __init__(self, text: FunctionText, plan: Schedule, abi: FunctionAbi, rodata: Rodata) -> None:
        self._text = text
        self._plan = plan
        self._abi = abi
        self._rodata = rodata
        self._buffers: dict[str, str] = {}
        self._allocator = ""
        self.numbers = [index for index, each in enumerate(abi.arguments) if each is Abi.VALUE]

    @staticmethod
    def argument_letters(plan: Schedule, abi: FunctionAbi) -> str:
        """How arguments are passed, as calling conventions of the virtual machine say it."""
        return "".join(map(_letter, plan.arguments, abi.arguments))

    @staticmethod
    def result_letters(plan: Schedule, abi: FunctionAbi) -> str:
        """How results are returned."""
        return "".join(map(_letter, plan.results, abi.results))

    def argument(self, lengths: Lengths, index: int) -> str:
        """The buffer of an argument that is no number, once it is as it has to be."""
        register, buffer = self._text.arguments[index], self._plan.arguments[index]
        return self._buffer(lengths, register, buffer, self._abi.arguments[index], f"argument {index}")

    def result(self, lengths: Lengths, index: int) -> str:
        """The buffer of a result's storage, once it is as it has to be."""
        kind = Abi.BUFFER if self._abi.results[index] is Abi.BUFFER else Abi.VIEW
        return self._buffer(lengths, self.storage(index), self._plan.results[index], kind, f"result {index}")

    def storage(self, index: int) -> str:
        """The register of a result's storage."""
        return self._text.arguments[len(self._plan.arguments) + index]

    def length(self, index: int) -> str:
        """A number that is a length, in 64 bits."""
        return widened(self._text, self._text.arguments[index], self._plan.arguments[index].type.scalar)

    def store_numbers(self, memory: str) -> dict[int, int]:
        """Stores the arguments that are numbers in memory; gives their offsets."""
        offsets = {index: STRIDE * slot for slot, index in enumerate(self.numbers)}
        for index, offset in offsets.items():
            scalar = self._plan.arguments[index].type.scalar
            store_scalar(self._text, self._text.arguments[index], scalar, memory, offset)
        return offsets

    def _buffer(self, lengths: Lengths, register: str, buffer: Buffer, kind: Abi, what: str) -> str:
        if register not in self._buffers:
            text = self._text
            message = text.rodata(self._rodata.text(what))
            if kind is Abi.VIEW:
                dims = [(lengths.of(length),) for length in buffer.type.lengths]
                code = [text.i32(element_code(buffer.type)), text.i32(ENCODING_DENSE)]
                text.call("hal.buffer_view.assert", [register, message, *code, dims])
                self._buffers[register] = text.reference_of("hal.buffer_view.buffer", [register])
            else:
                # All are checked in the entry block, where a call begins.
                self._allocator = self._allocator or text.reference_of(
                    "hal.device.allocator", [text.load_global("device", "hal.device")]
                )
                needs = [lengths.of(buffer.bytes), text.i32(_DEVICE_VISIBLE), text.i32(_USAGE)]
                text.call("hal.buffer.assert", [register, message, self._allocator, *needs])
                self._buffers[register] = register
        return self._buffers[register]


def _letter(buffer: Buffer, kind: Abi) -> str:
    return letter_of(buffer.type.scalar) if kind is Abi.VALUE else "r"
