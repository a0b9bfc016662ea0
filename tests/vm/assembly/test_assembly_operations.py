"""Every operation of every version: text made from the instruction set's table gives the fields that were written."""

from __future__ import annotations

import random
import struct

import pytest

from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import assembly_form
from pumice.vm.bytecode.decoder import decode_function
from pumice.vm.bytecode.isa import MOVE_BIT, REF_BIT, Field, FieldKind, Isa, Move, Operation
from pumice.vm.bytecode.isa_tables import VERSIONS

_PAIRS = ("i64", "f64")
TYPES = ("i32", "!vm.buffer", "!vm.list<!vm.ref<?>>")


class Sampler:
    """Field values, each with its text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def register(self, bank: str | None, move: Move = Move.ALLOW) -> tuple[str, int]:
        bank = bank or self.random.choice(("i32", "ref"))
        if bank == "ref":
            ordinal = self.random.choice((0, 1, 63, 64, 0x3FFE))
            moved = move in (Move.ALLOW, Move.IGNORE) and self.random.random() < 0.5
            return f"%{'R' if moved else 'r'}{ordinal}", REF_BIT | ordinal | (MOVE_BIT if moved else 0)
        if bank in _PAIRS:
            ordinal = self.random.choice((0, 2, 254, 0x7FFC))
            return f"%i{ordinal}:{ordinal + 1}", ordinal
        ordinal = self.random.choice((0, 1, 255, 0x7FFE))
        return f"%i{ordinal}", ordinal

    def listed(self, entries: list[tuple[str, int]]) -> tuple[str, tuple[int, ...]]:
        return ", ".join(text for text, _ in entries), tuple(value for _, value in entries)

    def remap(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        pairs = [(self.register(None), self.register(None)) for _ in range(self.random.randrange(4))]
        text = ", ".join(f"{source[0]}->{target[0]}" for source, target in pairs)
        return f"({text})", tuple((source[1], target[1]) for source, target in pairs)

    def value(self, operation: Operation, field: Field) -> tuple[str, object]:
        pick = self.random.choice
        some = range(self.random.randrange(5))
        match field.kind:
            case FieldKind.REGISTER:
                return self.register(field.bank, field.move)
            case FieldKind.I32 | FieldKind.I64:
                bits = 32 if field.kind is FieldKind.I32 else 64
                value = self.random.getrandbits(bits) - (1 << (bits - 1))
                return pick((str(value), f"{value % (1 << bits):#x}")), value
            case FieldKind.F32:
                single: float = struct.unpack("<f", struct.pack("<f", self.random.uniform(-1e9, 1e9)))[0]
                return pick((repr(single), single.hex())), single
            case FieldKind.F64:
                double = self.random.uniform(-1e300, 1e300)
                return pick((repr(double), double.hex())), double
            case FieldKind.GLOBAL:
                ordinal = pick((0, 8, 1 << 20))
                return f".{'refs' if 'ref' in operation.form else 'rwdata'}[{ordinal}]", ordinal
            case FieldKind.FUNCTION:
                return pick((("@f", 0), ("@m:0", 0), ("@other.g", 1 << 31)))
            case FieldKind.RODATA:
                ordinal = pick((0, 1, 0xFFFFFFFF))
                return str(ordinal), ordinal
            case FieldKind.TYPE:
                ordinal = self.random.randrange(len(TYPES))
                return TYPES[ordinal], ordinal
            case FieldKind.STRING:
                text = pick(("", "a, b", "# (not) [a] {comment} // -> = ü"))
                return f'"{text}"', text
            case FieldKind.BRANCH_TARGET:
                return "^bb0", 0
            case FieldKind.OPERANDS | FieldKind.RESULTS:
                return self.listed([self.register(field.bank) for _ in some])
            case FieldKind.SEGMENT_SIZES:
                sizes = [pick((0, 1, 0xFFFF)) for _ in some]
                return self.listed([(str(size), size) for size in sizes])
            case FieldKind.BRANCH_OPERANDS:
                return self.remap()
            case FieldKind.BRANCH_TABLE:
                cases = [self.remap() for _ in some]
                return "".join(f", {index}: ^bb0{text}" for index, (text, _) in enumerate(cases)), tuple(
                    (0, pairs) for _, pairs in cases
                )


HEADER = 'vm.module @m\nvm.import @other.g cconv "0v_v"\n' + "".join(f"vm.type {name}\n" for name in TYPES)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_every_operation_with_any_operands(version: tuple[int, int]) -> None:
    number = version[0] << 16 | version[1]
    isa = Isa.for_version(number)
    for operation in isa.operations.values():
        if operation.form == "block":
            continue
        for seed in range(8):
            sampler = Sampler(seed)
            text = assembly_form(operation)
            expected = []
            for field in operation.fields:
                written, value = sampler.value(operation, field)
                text = text.replace(f"<{field.name}>", written)
                expected.append(value)
            # Without results nothing stands before the mnemonic; without operands no comma after the last string.
            text = text.removeprefix(" = ").rstrip(" ,")
            module = assemble(f"{HEADER}vm.func @f() -> () {{\n^bb0:\n{text}\nvm.return\n}}", bytecode_version=number)
            descriptor = module.functions[0]
            instruction = decode_function(isa, module.bytecode[: descriptor.length])[1]
            assert instruction.operation is operation, text
            assert instruction.values == tuple(expected), text
            assert descriptor.requirements == operation.feature
