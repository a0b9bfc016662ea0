"""Encodes instructions to a function's bytes, and functions to the bytecode of a module; ``decoder`` reads them.

A block starts with its marker. An instruction is its prefix byte, if any, its opcode and its fields, little-endian and
unaligned, except lists, which start at an even pc.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias, cast

from ...status import InvalidArgumentError
from .debug_database import DebugDatabase, FileLineCol, FunctionSourceMap
from .isa import FieldKind, Isa, Operation
from .module_def import FunctionDescriptor

_SIZES: Final = {
    FieldKind.REGISTER: 2,
    FieldKind.I32: 4,
    FieldKind.I64: 8,
    FieldKind.F32: 4,
    FieldKind.F64: 8,
    FieldKind.GLOBAL: 4,
    FieldKind.FUNCTION: 4,
    FieldKind.RODATA: 4,
    FieldKind.TYPE: 4,
}
_MAX_COUNT: Final = 0xFFFF
_MAX_BLOCKS: Final = 0x7FFF
_MAX_BYTECODE: Final = 0x7FFF_FFFF
_FUNCTION_ALIGNMENT: Final = 8

Cases: TypeAlias = Sequence[tuple[Hashable, Sequence[int]]]


class FunctionEncoder:
    """Encodes one function: ``block`` and ``instruction`` in order, then ``code``.

    Labels of blocks are any hashable values. A label may be used before its block begins.

    Attributes:
        block_count: the number of blocks so far.
        requirements: the bits of ``Feature``.
        places: the pc and source location of each instruction.
    """

    def __init__(self, isa: Isa) -> None:
        self._marker = isa.operations["block"].opcode
        self._code = bytearray()
        self._blocks: dict[Hashable, int] = {}
        self._targets: list[tuple[int, Hashable]] = []
        self.block_count: int = 0
        self.requirements: int = 0
        self.places: list[tuple[int, FileLineCol | None]] = []

    def block(self, label: Hashable) -> None:
        """Begins a block."""
        self._blocks[label] = len(self._code)
        self._code.append(self._marker)
        self.block_count += 1

    def instruction(self, operation: Operation, values: Sequence[object], location: FileLineCol | None = None) -> None:
        """Adds an instruction.

        Args:
            operation: an operation of the encoder's instruction set.
            values: the values, one for each of its fields. Registers, ordinals and immediates are ints, signed or not;
                immediates of floating-point types are their bits. Strings are bytes. Lists are sequences of ints; so
                are branch operands: source, destination, source, … Branch targets are labels, the cases of a branch
                table pairs of label and branch operands.
            location: the source location, if known.

        Raises:
            InvalidArgumentError: a list or a string has more than 65,535 elements.
        """
        self.requirements |= operation.feature
        self.places.append((len(self._code), location))
        if operation.prefix is not None:
            self._code.append(operation.prefix)
        self._code.append(operation.opcode)
        for field, value in zip(operation.fields, values, strict=True):
            self._field(field.kind, value)

    def code(self) -> bytes:
        """Returns the function's bytes; KeyError for a label without a block."""
        for position, label in self._targets:
            self._code[position : position + 4] = self._blocks[label].to_bytes(4, "little")
        return bytes(self._code)

    def _field(self, kind: FieldKind, value: object) -> None:
        match kind:
            case FieldKind.BRANCH_TARGET:
                self._target(value)
            case FieldKind.STRING:
                text = cast(bytes, value)
                self._count(len(text))
                self._code += text
            case FieldKind.BRANCH_OPERANDS:
                self._list(cast(Sequence[int], value), 2)
            case FieldKind.BRANCH_TABLE:
                cases = cast(Cases, value)
                self._count(len(cases))
                for label, operands in cases:
                    self._target(label)
                    self._list(operands, 2)
            case FieldKind.OPERANDS | FieldKind.RESULTS | FieldKind.SEGMENT_SIZES:
                self._list(cast(Sequence[int], value), 1)
            case _:
                size = _SIZES[kind]
                self._code += (cast(int, value) & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _target(self, label: Hashable) -> None:
        self._targets.append((len(self._code), label))
        self._code += bytes(4)

    def _list(self, values: Sequence[int], entry_size: int) -> None:
        self._code += bytes(len(self._code) % 2)
        self._count(len(values) // entry_size)
        for value in values:
            self._code += value.to_bytes(2, "little")

    def _count(self, count: int) -> None:
        if count > _MAX_COUNT:
            raise InvalidArgumentError(
                f"expected at most {_MAX_COUNT} entries in a field of an instruction, got {count}"
            )
        self._code += count.to_bytes(2, "little")


class BytecodeBuilder:
    """The bytecode of a module: functions one after another, aligned, and the locations of their instructions.

    Attributes:
        functions: the descriptors of the added functions.
        requirements: the bits of ``Feature``.
    """

    def __init__(self) -> None:
        self.functions: list[FunctionDescriptor] = []
        self.requirements: int = 0
        self._code = bytearray()
        self._locations: dict[FileLineCol | None, int] = {}
        self._maps: list[FunctionSourceMap] = []

    def add(self, name: str, encoder: FunctionEncoder, i32_registers: int, ref_registers: int) -> None:
        """Adds a function.

        Args:
            name: the name for the debug database and errors.
            encoder: the encoder, with all of its instructions.
            i32_registers: the number of 32-bit registers.
            ref_registers: the number of reference registers.

        Raises:
            InvalidArgumentError: the function has too many blocks, or the bytecode becomes too long.
        """
        if encoder.block_count > _MAX_BLOCKS:
            raise InvalidArgumentError(f"@{name}: expected at most {_MAX_BLOCKS} blocks, got {encoder.block_count}")
        code = encoder.code()
        self.functions.append(
            FunctionDescriptor(
                len(self._code), len(code), encoder.requirements, encoder.block_count, i32_registers, ref_registers
            )
        )
        self.requirements |= encoder.requirements
        self._code += code
        self._code += bytes(-len(self._code) % _FUNCTION_ALIGNMENT)
        if len(self._code) > _MAX_BYTECODE:
            raise InvalidArgumentError(f"expected at most {_MAX_BYTECODE} bytes of bytecode, got {len(self._code)}")
        entries: list[tuple[int, int]] = []
        for pc, location in encoder.places:
            number = self._locations.setdefault(location, len(self._locations))
            if not entries or entries[-1][1] != number:
                entries.append((pc, number))
        self._maps.append(FunctionSourceMap.of(name, entries))

    def code(self) -> memoryview:
        """Returns the bytes of all functions."""
        return memoryview(bytes(self._code))

    def debug(self) -> DebugDatabase:
        """Returns the locations of all instructions."""
        return DebugDatabase(self._maps, len(self._maps), list(self._locations))
