"""SPIR-V as text: ``spv.module``, one instruction a line, named and laid out by the tables of the grammar.

Ids are the module's own, so that the text determines the words. Parts that the specification puts first surround the
body: the memory model precedes it, capabilities and extensions follow it. A result's type is written out, as
``!spv.ptr<i32, StorageBuffer>``; if two types have the same text, the second is named by its id.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....spirv.binary.grammar import (
    BIT_MASK_KINDS,
    ENUMERATIONS,
    LAYOUTS,
    PAIR_KINDS,
    Layout,
    Op,
    operand_kinds,
    parameters_of,
)
from ....spirv.binary.words import encode, pack, read_binary, string_words
from ...ir.attributes import Attribute, DenseArray, IntegerAttr, string_text
from ...ir.operation import NOWHERE, Location, Operation
from ...ir.parser import Parser, Parts
from ...ir.printer import Printer
from ...ir.scanner import SPACE
from ...ir.syntax import CustomSyntax
from ...ir.types import ScalarType

_MAGIC: Final = 0x07230203
_MAX_BOUND: Final = 0x400000
_MAX_WORDS: Final = 10_000_000
_MAX_OPERANDS: Final = 0xFFFE
_IDS: Final = frozenset({"IdRef", "IdScope", "IdMemorySemantics"})
_LINE: Final = re.compile(SPACE + r"(?:%([0-9]{1,8})[ \t]*=[ \t]*)?spv\.([A-Z][A-Za-z0-9]*)\b", re.ASCII)
_ID: Final = re.compile(SPACE + r"%([0-9]{1,8})", re.ASCII)
_TYPE: Final = re.compile(r"[ \t]*+([^\n]++)")
_TYPE_ID: Final = re.compile(r"!spv\.id<([0-9]{1,8})>", re.ASCII)
_NUMBER: Final = re.compile(SPACE + r"(0x[0-9A-Fa-f]{1,16}|[+-]?[0-9][0-9.]{0,400}(?:e[+-]?[0-9]{1,4})?)", re.ASCII)
_OPCODES: Final = {layout.name: opcode for opcode, layout in LAYOUTS.items()}
_FLOATS: Final = {16: "<e", 32: "<f", 64: "<d"}
_WORDS: Final = ScalarType("ui32")


def spirv_module(code: bytes, location: Location = NOWHERE) -> Operation:
    """Wraps a SPIR-V binary as an operation."""
    return Operation("spv.module", (), (), {"words": DenseArray(_WORDS, read_binary(code).words)}, location=location)


def spirv_code(module: Operation) -> bytes:
    """Returns the binary of an operation that ``spirv_module`` or the parser created."""
    words = module.attributes["words"]
    assert isinstance(words, DenseArray)
    return pack(cast("Sequence[int]", words.values))


class _Types:
    """The types of a module, and their text.

    Attributes:
        by_text: the id of each text; the first id if two types have the same text.
        texts: texts by id.
        widths: bits and whether it is a float, of scalar types by id.
        lengths: values of integer constants by id, for lengths of arrays.
    """

    def __init__(self) -> None:
        self.by_text: dict[str, int] = {}
        self.texts: dict[int, str] = {}
        self.scalars: dict[int, tuple[int, bool]] = {}
        self.lengths: dict[int, int] = {}

    def note(self, words: Sequence[int]) -> None:
        """Records a declaration."""
        opcode = words[0] & 0xFFFF
        if opcode == Op.Constant and len(words) == 4:
            self.lengths[words[2]] = words[3]
        if LAYOUTS[opcode].group != "Type-Declaration" or opcode == Op.TypeForwardPointer:
            return
        number = words[1]
        text = self._text(opcode, words[2:]) or f"!spv.id<{number}>"
        if len(text) > 200:
            text = f"!spv.id<{number}>"
        self.by_text.setdefault(text, number)
        self.texts[number] = text
        if opcode in (Op.TypeInt, Op.TypeFloat):
            self.scalars[number] = (words[2], opcode == Op.TypeFloat)

    def name(self, number: int) -> str:
        """Returns the name of a type at its uses."""
        text = self.texts.get(number, "")
        return text if self.by_text.get(text) == number else f"!spv.id<{number}>"

    def _text(self, opcode: int, operands: Sequence[int]) -> str:
        if opcode == Op.TypeVoid:
            return "none"
        if opcode == Op.TypeBool:
            return "i1"
        if opcode == Op.TypeInt:
            return f"{'s' if operands[1] else ''}i{operands[0]}"
        if opcode == Op.TypeFloat and len(operands) == 1:
            return f"f{operands[0]}"
        if opcode == Op.TypeVector:
            return f"vector<{operands[1]}x{self.name(operands[0])}>"
        if opcode == Op.TypeArray:
            length = self.lengths.get(operands[1])
            return f"!spv.array<{length} x {self.name(operands[0])}>" if length is not None else ""
        if opcode == Op.TypeRuntimeArray:
            return f"!spv.rtarray<{self.name(operands[0])}>"
        if opcode == Op.TypeStruct:
            return f"!spv.struct<{', '.join(map(self.name, operands))}>"
        if opcode == Op.TypePointer:
            storage = ENUMERATIONS["StorageClass"].names.get(operands[0])
            return f"!spv.ptr<{self.name(operands[1])}, {storage}>" if storage else ""
        if opcode == Op.TypeFunction:
            return f"({', '.join(map(self.name, operands[1:]))}) -> {self.name(operands[0])}"
        return ""


# -- printing --------------------------------------------------------------------------------------------


def _print_module(printer: Printer, operation: Operation) -> str:
    binary = read_binary(spirv_code(operation))
    words = binary.words
    types = _Types()
    lines: list[str] = []
    capabilities: list[str] = []
    extensions: list[str] = []
    model = ""
    depth = 1
    for opcode, start, end in binary:
        operands = _operand_texts(words, start, end, types)
        if opcode == Op.MemoryModel:
            model = " ".join(operands)
        elif opcode in (Op.Capability, Op.Extension):
            (capabilities if opcode == Op.Capability else extensions).extend(operands)
        else:
            depth -= opcode == Op.FunctionEnd
            lines.append("  " * depth + _line(words, start, operands, types))
            depth += opcode == Op.Function
        types.note(words[start:end])
    version = ".".join(map(str, binary.version))
    head = f'version = "{version}", generator = {binary.generator} : i64, bound = {binary.bound} : i64'
    lists = f"capabilities = [{', '.join(capabilities)}], extensions = [{', '.join(extensions)}]"
    indent = printer.indent
    body = "".join(f"{indent}{line}\n" for line in lines)
    return f"{model} {{\n{body}{indent}}} attributes {{{head}, {lists}}}"


def _line(words: Sequence[int], start: int, operands: Sequence[str], types: _Types) -> str:
    layout = _layout(words, start)
    at = start + 1
    type = ""
    if layout.operands[:1] == ("IdResultType",):
        type = f" : {types.name(words[at])}"
        at += 1
    result = f"%{words[at]} = " if "IdResult" in layout.operands[:2] else ""
    return f"{result}spv.{layout.name}{' ' if operands else ''}{', '.join(operands)}{type}"


def _layout(words: Sequence[int], start: int) -> Layout:
    layout = LAYOUTS.get(words[start] & 0xFFFF)
    if layout is None:
        raise ValueError(f"the opcode {words[start] & 0xFFFF} is not in the grammar")
    return layout


def _operand_texts(words: Sequence[int], start: int, end: int, types: _Types) -> list[str]:
    """Returns the operands except the result and its type."""
    texts = []
    layout = _layout(words, start)
    for at, kind in operand_kinds(words, start, end):
        word = words[at]
        if kind in ("IdResult", "IdResultType"):
            continue
        if kind in _IDS:
            texts.append(f"%{word}")
        elif kind == "LiteralString":
            texts.append(string_text(_string(words, at, end)))
        elif kind == "LiteralContextDependentNumber":
            texts.append(_number_text(words[at:end], types.scalars.get(words[start + 1], (32, False))))
        elif kind == "LiteralSpecConstantOpInteger":
            texts.append(string_text(LAYOUTS[word].name) if word in LAYOUTS else str(word))
        elif kind in BIT_MASK_KINDS:
            texts.append(_mask_text(kind, word))
        elif kind in ENUMERATIONS and word in ENUMERATIONS[kind].names:
            texts.append(f'"{ENUMERATIONS[kind].names[word]}"')
        else:
            texts.append(str(word))
    if layout.minimum > end - start:
        raise ValueError(f"Op{layout.name} has {end - start} words, expected at least {layout.minimum}")
    return texts


def _string(words: Sequence[int], start: int, end: int) -> str:
    raw = pack(words[start:end])
    return raw[: raw.index(b"\0")].decode("utf-8", "surrogateescape")


def _mask_text(kind: str, word: int) -> str:
    names = ENUMERATIONS[kind].names
    bits = [1 << bit for bit in range(32) if word >> bit & 1]
    if not all(bit in names for bit in bits) or (not bits and 0 not in names):
        return str(word)
    return f'"{"|".join(names[bit] for bit in bits) or names[0]}"'


def _number_text(words: Sequence[int], type: tuple[int, bool]) -> str:
    bits, is_float = type
    value = sum(word << 32 * index for index, word in enumerate(words))
    if is_float and bits in _FLOATS and value < 1 << bits:
        number = struct.unpack(_FLOATS[bits], value.to_bytes(bits // 8, "little"))[0]
        if math.isfinite(number):
            return repr(number)
    return f"0x{value:0{max(bits, 32) // 4}X}" if is_float else str(value)


# -- reading ---------------------------------------------------------------------------------------------


def _parse_module(parser: Parser, name: str) -> Parts:
    start = parser.here()
    model = _enumerant(parser, "AddressingModel"), _enumerant(parser, "MemoryModel")
    parser.expect("{")
    body = _Body(parser)
    while not parser.accept("}"):
        body.instruction()
    parser.expect_word("attributes")
    at = parser.here()
    header = _Header(parser, at, parser.attribute_dictionary())
    body.check(header.bound)
    words = [*header.words, *body.imports, *encode(Op.MemoryModel, *model), *body.words]
    if len(words) > _MAX_WORDS:
        parser.error(f"a shader of more than {_MAX_WORDS:,} words", start)
    return Parts([], [], {"words": DenseArray(_WORDS, tuple(words))}, [])


class _Header:
    """The text behind the body: the header's words, capabilities and extensions."""

    def __init__(self, parser: Parser, offset: int, attributes: Mapping[str, Attribute]) -> None:
        self._parser = parser
        self._offset = offset
        self._attributes = attributes
        version = attributes.get("version")
        match = re.fullmatch(r"1\.([0-6])", version) if isinstance(version, str) else None
        if match is None:
            parser.error('expected version = "1.0" to "1.6" among the attributes of spv.module', offset)
        generator, self.bound = self._integer("generator", 0, 1 << 32), self._integer("bound", 1, _MAX_BOUND + 1)
        words = [_MAGIC, 1 << 16 | int(match[1]) << 8, generator, self.bound, 0]
        for capability in self._strings("capabilities"):
            number = {name: value for value, name in ENUMERATIONS["Capability"].names.items()}.get(capability)
            if number is None:
                parser.error(f"there is no capability {capability}", offset)
            words += encode(Op.Capability, number)
        for extension in self._strings("extensions"):
            words += encode(Op.Extension, *string_words(extension))
        self.words = words

    def _integer(self, name: str, low: int, high: int) -> int:
        value = self._attributes.get(name)
        if not isinstance(value, IntegerAttr) or not low <= value.value < high:
            self._parser.error(
                f"expected {name} = an integer from {low} to {high - 1} among the attributes of spv.module",
                self._offset,
            )
        return value.value

    def _strings(self, name: str) -> Sequence[str]:
        value = self._attributes.get(name)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            self._parser.error(f"expected {name} = a list of strings among the attributes of spv.module", self._offset)
        return cast("Sequence[str]", value)


class _Body:
    """The instructions read so far.

    Attributes:
        words: words of all instructions except imports.
        imports: words of imports of instruction sets, which come before the memory model.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._types = _Types()
        self._used: dict[int, int] = {}
        self._defined: dict[int, int] = {}
        self.words: list[int] = []
        self.imports: list[int] = []

    def instruction(self) -> None:
        """Reads one instruction."""
        parser = self._parser
        match = parser.match(_LINE)
        if match is None:
            parser.unexpected("an instruction such as spv.Return, or '}'")
        offset = match.start(2) - 4
        opcode = _OPCODES.get(match[2])
        if opcode is None or opcode in (Op.Capability, Op.Extension, Op.MemoryModel):
            parser.error(f"there is no instruction spv.{match[2]} in the body of spv.module", offset)
        layout = LAYOUTS[opcode]
        has_result, has_type = "IdResult" in layout.operands[:2], layout.operands[:1] == ("IdResultType",)
        if has_result != (match[1] is not None):
            parser.error(f"spv.{layout.name} has {'a result: %1 = …' if has_result else 'no result'}", offset)
        words = [self._defined_id(match)] if has_result else []
        number = None
        if "LiteralContextDependentNumber" in layout.operands:
            number = parser.match(_NUMBER)
            if number is None:
                parser.unexpected("a number")
        else:
            words += self._operands([kind for kind in layout.operands if not kind.startswith("IdResult")])
        if has_type:
            words.insert(0, self._type())
        if number is not None:
            words += self._number(number, words[0])
        if len(words) > _MAX_OPERANDS or len(self.words) > _MAX_WORDS:
            parser.error(f"a shader of more than {_MAX_WORDS:,} words, or an instruction of more than 65,535", offset)
        encoded = encode(opcode, *words)
        self._types.note(encoded)
        (self.imports if opcode == Op.ExtInstImport else self.words).extend(encoded)

    def _defined_id(self, match: re.Match[str]) -> int:
        number = int(match[1])
        if number in self._defined:
            self._parser.error(f"%{number} is defined twice", match.start(1) - 1)
        self._defined[number] = match.start(1) - 1
        return number

    def _operands(self, kinds: Sequence[str]) -> list[int]:
        """Reads operands of these kinds, with the operands that enumerants add."""
        parser = self._parser
        words: list[int] = []
        pending = list(reversed(kinds))
        is_first = True
        while pending:
            kind = pending.pop()
            if kind[-1] in "?*" and not (parser.at("%") or parser.at('"') if is_first else parser.at(",")):
                break
            if kind[-1] == "*":
                pending.append(kind)
            kind = kind.rstrip("?*")
            if kind in PAIR_KINDS:
                pending.extend(reversed(PAIR_KINDS[kind]))
                continue
            if not is_first:
                parser.expect(",")
            is_first = False
            operand = self._operand(kind)
            words += operand
            if kind == "LiteralSpecConstantOpInteger":
                folded = LAYOUTS.get(operand[0])
                pending.extend(reversed(folded.operands[2:]) if folded else ())
            elif kind in ENUMERATIONS:
                pending.extend(reversed(tuple(parameters_of(kind, operand[0]))))
        return words

    def _operand(self, kind: str) -> Sequence[int]:
        parser = self._parser
        if kind in _IDS:
            match = parser.match(_ID)
            if match is None:
                parser.unexpected("an id such as %1")
            self._used.setdefault(int(match[1]), match.start(1) - 1)
            return (int(match[1]),)
        if kind == "LiteralString":
            return _string_words(parser)
        return (_enumerant(parser, kind),)

    def _type(self) -> int:
        """Reads the type that ends the line; returns its id."""
        parser = self._parser
        parser.expect(":")
        match = parser.match(_TYPE)
        text = match[1].strip() if match is not None else ""
        by_id = _TYPE_ID.fullmatch(text)
        known = int(by_id[1]) if by_id is not None else self._types.by_text.get(text)
        if match is None or known not in self._types.texts:
            parser.position = parser.position if match is None else match.start(1)
            parser.unexpected("a type that is declared above")
        return known

    def _number(self, match: re.Match[str], type: int) -> Sequence[int]:
        """Returns the words of a constant."""
        bits, is_float = self._types.scalars.get(type, (32, False))
        try:
            if is_float and bits in _FLOATS and "x" not in match[1]:
                value = int.from_bytes(struct.pack(_FLOATS[bits], float(match[1])), "little")
            else:
                value = int(match[1], 0)
        except (ValueError, OverflowError):
            value = -1
        if not 0 <= value < 1 << max(bits, 32):
            self._parser.error(f"{match[1]} is no number of {bits} bits", match.start(1))
        return [value >> 32 * index & 0xFFFFFFFF for index in range(max(1, bits // 32))]

    def check(self, bound: int) -> None:
        """Checks that all ids are defined and below the bound."""
        for number, offset in (*self._used.items(), *self._defined.items()):
            if number not in self._defined:
                self._parser.error(f"%{number} is not defined in this spv.module", offset)
            if not 0 < number < bound:
                self._parser.error(f"ids are from 1 to {bound - 1}, the bound less one, got %{number}", offset)


def _enumerant(parser: Parser, kind: str) -> int:
    """Reads a quoted name of an enumeration, several with bars between them, or a number."""
    offset = parser.here()
    name = parser.accept_string()
    if name is None:
        value = parser.integer()
        if not 0 <= value < 1 << 32:
            parser.error(f"{value} does not fit a word", offset)
        return value
    if kind == "LiteralSpecConstantOpInteger":
        numbers = [_OPCODES.get(name)]
    else:
        by_name = (
            {enumerant: number for number, enumerant in ENUMERATIONS[kind].names.items()}
            if kind in ENUMERATIONS
            else {}
        )
        numbers = [by_name.get(part) for part in (name.split("|") if kind in BIT_MASK_KINDS else [name])]
    if None in numbers:
        parser.error(f"there is no {kind} {string_text(name)[:80]}", offset)
    return functools.reduce(operator.or_, cast("Sequence[int]", numbers))


def _string_words(parser: Parser) -> Sequence[int]:
    offset = parser.here()
    text = parser.string()
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        parser.error("a string of SPIR-V is UTF-8 without a zero", offset)
    return string_words(text)


SPIRV: Final[Mapping[str, CustomSyntax]] = {"spv.module": CustomSyntax(_parse_module, _print_module)}
