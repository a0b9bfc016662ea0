"""Numbers between registers and memory: as calling conventions pass them, and as buffers hold them.

A register has 32 or 64 bits. Integers of fewer bits are extended, unsigned ones and booleans with zeros; floats of 16
bits and fewer are the low bits of an integer register.
"""

from __future__ import annotations

from ..ir.types import ScalarType
from .function_text import FunctionText


def letter_of(scalar: ScalarType) -> str:
    """The letter of calling conventions for a number: ``i``, ``I``, ``f`` or ``F``."""
    if scalar.kind == "float" and scalar.bits >= 32:
        return "F" if scalar.bits == 64 else "f"
    return "I" if scalar.bits > 32 else "i"


def store_scalar(text: FunctionText, register: str, scalar: ScalarType, buffer: str, offset: int) -> None:
    """Stores a number in memory that the host writes, in whole words."""
    letter = letter_of(scalar)
    if letter in "fF":
        bits, register = register, text.integer() if letter == "f" else text.wide()
        text.line(f"{register} = vm.bitcast.{'f32.i32' if letter == 'f' else 'f64.i64'} {bits}")
    words = [register]
    if letter in "IF":
        high = text.wide()
        text.line(f"{high} = vm.shr.i64.u {register}, {text.i32(32)}")
        words = []
        for half in (register, high):
            words.append(text.integer())
            text.line(f"{words[-1]} = vm.trunc.i64.i32 {half}")
    elif scalar.bits < 32:
        words = [text.integer()]
        text.line(f"{words[0]} = vm.and.i32 {register}, {text.i32((1 << scalar.bits) - 1)}")
    for index, word in enumerate(words):
        text.call("hal.buffer.store", [word, buffer, text.i64(offset + 4 * index), text.i32(4)])


def load_scalar(text: FunctionText, buffer: str, offset: int, scalar: ScalarType) -> str:
    """A number of memory that the host reads. The VM loads words of 32 bits at most."""
    words = []
    for start in range(0, scalar.bits, 32):
        words.append(text.integer())
        size = -(-min(scalar.bits, 32) // 8)
        text.call("hal.buffer.load", [buffer, text.i64(offset + start // 8), text.i32(size)], [words[-1]])
    found = words[0]
    if scalar.bits < 32:
        shift, extension = text.i32(32 - scalar.bits), "s" if scalar.kind == "int" else "u"
        text.line(f"{found} = vm.shl.i32 {found}, {shift}")
        text.line(f"{found} = vm.shr.i32.{extension} {found}, {shift}")
    if len(words) > 1:
        low, found = text.wide(), text.wide()
        text.line(f"{low} = vm.ext.i32.i64.u {words[0]}")
        text.line(f"{found} = vm.ext.i32.i64.u {words[1]}")
        text.line(f"{found} = vm.shl.i64 {found}, {text.i32(32)}")
        text.line(f"{found} = vm.or.i64 {found}, {low}")
    letter = letter_of(scalar)
    if letter in "fF":
        bits, found = found, text.integer() if letter == "f" else text.wide()
        text.line(f"{found} = vm.bitcast.{'i32.f32' if letter == 'f' else 'i64.f64'} {bits}")
    return found


def widened(text: FunctionText, register: str, scalar: ScalarType) -> str:
    """An integer in 64 bits."""
    if letter_of(scalar) == "I":
        return register
    wide = text.wide()
    text.line(f"{wide} = vm.ext.i32.i64.{'s' if scalar.kind == 'int' else 'u'} {register}")
    return wide
