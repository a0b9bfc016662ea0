"""Parses VM assembly text: directives, function headers, blocks.

A text is one ``vm.module`` line and, after it in any order, directives and functions::

    vm.module @name version 1
    vm.dependency optional @hal version 6
    vm.type !vm.buffer
    vm.import optional @hal.fence.await cconv "0iICrD_i"
    vm.rodata[0] = 68656c6c6f
    vm.global.i32 private mutable @counter = 0 : i32
    vm.export @public = @internal
    vm.func @internal(%i0: i32, %i2:3: i64, %r0: !vm.buffer) -> (i32) {
    ^bb0:
      %i1 = vm.add.i32 %i0, %i0
      vm.return %i1
    }

It is the text that IREE's ``iree-as-module`` reads, release 3.13, with these differences. Also accepted:
``vm.dependency``, ``vm.global.ref``, ``attributes {key = "value"}`` of modules and functions, rodata in quotes, names
in quotes, ``loc("file":12:3)`` or ``loc(unknown)`` on a line of its own in a function, for where the instructions after
it come from, strings with escapes ``e"\\n"``, ``bits(0x7FA00000)`` for a float, ``switch.ref``, blocks of any name,
directives after functions. Not accepted: text after a number, octal numbers, and an i64 argument in an odd register,
which no VM takes; arguments skip a register to reach an even one.
"""

from __future__ import annotations

from typing import Final

from ...status import PumiceError
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.debug_database import FileLineCol
from ..bytecode.isa import BANK_SIZES, LETTERS, Field, FieldKind, Isa, Move, register_text
from ..bytecode.module_def import DependencyDef, ImportDef, Signature
from ..bytecode.verifier import argument_registers
from .cursor import Cursor
from .instruction_parser import InstructionParser, parse_register
from .lexer import SourceText, Token, TokenKind
from .syntax import BlockSyntax, FunctionSyntax, ModuleSyntax

_GLOBALS: Final = {f"vm.global.{bank}": size for bank, size in BANK_SIZES.items()}


class AssemblyParser:
    """Parses one text, once: call ``parse``."""

    def __init__(self, source: SourceText, isa: Isa) -> None:
        self._source = source
        self._isa = isa
        self._module = ModuleSyntax()
        self._function: FunctionSyntax | None = None
        self._current_location: FileLineCol | None = None
        self._labels: set[str] = set()
        self._directives = {
            "vm.func": self._function_header,
            "vm.type": self._type,
            "vm.dependency": self._dependency,
            "vm.import": self._import,
            "vm.export": self._export,
            "vm.rodata": self._rodata,
        }

    def parse(self) -> ModuleSyntax:
        """Returns the text's syntax; raises InvalidArgumentError at the first unexpected token."""
        started = False
        last = Token(TokenKind.END, "", 0, 0)
        for tokens in self._source.statements():
            last = tokens[-1]
            if self._function is not None:
                self._statement(self._function, tokens)
            elif started:
                self._directive(Cursor(self._source, tokens))
            else:
                self._module_directive(Cursor(self._source, tokens))
                started = True
        if not started:
            raise self._source.error(last, "expected a module such as 'vm.module @name', got a text without one")
        if self._function is not None:
            raise self._source.error(last, f"expected '}}' that closes @{self._function.name}, got the end of the text")
        if not self._module.functions:
            raise self._source.error(last, "expected at least one vm.func, got a module without functions")
        return self._module

    def _module_directive(self, cursor: Cursor) -> None:
        cursor.expect("vm.module")
        self._module.name = cursor.symbol("a module name").name
        if cursor.accept("version"):
            self._module.version = cursor.integer(32, signed=False, noun="the module version")
        self._attributes(cursor, self._module.attributes)
        cursor.expect_end()

    def _directive(self, cursor: Cursor) -> None:
        token = cursor.expect_kind(TokenKind.WORD, "a directive such as vm.func")
        if token.text in self._directives:
            self._directives[token.text](cursor)
        elif token.text in _GLOBALS:
            self._global(cursor, token)
        elif token.text == "vm.module":
            raise cursor.error(token, "expected one vm.module, got a second")
        else:
            raise cursor.error(
                token,
                "expected vm.func, vm.type, vm.dependency, vm.import, vm.export, vm.rodata[…] or vm.global.… "
                f"outside of functions, got {token}",
            )
        cursor.expect_end()

    def _attributes(self, cursor: Cursor, attributes: dict[str, str]) -> None:
        if not cursor.accept("attributes"):
            return
        cursor.expect("{")
        while not cursor.accept("}"):
            if attributes:
                cursor.expect(",")
            key = cursor.next
            if key.kind not in (TokenKind.WORD, TokenKind.STRING):
                raise cursor.unexpected("an attribute such as key = \"value\", or '}'")
            name = cursor.text("the attribute's key") if key.kind is TokenKind.STRING else cursor.take().text
            if name in attributes:
                raise cursor.error(key, f"expected each attribute once, got {key} again")
            cursor.expect("=")
            attributes[name] = cursor.text("the attribute's value")

    def _type(self, cursor: Cursor) -> None:
        name = cursor.once(cursor.type_name(), "type", self._module.types)
        self._module.types[name] = len(self._module.types)

    def _dependency(self, cursor: Cursor) -> None:
        required = not cursor.accept("optional")
        token = cursor.symbol("a module name")
        version = cursor.integer(32, signed=False, noun="the lowest version") if cursor.accept("version") else 0
        name = cursor.once(token, "dependency", self._module.dependencies)
        self._module.dependencies[name] = DependencyDef(name, version, required)

    def _import(self, cursor: Cursor) -> None:
        required = not cursor.accept("optional")
        token = cursor.symbol("an imported function")
        cursor.expect("cconv")
        text = cursor.next
        convention = cursor.text("the calling convention")
        try:
            CallingConvention.parse(convention)
        except PumiceError as error:
            raise cursor.error(text, error.message) from None
        name = cursor.once(token, "import", self._module.imports)
        self._module.imports[name] = ImportDef(name, Signature(convention), required)

    def _export(self, cursor: Cursor) -> None:
        token = cursor.symbol("the name of an export")
        function = cursor.symbol("the exported function") if cursor.accept("=") else token
        self._module.exports[cursor.once(token, "export", self._module.exports)] = function

    def _rodata(self, cursor: Cursor) -> None:
        cursor.expect("[")
        token = cursor.next
        if cursor.integer(32, signed=False, noun="the segment's ordinal") != len(self._module.rodata):
            raise cursor.error(
                token, f"expected segment {len(self._module.rodata)}: segments are in order from 0, got {token}"
            )
        cursor.expect("]")
        equals = cursor.expect("=")
        text = self._source.between(equals, cursor.next).strip()
        try:
            if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
                data = text[1:-1].encode()
            elif not text.isascii():
                raise ValueError
            else:
                data = bytes.fromhex(text)
        except ValueError:
            raise cursor.error(
                equals, "expected the segment's bytes after '=', two hexadecimal digits a byte, or a quoted string"
            ) from None
        self._module.rodata.append(data)

    def _global(self, cursor: Cursor, directive: Token) -> None:
        cursor.accept("private")
        cursor.accept("mutable")
        token = cursor.symbol("the name of a global")
        size = _GLOBALS[directive.text]
        bank = directive.text.rpartition(".")[2]
        if size == 0:
            if cursor.accept(":"):
                cursor.type_name()
        elif cursor.accept("="):
            value, noun = cursor.next, "the initial value"
            is_integer = value.text.lstrip("+-").isdecimal() or bank.startswith("i")
            if cursor.integer(64, signed=True, noun=noun) if is_integer else cursor.float_bits(64, noun):
                raise cursor.error(value, f"expected the initial value 0, got {value}: store other values in @__init")
            cursor.expect(":")
            kind = cursor.type_name()
            if kind.text != bank:
                raise cursor.error(kind, f"expected the type {bank} of the global, got {kind}")
        self._module.globals[cursor.once(token, "global", self._module.globals)] = size

    def _function_header(self, cursor: Cursor) -> None:
        token = cursor.symbol("a function name")
        name = cursor.once(token, "function", self._module.functions)
        function = FunctionSyntax(token, name)
        arguments = self._arguments(cursor, function)
        cursor.expect("->")
        cursor.expect("(")
        results = ""
        while not cursor.accept(")"):
            if results:
                cursor.expect(",")
            if cursor.next.kind is TokenKind.REGISTER:
                cursor.take()
                cursor.expect(":")
            results += LETTERS[self._bank(cursor)]
        self._attributes(cursor, function.attributes)
        cursor.expect("{")
        function.calling_convention = f"0{arguments or 'v'}_{results or 'v'}"
        self._module.functions[name] = function
        self._current_location = None
        self._function = function
        self._labels.clear()

    def _arguments(self, cursor: Cursor, function: FunctionSyntax) -> str:
        letters = ""
        arguments: list[tuple[Token, int, str]] = []
        cursor.expect("(")
        while not cursor.accept(")"):
            if letters:
                cursor.expect(",")
            token = cursor.expect_kind(TokenKind.REGISTER, "an argument such as %i0: i32, or ')'")
            cursor.expect(":")
            bank = self._bank(cursor)
            field = Field("argument", FieldKind.REGISTER, bank, move=Move.REFUSE)
            arguments.append((token, parse_register(cursor, token, field, function), bank))
            letters += LETTERS[bank]
        expected = argument_registers(CallingConvention.parse(f"0{letters}"))
        for (token, register, bank), wanted in zip(arguments, expected, strict=True):
            if register != wanted:
                name = register_text(wanted, bank)
                raise cursor.error(token, f"expected {name}: arguments take the registers in order, got {token}")
        return letters

    @staticmethod
    def _bank(cursor: Cursor) -> str:
        token = cursor.type_name()
        if token.kind is TokenKind.TYPE:
            return "ref"
        if token.text not in LETTERS or token.text == "ref":
            raise cursor.error(token, f"expected i32, i64, f32, f64 or a reference such as !vm.buffer, got {token}")
        return token.text

    def _statement(self, function: FunctionSyntax, tokens: list[Token]) -> None:
        first = tokens[0]
        blocks = function.blocks
        if first.text == "}":
            block = blocks[-1]
            if not block.instructions or not block.instructions[-1].operation.is_terminator:
                raise self._source.error(
                    first, "expected an instruction that ends the block, such as vm.return, before '}'"
                )
            cursor = Cursor(self._source, tokens)
            cursor.take()
            cursor.expect_end()
            self._function = None
        elif first.kind is TokenKind.LABEL:
            cursor = Cursor(self._source, tokens)
            cursor.take()
            cursor.expect(":")
            cursor.expect_end()
            self._labels.add(cursor.once(first, "block", self._labels))
            # Instructions before the first label are the entry block; without such instructions, the label is the
            # entry's.
            if len(blocks) == 1 and blocks[0].label is None and not blocks[0].instructions:
                blocks[0].label = first
            else:
                blocks.append(BlockSyntax(first))
        elif first.text == "loc":
            function.has_places = True
            self._current_location = self._location(Cursor(self._source, tokens))
        else:
            instruction = InstructionParser(self._source, self._isa, tokens, function).parse()
            instruction.location = self._current_location
            blocks[-1].instructions.append(instruction)

    def _location(self, cursor: Cursor) -> FileLineCol | None:
        cursor.take()
        cursor.expect("(")
        location = None
        if not cursor.accept("unknown"):
            file_name = cursor.text("a file's name")
            numbers = []
            for noun in ("a line", "a column"):
                cursor.expect(":")
                numbers.append(cursor.integer(31, signed=False, noun=noun))
            location = FileLineCol(file_name, *numbers)
        cursor.expect(")")
        cursor.expect_end()
        return location
