"""The parameters of a function in its ABI: views, bare buffers and numbers, checked against their declarations."""

from __future__ import annotations

from ..abi.function_abi import Abi, FunctionAbi
from ..passes.sequencing.steps import Buffer, Schedule
from .context import Rodata
from .function_builder import FunctionBuilder, Register
from .lengths import Lengths
from .memory import ENCODING_DENSE, STRIDE, element_code, letter_of, store_scalar, widened

_DEVICE_VISIBLE, _USAGE = 16, 0xC03
"""Memory and usage that a bare buffer needs: the device copies it, and dispatches read and write it."""


class Parameters:
    """The arguments of one function, and the storages of its results, if it takes storages.

    Args:
        code: the builder of the function.
        plan: the function's schedule.
        abi: the function's ABI.
        rodata: the module's constants.

    Attributes:
        numbers: the numbers of the arguments that are passed in registers.
    """

    def __init__(self, code: FunctionBuilder, plan: Schedule, abi: FunctionAbi, rodata: Rodata) -> None:
        self._code = code
        self._plan = plan
        self._abi = abi
        self._rodata = rodata
        self._buffers: dict[Register, Register] = {}
        self._allocator: Register | None = None
        self.numbers: list[int] = [index for index, kind in enumerate(abi.arguments) if kind is Abi.VALUE]

    @staticmethod
    def argument_letters(plan: Schedule, abi: FunctionAbi) -> str:
        """Returns the letters of the arguments in calling conventions of the virtual machine."""
        return "".join(map(_letter, plan.arguments, abi.arguments))

    @staticmethod
    def result_letters(plan: Schedule, abi: FunctionAbi) -> str:
        """Returns the letters of the results."""
        return "".join(map(_letter, plan.results, abi.results))

    def argument(self, lengths: Lengths, index: int) -> Register:
        """Checks an argument that is not a number; returns its buffer."""
        register, buffer = self._code.arguments[index], self._plan.arguments[index]
        return self._buffer(lengths, register, buffer, self._abi.arguments[index], f"argument {index}")

    def result(self, lengths: Lengths, index: int) -> Register:
        """Checks the storage of a result; returns its buffer."""
        kind = Abi.BUFFER if self._abi.results[index] is Abi.BUFFER else Abi.VIEW
        return self._buffer(lengths, self.storage(index), self._plan.results[index], kind, f"result {index}")

    def storage(self, index: int) -> Register:
        """Returns the register of a result's storage."""
        return self._code.arguments[len(self._plan.arguments) + index]

    def length(self, index: int) -> Register:
        """Returns a number that is a length, in 64 bits."""
        return widened(self._code, self._code.arguments[index], self._plan.arguments[index].type.scalar)

    def store_numbers(self, memory: Register) -> dict[int, int]:
        """Stores the arguments that are numbers in memory; returns their offsets by argument."""
        offsets = {index: STRIDE * slot for slot, index in enumerate(self.numbers)}
        for index, offset in offsets.items():
            scalar = self._plan.arguments[index].type.scalar
            store_scalar(self._code, self._code.arguments[index], scalar, memory, offset)
        return offsets

    def _buffer(self, lengths: Lengths, register: Register, buffer: Buffer, kind: Abi, label: str) -> Register:
        if register not in self._buffers:
            code = self._code
            message = code.rodata(self._rodata.text(label))
            if kind is Abi.VIEW:
                dims = [(lengths.of(length),) for length in buffer.type.lengths]
                encoding = [code.i32(element_code(buffer.type)), code.i32(ENCODING_DENSE)]
                code.call("hal.buffer_view.assert", [register, message, *encoding, dims])
                self._buffers[register] = code.reference_of("hal.buffer_view.buffer", [register])
            else:
                # All arguments are checked in the entry block, where a call begins.
                self._allocator = self._allocator or code.reference_of(
                    "hal.device.allocator", [code.load_global("device", "!hal.device")]
                )
                needs = [lengths.of(buffer.bytes), code.i32(_DEVICE_VISIBLE), code.i32(_USAGE)]
                code.call("hal.buffer.assert", [register, message, self._allocator, *needs])
                self._buffers[register] = register
        return self._buffers[register]


def _letter(buffer: Buffer, kind: Abi) -> str:
    return letter_of(buffer.type.scalar) if kind is Abi.VALUE else "r"
