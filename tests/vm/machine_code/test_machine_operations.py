"""Each operation gives as machine code what its translation to Python gives, which is tested against the peer's."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from support.vm.machine_code import forced, has_machine_code, kept_off

from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import assembly_form
from pumice.vm.bytecode.isa import FieldKind, Isa
from pumice.vm.machine_code.operations import TEMPLATES
from pumice.vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64, bitcast_i32_f32, bitcast_i64_f64, round_f32

_OPERATIONS = Isa.for_version(17 << 16).operations
SCALAR = sorted(name for name in TEMPLATES if not name.startswith("buffer.") and not name.endswith(".ref"))
_WORDS = (0, 1, -1, 2, 3, -7, 31, 33, 127, 128, 255, -32768, 1 << 16, 0x5A5A5A5A)
_INTEGERS = {bits: [*_WORDS, 1 << (bits - 2), (1 << (bits - 1)) - 1, -(1 << (bits - 1))] for bits in (32, 64)}
_DOUBLES = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 0.1, 1e-40, 5e-324, 1e300, 16777217.0]
_DOUBLES += [2.0**31, 2.0**52 + 0.5, 2.0**63, 2.0**64]
_DOUBLES += [0.49999999999999994, 2147483647.5, 9007199254740993.0, math.inf]
_DOUBLES += [-one for one in _DOUBLES]
_F64 = [*_DOUBLES, *map(bitcast_i64_f64, (0x7FF8000000000000, 0x7FF0000000000001, -1))]
_SINGLES = [round_f32(number) for number in _DOUBLES]
_F32 = [*_SINGLES, *map(bitcast_i32_f32, (0x7FC00000, 0x7F800001, -1, 1))]
VALUES = {"i32": _INTEGERS[32], "i64": _INTEGERS[64], "f32": _F32, "f64": _F64}
# These pass a NaN's bits on; others may make any NaN of it.
_KEEP_BITS = ("bitcast", "abs", "neg", "select", "min", "max", "ext")


def _program() -> str:
    lines = ["vm.module @m version 0"]
    for mnemonic in SCALAR:
        operation = _OPERATIONS[mnemonic]
        text, arguments, result, slot = assembly_form(operation), [], "", 0
        for field in operation.fields:
            assert field.kind is FieldKind.REGISTER and field.bank is not None
            is_wide = field.bank.endswith("64")
            slot += slot % 2 if is_wide else 0
            register = f"%i{slot}:{slot + 1}" if is_wide else f"%i{slot}"
            slot += 1 + is_wide
            text = text.replace(f"<{field.name}>", register)
            if field.is_written:
                result = f"{register} {field.bank}"
            else:
                arguments.append(f"{register}: {field.bank}")
        register, bank = result.split()
        name = mnemonic.replace(".", "_")
        lines += [f"vm.export @{name}", f"vm.func @{name}({', '.join(arguments)}) -> ({bank}) {{", "^bb0:"]
        lines += [f"  {text}", f"  vm.return {register}", "}"]
    return "\n".join(lines) + "\n"


def _arguments(mnemonic: str) -> list[tuple[float, ...]]:
    banks = [field.bank for field in _OPERATIONS[mnemonic].fields if not field.is_written]
    found = list(itertools.product(*(VALUES[bank or ""] for bank in banks)))
    return found if len(found) <= 150 else random.Random(mnemonic).sample(found, 150)


def _bits(mnemonic: str, value: float) -> object:
    if isinstance(value, float):
        if value != value and not mnemonic.startswith(_KEEP_BITS):
            return "NaN"
        result = _OPERATIONS[mnemonic].fields[-1].bank
        return bitcast_f32_i32(value) if result == "f32" else bitcast_f64_i64(value)
    return value


def _words(context: Context, mnemonic: str) -> list[object]:
    function = context.lookup(f"m.{mnemonic.replace('.', '_')}")
    words: list[object] = []
    for values in _arguments(mnemonic):
        try:
            words.append(_bits(mnemonic, context.invoke(function, values)))
        except Exception as error:
            words.append((type(error), str(error)))
    return words


@pytest.fixture(scope="module")
def module() -> BytecodeModule:
    return BytecodeModule(assemble(_program()))


@pytest.fixture(scope="module")
def translated(module: BytecodeModule) -> dict[str, list[object]]:
    with kept_off(), Context([module]) as context:
        return {mnemonic: _words(context, mnemonic) for mnemonic in SCALAR}


@pytest.mark.slow
def test_every_operation_gives_the_same_words(module: BytecodeModule, translated: dict[str, list[object]]) -> None:
    with forced(), Context([module]) as context:
        for mnemonic in SCALAR:
            for values, word, expected in zip(
                _arguments(mnemonic), _words(context, mnemonic), translated[mnemonic], strict=True
            ):
                assert word == expected, (mnemonic, values)
            assert has_machine_code(context, f"m.{mnemonic.replace('.', '_')}"), mnemonic


def test_there_are_all_operations_on_numbers() -> None:
    banks = {"i32", "i64", "f32", "f64"}
    numeric = {
        name
        for name, operation in _OPERATIONS.items()
        if operation.form in ("unary", "binary", "ternary", "shift", "test", "compare", "convert", "select")
        and {field.bank for field in operation.fields} <= banks
    }
    assert numeric <= set(SCALAR)
