"""Parses a line of VM assembly with an instruction: mnemonic, operands, results.

The operands of instructions are in the instruction set (``.bytecode.isa``), their text in ``syntax``; no instruction
has special code here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from ...status import close_to
from ..bytecode.isa import (
    BANK_SIZES,
    MAX_I32_REGISTERS,
    MAX_REF_REGISTERS,
    MOVE_BIT,
    REF_BIT,
    Field,
    FieldKind,
    Isa,
    Move,
    Operation,
)
from ..bytecode.isa_tables import VERSIONS
from .cursor import Cursor
from .lexer import SourceText, Token, TokenKind
from .syntax import Cases, FunctionSyntax, GlobalReference, InstructionSyntax, Value, text_forms

_MAX_COUNT: Final = 0xFFFF
_PAIRS: Final = frozenset({"i64", "f64"})


class InstructionParser:
    """Parses one instruction line, in the instruction set of a version; call ``parse`` once.

    The registers are added to the function's counts.
    """

    def __init__(self, source: SourceText, isa: Isa, tokens: list[Token], function: FunctionSyntax) -> None:
        self._isa = isa
        self._function = function
        self._cursor = Cursor(source, tokens)
        self._values: dict[str, Value] = {}

    def parse(self) -> InstructionSyntax:
        """Returns the instruction; InvalidArgumentError if it is not in the instruction set, or not in its form."""
        cursor = self._cursor
        results: list[Token] = []
        if cursor.next.kind is TokenKind.REGISTER:
            results.append(cursor.take())
            while cursor.accept(","):
                results.append(cursor.expect_kind(TokenKind.REGISTER, "a result register such as %i0"))
            cursor.expect("=")
        mnemonic = cursor.expect_kind(TokenKind.WORD, "an instruction such as vm.add.i32, a block label or '}'")
        operation = self._operation(mnemonic)
        self._operands(operation)
        cursor.expect_end()
        self._results(operation, results, mnemonic)
        return InstructionSyntax(operation, tuple(self._values.get(field.name, ()) for field in operation.fields))

    def _operation(self, token: Token) -> Operation:
        name = token.text.removeprefix("vm.")
        operation = self._isa.operations.get(name)
        # The marker is written as a label, as its mnemonic would make an uncounted block.
        if operation is not None and operation.form != "block":
            return operation
        major, minor = self._isa.version
        for version in VERSIONS:
            if operation is None and name in Isa.for_version(version[0] << 16 | version[1]).operations:
                message = f"vm.{name} is of bytecode version {version[0]}.{version[1]} and not of {major}.{minor}"
                raise self._cursor.error(token, f"{message}; assemble for the newer version")
        near = close_to(name, self._isa.operations)
        hint = f"; did you mean {' or '.join(f'vm.{mnemonic}' for mnemonic in near)}?" if near else ""
        raise self._cursor.error(token, f"expected an instruction of bytecode {major}.{minor}, got {token}{hint}")

    def _operands(self, operation: Operation) -> None:
        fields = {field.name: field for field in operation.fields}
        for word in _text_form(operation, self._cursor.words).split():
            if not word.startswith("<"):
                self._cursor.expect(word)
                continue
            name, _, how = word[1:-1].partition("/")
            if name.startswith("-"):
                self._cursor.type_name()
            elif how == "list":
                self._values[name] = _element_type(self._cursor)
            else:
                self._values[name] = self._value(operation, fields[name])

    def _results(self, operation: Operation, tokens: list[Token], mnemonic: Token) -> None:
        written = (
            result_field
            for result_field in operation.fields
            if result_field.is_written and result_field.name not in self._values
        )
        field = next(written, None)
        if field is None:
            if tokens:
                raise self._cursor.error(
                    tokens[0], f"expected no result registers: vm.{operation.mnemonic} has none before '='"
                )
        elif field.kind is FieldKind.RESULTS:
            self._values[field.name] = self._counted(mnemonic, [self._register(token, field) for token in tokens])
        elif len(tokens) != 1:
            at = tokens[1] if tokens else mnemonic
            raise self._cursor.error(
                at, f"expected one result register before '= vm.{operation.mnemonic}', got {len(tokens)}"
            )
        else:
            self._values[field.name] = self._register(tokens[0], field)

    def _value(self, operation: Operation, field: Field) -> Value:
        cursor = self._cursor
        noun = f"the {field.name.replace('_', ' ')} of vm.{operation.mnemonic}"
        match field.kind:
            case FieldKind.REGISTER:
                token = cursor.expect_kind(TokenKind.REGISTER, f"{noun}, a register such as {_example(field.bank)}")
                return self._register(token, field)
            case FieldKind.I32:
                return cursor.integer(32, signed=True, noun=noun)
            case FieldKind.I64:
                return cursor.integer(64, signed=True, noun=noun)
            case FieldKind.F32:
                return cursor.float_bits(32, noun)
            case FieldKind.F64:
                return cursor.float_bits(64, noun)
            case FieldKind.RODATA:
                return cursor.integer(32, signed=False, noun=noun)
            case FieldKind.GLOBAL:
                return self._global(operation, noun)
            case FieldKind.FUNCTION:
                return cursor.expect_kind(TokenKind.SYMBOL, f"{noun}, such as @function")
            case FieldKind.TYPE:
                return cursor.type_name().text
            case FieldKind.STRING:
                return self._string(noun)
            case FieldKind.BRANCH_TARGET:
                return cursor.expect_kind(TokenKind.LABEL, f"{noun}, a block such as ^bb0")
            case FieldKind.OPERANDS | FieldKind.RESULTS:
                example = f"a register such as {_example(field.bank)}"
                return self._listed(
                    TokenKind.REGISTER,
                    lambda: self._register(cursor.expect_kind(TokenKind.REGISTER, example), field),
                )
            case FieldKind.SEGMENT_SIZES:
                return self._listed(TokenKind.NUMBER, lambda: cursor.integer(16, signed=False, noun=noun))
            case FieldKind.BRANCH_OPERANDS:
                return self._branch_operands(field)
            case FieldKind.BRANCH_TABLE:
                return self._cases(field)

    def _register(self, token: Token, field: Field) -> int:
        return parse_register(self._cursor, token, field, self._function)

    def _global(self, operation: Operation, noun: str) -> GlobalReference:
        cursor = self._cursor
        bank = next(field.bank for field in operation.fields if field.kind is FieldKind.REGISTER)
        size = BANK_SIZES[bank or "i32"]
        segment = ".rwdata" if size else ".refs"
        token = cursor.next
        if cursor.accept(segment):
            cursor.expect("[")
            ordinal = cursor.integer(32, signed=False, noun=noun)
            cursor.expect("]")
            return GlobalReference(token, ordinal, size)
        if token.kind is not TokenKind.SYMBOL:
            raise cursor.unexpected(f"{noun}, such as @name or {segment}[0]")
        return GlobalReference(cursor.symbol(noun), None, size)

    def _string(self, noun: str) -> bytes:
        token = self._cursor.next
        data = self._cursor.string(noun)
        if len(data) > _MAX_COUNT:
            raise self._cursor.error(token, f"expected {noun} of at most {_MAX_COUNT} bytes, got {len(data)}")
        return data

    def _listed(self, kind: TokenKind, read: Callable[[], int]) -> tuple[int, ...]:
        """Returns values separated by commas; stops at the first token of another kind."""
        first = self._cursor.next
        values: list[int] = []
        while self._cursor.next.kind is kind or (values and self._cursor.next.text == ","):
            if values:
                self._cursor.expect(",")
            values.append(read())
        return self._counted(first, values)

    def _branch_operands(self, field: Field) -> tuple[int, ...]:
        cursor = self._cursor
        first = cursor.next
        raws: list[int] = []
        if cursor.accept("("):
            while not cursor.accept(")"):
                if raws:
                    cursor.expect(",")
                source = cursor.expect_kind(TokenKind.REGISTER, "a branch operand such as %i0->%i1, or ')'")
                cursor.expect("->")
                target = cursor.expect_kind(TokenKind.REGISTER, "the register that the branch operand is moved to")
                raws += [self._register(source, field), self._register(target, field)]
        return self._counted(first, raws, 2)

    def _cases(self, field: Field) -> Cases:
        cursor = self._cursor
        cases: list[tuple[Token, tuple[int, ...]]] = []
        while cursor.next.text == "," or cursor.next.kind is TokenKind.NUMBER:
            cursor.accept(",")
            token = cursor.next
            ordinal = cursor.integer(32, signed=False, noun="a case of the branch table")
            if ordinal != len(cases):
                raise cursor.error(token, f"expected case {len(cases)}: cases are dense and start at 0, got {token}")
            self._check_count(token, ordinal + 1)
            cursor.expect(":")
            target = cursor.expect_kind(TokenKind.LABEL, "a block such as ^bb0")
            cases.append((target, self._branch_operands(field)))
        return tuple(cases)

    def _counted(self, at: Token, values: list[int], size: int = 1) -> tuple[int, ...]:
        self._check_count(at, len(values) // size)
        return tuple(values)

    def _check_count(self, at: Token, count: int) -> None:
        if count > _MAX_COUNT:
            raise self._cursor.error(at, f"expected at most {_MAX_COUNT} entries, got {count}")


def parse_register(cursor: Cursor, token: Token, field: Field, function: FunctionSyntax) -> int:
    """Returns the 16 bits of a register in a field: ``%i0``, ``%i0:1``, ``%r0`` or ``%R0``, which moves the reference.

    The field determines its bank, and whether it may be moved; the function's register counts grow as needed.
    InvalidArgumentError for another bank, an odd pair, or an ordinal beyond the limit.
    """
    body, _, high = token.text[1:].partition(":")
    sigil, digits = body[:1], body[1:]
    is_pair = bool(high)
    bank = field.bank
    wanted = f"expected a register such as {_example(bank)}, got {token}"
    is_reference = sigil in ("r", "R")
    if not digits.isdecimal() or sigil not in ("i", "r", "R") or (is_reference and is_pair):
        raise cursor.error(token, wanted)
    if bank is not None:
        in_list = field.kind is not FieldKind.REGISTER
        if is_reference != (bank == "ref") or (is_pair and bank not in _PAIRS):
            raise cursor.error(token, wanted)
        if bank in _PAIRS and not is_pair and not in_list:
            raise cursor.error(token, wanted)
    if len(digits) > 5 or len(high) > 5:
        raise cursor.error(token, f"expected a register ordinal below {MAX_I32_REGISTERS}, got {token}")
    if (digits[0] == "0" and len(digits) > 1) or (high[:1] == "0" and len(high) > 1):
        raise cursor.error(token, f"expected a register ordinal without leading zeros, got {token}")
    ordinal = int(digits)
    if is_reference:
        if ordinal >= MAX_REF_REGISTERS:
            raise cursor.error(token, f"expected a reference register ordinal below {MAX_REF_REGISTERS}, got {token}")
        function.ref_register_count = max(function.ref_register_count, ordinal + 1)
        if sigil == "r":
            return REF_BIT | ordinal
        if field.move is Move.REFUSE:
            raise cursor.error(token, f"expected a reference that is kept, %r{ordinal}: this operand gives none up")
        return REF_BIT | MOVE_BIT | ordinal
    if is_pair and (int(high) != ordinal + 1 or ordinal % 2):
        raise cursor.error(token, f"expected an even register and the one after it, such as %i2:3, got {token}")
    # In a list a pair may be written as its low register, as in disassemblers.
    span = 2 if is_pair or bank in _PAIRS else 1
    if span == 2 and ordinal % 2:
        raise cursor.error(token, f"expected an even register, which an {bank or 'i64'} starts at, got {token}")
    if ordinal + span > MAX_I32_REGISTERS:
        raise cursor.error(token, f"expected a register ordinal below {MAX_I32_REGISTERS}, got {token}")
    function.i32_register_count = max(function.i32_register_count, ordinal + span)
    return ordinal


def _element_type(cursor: Cursor) -> str:
    token = cursor.next
    text = cursor.type_name().text
    if not (text.startswith("!vm.list<") and text.endswith(">")) or not text[9:-1].strip():
        raise cursor.error(token, f"expected a list type such as !vm.list<i32>, got {token}")
    return text[9:-1].strip()


def _example(bank: str | None) -> str:
    return {"ref": "%r0", "i64": "%i0:1", "f64": "%i0:1"}.get(bank or "", "%i0")


def _text_form(operation: Operation, words: set[str]) -> str:
    forms = text_forms(operation)
    return next((form for form in forms if _literals(form) <= words), forms[-1])


@cache
def _literals(form: str) -> frozenset[str]:
    return frozenset(word for word in form.split() if not word.startswith("<"))
