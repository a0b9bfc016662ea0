"""Parses one line of VM assembly that is an instruction: mnemonic, operands, results.

The operands of instructions are in the instruction set (:mod:`..bytecode.isa`), their text in
:data:`.syntax.TEXT_FORMS`; no instruction has code of its own here.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ...status import close_to
from ..bytecode.isa import (
    MAX_I32_REGISTERS,
    MAX_REF_REGISTERS,
    MOVE_BIT,
    REF_BIT,
    Access,
    Field,
    FieldKind,
    Isa,
    Move,
    Operation,
)
from ..bytecode.isa_tables import VERSIONS
from .cursor import Cursor
from .lexer import SourceText, Token, TokenKind
from .syntax import (
    TEXT_FORMS,
    BlockReference,
    BranchCases,
    CountedList,
    FunctionReference,
    FunctionSyntax,
    GlobalReference,
    InstructionSyntax,
    TypeReference,
    Value,
)

_MAX_COUNT: Final = 0xFFFF
_PAIRS: Final = frozenset({"i64", "f64"})
_SIZES: Final = {"i32": 4, "f32": 4, "i64": 8, "f64": 8, "ref": 0}


class InstructionParser:
    """Parses instructions of one version's instruction set."""

    def __init__(self, source: SourceText, isa: Isa) -> None:
        self._source = source
        self._isa = isa

    def parse(self, tokens: list[Token], function: FunctionSyntax) -> InstructionSyntax:
        """The instruction of a line. Registers that it names are added to the function's counts.

        Raises:
            InvalidArgumentError: not an operation of the instruction set, or not in its form.
        """
        cursor = Cursor(self._source, tokens)
        results: list[Token] = []
        if cursor.next.kind is TokenKind.REGISTER:
            results.append(cursor.take())
            while cursor.accept(","):
                results.append(cursor.expect_kind(TokenKind.REGISTER, "a result register such as %i0"))
            cursor.expect("=")
        mnemonic = cursor.expect_kind(TokenKind.WORD, "an instruction such as vm.add.i32, a block label or '}'")
        operation = self._operation(cursor, mnemonic)
        values: dict[str, Value] = {}
        form = _text_form(operation, cursor.words)
        self._operands(cursor, operation, form, values, function)
        cursor.expect_end()
        self._results(cursor, operation, results, values, function, mnemonic)
        empty = CountedList(0, ())
        return InstructionSyntax(
            operation, tuple(values.get(field.name, empty) for field in operation.fields), mnemonic
        )

    def _operation(self, cursor: Cursor, token: Token) -> Operation:
        name = token.text.removeprefix("vm.")
        operation = self._isa.operations.get(name)
        # The marker is written as a label: its mnemonic would make a block that is not counted.
        if operation is not None and operation.form != "block":
            return operation
        major, minor = self._isa.version
        for version in VERSIONS:
            if operation is None and name in Isa.for_version(version[0] << 16 | version[1]).operations:
                message = f"vm.{name} is of bytecode version {version[0]}.{version[1]} and not of {major}.{minor}"
                raise cursor.error(token, f"{message}; assemble for the newer version")
        near = close_to(name, self._isa.operations)
        hint = f"; did you mean {' or '.join(f'vm.{each}' for each in near)}?" if near else ""
        raise cursor.error(token, f"expected an instruction of bytecode {major}.{minor}, got {token}{hint}")

    def _operands(
        self, cursor: Cursor, operation: Operation, form: str, values: dict[str, Value], function: FunctionSyntax
    ) -> None:
        fields = {field.name: field for field in operation.fields}
        for word in form.split():
            if not word.startswith("<"):
                cursor.expect(word)
                continue
            name, _, how = word[1:-1].partition("/")
            if name.startswith("-"):
                cursor.type_name()
            elif how == "list":
                values[name] = TypeReference(_element_type(cursor))
            else:
                values[name] = self._value(cursor, operation, fields[name], function)

    def _results(
        self,
        cursor: Cursor,
        operation: Operation,
        tokens: list[Token],
        values: dict[str, Value],
        function: FunctionSyntax,
        mnemonic: Token,
    ) -> None:
        field = next(
            (each for each in operation.fields if each.access is Access.WRITE and each.name not in values), None
        )
        if field is None:
            if tokens:
                raise cursor.error(
                    tokens[0], f"expected no result registers: vm.{operation.mnemonic} has none before '='"
                )
            return
        if field.kind is FieldKind.RESULTS:
            raws = [parse_register(cursor, token, field, function) for token in tokens]
            values[field.name] = CountedList(self._count(cursor, mnemonic, len(raws)), tuple(raws))
        elif len(tokens) != 1:
            at = tokens[1] if tokens else mnemonic
            raise cursor.error(
                at, f"expected one result register before '= vm.{operation.mnemonic}', got {len(tokens)}"
            )
        else:
            values[field.name] = parse_register(cursor, tokens[0], field, function).to_bytes(2, "little")

    def _value(self, cursor: Cursor, operation: Operation, field: Field, function: FunctionSyntax) -> Value:
        what = f"the {field.name.replace('_', ' ')} of vm.{operation.mnemonic}"
        match field.kind:
            case FieldKind.REGISTER:
                token = cursor.expect_kind(TokenKind.REGISTER, f"{what}, a register such as {_example(field.bank)}")
                return parse_register(cursor, token, field, function).to_bytes(2, "little")
            case FieldKind.I32:
                return cursor.integer(32, signed=True, what=what).to_bytes(4, "little")
            case FieldKind.I64:
                return cursor.integer(64, signed=True, what=what).to_bytes(8, "little")
            case FieldKind.F32:
                return cursor.float_bits(32, what).to_bytes(4, "little")
            case FieldKind.F64:
                return cursor.float_bits(64, what).to_bytes(8, "little")
            case FieldKind.RODATA:
                return cursor.integer(32, signed=False, what=what).to_bytes(4, "little")
            case FieldKind.GLOBAL:
                return self._global(cursor, operation, what)
            case FieldKind.FUNCTION:
                return FunctionReference(cursor.expect_kind(TokenKind.SYMBOL, f"{what}, such as @function"))
            case FieldKind.TYPE:
                return TypeReference(cursor.type_name().text)
            case FieldKind.STRING:
                return self._string(cursor, what)
            case FieldKind.BRANCH_TARGET:
                return BlockReference(cursor.expect_kind(TokenKind.LABEL, f"{what}, a block such as ^bb0"))
            case FieldKind.OPERANDS | FieldKind.RESULTS:
                return self._registers(cursor, field, function)
            case FieldKind.SEGMENT_SIZES:
                return self._segment_sizes(cursor, what)
            case FieldKind.BRANCH_OPERANDS:
                return self._branch_operands(cursor, field, function)
            case FieldKind.BRANCH_TABLE:
                return self._cases(cursor, field, function)

    @staticmethod
    def _global(cursor: Cursor, operation: Operation, what: str) -> GlobalReference:
        bank = next(each.bank for each in operation.fields if each.kind is FieldKind.REGISTER)
        size = _SIZES[bank or "i32"]
        segment = ".rwdata" if size else ".refs"
        token = cursor.next
        if cursor.accept(segment):
            cursor.expect("[")
            ordinal = cursor.integer(32, signed=False, what=what)
            cursor.expect("]")
            return GlobalReference(token, ordinal, size)
        if token.kind is not TokenKind.SYMBOL:
            raise cursor.unexpected(f"{what}, such as @name or {segment}[0]")
        return GlobalReference(cursor.symbol(what), None, size)

    @staticmethod
    def _string(cursor: Cursor, what: str) -> bytes:
        token = cursor.next
        data = cursor.string(what)
        if len(data) > _MAX_COUNT:
            raise cursor.error(token, f"expected {what} of at most {_MAX_COUNT} bytes, got {len(data)}")
        return len(data).to_bytes(2, "little") + data

    def _registers(self, cursor: Cursor, field: Field, function: FunctionSyntax) -> CountedList:
        first = cursor.next
        raws: list[int] = []
        while cursor.next.kind is TokenKind.REGISTER or (raws and cursor.next.text == ","):
            if raws:
                cursor.expect(",")
            token = cursor.expect_kind(TokenKind.REGISTER, f"a register such as {_example(field.bank)}")
            raws.append(parse_register(cursor, token, field, function))
        return CountedList(self._count(cursor, first, len(raws)), tuple(raws))

    def _segment_sizes(self, cursor: Cursor, what: str) -> CountedList:
        first = cursor.next
        sizes: list[int] = []
        while cursor.next.kind is TokenKind.NUMBER or (sizes and cursor.next.text == ","):
            if sizes:
                cursor.expect(",")
            sizes.append(cursor.integer(16, signed=False, what=what))
        return CountedList(self._count(cursor, first, len(sizes)), tuple(sizes))

    def _branch_operands(self, cursor: Cursor, field: Field, function: FunctionSyntax) -> CountedList:
        first = cursor.next
        raws: list[int] = []
        if cursor.accept("("):
            while not cursor.accept(")"):
                if raws:
                    cursor.expect(",")
                source = cursor.expect_kind(TokenKind.REGISTER, "a branch operand such as %i0->%i1, or ')'")
                cursor.expect("->")
                target = cursor.expect_kind(TokenKind.REGISTER, "the register that the branch operand is moved to")
                raws.extend(parse_register(cursor, token, field, function) for token in (source, target))
        return CountedList(self._count(cursor, first, len(raws) // 2), tuple(raws))

    def _cases(self, cursor: Cursor, field: Field, function: FunctionSyntax) -> BranchCases:
        cases: list[tuple[BlockReference, CountedList]] = []
        while cursor.next.text == "," or cursor.next.kind is TokenKind.NUMBER:
            cursor.accept(",")
            token = cursor.next
            ordinal = cursor.integer(32, signed=False, what="a case of the branch table")
            if ordinal != len(cases):
                raise cursor.error(token, f"expected case {len(cases)}: cases are dense and start at 0, got {token}")
            cursor.expect(":")
            target = BlockReference(cursor.expect_kind(TokenKind.LABEL, "a block such as ^bb0"))
            cases.append((target, self._branch_operands(cursor, field, function)))
            self._count(cursor, token, len(cases))
        return BranchCases(tuple(cases))

    @staticmethod
    def _count(cursor: Cursor, at: Token, count: int) -> int:
        if count > _MAX_COUNT:
            raise cursor.error(at, f"expected at most {_MAX_COUNT} entries, got {count}")
        return count


def parse_register(cursor: Cursor, token: Token, field: Field, function: FunctionSyntax) -> int:
    """The 16 bits of a register in a field.

    Args:
        cursor: for errors.
        token: ``%i0``, ``%i0:1``, ``%r0`` or ``%R0``, which moves the reference.
        field: says which bank it has to be of (any for ``None``), and whether it may be moved.
        function: whose register counts grow as needed.

    Raises:
        InvalidArgumentError: another bank, an odd pair, an ordinal that no function can have.
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
    # In a list a pair may be named by its low register alone, as disassemblers do.
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
    forms = TEXT_FORMS.get(operation.form)
    if forms is None:
        return _default_form(operation)
    return next((form for form in forms if _literals(form) <= words), forms[-1])


@cache
def _literals(form: str) -> frozenset[str]:
    return frozenset(word for word in form.split() if not word.startswith("<"))


@cache
def _default_form(operation: Operation) -> str:
    return " , ".join(f"<{field.name}>" for field in operation.fields if field.access is not Access.WRITE)
