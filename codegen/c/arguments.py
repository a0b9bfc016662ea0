"""Arguments of calls in C: numbers, ranges, arrays, fences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...status import UnimplementedError
from ..program.ir import Constant, Instruction, Operand, Program, Rodata, Value, Variable
from .executables import Executables


class Texts(Protocol):
    """The parts of a function's writer that writers of calls use."""

    program: Program
    executables: Executables

    def value(self, value: Operand) -> str:
        """Returns a value as an expression that binds closer than any operator."""

    def name(self, variable: Variable) -> str:
        """Returns the name of a variable."""

    def where(self) -> str:
        """Returns the function's name, for messages."""


def unsigned(texts: Texts, value: Operand) -> str:
    """Returns an offset or a size as ``uint64_t``; -1 becomes the largest one."""
    if isinstance(value, Constant):
        if value.number == -1:
            return "UINT64_MAX"
        if value.number >= 0:
            return f"UINT64_C({value.number})" if value.number > 0x7FFFFFFF else f"{value.number}"
    return f"(uint64_t){texts.value(value)}"


def word(texts: Texts, value: Operand) -> str:
    """Returns a 32-bit number as ``uint32_t``."""
    if isinstance(value, Constant) and value.number >= 0:
        return f"{value.number}"
    return f"(uint32_t){texts.value(value)}"


def literal(text: str) -> str:
    """Returns a string literal."""
    shown = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        if char in '"\\?':
            shown.append(f"\\{char}")
        elif 32 <= byte < 127:
            shown.append(char)
        else:
            shown.append(f"\\{byte:03o}")
    return f'"{"".join(shown)}"'


def text_literal(texts: Texts, value: Operand) -> str:
    """Returns a constant text as a literal."""
    if not isinstance(value, Rodata):
        raise UnimplementedError(f"{texts.where()} passes a text that it makes itself; C programs have constant ones")
    return literal(texts.program.text(value))


def rows(value: Operand) -> Sequence[Sequence[Value]]:
    """Returns the rows of a repeated argument."""
    assert isinstance(value, tuple)
    return [row if isinstance(row, tuple) else (row,) for row in value]


def result(texts: Texts, instruction: Instruction, position: int = 0) -> str:
    """Returns the address of the variable that takes a result."""
    return f"&{texts.name(instruction.results[position])}"


def attempt(function: str, *arguments: str) -> list[str]:
    """Writes a call that may fail."""
    return [f"TRY({function}(p{''.join(f', {argument}' for argument in arguments)}));"]


def nothing(texts: Texts, instruction: Instruction) -> list[str]:
    """Writes no statement."""
    return []


def binding(texts: Texts, slot: Value, buffer: Value, offset: Value, length: Value) -> str:
    """Returns an initializer of a ``binding``: a range of a buffer or of a slot."""
    place = f".slot = {word(texts, slot)}" if isinstance(buffer, Constant) else f".buffer = {texts.value(buffer)}"
    if isinstance(buffer, Variable) and not (isinstance(slot, Constant) and slot.number == 0):
        place = f".slot = {word(texts, slot)}, {place}"
    start = "" if isinstance(offset, Constant) and offset.number == 0 else f", .offset = {unsigned(texts, offset)}"
    return f"{{{place}{start}, .length = {unsigned(texts, length)}}}"


def array(kind: str, rows: Sequence[str]) -> str:
    """Returns an array and its length, as two arguments."""
    return f"(const {kind}[]){{{', '.join(rows)}}}, {len(rows)}" if rows else "NULL, 0"


def pointers(kind: str, rows: Sequence[str]) -> str:
    """Returns an array of references and its length, as two arguments."""
    return f"({kind} *const[]){{{', '.join(rows)}}}, {len(rows)}" if rows else "NULL, 0"


def fences(texts: Texts, instruction: Instruction) -> tuple[str, str]:
    """Returns the wait fence and the signal fence of a queue operation."""
    return texts.value(instruction.operands[2]), texts.value(instruction.operands[3])


def single(value: Operand) -> Value:
    """Returns an operand that is not repeated."""
    assert not isinstance(value, tuple)
    return value
