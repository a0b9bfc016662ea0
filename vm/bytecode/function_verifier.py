"""The rules for one function's instructions.

``verifier`` documents the resulting guarantees and the rules' sources. Each rule is a method, or a function in a table
by field or form of instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, cast

from .calling_convention import CallingConvention, Repeated
from .decoder import BranchOperands, Instruction
from .isa import (
    BANK_SIZES,
    IMPORT_BIT,
    LETTERS,
    MAX_I32_REGISTERS,
    MAX_REF_REGISTERS,
    MOVE_BIT,
    REF_BIT,
    REF_MASK,
    FieldKind,
    Move,
    Operation,
    register_text,
)
from .module_def import Feature, FunctionDescriptor, ModuleDef

_BANKS: Final = {letter: bank for bank, letter in LETTERS.items()}


class Refusal(Exception):
    """The reason why an instruction is rejected; the caller adds its location."""


def _rounded(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


class FunctionVerifier:
    """Verifies one function: ``make_room``, ``check_blocks``, then ``check`` for each instruction.

    Every method raises ``Refusal`` if a rule is broken.
    """

    def __init__(
        self,
        definition: ModuleDef,
        imports: Sequence[CallingConvention],
        signatures: Sequence[CallingConvention],
        ordinal: int,
        instructions: Sequence[Instruction],
    ) -> None:
        self.definition = definition
        self.imports = imports
        self.signatures = signatures
        self.descriptor: FunctionDescriptor = definition.functions[ordinal]
        self.signature: CallingConvention = signatures[ordinal]
        self.instructions = instructions
        # The registers that the frame needs, known after the last instruction. Runtimes round a file's counts up to a
        # power of two and check against that. Assemblers rely on this: they do not count the second half of a pair that
        # occurs only in calls. So the counts here may grow up to that limit.
        self.i32_count: int = self.descriptor.i32_register_count
        self.ref_count: int = self.descriptor.ref_register_count
        self.i32_limit: int = min(_rounded(self.i32_count), MAX_I32_REGISTERS)
        self.ref_limit: int = min(_rounded(self.ref_count), MAX_REF_REGISTERS)
        self.blocks: frozenset[int] = frozenset(
            instruction.pc for instruction in instructions if instruction.operation.mnemonic == "block"
        )

    def make_room(self, arguments: Sequence[int]) -> None:
        """Extends the frame by arguments that no instruction uses, as assemblers do not count their registers."""
        i32 = ref = 0
        for letter, register in zip(self.signature.arguments, arguments, strict=True):
            if register & REF_BIT:
                ref += 1
            else:
                i32 = register + (2 if letter in ("I", "F") else 1)
        if i32 > self.i32_limit or ref > self.ref_limit:
            raise Refusal(
                f"expected registers for the arguments of {self.signature.text!r}, got {self.i32_count} for values "
                f"and {self.ref_count} for references"
            )
        self.i32_count = max(self.i32_count, i32)
        self.ref_count = max(self.ref_count, ref)

    def check_blocks(self) -> None:
        """Checks that blocks start with a marker and end with a terminator, and checks their number."""
        in_block = False
        for instruction in self.instructions:
            if instruction.operation.mnemonic == "block":
                if in_block:
                    raise Refusal(f"expected a terminator before the block at pc {instruction.pc}, got none")
                in_block = True
            elif not in_block:
                raise Refusal(
                    f"expected a block marker at pc {instruction.pc} (0x{instruction.pc:X}), "
                    f"got {instruction.operation.mnemonic}"
                )
            elif instruction.operation.is_terminator:
                in_block = False
        if in_block:
            raise Refusal("expected a terminator at the end of the last block, got none")
        if len(self.blocks) != self.descriptor.block_count:
            raise Refusal(f"expected {self.descriptor.block_count} blocks, got {len(self.blocks)}")

    def check(self, instruction: Instruction) -> None:
        operation = instruction.operation
        if operation.feature & ~self.descriptor.requirements:
            raise Refusal(f"expected feature {Feature(operation.feature).name} among the function's requirements")
        values = instruction.values
        narrow, wide, refs, unmoved, others = _plan(operation)
        for index in narrow:
            register: Any = values[index]
            # A reference register has bit 15 and so is beyond every count.
            if register >= self.i32_count:
                self.register("i32", register)
        for index in wide:
            register = values[index]
            if register & 1 or register + 1 >= self.i32_count:
                self.register("i64", register)
        for index in refs:
            register = values[index]
            if not register & REF_BIT or register & REF_MASK >= self.ref_count:
                self.register("ref", register)
        for index in unmoved:
            register = values[index]
            if register & MOVE_BIT:
                raise Refusal(f"expected no MOVE bit on {operation.fields[index].name}, got it")
        for check in others:
            check(self, instruction)

    # One register or list of registers

    def register(self, bank: str | None, register: int) -> None:
        """Rejects a register outside ``bank`` (``None``: any bank) or beyond the frame."""
        is_ref = bool(register & REF_BIT)
        if bank is not None and is_ref != (bank == "ref"):
            raise Refusal(f"expected a register of bank {bank}, got {register_text(register)}")
        if is_ref:
            ordinal = register & REF_MASK
            if ordinal >= self.ref_limit:
                raise Refusal(f"expected a reference register below {self.ref_limit}, got {register_text(register)}")
            self.ref_count = max(self.ref_count, ordinal + 1)
            return
        end = register + 1
        if bank in ("i64", "f64"):
            if register & 1:
                raise Refusal(f"expected an even register for an {bank}, got {register_text(register)}")
            end += 1
        if end > self.i32_limit:
            raise Refusal(f"expected value registers below {self.i32_limit}, got {register_text(end - 1)}")
        self.i32_count = max(self.i32_count, end)

    def passed(self, noun: str, letters: Sequence[str], registers: Sequence[int]) -> None:
        """Rejects registers that do not match a calling convention."""
        if len(letters) != len(registers):
            raise Refusal(f"expected {len(letters)} {noun}, got {len(registers)}")
        for letter, register in zip(letters, registers, strict=True):
            self.register(_BANKS[letter], register)

    def remap(self, operands: BranchOperands) -> None:
        for source, destination in operands:
            if (source ^ destination) & REF_BIT:
                raise Refusal(
                    f"expected branch operands within one bank, got {register_text(source)} to "
                    f"{register_text(destination)}"
                )
            self.register(None, source)
            self.register(None, destination)

    def table(self, cases: Sequence[tuple[int, BranchOperands]]) -> None:
        for target, operands in cases:
            self.target(target)
            self.remap(operands)

    def target(self, pc: int) -> None:
        if pc not in self.blocks:
            raise Refusal(f"expected a branch to a block marker of the function, got pc {pc} (0x{pc:X})")

    def rodata(self, ordinal: int) -> None:
        if ordinal >= len(self.definition.rodata):
            raise Refusal(f"expected a rodata ordinal below {len(self.definition.rodata)}, got {ordinal}")

    def type(self, ordinal: int) -> None:
        if ordinal >= len(self.definition.types):
            raise Refusal(f"expected a type ordinal below {len(self.definition.types)}, got {ordinal}")

    def callee(self, ordinal: int) -> CallingConvention:
        if ordinal & IMPORT_BIT:
            return self.imported(ordinal)
        if ordinal >= len(self.signatures):
            raise Refusal(f"expected a function ordinal below {len(self.signatures)}, got {ordinal}")
        return self.signatures[ordinal]

    def imported(self, ordinal: int) -> CallingConvention:
        if not ordinal & IMPORT_BIT:
            raise Refusal(f"expected the ordinal of an import, which has bit 31, got {ordinal}")
        ordinal &= ~IMPORT_BIT
        if ordinal >= len(self.imports):
            raise Refusal(f"expected an import ordinal below {len(self.imports)}, got {ordinal}")
        return self.imports[ordinal]


_Check: TypeAlias = Callable[[FunctionVerifier, Instruction], object]
# Indices of values by their check: 32-bit registers, pairs, references, references without MOVE; then the rest.
_Plan: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[_Check, ...]]


@cache
def _plan(operation: Operation) -> _Plan:
    narrow: list[int] = []
    wide: list[int] = []
    refs: list[int] = []
    unmoved: list[int] = []
    others: list[_Check] = []
    for index, field in enumerate(operation.fields):
        if field.kind is FieldKind.REGISTER:
            if field.bank == "ref":
                refs.append(index)
                if field.move is Move.REFUSE:
                    unmoved.append(index)
            else:
                (wide if field.bank in ("i64", "f64") else narrow).append(index)
        elif field.kind is FieldKind.OPERANDS and field.bank is not None:
            others.append(_list_check(index, field.bank))
        elif field.kind in _FIELD_CHECKS:
            others.append(_field_check(index, _FIELD_CHECKS[field.kind]))
        elif field.kind is FieldKind.GLOBAL:
            others.append(_global_check(operation, index))
    if operation.form in _FORM_CHECKS:
        others.append(_FORM_CHECKS[operation.form])
    return tuple(narrow), tuple(wide), tuple(refs), tuple(unmoved), tuple(others)


def _field_check(index: int, check: Callable[[FunctionVerifier, Any], object]) -> _Check:
    return lambda function, instruction: check(function, instruction.values[index])


def _list_check(index: int, bank: str | None) -> _Check:
    def check(function: FunctionVerifier, registers: Sequence[int]) -> None:
        for register in registers:
            function.register(bank, register)

    return _field_check(index, check)


def _global_check(operation: Operation, index: int) -> _Check:
    size = BANK_SIZES[next(field.bank or "" for field in operation.fields if field.kind is FieldKind.REGISTER)]

    def check(function: FunctionVerifier, position: int) -> None:
        definition = function.definition
        if not size:
            if position >= definition.global_refs:
                raise Refusal(f"expected a reference global below {definition.global_refs}, got {position}")
        elif position % size or position + size > definition.global_bytes:
            raise Refusal(
                f"expected a multiple of {size} within the {definition.global_bytes} bytes of globals, got {position}"
            )

    return _field_check(index, check)


_FIELD_CHECKS: Final[dict[FieldKind, Callable[[FunctionVerifier, Any], None]]] = {
    FieldKind.BRANCH_TARGET: FunctionVerifier.target,
    FieldKind.BRANCH_OPERANDS: FunctionVerifier.remap,
    FieldKind.BRANCH_TABLE: FunctionVerifier.table,
    FieldKind.RODATA: FunctionVerifier.rodata,
    FieldKind.TYPE: FunctionVerifier.type,
}


def _check_call(function: FunctionVerifier, instruction: Instruction) -> None:
    values: Any = instruction.values
    convention = function.callee(values[0])
    if convention.is_variadic:
        raise Refusal(f"expected a callee without repeated tuples, got {convention.text!r}")
    function.passed("operands", cast("Sequence[str]", convention.arguments), values[1])
    function.passed("results", convention.results, values[-1])


def _check_call_variadic(function: FunctionVerifier, instruction: Instruction) -> None:
    values: Any = instruction.values
    sizes, operands = values[1:3]
    convention = function.imported(values[0])
    if len(sizes) != len(convention.arguments):
        raise Refusal(f"expected {len(convention.arguments)} segment sizes for {convention.text!r}, got {len(sizes)}")
    letters: list[str] = []
    for element, size in zip(convention.arguments, sizes, strict=True):
        if isinstance(element, Repeated):
            if size * len(element.elements) > len(operands) - len(letters):
                raise Refusal(f"expected operands for {size} times {element}, got {len(operands)} in all")
            letters.extend(element.elements * size)
        else:
            # Compilers write 0xFFFF, assemblers 1; the value is not read.
            letters.append(element)
    function.passed("operands", letters, operands)
    function.passed("results", convention.results, values[-1])


def _check_return(function: FunctionVerifier, registers: Sequence[int]) -> None:
    function.passed("results", function.signature.results, registers)


_FORM_CHECKS: Final[dict[str, _Check]] = {
    "call": _check_call,
    "call_yieldable": _check_call,
    "call_variadic": _check_call_variadic,
    "call_variadic_yieldable": _check_call_variadic,
    "return": _field_check(0, _check_return),
    "import_resolved": _field_check(0, FunctionVerifier.imported),
    "trace": _list_check(1, None),
}
