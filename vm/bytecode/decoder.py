"""Decodes a function's bytes to instructions, in one pass.

The decoder checks only encodings and bounds. Its instructions may refer to registers, functions, types or targets that
do not exist; the verifier rejects those.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias, cast

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from . import isa_tables
from .isa import FieldKind, Isa, Operation

BranchOperands: TypeAlias = tuple[tuple[int, int], ...]
# Register, immediate, ordinal, pc | text | registers, segment sizes | branch operands | branch table
FieldValue: TypeAlias = int | float | str | tuple[int, ...] | BranchOperands | tuple[tuple[int, BranchOperands], ...]


@dataclass(slots=True, eq=False)
class Instruction:
    """One decoded instruction.

    Its values, one for each field of the operation, are: for ``REGISTER`` the raw 16 bits; immediates signed ints or
    floats; ordinals and ``GLOBAL`` unsigned; ``BRANCH_TARGET`` a pc; ``STRING`` a str; ``OPERANDS``, ``RESULTS`` and
    ``SEGMENT_SIZES`` tuples of ints; ``BRANCH_OPERANDS`` a tuple of (source, destination); ``BRANCH_TABLE`` a tuple of
    (target, branch operands).
    """

    pc: int  # of its first byte, from the start of the function
    end: int  # pc of the next instruction
    operation: Operation
    values: tuple[FieldValue, ...]


def registers_of(instruction: Instruction, kind: FieldKind) -> tuple[int, ...]:
    """Returns the registers, or the sizes, in an instruction's first field of a kind; empty if it has none."""
    return cast("tuple[int, ...]", field_value(instruction, kind) or ())


def field_value(instruction: Instruction, kind: FieldKind) -> object:
    """Returns the value of an instruction's first field of a kind; ``None`` if it has no such field."""
    for field, value in zip(instruction.operation.fields, instruction.values, strict=True):
        if field.kind is kind:
            return value
    return None


def decode_function(isa: Isa, code: memoryview) -> tuple[Instruction, ...]:
    """Returns all instructions of a function with the bytes ``code``, including block markers.

    InvalidArgumentError, with the pc, for an unknown opcode or an instruction that extends past the end.
    """
    core, extensions = _tables(isa)
    instructions: list[Instruction] = []
    append = instructions.append
    length = len(code)
    pc = 0
    try:
        while pc < length:
            opcode = code[pc]
            entry = core[opcode]
            start = pc + 1
            if entry is None:
                extension = extensions.get(opcode)
                if extension is None or start >= length or (entry := extension[code[start]]) is None:
                    raise _unknown(isa, code, pc)
                start += 1
            operation, fixed, size, steps = entry
            if steps is None:
                end = start + size
                append(Instruction(pc, end, operation, fixed(code, start)))
            else:
                values: list[FieldValue] = []
                end = start
                for step in steps:
                    end = step(code, end, values)
                append(Instruction(pc, end, operation, tuple(values)))
            pc = end
    except (struct.error, IndexError):
        raise InvalidArgumentError(
            f"the instruction at pc {pc} (0x{pc:X}) goes past the end of its function, which has {length} bytes: "
            "the file is damaged or was cut short"
        ) from None
    return tuple(instructions)


# A step reads some fields from `pc` on, appends their values and returns the pc after them. Past the end of the code it
# raises struct.error or IndexError.
_Step: TypeAlias = Callable[[memoryview, int, list[FieldValue]], int]
_Entry: TypeAlias = tuple[Operation, Callable[[memoryview, int], tuple[FieldValue, ...]], int, tuple[_Step, ...] | None]
_Table: TypeAlias = list[_Entry | None]

_FORMATS: Final = {
    FieldKind.REGISTER: "H",
    FieldKind.I32: "i",
    FieldKind.I64: "q",
    FieldKind.F32: "f",
    FieldKind.F64: "d",
    FieldKind.GLOBAL: "I",
    FieldKind.FUNCTION: "I",
    FieldKind.RODATA: "I",
    FieldKind.TYPE: "I",
    FieldKind.BRANCH_TARGET: "I",
}

_U16: Final = struct.Struct("<H").unpack_from
_U32: Final = struct.Struct("<I").unpack_from
# Operand lists are short, so their formats are made once. Longer lists are bounds-checked before a format is made.
_LISTS: Final = tuple(struct.Struct(f"<{count}H").unpack_from for count in range(64))


def _unknown(isa: Isa, code: memoryview, pc: int) -> InvalidArgumentError:
    opcode = " ".join(f"0x{byte:02X}" for byte in code[pc : pc + (2 if code[pc] in _PREFIXES else 1)])
    major, minor = isa.version
    return InvalidArgumentError(
        f"expected an opcode of bytecode version {major}.{minor} at pc {pc} (0x{pc:X}), got {opcode}: "
        "the file is damaged"
    )


_PREFIXES: Final = (isa_tables.PREFIX_EXT_F32, isa_tables.PREFIX_EXT_F64)


@cache
def _tables(isa: Isa) -> tuple[_Table, dict[int, _Table]]:
    core: _Table = [None] * 256
    extensions: dict[int, _Table] = {prefix: [None] * 256 for prefix in _PREFIXES}
    for operation in isa.operations.values():
        table = core if operation.prefix is None else extensions[operation.prefix]
        table[operation.opcode] = _entry(operation)
    return core, extensions


def _entry(operation: Operation) -> _Entry:
    if all(field.kind in _FORMATS for field in operation.fields):
        fixed = struct.Struct("<" + "".join(_FORMATS[field.kind] for field in operation.fields))
        return operation, fixed.unpack_from, fixed.size, None
    steps: list[_Step] = []
    run = ""
    for field in operation.fields:
        if field.kind in _FORMATS:
            run += _FORMATS[field.kind]
            continue
        if run:
            steps.append(_run_step(run))
            run = ""
        steps.append(_STEPS[field.kind])
    if run:
        steps.append(_run_step(run))
    return operation, lambda code, pc: (), 0, tuple(steps)


def _run_step(run: str) -> _Step:
    fixed = struct.Struct("<" + run)
    unpack, size = fixed.unpack_from, fixed.size

    def step(code: memoryview, pc: int, values: list[FieldValue]) -> int:
        values.extend(unpack(code, pc))
        return pc + size

    return step


def _registers(code: memoryview, pc: int, count: int) -> tuple[int, ...]:
    if count < 64:
        return _LISTS[count](code, pc)
    if pc + 2 * count > len(code):
        raise IndexError
    return struct.unpack_from(f"<{count}H", code, pc)


def _list_step(code: memoryview, pc: int, values: list[FieldValue]) -> int:
    pc += pc & 1
    count: int = _U16(code, pc)[0]
    pc += 2
    values.append(_registers(code, pc, count))
    return pc + 2 * count


def _branch_operands(code: memoryview, pc: int) -> tuple[BranchOperands, int]:
    pc += pc & 1
    (count,) = _U16(code, pc)
    pc += 2
    if not count:
        return (), pc
    registers = _registers(code, pc, 2 * count)
    return tuple(zip(registers[::2], registers[1::2], strict=True)), pc + 4 * count


def _branch_operands_step(code: memoryview, pc: int, values: list[FieldValue]) -> int:
    operands, end = _branch_operands(code, pc)
    values.append(operands)
    return end


def _branch_table_step(code: memoryview, pc: int, values: list[FieldValue]) -> int:
    (count,) = _U16(code, pc)
    pc += 2
    cases = []
    for _ in range(count):
        (target,) = _U32(code, pc)
        operands, pc = _branch_operands(code, pc + 4)
        cases.append((target, operands))
    values.append(tuple(cases))
    return pc


def _string_step(code: memoryview, pc: int, values: list[FieldValue]) -> int:
    length: int = _U16(code, pc)[0]
    end = pc + 2 + length
    if end > len(code):
        raise IndexError
    # Messages are for people, so invalid UTF-8 in a message is no reason to reject a module.
    values.append(bytes(code[pc + 2 : end]).decode("utf-8", "replace"))
    return end


_STEPS: Final[dict[FieldKind, _Step]] = {
    FieldKind.OPERANDS: _list_step,
    FieldKind.RESULTS: _list_step,
    FieldKind.SEGMENT_SIZES: _list_step,
    FieldKind.BRANCH_OPERANDS: _branch_operands_step,
    FieldKind.BRANCH_TABLE: _branch_table_step,
    FieldKind.STRING: _string_step,
}
