"""The assembler: makes a module of VM assembly text.

::

    definition = assemble(path.read_text(), file_name=str(path))
    path.with_suffix(".vmfb").write_bytes(write_module(definition))

The text is described in ``parser``. A block of bytecode starts with its marker; an instruction is its prefix byte,
if any, its opcode and its fields, little-endian and unaligned, except lists, which start at an even pc.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ...status import InvalidArgumentError
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.debug_database import DebugDatabase, FileLineCol, FunctionSourceMap
from ..bytecode.isa import IMPORT_BIT, FieldKind, Isa
from ..bytecode.isa_tables import VERSIONS
from ..bytecode.module_def import ExportDef, FunctionDescriptor, ModuleDef, Signature
from .lexer import SourceText, Token, TokenKind
from .literals import LiteralError, integer
from .parser import AssemblyParser
from .syntax import BlockSyntax, CountedList, FunctionSyntax, GlobalReference, InstructionSyntax, ModuleSyntax, Value

_FUNCTION_ALIGNMENT: Final = 8
_MAX_BYTECODE: Final = 0x7FFF_FFFF
_MAX_BLOCKS: Final = 0x7FFF
_MAX_GLOBAL_BYTES: Final = 0x7FFF_FFFF


def assemble(text: str, *, file_name: str = "<text>", bytecode_version: int | None = None) -> ModuleDef:
    """The module that a text in VM assembly describes. It has debug information where the text has ``loc(…)``.

    The bytecode is encoded as written and not verified.

    Args:
        text: as ``iree-as-module`` reads it, with extensions; see ``parser``.
        file_name: for error messages.
        bytecode_version: major << 16 | minor; the newest known by default.

    Raises:
        InvalidArgumentError: the text is not VM assembly; ``location`` is file:line:column, counted from 1, and the
            message shows the line.
        IncompatibleError: an unknown ``bytecode_version``.
    """
    if bytecode_version is None:
        major, minor = VERSIONS[-1]
        bytecode_version = major << 16 | minor
    isa = Isa.for_version(bytecode_version)
    source = SourceText(text, file_name)
    module = AssemblyParser(source, isa).parse()
    symbols = _Symbols(source, module)
    bytecode = bytearray()
    functions: list[FunctionDescriptor] = []
    requirements = 0
    places = _Places()
    for function in module.functions.values():
        code, descriptor = _encode_function(function, len(bytecode), symbols, source, isa, places)
        functions.append(descriptor)
        requirements |= descriptor.requirements
        bytecode += code
        bytecode += bytes(-len(bytecode) % _FUNCTION_ALIGNMENT)
    if len(bytecode) > _MAX_BYTECODE:
        raise InvalidArgumentError(
            f"expected a module of at most {_MAX_BYTECODE} bytes of bytecode, got {len(bytecode)}"
        )
    return ModuleDef(
        name=module.name,
        version=module.version,
        requirements=requirements,
        attributes=module.attributes,
        types=tuple(symbols.types),
        dependencies=tuple(module.dependencies.values()),
        imports=tuple(module.imports.values()),
        exports=tuple(ExportDef(name, symbols.local_ordinal(each)) for name, each in module.exports.items()),
        signatures=tuple(Signature(each.calling_convention, each.attributes) for each in module.functions.values()),
        rodata=tuple(memoryview(data) for data in module.rodata),
        global_bytes=symbols.global_bytes,
        global_refs=symbols.global_refs,
        functions=tuple(functions),
        bytecode_version=bytecode_version,
        bytecode=memoryview(bytes(bytecode)),
        debug=places.database() if any(each.has_places for each in module.functions.values()) else None,
    )


class _Places:
    """Where instructions come from, as a module's debug database has it."""

    def __init__(self) -> None:
        self._numbers: dict[FileLineCol | None, int] = {}
        self._maps: list[FunctionSourceMap] = []

    def add(self, name: str, instructions: Sequence[tuple[int, InstructionSyntax]]) -> None:
        """Adds the instructions of a function, each with its pc."""
        entries: list[tuple[int, int]] = []
        for pc, instruction in instructions:
            number = self._numbers.setdefault(instruction.place, len(self._numbers))
            if not entries or entries[-1][1] != number:
                entries.append((pc, number))
        self._maps.append(FunctionSourceMap.of(name, entries))

    def database(self) -> DebugDatabase:
        return DebugDatabase(self._maps, len(self._maps), list(self._numbers))


class _Symbols:
    """The names of a module and their ordinals. Types and unnamed globals are added as functions name them."""

    def __init__(self, source: SourceText, module: ModuleSyntax) -> None:
        self._source = source
        self._module = module
        self._functions = {name: ordinal for ordinal, name in enumerate(module.functions)}
        self._imports = {name: ordinal for ordinal, name in enumerate(module.imports)}
        self._conventions = dict(enumerate(each.calling_convention for each in module.functions.values()))
        for ordinal, imported in enumerate(module.imports.values()):
            self._conventions[IMPORT_BIT | ordinal] = imported.signature.calling_convention
        self.types: dict[str, int] = dict(module.types)
        self._globals: dict[str, int] = {}  # byte offsets, ordinals of references
        self.global_refs = 0
        self.global_bytes = 0
        # Small globals first, so that each size is aligned.
        for name, size in sorted(module.globals.items(), key=lambda item: item[1]):
            if size:
                self._globals[name] = -(-self.global_bytes // size) * size
                self.global_bytes = self._globals[name] + size
            else:
                self._globals[name] = self.global_refs
                self.global_refs += 1

    def type_ordinal(self, name: str) -> int:
        """Index in the type table of ``!vm.buffer``, or of ``vm.buffer`` if that is written."""
        if name.startswith("vm.") and f"!{name}" in self.types:
            name = f"!{name}"
        return self.types.setdefault(name, len(self.types))

    def global_ordinal(self, reference: GlobalReference) -> int:
        """Byte offset or reference ordinal of a global."""
        if reference.ordinal is None:
            name = reference.token.name
            size = self._module.globals.get(name)
            if size is None:
                raise self._source.unknown("the name of a global", reference.token, name, self._globals)
            if size != reference.size:
                sizes = {0: "a reference", 4: "4 bytes", 8: "8 bytes"}
                raise self._source.error(
                    reference.token, f"expected a global of {sizes[reference.size]}, got @{name} of {sizes[size]}"
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
        """
        name, digits = token.name, token.ordinal
        if digits is not None:
            return self._numbered_function(token, name, digits)
        if name in self._imports:
            return IMPORT_BIT | self._imports[name]
        local = name.removeprefix(f"{self._module.name}.")
        for each in (local, name):
            if each in self._functions:
                return self._functions[each]
        raise self._source.unknown("the name of a function", token, name, [*self._functions, *self._imports])

    def local_ordinal(self, token: Token) -> int:
        """Ordinal of a function of the module by its name."""
        if token.name not in self._functions:
            raise self._source.unknown("a function of this module", token, token.name, self._functions)
        return self._functions[token.name]

    def results_of(self, token: Token) -> tuple[str, ...]:
        """The results of a function, a letter of its calling convention each."""
        return CallingConvention.parse(self._conventions[self.function_ordinal(token)]).results

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


def _encode_function(
    function: FunctionSyntax, offset: int, symbols: _Symbols, source: SourceText, isa: Isa, places: _Places
) -> tuple[bytes, FunctionDescriptor]:
    """A function's bytes and their description; says where they come from."""
    if len(function.blocks) > _MAX_BLOCKS:
        raise source.error(
            function.token, f"expected at most {_MAX_BLOCKS} blocks a function, got {len(function.blocks)}"
        )
    encoder = _FunctionEncoder(function, symbols)
    for block in function.blocks:
        encoder.block(block, isa.operations["block"].opcode)
    code = encoder.linked(source)
    places.add(function.name, encoder.instructions)
    i32_count = max(function.i32_register_count, encoder.i32_register_count)
    blocks, refs = len(function.blocks), function.ref_register_count
    return code, FunctionDescriptor(offset, len(code), encoder.requirements, blocks, i32_count, refs)


class _FunctionEncoder:
    def __init__(self, function: FunctionSyntax, symbols: _Symbols) -> None:
        self._function = function
        self._symbols = symbols
        self._code = bytearray()
        self._blocks: dict[str, int] = {}
        self._targets: list[tuple[int, Token]] = []
        self.instructions: list[tuple[int, InstructionSyntax]] = []  # with their pc
        self.requirements = 0
        self.i32_register_count = 0  # of those that calls write

    def block(self, block: BlockSyntax, marker: int) -> None:
        if block.label is not None:
            self._blocks[block.label.text] = len(self._code)
        self._code.append(marker)
        for instruction in block.instructions:
            self.requirements |= instruction.operation.feature
            self.instructions.append((len(self._code), instruction))
            self._instruction(instruction)

    def linked(self, source: SourceText) -> bytes:
        """The bytes, with the places of blocks."""
        for position, token in self._targets:
            pc = self._blocks.get(token.text)
            if pc is None:
                known = [label[1:] for label in self._blocks]
                raise source.unknown(f"a block of @{self._function.name}", token, token.text[1:], known)
            self._code[position : position + 4] = pc.to_bytes(4, "little")
        return bytes(self._code)

    def _instruction(self, instruction: InstructionSyntax) -> None:
        operation = instruction.operation
        if operation.prefix is not None:
            self._code.append(operation.prefix)
        self._code.append(operation.opcode)
        for field, value in zip(operation.fields, instruction.values, strict=True):
            self._value(value)
            if field.kind is FieldKind.RESULTS and isinstance(value, CountedList):
                self._count_results(instruction.values[0], value)

    def _count_results(self, callee: Value, registers: CountedList) -> None:
        # The text may name a pair by its low register alone: only the callee's convention tells.
        assert isinstance(callee, Token)
        for register, letter in zip(registers.values, self._symbols.results_of(callee), strict=False):
            if letter in ("I", "F"):
                self.i32_register_count = max(self.i32_register_count, register + 2)

    def _value(self, value: Value) -> None:
        match value:
            case bytes():
                self._code += value
            case str():
                self._code += struct.pack("<I", self._symbols.type_ordinal(value))
            case CountedList(count, values):
                self._code += bytes(len(self._code) % 2)
                self._code += struct.pack(f"<{1 + len(values)}H", count, *values)
            case Token(TokenKind.LABEL):
                self._targets.append((len(self._code), value))
                self._code += bytes(4)
            case Token():
                self._code += struct.pack("<I", self._symbols.function_ordinal(value))
            case GlobalReference():
                self._code += struct.pack("<I", self._symbols.global_ordinal(value))
            case cases:
                self._code += struct.pack("<H", len(cases))
                for target, operands in cases:
                    self._value(target)
                    self._value(operands)
