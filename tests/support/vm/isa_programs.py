"""Programs that name every operation of an instruction set, written from its table."""

from __future__ import annotations

from pumice.vm.assembly.disassembler import assembly_form
from pumice.vm.bytecode.isa import Field, FieldKind, Isa, Move, Operation

LATEST = Isa.for_version(17 << 16)

HEADER = """\
vm.module @every version 3
vm.type i32
vm.type !vm.buffer
vm.import @other.plain cconv "0iIfFr_iIfFr"
vm.import optional @other.tuples cconv "0rCiIDi_r"
vm.rodata[0] = 0102030405
"""

# A frame with room for every operand below, one block to branch to, and an ending of its own.
_FUNCTION = """
vm.export @{name}
vm.func @{name}(%i0: i32, %r0: !vm.buffer) -> (i32) {{
^bb0:
{lines}
  %i30:31 = vm.const.i64 -1
  %r9 = vm.const.ref.zero
  vm.br ^bb1()
^bb1:
  vm.return %i0
}}
"""

_CALLS = {
    "call": "%i1, %i2, %i4, %i6, %R1 = vm.call @other.plain(%i0, %i2, %i5, %i8, %R0)",
    "call_variadic": "%r2 = vm.call.variadic @other.tuples segments[65535, 2, 65535](%R1, %i0, %i2, %i1, %i4, %i3)",
    "call_yieldable": "vm.call.yieldable @other.plain(%i0, %i2, %i5, %i8, %R0) -> ^bb1(%i1, %i2, %i4, %i6, %R1)",
    "call_variadic_yieldable": (
        "vm.call.variadic.yieldable @other.tuples segments[65535, 1, 65535](%R1, %i0, %i2, %i1) -> ^bb1(%r2)"
    ),
    "return": "vm.return %i3",
    "import_resolved": "%i4 = vm.import.resolved @other.plain",
    "branch_table": "vm.br_table %i1 { default: ^bb1(), 0: ^bb1(%i0->%i1, %R0->%r1), 1: ^bb1() }",
}
_SAMPLES = {
    FieldKind.I32: "-2147483648",
    FieldKind.I64: "-9223372036854775807",
    FieldKind.F32: "-1.17549435e-38",
    FieldKind.F64: "0.10000000000000001",
    FieldKind.GLOBAL: "16",
    FieldKind.RODATA: "0",
    FieldKind.TYPE: "!vm.buffer",
    FieldKind.STRING: '"what, (happened)?"',
    FieldKind.BRANCH_TARGET: "^bb1",
    FieldKind.BRANCH_OPERANDS: "(%i2->%i3, %R4->%r5)",
    FieldKind.OPERANDS: "%i1, %r3",
}


def sample(operation: Operation, *, move: bool = False) -> str:
    """A line of assembly with that operation, its operands all different."""
    if operation.form in _CALLS:
        return _CALLS[operation.form]
    text = assembly_form(operation)
    for index, field in enumerate(operation.fields):
        text = text.replace(f"<{field.name}>", _operand(operation, field, index, move))
    return text


def _operand(operation: Operation, field: Field, index: int, move: bool) -> str:
    if field.kind is FieldKind.REGISTER:
        if field.bank == "ref":
            return f"%{'R' if move and field.move is Move.ALLOW else 'r'}{index}"
        if field.bank in ("i64", "f64"):
            return f"%i{6 + 2 * index}:{7 + 2 * index}"
        return f"%i{index}"
    if field.kind is FieldKind.OPERANDS and field.bank is not None:
        return "%R3, %r4" if field.bank == "ref" else "%i20, %i22"
    if field.kind is FieldKind.GLOBAL:
        return f".{'refs[3]' if 'ref' in operation.form else 'rwdata[16]'}"
    return _SAMPLES[field.kind]


def program(operations: list[Operation]) -> str:
    """A module with one function an operation."""
    functions = []
    for number, operation in enumerate(operations):
        lines = "  " + sample(operation, move=bool(number % 2))
        if operation.is_terminator:
            lines += "\n^bb9:"
        functions.append(_FUNCTION.format(name=f"f{number}", lines=lines))
    return HEADER + "".join(functions)


def writable(isa: Isa) -> list[Operation]:
    """All operations that have a line of assembly of their own."""
    return [each for each in isa.operations.values() if each.form != "block"]
