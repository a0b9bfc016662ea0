"""Types of references, from their producers, their consumers, and the types that users pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...status import UnimplementedError
from ...vm.bytecode.declaration import ValueKind
from .ir import Function, Instruction, Program, Rodata, Value, Variable

# Reference types of calls' results, by import.
RESULT_TYPES: Final = {
    "hal.allocator.allocate": "hal.buffer",
    "hal.allocator.import": "hal.buffer",
    "hal.allocator.select": "hal.device",
    "hal.buffer.subspan": "hal.buffer",
    "hal.buffer_view.buffer": "hal.buffer",
    "hal.buffer_view.create": "hal.buffer_view",
    "hal.channel.create": "hal.channel",
    "hal.channel.split": "hal.channel",
    "hal.command_buffer.create": "hal.command_buffer",
    "hal.device.allocator": "hal.allocator",
    "hal.device.queue.alloca": "hal.buffer",
    "hal.devices.get": "hal.device",
    "hal.ex.file.from_memory": "hal.file",
    "hal.executable.create": "hal.executable",
    "hal.fence.create": "hal.fence",
    "hal.fence.join": "hal.fence",
}
# Reference types of calls' leading operands, by import; ``None`` for numbers.
_OPERAND_TYPES: Final[Mapping[str, tuple[str | None, ...]]] = {
    **{
        f"{noun}.{verb}": (noun.removesuffix(".allocation"),)
        for noun, verbs in {
            "hal.buffer": "assert length subspan load",
            "hal.buffer.allocation": "preserve discard is_terminal",
            "hal.buffer_view": "assert buffer dim rank element_type encoding_type",
            "hal.fence": "signal fail query",
        }.items()
        for verb in verbs.split()
    },
    "hal.buffer.store": (None, "hal.buffer"),
    "hal.buffer_view.create": ("hal.buffer",),
}


def find_types(program: Program) -> None:
    """Sets ``type`` of reference variables, ``result_types`` of functions and ``global_types``.

    Raises:
        UnimplementedError: a variable holds references of two types.
    """
    for function in program.functions.values():
        function.result_types = [None] * len(function.results)
        if function.exported:
            _declare(function)
    changed = True
    while changed:
        changed = False
        for function in program.functions.values():
            changed |= _visit(program, function)


def _declare(function: Function) -> None:
    """Sets the types of an export's arguments from its declaration."""
    declaration = function.declaration
    if declaration is None:
        return
    for variable, declared in zip(function.arguments, declaration.arguments, strict=False):
        if variable.kind == "r":
            tensor = declared.kind is ValueKind.TENSOR
            variable.type = "hal.buffer_view" if tensor else declared.type_text.removeprefix("!")
    if declaration.is_async:
        for variable in function.arguments[-2:]:
            variable.type = "hal.fence"


def _visit(program: Program, function: Function) -> bool:
    changed = False

    def set_type(value: Value, kind: str | None) -> None:
        nonlocal changed
        if kind is None or kind == "vm.opaque" or not isinstance(value, Variable) or value.type == kind:
            return
        if value.type is not None:
            raise UnimplementedError(
                f"function {function.name or function.ordinal} of module {program.name} holds a !{value.type} and a "
                f"!{kind} in one variable; code is written for variables of one type"
            )
        value.type = kind
        changed = True

    for block in function.blocks:
        for instruction in block.instructions:
            changed |= _instruction(program, function, instruction, set_type)
        for edge in block.edges:
            for target, source in edge.copies:
                if target.kind == "r":
                    set_type(target, type_of(source))
    return changed


def _instruction(program: Program, function: Function, instruction: Instruction, set_type: object) -> bool:
    assert callable(set_type)
    changed = False
    if instruction.operation == "call":
        if isinstance(instruction.callee, int):
            callee = program.functions[instruction.callee]
            for value, variable in zip(instruction.operands, callee.arguments, strict=True):
                if variable.kind == "r" and not isinstance(value, tuple):
                    type = type_of(value)
                    if type is not None and variable.type is None:
                        variable.type = type
                        changed = True
                    set_type(value, variable.type)
            for variable, kind in zip(instruction.results, callee.result_types, strict=True):
                set_type(variable, kind)
        else:
            for variable in instruction.results:
                if variable.kind == "r":
                    set_type(variable, RESULT_TYPES.get(str(instruction.callee)))
            for value, kind in zip(instruction.operands, _OPERAND_TYPES.get(str(instruction.callee), ()), strict=False):
                if not isinstance(value, tuple):
                    set_type(value, kind)
    elif instruction.operation in ("assign", "select.ref") and instruction.results[0].kind == "r":
        for value in instruction.values():
            if not isinstance(value, Variable) or value.kind == "r":
                set_type(instruction.results[0], type_of(value))
    elif instruction.operation.startswith(("global.load.ref", "list.get.ref", "cast.any.ref", "switch.ref")):
        set_type(instruction.results[0], instruction.type)
    elif instruction.operation.startswith("global.store.ref"):
        set_type(instruction.operands[0], instruction.type)
    elif instruction.operation == "list.alloc":
        set_type(instruction.results[0], f"vm.list<{'!' * ('.' in str(instruction.type))}{instruction.type}>")
    elif instruction.operation in ("buffer.alloc", "buffer.clone"):
        set_type(instruction.results[0], "vm.buffer")
    elif instruction.operation == "return":
        for position, value in enumerate(instruction.operands):
            if not isinstance(value, tuple) and function.result_types[position] is None:
                type = type_of(value)
                if type is not None and function.results[position] == "r":
                    function.result_types[position] = type
                    changed = True
    if (
        instruction.operation in ("global.load.ref", "global.store.ref")
        and instruction.ordinal not in program.global_types
    ):
        program.global_types[instruction.ordinal] = instruction.type
    return changed


def type_of(value: Value) -> str | None:
    """Returns the type of a reference; ``None`` if it is null or unknown."""
    if isinstance(value, Rodata):
        return "vm.buffer"
    return value.type if isinstance(value, Variable) else None
