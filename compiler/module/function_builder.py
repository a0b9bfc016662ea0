"""A function of a module under construction: its registers, blocks and instructions."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from ...vm.bytecode.debug_database import FileLineCol
from ...vm.bytecode.encoder import FunctionEncoder
from ...vm.bytecode.isa import MAX_I32_REGISTERS, MAX_REF_REGISTERS, REF_BIT, FieldKind, Isa, Operation
from ...vm.bytecode.isa_tables import VERSIONS
from ...vm.bytecode.module_def import Signature
from .imports import IMPORTS

BYTECODE_VERSION: Final = VERSIONS[-1][0] << 16 | VERSIONS[-1][1]
SCALAR: Final = 65535
"""An argument that is not a list, in a variadic call's list of segments."""

_ISA: Final = Isa.for_version(BYTECODE_VERSION)


@dataclass(frozen=True, slots=True)
class Register:
    """A register.

    Attributes:
        operand: the register's 16 bits in an instruction.
    """

    operand: int


Argument: TypeAlias = Register | Sequence[Sequence[Register]]
"""An argument of a call: a register, or the tuples of a variadic argument."""


class _Instruction(NamedTuple):
    operation: Operation
    values: tuple[object, ...]
    location: FileLineCol | None


class FunctionBuilder:
    """Collects the instructions of one function; ``encode`` makes its bytes.

    Functions, globals and types are referred to by name. Constants are loaded in the entry block, each once.

    Args:
        name: the function's name.
        takes: the letters of the arguments: ``r``, ``i``, ``I``, ``f``, ``F``.
        gives: the letters of the results.
        attributes: the function's reflection.
        location: the source location, if known.

    Attributes:
        arguments: the registers of the arguments.
        signature: the calling convention and the attributes.
        imports: the names of the imported functions that it calls.
    """

    def __init__(
        self,
        name: str,
        takes: str,
        gives: str,
        attributes: Mapping[str, str] | None = None,
        location: FileLineCol | None = None,
    ) -> None:
        self.name = name
        self.signature: Signature = Signature(f"0{takes or 'v'}_{gives or 'v'}", attributes or {})
        self.imports: set[str] = set()
        self._place = self._first_place = location
        self._constants: dict[tuple[str, int], Register] = {}
        self._body: list[_Instruction | int] = []  # an int is the label of a new block
        self._integers = self._references = self._labels = 0
        banks = {"r": self.reference, "i": self.integer, "f": self.integer, "I": self.wide, "F": self.wide}
        self.arguments: list[Register] = [banks[letter]() for letter in takes]

    # -- registers -------------------------------------------------------------------------------------

    def integer(self) -> Register:
        """Returns a new 32-bit register."""
        return self._primitive(1)

    def wide(self) -> Register:
        """Returns a new pair of 32-bit registers."""
        self._integers += self._integers % 2
        return self._primitive(2)

    def _primitive(self, count: int) -> Register:
        self._integers += count
        if self._integers > MAX_I32_REGISTERS:
            raise InvalidArgumentError(f"@{self.name}: expected at most {MAX_I32_REGISTERS} 32-bit registers, got more")
        return Register(self._integers - count)

    def reference(self) -> Register:
        """Returns a new reference register."""
        self._references += 1
        if self._references > MAX_REF_REGISTERS:
            raise InvalidArgumentError(f"@{self.name}: expected at most {MAX_REF_REGISTERS} references, got more")
        return Register(REF_BIT | self._references - 1)

    def i32(self, value: int) -> Register:
        """Returns the register of a 32-bit constant."""
        return self._constant("i32", value)

    def i64(self, value: int) -> Register:
        """Returns the register pair of a 64-bit constant."""
        return self._constant("i64", value)

    def _constant(self, bank: str, value: int) -> Register:
        key = bank, value
        if key not in self._constants:
            self._constants[key] = self.integer() if bank == "i32" else self.wide()
        return self._constants[key]

    def f32(self, value: float) -> Register:
        """Returns the register of a 32-bit floating-point constant."""
        if not value:
            return self.compute("const.f32.zero")
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        return self.compute("const.f32", bits)

    # -- instructions ----------------------------------------------------------------------------------

    def emit(self, mnemonic: str, *values: object) -> None:
        """Adds an instruction.

        Args:
            mnemonic: the operation's name, such as ``add.i32``.
            values: the values of the operation's fields, in the order of the instruction set's tables. Registers are
                ``Register``, functions, globals and types are names, blocks are labels.
        """
        self._body.append(_Instruction(_ISA.operations[mnemonic], values, self._place))

    def compute(self, mnemonic: str, *values: object) -> Register:
        """Adds an instruction whose last field is its result register; returns that new register."""
        bank = _ISA.operations[mnemonic].fields[-1].bank
        result = self.reference() if bank == "ref" else self.wide() if bank in ("i64", "f64") else self.integer()
        self.emit(mnemonic, *values, result)
        return result

    def at(self, location: FileLineCol | None) -> None:
        """Sets the source location of instructions added from now on."""
        self._place = location

    @property
    def position(self) -> int:
        """The position of the next instruction."""
        return len(self._body)

    @contextmanager
    def inserted(self, position: int) -> Iterator[None]:
        """Moves the instructions added inside to an earlier position."""
        rest = self._body[position:]
        del self._body[position:]
        yield
        self._body += rest

    def null(self) -> Register:
        """Returns a null reference."""
        return self.compute("const.ref.zero")

    def rodata(self, ordinal: int) -> Register:
        """Returns a reference to a constant of the module."""
        return self.compute("const.ref.rodata", ordinal)

    def load_global(self, name: str, type: str) -> Register:
        """Returns the reference that a global holds."""
        return self.compute("global.load.ref", name, type)

    def store_global(self, value: Register, name: str, type: str) -> None:
        """Stores a reference in a global."""
        self.emit("global.store.ref", name, type, value)

    # -- blocks ----------------------------------------------------------------------------------------

    def new_label(self) -> int:
        """Returns a new label; ``label`` begins its block."""
        self._labels += 1
        return self._labels

    def label(self, label: int) -> None:
        """Begins a block."""
        self._body.append(label)

    def jump(self, label: int) -> None:
        """Ends a block: continues at another block."""
        self.emit("br", label, ())

    def jump_if(self, condition: Register, then: int, otherwise: int) -> None:
        """Ends a block: continues at one of two blocks."""
        self.emit("cond_br", condition, then, (), otherwise, ())

    def fail(self, status: Register, message: str) -> None:
        """Ends a block: fails with a status and a message."""
        self.emit("fail", status, message.encode())

    @contextmanager
    def counted(self, times: Register) -> Iterator[Register]:
        """Repeats the instructions added inside ``times`` times, an unsigned 32-bit number; yields the counter."""
        counter = self.compute("const.i32.zero")
        test, body, done = self.new_label(), self.new_label(), self.new_label()
        self.jump(test)
        self.label(test)
        self.jump_if(self.compute("cmp.lt.i32.u", counter, times), body, done)
        self.label(body)
        yield counter
        self.emit("add.i32", counter, self.i32(1), counter)
        self.jump(test)
        self.label(done)

    @contextmanager
    def where(self, condition: Register) -> Iterator[None]:
        """Runs the instructions added inside only if a condition holds."""
        then, done = self.new_label(), self.new_label()
        self.jump_if(condition, then, done)
        self.label(then)
        yield
        self.jump(done)
        self.label(done)

    # -- calls -----------------------------------------------------------------------------------------

    def call(self, function: str, arguments: Sequence[Argument], results: Sequence[Register] = ()) -> None:
        """Calls an import or a function of this module; a sequence among the arguments is a variadic argument."""
        if function in IMPORTS:
            self.imports.add(function)
        operands: list[Register] = []
        segments = []
        for argument in arguments:
            if isinstance(argument, Register):
                operands.append(argument)
                segments.append(SCALAR)
            else:
                segments.append(len(argument))
                operands.extend(register for item in argument for register in item)
        if all(size == SCALAR for size in segments):
            self.emit("call", function, operands, results)
        else:
            self.emit("call.variadic", function, segments, operands, results)

    def reference_of(self, function: str, arguments: Sequence[Argument]) -> Register:
        """Calls a function that returns a reference; returns its register."""
        result = self.reference()
        self.call(function, arguments, [result])
        return result

    def await_fence(self, fence: Register) -> None:
        """Waits for a fence; fails with its status."""
        self.imports.add("hal.fence.await")
        status = self.integer()
        awaited, failed, reached = self.new_label(), self.new_label(), self.new_label()
        operands = self.i32(-1), self.i64(0), fence
        self.emit("call.variadic.yieldable", "hal.fence.await", (SCALAR, SCALAR, 1), operands, awaited, [status])
        self.label(awaited)
        self.jump_if(status, failed, reached)
        self.label(failed)
        self.fail(status, "failed to wait on timepoint")
        self.label(reached)

    # -- encoding --------------------------------------------------------------------------------------

    @property
    def register_counts(self) -> tuple[int, int]:
        """The numbers of 32-bit registers and of reference registers."""
        return self._integers, self._references

    def encode(self, ordinals: Mapping[FieldKind, Mapping[str, int]]) -> FunctionEncoder:
        """Returns the function's code, with ordinals in place of the names of functions, globals and types."""
        encoder = FunctionEncoder(_ISA)
        encoder.block(0)
        for (bank, value), register in self._constants.items():
            name, values = (f"const.{bank}", (value, register)) if value else (f"const.{bank}.zero", (register,))
            self._encode(encoder, _Instruction(_ISA.operations[name], values, self._first_place), ordinals)
        for item in self._body:
            if isinstance(item, int):
                encoder.block(item)
            else:
                self._encode(encoder, item, ordinals)
        return encoder

    @staticmethod
    def _encode(
        encoder: FunctionEncoder, instruction: _Instruction, ordinals: Mapping[FieldKind, Mapping[str, int]]
    ) -> None:
        values: list[object] = []
        for field, value in zip(instruction.operation.fields, instruction.values, strict=True):
            if isinstance(value, Register):
                values.append(value.operand)
            elif isinstance(value, str):
                values.append(ordinals[field.kind][value])
            elif field.kind in (FieldKind.OPERANDS, FieldKind.RESULTS):
                assert isinstance(value, Sequence)
                values.append([register.operand for register in value])
            else:
                values.append(value)
        encoder.instruction(instruction.operation, values, instruction.location)
