"""Encodes parsed functions as bytecode.

A block starts with its marker; an instruction is its prefix byte, if any, its opcode and its fields, little-endian and
unaligned, except lists, which start at an even pc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...status import InvalidArgumentError, close_to
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.isa import IMPORT_BIT, FieldKind, Isa
from .cursor import symbol_name, symbol_ordinal
from .lexer import SourceText, Token
from .literals import LiteralError, integer
from .syntax import (
    BlockReference,
    BranchCases,
    CountedList,
    FunctionReference,
    FunctionSyntax,
    GlobalReference,
    InstructionSyntax,
    ModuleSyntax,
    TypeReference,
    Value,
)

_MAX_GLOBAL_BYTES: Final = 0x7FFF_FFFF


class ModuleSymbols:
    """The names of a module and their ordinals. Types and unnamed globals are added as functions name them.

    Attributes:
        types: the type table.
        global_bytes: size of the primitive globals.
        global_refs: number of reference globals.
    """

    def __init__(self, source: SourceText, module: ModuleSyntax) -> None:
        self._source = source
        self._module = module
        self._functions = {name: ordinal for ordinal, name in enumerate(module.functions)}
        self._imports = {name: ordinal for ordinal, name in enumerate(module.imports)}
        self.types: dict[str, int] = dict(module.types)
        self._conventions = (
            [each.calling_convention for each in module.functions.values()],
            [each.calling_convention for each in module.imports.values()],
        )
        self._globals: dict[str, int] = {}
        self.global_refs = 0
        self.global_bytes = 0
        # Small globals first, so that each size is aligned.
        for size in (0, 4, 8):
            sized = [each for each in module.globals.values() if each.size == size]
            if size == 0:
                self._globals.update((each.name, ordinal) for ordinal, each in enumerate(sized))
                self.global_refs = len(sized)
            elif sized:
                start = -(-self.global_bytes // size) * size
                self._globals.update((each.name, start + size * index) for index, each in enumerate(sized))
                self.global_bytes = start + size * len(sized)

    def type_ordinal(self, name: str) -> int:
        """Index in the type table of ``!vm.buffer``, or of ``vm.buffer`` if that is written."""
        if name.startswith("vm.") and f"!{name}" in self.types:
            name = f"!{name}"
        return self.types.setdefault(name, len(self.types))

    def global_ordinal(self, reference: GlobalReference) -> int:
        """Byte offset or reference ordinal of a global.

        Raises:
            InvalidArgumentError: no such global, one of another size, or past 2 GiB.
        """
        if reference.ordinal is None:
            name = symbol_name(reference.token)
            found = self._module.globals.get(name)
            if found is None:
                raise self._unknown(reference.token, "global", name, list(self._module.globals))
            if found.size != reference.size:
                sizes = {0: "a reference", 4: "4 bytes", 8: "8 bytes"}
                raise self._source.error(
                    reference.token, f"expected a global of {sizes[reference.size]}, got @{name} of {sizes[found.size]}"
                )
            return self._globals[name]
        if reference.ordinal + max(reference.size, 1) > _MAX_GLOBAL_BYTES:
            raise self._source.error(
                reference.token, f"expected a global that ends below {_MAX_GLOBAL_BYTES}, got {reference.ordinal}"
            )
        if reference.size:
            self.global_bytes = max(self.global_bytes, reference.ordinal + reference.size)
        else:
            self.global_refs = max(self.global_refs, reference.ordinal + 1)
        return reference.ordinal

    def function_ordinal(self, token: Token) -> int:
        """Ordinal of a function, with the import bit for an imported one.

        ``@a.b`` is the import of that name, else the module's own ``@b`` where the module is ``a``, else the function
        of that name; ``@module:3`` is the module's function 3.

        Raises:
            InvalidArgumentError: no such function.
        """
        name = symbol_name(token)
        digits = symbol_ordinal(token)
        if digits is not None:
            return self._numbered_function(token, name, digits)
        if name in self._imports:
            return IMPORT_BIT | self._imports[name]
        local = name.removeprefix(f"{self._module.name}.")
        for each in (local, name):
            if each in self._functions:
                return self._functions[each]
        raise self._unknown(token, "function", name, [*self._functions, *self._imports])

    def results_of(self, token: Token) -> tuple[str, ...]:
        """The results of a function, a letter of its calling convention each; raises as :meth:`function_ordinal`."""
        ordinal = self.function_ordinal(token)
        if ordinal & IMPORT_BIT:
            return CallingConvention.parse(self._conventions[1][ordinal & ~IMPORT_BIT]).results
        return CallingConvention.parse(self._conventions[0][ordinal]).results

    def _numbered_function(self, token: Token, name: str, digits: str) -> int:
        if name != self._module.name:
            raise self._source.error(
                token, f"expected @{self._module.name}:{digits[:10]}, this module's name, got {token}"
            )
        try:
            ordinal = integer(digits, 31, signed=False)
        except LiteralError as error:
            raise self._source.error(token, f"expected {error}, got {token}") from None
        if ordinal >= len(self._functions):
            raise self._source.error(token, f"expected a function below {len(self._functions)}, got {token}")
        return ordinal

    def _unknown(self, token: Token, kind: str, name: str, known: list[str]) -> InvalidArgumentError:
        return self._source.error(token, unknown_name(f"the name of a {kind}", token, name, known, "@"))


def unknown_name(expected: str, token: Token, name: str, known: list[str], sigil: str) -> str:
    """The message for an unknown name, with the nearest known one."""
    near = close_to(name, known, 2)
    hint = f"; did you mean {' or '.join(sigil + each for each in near)}?" if near else ""
    return f"expected {expected}, got {token}{hint}"


@dataclass(frozen=True, slots=True)
class EncodedFunction:
    """A function's bytes, the requirements of its operations, and the 32-bit registers that its calls write."""

    code: bytes
    requirements: int
    i32_register_count: int


def encode_function(function: FunctionSyntax, symbols: ModuleSymbols, source: SourceText, isa: Isa) -> EncodedFunction:
    """The bytes of a function.

    Raises:
        InvalidArgumentError: an unknown name.
    """
    return _FunctionEncoder(symbols, source, isa).encode(function)


class _FunctionEncoder:
    def __init__(self, symbols: ModuleSymbols, source: SourceText, isa: Isa) -> None:
        self._symbols = symbols
        self._source = source
        self._block_opcode = isa.operations["block"].opcode
        self._code = bytearray()
        self._blocks: dict[str, int] = {}
        self._targets: list[tuple[int, Token]] = []
        self._i32_register_count = 0

    def encode(self, function: FunctionSyntax) -> EncodedFunction:
        requirements = 0
        for block in function.blocks:
            if block.label is not None:
                self._blocks[block.label.text] = len(self._code)
            self._code.append(self._block_opcode)
            for instruction in block.instructions:
                requirements |= instruction.operation.feature
                self._instruction(instruction)
        for position, token in self._targets:
            pc = self._blocks.get(token.text)
            if pc is None:
                names = [label[1:] for label in self._blocks]
                raise self._source.error(
                    token, unknown_name(f"a block of @{function.name}", token, token.text[1:], names, "^")
                )
            self._code[position : position + 4] = pc.to_bytes(4, "little")
        return EncodedFunction(bytes(self._code), requirements, self._i32_register_count)

    def _instruction(self, instruction: InstructionSyntax) -> None:
        operation = instruction.operation
        if operation.prefix is not None:
            self._code.append(operation.prefix)
        self._code.append(operation.opcode)
        callee: Token | None = None
        for field, value in zip(operation.fields, instruction.values, strict=True):
            self._value(value)
            if isinstance(value, FunctionReference):
                callee = value.token
            elif field.kind is FieldKind.RESULTS and callee is not None and isinstance(value, CountedList):
                self._count_results(callee, value)

    def _count_results(self, callee: Token, registers: CountedList) -> None:
        # The text may name a pair by its low register alone: only the callee's convention tells.
        for register, letter in zip(registers.values, self._symbols.results_of(callee), strict=False):
            if letter in ("I", "F"):
                self._i32_register_count = max(self._i32_register_count, register + 2)

    def _value(self, value: Value) -> None:
        match value:
            case bytes():
                self._code += value
            case CountedList(count, values):
                self._code += bytes(len(self._code) % 2)
                self._u16(count)
                for each in values:
                    self._u16(each)
            case BlockReference(token):
                self._targets.append((len(self._code), token))
                self._u32(0)
            case BranchCases(cases):
                self._u16(len(cases))
                for target, operands in cases:
                    self._value(target)
                    self._value(operands)
            case FunctionReference(token):
                self._u32(self._symbols.function_ordinal(token))
            case GlobalReference():
                self._u32(self._symbols.global_ordinal(value))
            case TypeReference(name):
                self._u32(self._symbols.type_ordinal(name))

    def _u16(self, value: int) -> None:
        self._code += value.to_bytes(2, "little")

    def _u32(self, value: int) -> None:
        self._code += value.to_bytes(4, "little")
