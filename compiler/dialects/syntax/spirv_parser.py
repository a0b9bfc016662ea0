"""Reading of SPIR-V as text."""

from __future__ import annotations

import functools
import operator
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....spirv.binary.grammar import BIT_MASK_KINDS, ENUMERATIONS, LAYOUTS, PAIR_KINDS, Op, parameters_of
from ....spirv.binary.words import encode, string_words
from ...ir.attributes import Attribute, DenseArray, IntegerAttr, string_text
from ...ir.parser import Parser, Parts
from ...ir.scanner import SPACE
from ...ir.syntax import CustomSyntax
from .spirv_module import SPIRV_FLOATS, SPIRV_IDS, SPIRV_WORD, SpirvTypes, print_spirv

_MAGIC: Final = 0x07230203
_MAX_BOUND: Final = 0x400000
_MAX_WORDS: Final = 10_000_000
_MAX_OPERANDS: Final = 0xFFFE
_LINE: Final = re.compile(SPACE + r"(?:%([0-9]{1,8})[ \t]*=[ \t]*)?spv\.([A-Z][A-Za-z0-9]*)\b", re.ASCII)
_ID: Final = re.compile(SPACE + r"%([0-9]{1,8})", re.ASCII)
_TYPE: Final = re.compile(r"[ \t]*+([^\n]++)")
_TYPE_ID: Final = re.compile(r"!spv\.id<([0-9]{1,8})>", re.ASCII)
_NUMBER: Final = re.compile(SPACE + r"(0x[0-9A-Fa-f]{1,16}|[+-]?[0-9][0-9.]{0,400}(?:e[+-]?[0-9]{1,4})?)", re.ASCII)
_OPCODES: Final = {layout.name: opcode for opcode, layout in LAYOUTS.items()}


def _parse_module(parser: Parser, name: str) -> Parts:
    start = parser.here()
    model = _enumerant(parser, "AddressingModel"), _enumerant(parser, "MemoryModel")
    parser.expect("{")
    body = _Body(parser)
    while not parser.accept("}"):
        body.instruction()
    parser.expect_word("attributes")
    at = parser.here()
    bound, header = _header(parser, at, parser.attribute_dictionary())
    body.check(bound)
    words = [*header, *body.imports, *encode(Op.MemoryModel, *model), *body.words]
    if len(words) > _MAX_WORDS:
        parser.error(f"a shader of more than {_MAX_WORDS:,} words", start)
    return Parts([], [], {"words": DenseArray(SPIRV_WORD, tuple(words))}, [])


def _header(parser: Parser, offset: int, attributes: Mapping[str, Attribute]) -> tuple[int, list[int]]:
    """Returns the bound, and the words of the header, the capabilities and the extensions."""

    def integer(name: str, low: int, high: int) -> int:
        value = attributes.get(name)
        if not isinstance(value, IntegerAttr) or not low <= value.value < high:
            expected = f"{name} = an integer from {low} to {high - 1}"
            parser.error(f"expected {expected} among the attributes of spv.module", offset)
        return value.value

    def strings(name: str) -> Sequence[str]:
        value = attributes.get(name)
        if not isinstance(value, tuple) or not all(isinstance(item, str) for item in value):
            parser.error(f"expected {name} = a list of strings among the attributes of spv.module", offset)
        return cast("Sequence[str]", value)

    version = attributes.get("version")
    match = re.fullmatch(r"1\.([0-6])", version) if isinstance(version, str) else None
    if match is None:
        parser.error('expected version = "1.0" to "1.6" among the attributes of spv.module', offset)
    generator, bound = integer("generator", 0, 1 << 32), integer("bound", 1, _MAX_BOUND + 1)
    words = [_MAGIC, 1 << 16 | int(match[1]) << 8, generator, bound, 0]
    for capability in strings("capabilities"):
        number = _numbers("Capability").get(capability)
        if number is None:
            parser.error(f"there is no capability {capability}", offset)
        words += encode(Op.Capability, number)
    for extension in strings("extensions"):
        words += encode(Op.Extension, *string_words(extension))
    return bound, words


class _Body:
    """The instructions read so far.

    Attributes:
        words: the words of all instructions except imports.
        imports: the words of imported instruction sets, which precede the memory model.
    """

    def __init__(self, parser: Parser) -> None:
        self._parser = parser
        self._types = SpirvTypes()
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
        if kind in SPIRV_IDS:
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
            if is_float and bits in SPIRV_FLOATS and "x" not in match[1]:
                value = int.from_bytes(struct.pack(SPIRV_FLOATS[bits], float(match[1])), "little")
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


@functools.cache
def _numbers(kind: str) -> Mapping[str, int]:
    """Returns the numbers of an enumeration's names."""
    return {name: number for number, name in ENUMERATIONS[kind].names.items()} if kind in ENUMERATIONS else {}


def _enumerant(parser: Parser, kind: str) -> int:
    """Reads a quoted name of an enumeration, several joined by bars, or a number."""
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
        numbers = [_numbers(kind).get(part) for part in (name.split("|") if kind in BIT_MASK_KINDS else [name])]
    if None in numbers:
        parser.error(f"there is no {kind} {string_text(name)[:80]}", offset)
    return functools.reduce(operator.or_, cast("Sequence[int]", numbers))


def _string_words(parser: Parser) -> Sequence[int]:
    offset = parser.here()
    text = parser.string()
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        parser.error("a string of SPIR-V is UTF-8 without a zero", offset)
    return string_words(text)


SPIRV: Final[Mapping[str, CustomSyntax]] = {"spv.module": CustomSyntax(_parse_module, print_spirv)}
