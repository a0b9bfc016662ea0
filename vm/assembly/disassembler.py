"""The disassembler: VM assembly text of bytecode.

The text is that of ``iree-dump-module``, which ``iree-as-module`` and ``assembler`` read; ``syntax`` has the form of
each instruction. If the two peers disagree (indirect globals, ``trace``, ``print``), the assembler's form is written.
``switch.ref`` is written like ``select.ref``, as the peers have no readable text for it.

Assembling the text again gives the same bytecode, except for three things that the peer's text cannot express:
signaling NaNs, quotes and line breaks in messages (both get a comment), and a MOVE bit that has no effect. With
``exact`` these are written too, in forms that only ``assembler`` reads. The notation is that of IREE 3.13
(tools/iree-dump-module, tools/iree-as-module).
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from functools import cache
from typing import Final, cast

from ...status import OutOfRangeError
from ..bytecode.debug_database import FileLineCol
from ..bytecode.decoder import BranchOperands, FieldValue, Instruction
from ..bytecode.isa import IMPORT_BIT, LETTERS, MOVE_BIT, Field, FieldKind, Move, Operation, register_text
from ..bytecode.verifier import VerifiedFunction, VerifiedModule
from .syntax import text_forms

_TYPES: Final = {letter: "!vm.ref<?>" if bank == "ref" else bank for bank, letter in LETTERS.items()}
_SYMBOL: Final = re.compile(r"[A-Za-z0-9_$.]+", re.ASCII)


def disassemble_module(
    module: VerifiedModule, *, offsets: bool = False, rodata: bool = True, exact: bool = False, places: bool = False
) -> str:
    """Returns the assembly of a whole module.

    Args:
        offsets: whether each line of a function starts with its pc, ``[0000001A]``; assemblers skip it.
        rodata: whether constants are written, two characters per byte. Without them the text does not assemble.
        exact: whether every function assembles to the same bytes, and attributes, dependencies and source locations are
            also written. ``iree-as-module`` does not read all of it.
        places: whether comments give known source locations of instructions.
    """
    definition = module.definition
    lines = [f"vm.module {_symbol(definition.name)} version {definition.version}"]
    if exact:
        lines[0] += _attributes(definition.attributes)
        for dependency in definition.dependencies:
            optional = "" if dependency.required else "optional "
            lines.append(f"vm.dependency {optional}{_symbol(dependency.name)} version {dependency.minimum_version}")
    lines += [f"vm.type {name}" for name in definition.types]
    for imported in definition.imports:
        optional = "" if imported.required else "optional "
        lines.append(f'vm.import {optional}{_symbol(imported.name)} cconv "{imported.signature.calling_convention}"')
    for ordinal, segment in enumerate(definition.rodata):
        data = f" = {bytes(segment).hex().upper()}" if rodata else f": {len(segment)}b"
        lines.append(f"{'' if rodata else '// '}vm.rodata[{ordinal}]{data}")
    writer = _Writer(module, exact, places)
    for function in module.functions:
        lines.append("")
        lines += writer.function(function, offsets)
    return "\n".join(lines) + "\n"


def disassemble_function(module: VerifiedModule, ordinal: int, *, offsets: bool = False, places: bool = False) -> str:
    """Returns the assembly of one function, with its exports; OutOfRangeError if there is no such ordinal."""
    if not 0 <= ordinal < len(module.functions):
        raise OutOfRangeError(f"expected a function ordinal from 0 to {len(module.functions) - 1}, got {ordinal}")
    return "\n".join(_Writer(module, places=places).function(module.functions[ordinal], offsets)) + "\n"


def assembly_form(operation: Operation) -> str:
    """Returns the form of an operation, with its fields in angle brackets: ``<result> = vm.add.i32
    <left>, <right>``.
    """
    if operation.form == "block":
        return "^bb0:"
    results, pieces = _layout(operation)
    names = [f"<{field.name}>" for field in operation.fields]
    if operation.form == "list_alloc":
        names[0] = f"!vm.list<{names[0]}>"
    right = "".join(names[piece] if isinstance(piece, int) else piece for piece in pieces)
    left = "".join(f"{names[index]} = " for index in results)
    return f"{left}vm.{operation.mnemonic} {right}".rstrip()


def _symbol(name: str) -> str:
    return f"@{name}" if _SYMBOL.fullmatch(name) else f'@"{_unquoted(name)}"'


def _unquoted(text: str) -> str:
    # Quoted text ends at the next quote or the end of its line, and has no escapes.
    return "".join("'" if character == '"' else " " if character in "\r\n\0" else character for character in text)


def _attributes(attributes: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{_escaped(key.encode())} = {_escaped(value.encode())}" for key, value in attributes.items())
    return f" attributes {{{pairs}}}" if pairs else ""


def _escaped(data: bytes) -> str:
    """Returns a string literal of any bytes, with escapes only where needed."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text == _unquoted(text) and text.encode() == data:
        return f'"{text}"'
    characters = (chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\x{byte:02x}" for byte in data)
    return f'e"{"".join(characters)}"'


class _Writer:
    """Writes the functions of one module."""

    def __init__(self, module: VerifiedModule, exact: bool = False, places: bool = False) -> None:
        self._module = module
        self._places = places
        self._exact = exact
        self._definition = module.definition
        self._exports: dict[int, list[str]] = {}
        for export in self._definition.exports:
            self._exports.setdefault(export.ordinal, []).append(export.name)
        taken = {export.name for export in self._definition.exports}
        self._names: list[str] = []
        debug = self._definition.debug
        is_mapped = exact and debug is not None and len(debug.functions) == len(module.functions)
        self._maps = debug.functions if is_mapped and debug is not None else ()
        for function in module.functions:
            name = function.name if function.name is not None else f"fn{function.ordinal}"
            if function.name is None and self._maps:
                name = self._maps[function.ordinal].local_name or name
            while function.name is None and name in taken:
                name += "_"
            taken.add(name)
            self._names.append(name)

    def function(self, function: VerifiedFunction, offsets: bool) -> list[str]:
        name = self._names[function.ordinal]
        lines = [
            f"vm.export {_symbol(export)}" if export == name else f"vm.export {_symbol(export)} = {_symbol(name)}"
            for export in self._exports.get(function.ordinal, ())
        ]
        arguments = ", ".join(
            f"{register_text(register, _TYPES[str(letter)])}: {_TYPES[str(letter)]}"
            for register, letter in zip(function.argument_registers, function.signature.arguments, strict=True)
        )
        results = ", ".join(_TYPES[letter] for letter in function.signature.results)
        signature = self._definition.signatures[function.ordinal]
        attributes = _attributes(signature.attributes) if self._exact else ""
        lines.append(f"vm.func {_symbol(name)}({arguments}) -> ({results}){attributes} {{")
        markers = [marker.pc for marker in function.instructions if marker.operation.form == "block"]
        blocks = {pc: f"^bb{index}" for index, pc in enumerate(markers)}
        descriptor = self._definition.functions[function.ordinal]
        code = self._definition.bytecode[descriptor.offset : descriptor.offset + descriptor.length]
        location = ""
        for instruction in function.instructions:
            pc = instruction.pc
            if instruction.operation.form == "block":
                text = f"{blocks[pc]}:"
            else:
                text = "  " + self._text(instruction, blocks, code)
                previous, location = location, self._location(function.ordinal, pc)
                if location != previous:
                    lines.append(f"  {location}".rstrip())
            lines.append(f"[{pc:08X}]{text}" if offsets else text)
        lines.append("}")
        return lines

    def _location(self, ordinal: int, pc: int) -> str:
        """Returns an instruction's source location, in the assembler's form or as a comment; empty if unknown."""
        debug = self._definition.debug
        if debug is None or not (self._exact or self._places):
            return ""
        if not self._exact:
            name = self._module.functions[ordinal].name
            location = debug.location_of(ordinal if name is None else name, pc)
            return "" if location is None else f"// {_unquoted(location)}"
        number = self._maps[ordinal].location_at(pc) if self._maps else None
        position = None if number is None else debug.locations[number]
        if not isinstance(position, FileLineCol):
            return "loc(unknown)" if self._maps else ""
        return f"loc({_escaped(position.filename.encode())}:{position.line}:{position.column})"

    def _text(self, instruction: Instruction, blocks: dict[int, str], code: memoryview) -> str:
        operation = instruction.operation
        texts: list[str] = []
        comment = ""
        for field, value in zip(operation.fields, instruction.values, strict=True):
            text, remark = self._value(field, value, blocks, instruction, code)
            texts.append(text)
            comment = comment or remark
        results, pieces = _layout(operation)
        words = [texts[piece] if isinstance(piece, int) else piece for piece in pieces]
        left = ", ".join(texts[index] for index in results if texts[index])
        line = f"vm.{operation.mnemonic} {''.join(words)}".rstrip(" ,")
        return (f"{left} = {line}" if left else line) + (f"  // {comment}" if comment else "")

    def _value(
        self, field: Field, value: FieldValue, blocks: dict[int, str], instruction: Instruction, code: memoryview
    ) -> tuple[str, str]:
        """Returns the text of a field, and a comment about it."""
        match field.kind:
            case FieldKind.REGISTER:
                register = cast(int, value)
                if field.move is Move.IGNORE and not self._exact:
                    register &= ~MOVE_BIT
                return register_text(register, field.bank), ""
            case FieldKind.I32 | FieldKind.I64:
                digits = 8 if field.kind is FieldKind.I32 else 16
                return str(value), f"0x{cast(int, value) & ((1 << 4 * digits) - 1):0{digits}X}"
            case FieldKind.F32 | FieldKind.F64:
                return _float(field.kind, cast(float, value), instruction, code, self._exact)
            case FieldKind.GLOBAL:
                return f".{'refs' if 'ref' in instruction.operation.form else 'rwdata'}[{value}]", ""
            case FieldKind.FUNCTION:
                return self._function_name(cast(int, value)), ""
            case FieldKind.RODATA:
                return str(value), f"{len(self._definition.rodata[cast(int, value)])}b"
            case FieldKind.TYPE:
                name = self._definition.types[cast(int, value)]
                return f"!vm.list<{name}>" if instruction.operation.form == "list_alloc" else name, ""
            case FieldKind.STRING:
                if self._exact:
                    return _escaped(_string_data(instruction, code)), ""
                text = _unquoted(cast(str, value))
                return f'"{text}"', "" if text == value else "quotes or line breaks replaced"
            case FieldKind.BRANCH_TARGET:
                return blocks[cast(int, value)], ""
            case FieldKind.BRANCH_OPERANDS:
                return _branch_operands(cast(BranchOperands, value)), ""
            case FieldKind.BRANCH_TABLE:
                cases = cast("tuple[tuple[int, BranchOperands], ...]", value)
                return "".join(
                    f", {index}: {blocks[target]}{_branch_operands(operands)}"
                    for index, (target, operands) in enumerate(cases)
                ), ""
            case FieldKind.SEGMENT_SIZES:
                return ", ".join(map(str, cast("tuple[int, ...]", value))), ""
            case FieldKind.OPERANDS | FieldKind.RESULTS:
                return ", ".join(register_text(operand) for operand in cast("tuple[int, ...]", value)), ""

    def _function_name(self, ordinal: int) -> str:
        if ordinal & IMPORT_BIT:
            return _symbol(self._definition.imports[ordinal & ~IMPORT_BIT].name)
        name = self._module.functions[ordinal].name
        # Functions that are not exported have no names.
        module = _symbol(self._definition.name)
        return f"{module}:{ordinal}" if name is None else _symbol(f"{self._definition.name}.{name}")


def _branch_operands(operands: BranchOperands) -> str:
    pairs = (f"{register_text(source)}->{register_text(destination)}" for source, destination in operands)
    return f"({', '.join(pairs)})"


def _string_data(instruction: Instruction, code: memoryview) -> bytes:
    # Only registers come before a string.
    start = instruction.pc + 1
    for field in instruction.operation.fields:
        if field.kind is FieldKind.STRING:
            break
        start += 2
    length = int.from_bytes(code[start : start + 2], "little")
    return bytes(code[start + 2 : start + 2 + length])


def _float(kind: FieldKind, value: float, instruction: Instruction, code: memoryview, exact: bool) -> tuple[str, str]:
    digits, size, mantissa = (9, 4, 23) if kind is FieldKind.F32 else (17, 8, 52)
    if not math.isnan(value):
        return f"{value:.{digits}g}", ""
    # The payload may be lost in a Python float: read it from the bytes after prefix and opcode.
    (bits,) = struct.unpack_from("<I" if size == 4 else "<Q", code, instruction.pc + 2)
    payload = bits & ((1 << (mantissa - 1)) - 1)
    sign = "-" if bits >> (8 * size - 1) else ""
    text = f"{sign}nan({payload:#x})" if payload else f"{sign}nan"
    if bits >> (mantissa - 1) & 1:
        return text, ""
    return f"bits({bits:#x})" if exact else text, f"signaling, {bits:#x}"


# The first text of an instruction is that of the peer's disassembler; for these forms its assembler reads another text.
_FORM_WRITTEN: Final = {
    "global_load_indirect": 1,
    "global_store_indirect": 1,
    "global_load_indirect_ref": 1,
    "global_store_indirect_ref": 1,
    "trace": 1,
}


@cache
def _layout(operation: Operation) -> tuple[tuple[int, ...], tuple[str | int, ...]]:
    """Returns the indices of the fields before the mnemonic, and the texts and field indices after it."""
    names = {field.name: index for index, field in enumerate(operation.fields)}
    form = text_forms(operation)[_FORM_WRITTEN.get(operation.form, 0)]
    pieces: list[str | int] = []
    for word in form.split():
        if word.startswith("<"):
            name = word[1:-1].partition("/")[0]
            index = names.get(name)
            kind = None if index is None else operation.fields[index].kind
            attached = kind in (FieldKind.BRANCH_OPERANDS, FieldKind.BRANCH_TABLE)
            # A type without effect; the peer prints this type.
            piece: str | int = "!vm.ref<?>" if index is None else index
        else:
            attached = word in ",()[]" or pieces[-1:] == ["default"]
            piece = word
        if pieces and not attached and pieces[-1] not in ("(", "["):
            pieces.append(" ")
        pieces.append(piece)
    used = {piece for piece in pieces if isinstance(piece, int)}
    results = tuple(index for index, field in enumerate(operation.fields) if field.is_written and index not in used)
    return results, tuple(pieces)
