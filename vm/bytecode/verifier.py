"""Proves that a module's bytecode is safe to run before any of it runs.

The result of ``verify_module`` has these properties, on which translator and interpreter rely without further checks:

* every register operand lies within its function's frame and in the bank that the operation needs, ``i64`` and ``f64``
  on even slots;
* every branch goes to a block marker of the same function; control leaves a function only by ``return`` and ``fail``,
  and runs past its end only after a ``fail`` whose status is 0;
* every ordinal of a function, import, rodata segment or type exists, every global access lies within the globals;
* calls and returns pass the number and types of values in the callee's calling convention;
* branch operands stay within a bank, and the MOVE bit is where it has a meaning (``isa.Move``);
* functions do not overlap, so verification takes time and memory proportional to the file's size.

The interpreter checks properties of values: indirect globals, list indices, buffer ranges, types of references.

The rules are those of ``runtime/src/iree/vm/bytecode/verifier.c`` in releases 3.1 to 3.13, made stricter where they
leave room: operand counts are exact, global accesses aligned, and functions apart.
"""

from __future__ import annotations

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError
from .calling_convention import CallingConvention, Repeated, parse_named
from .decoder import Instruction, decode_function
from .function_verifier import FunctionVerifier, Refusal
from .isa import MAX_I32_REGISTERS, MAX_REF_REGISTERS, REF_BIT, Isa
from .module_def import ModuleDef, check_features


@dataclass(frozen=True, slots=True)
class VerifiedFunction:
    """A function whose bytecode was verified."""

    ordinal: int  # index into ``ModuleDef.functions``
    name: str | None  # of its first export, or ``None`` for an internal function
    signature: CallingConvention  # without repeated tuples
    argument_registers: tuple[int, ...]  # the registers of its arguments, in order; with ``REF_BIT`` for references
    instructions: tuple[Instruction, ...]  # block markers included, by pc
    i32_count: int  # of its frame's 32-bit slots: the file's count, or the number used if larger
    ref_count: int  # of its frame's reference registers, likewise


@dataclass(frozen=True, slots=True)
class VerifiedModule:
    """A module whose functions are verified; ``imports`` are calling conventions."""

    definition: ModuleDef
    functions: tuple[VerifiedFunction, ...]
    imports: tuple[CallingConvention, ...]


def verify_module(definition: ModuleDef) -> VerifiedModule:
    """Verifies a module's tables and decodes and verifies all of its functions.

    Raises:
        InvalidArgumentError: the module breaks a rule; the message names function, pc, operation and reason.
        IncompatibleError: the bytecode version, a feature, or the version of a calling convention is unknown.
    """
    isa = Isa.for_version(definition.bytecode_version)
    check_features(f"module {definition.name}", definition.requirements)
    if len(definition.signatures) != len(definition.functions):
        raise InvalidArgumentError(
            f"module {definition.name}: expected a signature a function, got {len(definition.signatures)} signatures "
            f"for {len(definition.functions)} functions: the file is damaged"
        )
    for export in definition.exports:
        if not 0 <= export.ordinal < len(definition.functions):
            raise InvalidArgumentError(
                f"module {definition.name}: export {export.name!r} expected a function ordinal below "
                f"{len(definition.functions)}, got {export.ordinal}: the file is damaged"
            )
    names: dict[int, str] = {}
    for export in definition.exports:
        names.setdefault(export.ordinal, export.name)
    imports = tuple(
        parse_named(f"import {entry.name}", entry.signature.calling_convention) for entry in definition.imports
    )
    signatures = tuple(
        parse_named(_function_text(ordinal, names.get(ordinal)), entry.calling_convention)
        for ordinal, entry in enumerate(definition.signatures)
    )
    _check_ranges(definition)
    functions = tuple(
        _verify_function(definition, isa, imports, signatures, ordinal, names.get(ordinal))
        for ordinal in range(len(definition.functions))
    )
    return VerifiedModule(definition, functions, imports)


def argument_registers(signature: CallingConvention) -> tuple[int, ...]:
    """Returns the registers that hold the arguments of a bytecode function on entry.

    Each bank is filled from 0; ``i64`` and ``f64`` take the next even slot and its successor, references have
    ``REF_BIT``. A repeated tuple, which only native functions take, raises InvalidArgumentError.
    """
    registers = []
    i32 = ref = 0
    for element in signature.arguments:
        if isinstance(element, Repeated):
            raise InvalidArgumentError(
                f"expected no repeated tuple in the calling convention of a bytecode function, got {signature.text!r}"
            )
        if element == "r":
            registers.append(REF_BIT | ref)
            ref += 1
        elif element in "IF":
            i32 += i32 & 1
            registers.append(i32)
            i32 += 2
        else:
            registers.append(i32)
            i32 += 1
    return tuple(registers)


def _function_text(ordinal: int, name: str | None) -> str:
    return f"function {ordinal}" if name is None else f"function {ordinal} ({name})"


def _check_ranges(definition: ModuleDef) -> None:
    size = len(definition.bytecode)
    end = 0
    previous = None
    for ordinal, function in sorted(enumerate(definition.functions), key=lambda pair: pair[1].offset):
        if function.length <= 0 or function.offset < 0 or function.offset + function.length > size:
            raise InvalidArgumentError(
                f"function {ordinal}: expected at least one byte of bytecode within {size}, "
                f"got {function.length} bytes at {function.offset}: the file is damaged"
            )
        if function.offset < end:
            raise InvalidArgumentError(
                f"function {ordinal} at {function.offset} expected to begin after function {previous}, "
                f"which ends at {end}, got an overlap: the file is damaged"
            )
        end = function.offset + function.length
        previous = ordinal
        if not (
            0 <= function.i32_register_count <= MAX_I32_REGISTERS
            and 0 <= function.ref_register_count <= MAX_REF_REGISTERS
        ):
            raise InvalidArgumentError(
                f"function {ordinal}: expected at most {MAX_I32_REGISTERS} value and {MAX_REF_REGISTERS} reference "
                f"registers, got {function.i32_register_count} and {function.ref_register_count}: the file is damaged"
            )


def _verify_function(
    definition: ModuleDef,
    isa: Isa,
    imports: tuple[CallingConvention, ...],
    signatures: tuple[CallingConvention, ...],
    ordinal: int,
    name: str | None,
) -> VerifiedFunction:
    descriptor = definition.functions[ordinal]
    signature = signatures[ordinal]
    owner = _function_text(ordinal, name)
    check_features(owner, descriptor.requirements)
    try:
        arguments = argument_registers(signature)
        instructions = decode_function(
            isa, definition.bytecode[descriptor.offset : descriptor.offset + descriptor.length]
        )
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{owner}: {error.message}") from None
    function = FunctionVerifier(definition, imports, signatures, ordinal, instructions)
    current: Instruction | None = None
    try:
        function.make_room(arguments)
        function.check_blocks()
        for current in instructions:
            function.check(current)
    except Refusal as refusal:
        where = "" if current is None else f", pc {current.pc} (0x{current.pc:X}), {current.operation.mnemonic}"
        raise InvalidArgumentError(
            f"{owner}{where}: {refusal}: the file is damaged or its compiler has a bug"
        ) from None
    return VerifiedFunction(ordinal, name, signature, arguments, instructions, function.i32_count, function.ref_count)
