"""The assembler: makes modules from VM assembly text.

::

    definition = assemble(path.read_text(), file_name=str(path))
    path.with_suffix(".vmfb").write_bytes(write_module(definition))

The text is described in ``parser``, the bytes in ``bytecode.encoder``.
"""

from __future__ import annotations

from typing import Final, cast

from ..bytecode.calling_convention import CallingConvention
from ..bytecode.encoder import BytecodeBuilder, FunctionEncoder
from ..bytecode.isa import CALLS, IMPORT_BIT, Isa
from ..bytecode.isa_tables import VERSIONS
from ..bytecode.module_def import ExportDef, ModuleDef, Signature
from .lexer import SourceText, Token, TokenKind
from .literals import LiteralError, integer
from .parser import AssemblyParser
from .syntax import Cases, FunctionSyntax, GlobalReference, InstructionSyntax, ModuleSyntax, Value

_MAX_GLOBAL_BYTES: Final = 0x7FFF_FFFF


def assemble(text: str, *, file_name: str = "<text>", bytecode_version: int | None = None) -> ModuleDef:
    """Returns the module of a VM assembly text, with debug information if the text has ``loc(…)``.

    The bytecode is encoded as written and not verified.

    Args:
        text: the text as ``iree-as-module`` reads it, with extensions; see ``parser``.
        file_name: the file's name, for error messages.
        bytecode_version: the version as major << 16 | minor; the newest known by default.

    Raises:
        InvalidArgumentError: the text is not VM assembly; ``location`` is file:line:column, counted from 1, and the
            message shows the line.
        IncompatibleError: the ``bytecode_version`` is unknown.
    """
    if bytecode_version is None:
        major, minor = VERSIONS[-1]
        bytecode_version = major << 16 | minor
    isa = Isa.for_version(bytecode_version)
    source = SourceText(text, file_name)
    module = AssemblyParser(source, isa).parse()
    symbols = _Symbols(source, module)
    bytecode = BytecodeBuilder()
    for function in module.functions.values():
        encoder, registers = _encoded(function, symbols, source, isa)
        bytecode.add(function.name, encoder, registers, function.ref_register_count)
    return ModuleDef(
        name=module.name,
        version=module.version,
        requirements=bytecode.requirements,
        attributes=module.attributes,
        types=tuple(symbols.types),
        dependencies=tuple(module.dependencies.values()),
        imports=tuple(module.imports.values()),
        exports=tuple(ExportDef(name, symbols.local_ordinal(function)) for name, function in module.exports.items()),
        signatures=tuple(
            Signature(function.calling_convention, function.attributes) for function in module.functions.values()
        ),
        rodata=tuple(memoryview(data) for data in module.rodata),
        global_bytes=symbols.global_bytes,
        global_refs=symbols.global_refs,
        functions=tuple(bytecode.functions),
        bytecode_version=bytecode_version,
        bytecode=bytecode.code(),
        debug=bytecode.debug() if any(function.has_places for function in module.functions.values()) else None,
    )


class _Symbols:
    """The names of a module and their ordinals. Types and unnamed globals are added when functions refer to them."""

    def __init__(self, source: SourceText, module: ModuleSyntax) -> None:
        self._source = source
        self._module = module
        self._functions = {name: ordinal for ordinal, name in enumerate(module.functions)}
        self._imports = {name: ordinal for ordinal, name in enumerate(module.imports)}
        self._conventions = dict(enumerate(function.calling_convention for function in module.functions.values()))
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
        """Returns the index of ``!vm.buffer`` in the type table, or of ``vm.buffer`` if so written."""
        if name.startswith("vm.") and f"!{name}" in self.types:
            name = f"!{name}"
        return self.types.setdefault(name, len(self.types))

    def global_ordinal(self, reference: GlobalReference) -> int:
        """Returns the byte offset or reference ordinal of a global."""
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
        """Returns the ordinal of a function, with the import bit for an imported one.

        ``@a.b`` is the import of that name, else ``@b`` of this module if it is named ``a``, else the function of that
        name; ``@module:3`` is the module's function 3.
        """
        name, digits = token.name, token.ordinal
        if digits is not None:
            return self._numbered_function(token, name, digits)
        if name in self._imports:
            return IMPORT_BIT | self._imports[name]
        local = name.removeprefix(f"{self._module.name}.")
        for candidate in (local, name):
            if candidate in self._functions:
                return self._functions[candidate]
        raise self._source.unknown("the name of a function", token, name, [*self._functions, *self._imports])

    def local_ordinal(self, token: Token) -> int:
        """Returns the ordinal of a function of the module by its name."""
        if token.name not in self._functions:
            raise self._source.unknown("a function of this module", token, token.name, self._functions)
        return self._functions[token.name]

    def results_of(self, token: Token) -> tuple[str, ...]:
        """Returns the results of a function, as letters of its calling convention."""
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


def _encoded(function: FunctionSyntax, symbols: _Symbols, source: SourceText, isa: Isa) -> tuple[FunctionEncoder, int]:
    """Returns a function's code, and the number of its 32-bit registers."""
    encoder = FunctionEncoder(isa)
    registers = function.i32_register_count
    labels = {block.label.text for block in function.blocks if block.label is not None}

    def label(token: Token) -> str:
        if token.text not in labels:
            known = [text[1:] for text in labels]
            raise source.unknown(f"a block of @{function.name}", token, token.text[1:], known)
        return token.text

    def resolved(value: Value) -> object:
        match value:
            case str():
                return symbols.type_ordinal(value)
            case GlobalReference():
                return symbols.global_ordinal(value)
            case Token(TokenKind.LABEL):
                return label(value)
            case Token():
                return symbols.function_ordinal(value)
            case ((Token(), _), *_):
                return tuple((label(target), operands) for target, operands in cast(Cases, value))
            case _:
                return value

    for block in function.blocks:
        encoder.block(block.label and block.label.text)
        for instruction in block.instructions:
            encoder.instruction(
                instruction.operation, [resolved(value) for value in instruction.values], instruction.location
            )
            registers = max(registers, _result_registers(instruction, symbols))
    return encoder, registers


def _result_registers(instruction: InstructionSyntax, symbols: _Symbols) -> int:
    """Returns the number of 32-bit registers needed for pairs among a call's results.

    The text may write a pair as its low register, so only the callee's convention shows pairs.
    """
    if instruction.operation.mnemonic not in CALLS:
        return 0
    callee, registers = cast(Token, instruction.values[0]), cast(tuple[int, ...], instruction.values[-1])
    results = zip(registers, symbols.results_of(callee), strict=False)
    return max((register + 2 for register, letter in results if letter in ("I", "F")), default=0)
