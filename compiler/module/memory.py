"""Memory of a call: its allocation, views of it, and numbers in it.

A register has 32 or 64 bits. Narrower integers are extended, with zeros if they are unsigned or booleans; floats of up
to 16 bits are the low bits of an integer register.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from ..ir.element_types import element_type
from ..ir.types import MemRefType, ScalarType
from ..passes.sequencing.steps import Buffer
from .function_builder import FunctionBuilder, Register
from .lengths import Lengths


class Memory(NamedTuple):
    """The type and the usage of memory, in the HAL's numbering."""

    type: int
    usage: int


DEVICE: Final = Memory(48, 0xC03)
"""Memory of the device."""

INDIRECT: Final = Memory(48, 0xD03)
"""Memory of the device from which it may also read workgroup counts."""

HOST: Final = Memory(86, 0x9000C03)
"""Memory that the device and the host read and write."""

STRIDE: Final = 256
"""Bytes between numbers in host memory: the alignment at which devices bind buffers."""

ENCODING_DENSE: Final = 1
"""The HAL's code of a dense row-major layout."""

_SLOT: Final = 8


def allocate(
    code: FunctionBuilder, device: Register, wait: Register, memory: Memory, size: Register
) -> tuple[Register, Register]:
    """Allocates a buffer.

    Args:
        code: the builder of the function.
        device: the register of the device to allocate on.
        wait: the fence that the allocation waits for.
        memory: the kind of memory.
        size: the register of the size in bytes, 64 bits.

    Returns:
        The buffer, and the fence after which it may be used.
    """
    fence = new_fence(code, device)
    kind = [code.i64(0), code.i32(memory.type), code.i32(memory.usage)]
    arguments = [device, code.i64(-1), wait, fence, *kind, size, code.i64(0)]
    return code.reference_of("hal.device.queue.alloca", arguments), fence


def new_fence(code: FunctionBuilder, device: Register) -> Register:
    """Creates an unsignalled fence."""
    return code.reference_of("hal.fence.create", [device, code.i64(0)])


def view_of(
    code: FunctionBuilder, lengths: Lengths, buffer: Buffer, memory: Register, offset: int | Register = 0
) -> Register:
    """Creates a view of a buffer at an offset in memory."""
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


def letter_of(scalar: ScalarType) -> str:
    """Returns the letter of calling conventions for a number: ``i``, ``I``, ``f`` or ``F``."""
    if scalar.kind == "float" and scalar.bits >= 32:
        return "F" if scalar.bits == 64 else "f"
    return "I" if scalar.bits > 32 else "i"


def store_scalar(code: FunctionBuilder, register: Register, scalar: ScalarType, buffer: Register, offset: int) -> None:
    """Stores a number in memory that the host writes, in whole words."""
    letter = letter_of(scalar)
    if letter in "fF":
        register = code.compute("bitcast.f32.i32" if letter == "f" else "bitcast.f64.i64", register)
    words = [register]
    if letter in "IF":
        high = code.compute("shr.i64.u", register, code.i32(32))
        words = [code.compute("trunc.i64.i32", half) for half in (register, high)]
    elif scalar.bits < 32:
        words = [code.compute("and.i32", register, code.i32((1 << scalar.bits) - 1))]
    for index, word in enumerate(words):
        code.call("hal.buffer.store", [word, buffer, code.i64(offset + 4 * index), code.i32(4)])


def load_scalar(code: FunctionBuilder, buffer: Register, offset: int, scalar: ScalarType) -> Register:
    """Loads a number from memory that the host reads, in words of at most 32 bits."""
    words = []
    for start in range(0, scalar.bits, 32):
        words.append(code.integer())
        size = -(-min(scalar.bits, 32) // 8)
        code.call("hal.buffer.load", [buffer, code.i64(offset + start // 8), code.i32(size)], [words[-1]])
    number = words[0]
    if scalar.bits < 32:
        shift = code.i32(32 - scalar.bits)
        number = code.compute("shl.i32", number, shift)
        number = code.compute("shr.i32.s" if scalar.kind == "int" else "shr.i32.u", number, shift)
    if len(words) > 1:
        low, high = (code.compute("ext.i32.i64.u", word) for word in words)
        number = code.compute("or.i64", code.compute("shl.i64", high, code.i32(32)), low)
    letter = letter_of(scalar)
    if letter in "fF":
        number = code.compute("bitcast.i32.f32" if letter == "f" else "bitcast.i64.f64", number)
    return number


def widened(code: FunctionBuilder, register: Register, scalar: ScalarType) -> Register:
    """Extends an integer to 64 bits."""
    if letter_of(scalar) == "I":
        return register
    return code.compute("ext.i32.i64.s" if scalar.kind == "int" else "ext.i32.i64.u", register)


def read_values(
    code: FunctionBuilder, device: Register, wait: Register, arguments: Mapping[int, tuple[Register, ScalarType]]
) -> dict[int, Register]:
    """Reads the values of arguments that are lengths; the host waits for them when a call begins.

    A check on the device would need no wait, but lengths determine the recorded commands, and some are not the length
    of any argument's dimension.

    Args:
        code: the builder of the function.
        device: the register of the device to copy on.
        wait: the fence after which they may be read.
        arguments: the buffers, and their types of 8 bits or more, by argument number.

    Returns:
        The values in 64 bits, by argument number.
    """
    if not arguments:
        return {}
    # A caller's buffer may not be host-readable.
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
