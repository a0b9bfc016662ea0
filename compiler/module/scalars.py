"""Numbers between registers and memory: as calling conventions pass them, and as buffers hold them.

A register has 32 or 64 bits. Narrower integers are extended, unsigned ones and booleans with zeros; floats of up to 16
bits are the low bits of an integer register.
"""

from __future__ import annotations

from ..ir.types import ScalarType
from .function_builder import FunctionBuilder, Register


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
