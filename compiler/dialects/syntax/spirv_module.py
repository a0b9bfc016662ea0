"""SPIR-V as text: ``spv.module``, one instruction per line, named and laid out by the grammar's tables.

Ids are the module's own, so that the text determines the words. Parts that the specification puts first surround the
body: the memory model precedes it, capabilities and extensions follow it. A result's type is written in full, as
``!spv.ptr<i32, StorageBuffer>``; if two types have the same text, the second is written as its id.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final, cast

from ....spirv.binary.grammar import BIT_MASK_KINDS, ENUMERATIONS, LAYOUTS, Layout, Op, operand_kinds
from ....spirv.binary.words import pack, read_binary
from ...ir.attributes import DenseArray, string_text
from ...ir.operation import NOWHERE, Location, Operation
from ...ir.printer import Printer
from ...ir.types import ScalarType

SPIRV_IDS: Final = frozenset({"IdRef", "IdScope", "IdMemorySemantics"})
SPIRV_FLOATS: Final = {16: "<e", 32: "<f", 64: "<d"}
SPIRV_WORD: Final = ScalarType("ui32")


def spirv_module(code: bytes, location: Location = NOWHERE) -> Operation:
    """Wraps a SPIR-V binary as an operation."""
    return Operation(
        "spv.module", (), (), {"words": DenseArray(SPIRV_WORD, read_binary(code).words)}, location=location
    )


def spirv_code(module: Operation) -> bytes:
    """Returns the binary of an operation that ``spirv_module`` or the parser created."""
    words = module.attributes["words"]
    assert isinstance(words, DenseArray)
    return pack(cast("Sequence[int]", words.values))


class SpirvTypes:
    """The types of a module, and their text.

    Attributes:
        by_text: the id of each text; the first id if two types have the same text.
        texts: the texts by id.
        scalars: the bits of each scalar type, and whether it is a float, by id.
        lengths: the values of integer constants by id, for array lengths.
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
        """Returns the name with which a type is referred to."""
        text = self.texts.get(number, "")
        return text if self.by_text.get(text) == number else f"!spv.id<{number}>"

    def _text(self, opcode: int, operands: Sequence[int]) -> str:
        match (opcode, *operands):
            case [Op.TypeVoid]:
                return "none"
            case [Op.TypeBool]:
                return "i1"
            case [Op.TypeInt, bits, is_signed]:
                return f"{'s' if is_signed else ''}i{bits}"
            case [Op.TypeFloat, bits]:
                return f"f{bits}"
            case [Op.TypeVector, element, count]:
                return f"vector<{count}x{self.name(element)}>"
            case [Op.TypeArray, element, length] if length in self.lengths:
                return f"!spv.array<{self.lengths[length]} x {self.name(element)}>"
            case [Op.TypeRuntimeArray, element]:
                return f"!spv.rtarray<{self.name(element)}>"
            case [Op.TypeStruct, *members]:
                return f"!spv.struct<{', '.join(map(self.name, members))}>"
            case [Op.TypePointer, storage, element] if storage in ENUMERATIONS["StorageClass"].names:
                return f"!spv.ptr<{self.name(element)}, {ENUMERATIONS['StorageClass'].names[storage]}>"
            case [Op.TypeFunction, result, *arguments]:
                return f"({', '.join(map(self.name, arguments))}) -> {self.name(result)}"
        return ""


def print_spirv(printer: Printer, operation: Operation) -> str:
    binary = read_binary(spirv_code(operation))
    words = binary.words
    types = SpirvTypes()
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


def _line(words: Sequence[int], start: int, operands: Sequence[str], types: SpirvTypes) -> str:
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


def _operand_texts(words: Sequence[int], start: int, end: int, types: SpirvTypes) -> list[str]:
    """Returns the operands except the result and its type."""
    texts = []
    layout = _layout(words, start)
    for at, kind in operand_kinds(words, start, end):
        word = words[at]
        if kind in ("IdResult", "IdResultType"):
            continue
        if kind in SPIRV_IDS:
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
    if is_float and bits in SPIRV_FLOATS and value < 1 << bits:
        number = struct.unpack(SPIRV_FLOATS[bits], value.to_bytes(bits // 8, "little"))[0]
        if math.isfinite(number):
            return repr(number)
    return f"0x{value:0{max(bits, 32) // 4}X}" if is_float else str(value)
