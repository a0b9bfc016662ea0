"""Modules altered in meaning: something is exchanged for what does not fit, and the module is well formed all the same.

Each alteration takes a module and another to borrow from, and gives a changed module, or the same where it finds
nothing to change.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Final, TypeVar

from pumice.status import PumiceError
from pumice.vm.bytecode.decoder import Instruction, decode_function
from pumice.vm.bytecode.isa import Isa, Operation
from pumice.vm.bytecode.module_def import FunctionDescriptor, ImportDef, ModuleDef, Signature

__all__ = ["ALTERATIONS", "Alteration"]

_T = TypeVar("_T")
Alteration = Callable[[random.Random, ModuleDef, ModuleDef], ModuleDef]


def _pick(rng: random.Random, count: int) -> int:
    return rng.randrange(max(count, 1))


def _exchanged(rng: random.Random, items: tuple[_T, ...]) -> tuple[_T, ...]:
    if len(items) < 2:
        return items
    first, second = rng.sample(range(len(items)), 2)
    changed = list(items)
    changed[first], changed[second] = changed[second], changed[first]
    return tuple(changed)


def _with(items: tuple[_T, ...], index: int, item: _T) -> tuple[_T, ...]:
    return (*items[:index], item, *items[index + 1 :]) if items else items


def _exchange(field: str) -> Alteration:
    """Returns the alteration that exchanges two items of a tuple of the module."""

    def exchange(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
        return replace(module, **{field: _exchanged(rng, getattr(module, field))})  # type: ignore[arg-type]

    exchange.__name__ = f"exchange_{field}"
    return exchange


def _exchange_exports(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    if not module.exports:
        return module
    at = _pick(rng, len(module.exports))
    ordinal = _pick(rng, len(module.functions))
    return replace(module, exports=_with(module.exports, at, replace(module.exports[at], ordinal=ordinal)))


def _foreign_rodata(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    if not other.rodata:
        return module
    found = rng.choice(other.rodata)
    return replace(module, rodata=_with(module.rodata, _pick(rng, len(module.rodata)), found))


def _foreign_import(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    if not module.imports:
        return module
    at = _pick(rng, len(module.imports))
    of = rng.choice(other.imports or module.imports)
    name = rng.choice(
        (of.name, "hal.devices.get", f"{module.name}.{rng.choice(module.exports).name if module.exports else 'x'}", "")
    )
    # Of the same convention where possible: what the verifier cannot tell from the right one.
    alike = [one.name for one in (*module.imports, *other.imports) if one.signature == module.imports[at].signature]
    if rng.random() < 0.7:
        name = rng.choice(alike)
    made = ImportDef(name, module.imports[at].signature, rng.random() < 0.5)
    return replace(module, imports=_with(module.imports, at, made))


def _other_convention(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    at = _pick(rng, len(module.signatures))
    if not module.signatures:
        return module
    text = module.signatures[at].calling_convention
    letters = list(text)
    places = [place for place, letter in enumerate(letters) if letter in "iIfFrv"]
    if places:
        place = rng.choice(places)
        letters[place] = rng.choice(("i", "I", "f", "F", "r", "v", "rr", "", "CiD", "CirD", "i" * 300))
    changed = Signature("".join(letters), module.signatures[at].attributes)
    return replace(module, signatures=_with(module.signatures, at, changed))


def _other_counts(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    if not module.functions:
        return module
    at = _pick(rng, len(module.functions))
    field = rng.choice([one.name for one in dataclasses.fields(FunctionDescriptor)])
    value = getattr(module.functions[at], field)
    changed = replace(
        module.functions[at], **{field: rng.choice((0, 1, value + 1, value - 1, value + 8, 2 * value, 0x7FFF, 0x3FFF))}
    )
    return replace(module, functions=_with(module.functions, at, changed))


def _other_globals(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    sizes = (0, 1, 4, 8, 1 << 20, 0x7FFFFFFF)
    return replace(module, global_bytes=rng.choice((module.global_bytes, *sizes)), global_refs=rng.choice(sizes))


def _other_version(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    return replace(module, bytecode_version=rng.choice((0x000F0000, 0x00100000, 0x00110000, 0x00120000, 0, 0xFFFFFFFF)))


def _other_type(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    names = ("!vm.list<?>", "!vm.list<i32>", "!vm.buffer", "!hal.buffer", "!hal.buffer_view", "!hal.fence",
             "!hal.executable", "!vm.ref<?>", "i32", "i64", "!x.y", "!",
              "!vm.list<" * 500 + "i32" + ">" * 500)  # fmt: skip
    return replace(module, types=_with(module.types, _pick(rng, len(module.types)), rng.choice(names)))


def _other_names(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    names = ("__init", "__deinit", "", "x" * 70000, "a\0b", "}{%s", "hal", *(export.name for export in module.exports))
    if not module.exports or rng.random() < 0.2:
        return replace(module, name=rng.choice(("hal", "hal.device", "", "a" * 70000, "check")))
    at = _pick(rng, len(module.exports))
    return replace(module, exports=_with(module.exports, at, replace(module.exports[at], name=rng.choice(names))))


def _other_declaration(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    texts = (
        "sync func @f(%a: tensor<" + "9" * 400 + "xf32>) -> ()",
        "(" * 5000,
        "async func @f() -> ()",
        "sync func @" + "<" * 9999,
        "",
    )
    if not module.signatures:
        return module
    at = _pick(rng, len(module.signatures))
    attributes = {**module.signatures[at].attributes, "iree.abi.declaration": rng.choice(texts)}
    return replace(
        module, signatures=_with(module.signatures, at, replace(module.signatures[at], attributes=attributes))
    )


def _foreign_bytecode(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    """A function of the other module in place of one of this."""
    if not other.functions or not module.functions:
        return module
    source = _pick(rng, len(other.functions))
    found = other.functions[source]
    code = other.bytecode[found.offset : found.offset + found.length]
    bytecode = bytes(module.bytecode)
    bytecode += bytes(-len(bytecode) % 8)
    at = _pick(rng, len(module.functions))
    functions = _with(module.functions, at, replace(found, offset=len(bytecode)))
    signatures = _with(module.signatures, at, other.signatures[source]) if rng.random() < 0.7 else module.signatures
    requirements = module.requirements | other.requirements
    return replace(
        module,
        functions=functions,
        signatures=signatures,
        requirements=requirements,
        bytecode=memoryview(bytecode + bytes(code) + bytes(8)),
    )


@cache
def _instructions(bytecode_version: int, code: bytes) -> tuple[Instruction, ...]:
    return decode_function(Isa.for_version(bytecode_version), memoryview(code))


@cache
def _alike(bytecode_version: int) -> Mapping[object, tuple[Operation, ...]]:
    """Operations by what they take, banks left out: a verifier tells some of these from each other, and others not."""
    found: dict[object, list[Operation]] = {}
    for operation in Isa.for_version(bytecode_version).operations.values():
        found.setdefault(_shape_of(operation), []).append(operation)
    return {shape: tuple(operations) for shape, operations in found.items()}


def _shape_of(operation: Operation) -> object:
    return operation.prefix, tuple((field.kind, field.is_written) for field in operation.fields)


def _function_code(rng: random.Random, module: ModuleDef) -> tuple[int, tuple[Instruction, ...], bytearray]:
    """Returns the offset of a function's code, its instructions (none if they are damaged), and all bytecode."""
    code = bytearray(module.bytecode)
    try:
        function = rng.choice(module.functions)
        own = bytes(code[function.offset : function.offset + function.length])
        return function.offset, _instructions(module.bytecode_version, own), code
    except (PumiceError, IndexError):
        return 0, (), code


def _other_operands(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    """Other registers, ordinals or targets in one instruction."""
    start, instructions, code = _function_code(rng, module)
    if not instructions:
        return module
    for _ in range(rng.choice((1, 1, 2, 5))):
        changed, model = rng.choice(instructions), rng.choice(instructions)
        if changed.end - changed.pc < 3 or model.end - model.pc < 3:
            continue
        at = start + rng.randrange(changed.pc + 1, changed.end - 1)
        source = start + rng.randrange(model.pc + 1, model.end - 1)
        if rng.random() < 0.5:
            # At the same distance from their opcodes, where operands lie in operands' places.
            distance = rng.randrange(1, min(changed.end - changed.pc, model.end - model.pc) - 1)
            at, source = start + changed.pc + distance, start + model.pc + distance
        word = int.from_bytes(code[source : source + 2], "little")
        word = rng.choice((word, word, word, word ^ 0x4000, word ^ 0x8000, word + 1, word - 1, rng.randrange(8)))
        code[at : at + 2] = (word & 0xFFFF).to_bytes(2, "little")
    return replace(module, bytecode=memoryview(bytes(code)))


def _other_operations(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    """Other operations that take as much."""
    start, instructions, code = _function_code(rng, module)
    if not instructions:
        return module
    for _ in range(rng.choice((1, 1, 2, 5))):
        changed = rng.choice(instructions)
        taken = rng.choice(_alike(module.bytecode_version)[_shape_of(changed.operation)])
        code[start + changed.pc + (changed.operation.prefix is not None)] = taken.opcode
    return replace(module, bytecode=memoryview(bytes(code)))


def _without_instruction(rng: random.Random, module: ModuleDef, other: ModuleDef) -> ModuleDef:
    """One instruction in the place of another of the same length."""
    start, instructions, code = _function_code(rng, module)
    if not instructions:
        return module
    changed = rng.choice(instructions)
    fitting = [one for one in instructions if one.end - one.pc == changed.end - changed.pc]
    taken = rng.choice(fitting)
    code[start + changed.pc : start + changed.end] = code[start + taken.pc : start + taken.end]
    return replace(module, bytecode=memoryview(bytes(code)))


ALTERATIONS: Final[tuple[Alteration, ...]] = (
    *map(_exchange, ("functions", "signatures", "rodata", "imports", "types")), _exchange_exports,
    _foreign_rodata, _foreign_import, _foreign_import, _foreign_bytecode, _foreign_bytecode, _other_convention,
    _other_counts, _other_globals, _other_version, _other_type, _other_names, _other_declaration,
    *(_other_operands,) * 20, *(_other_operations,) * 10, *(_without_instruction,) * 8,
)  # fmt: skip
