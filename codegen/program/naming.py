"""Names of functions and variables: names from the source program, or descriptions of the value."""

from __future__ import annotations

import keyword
import re
from typing import Final

from .ir import Function, Instruction, Program, Rodata, Variable
from .simplify import occurrences

# Names of calls' results.
_RESULTS: Final = {
    "hal.allocator.allocate": ("buffer",),
    "hal.allocator.import": ("buffer",),
    "hal.allocator.select": ("device", "affinity"),
    "hal.buffer.length": ("length",),
    "hal.buffer.load": ("value",),
    "hal.buffer.subspan": ("span",),
    "hal.buffer_view.create": ("view",),
    "hal.buffer_view.dim": ("dim",),
    "hal.buffer_view.element_type": ("element_type",),
    "hal.buffer_view.encoding_type": ("encoding",),
    "hal.buffer_view.rank": ("rank",),
    "hal.command_buffer.create": ("commands",),
    "hal.device.allocator": ("allocator",),
    "hal.device.query.i64": ("known", "answer"),
    "hal.device.queue.alloca": ("buffer",),
    "hal.devices.get": ("device",),
    "hal.ex.file.from_memory": ("file",),
    "hal.executable.create": ("executable",),
    "hal.executable.lookup.function": ("function",),
    "hal.fence.await": ("status",),
    "hal.fence.create": ("fence",),
    "hal.fence.join": ("fence",),
    "hal.fence.query": ("status",),
}
_KINDS: Final = {"i": "i", "I": "n", "f": "x", "F": "y", "r": "ref"}
_RESERVED: Final = {*keyword.kwlist, *keyword.softkwlist, "self", "create", "close", "wait", "signal", "out"}
# Public and private members of the generated class.
_PUBLIC: Final = {"context", "device", "to_device", "to_host"}
_INTERNAL: Final = {"load", "record", "table"}


def identifier(text: str) -> str:
    """Returns an identifier derived from a text."""
    word = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    if not word or word[0].isdigit():
        word = f"_{word}"
    return f"{word}_" if word in _RESERVED else word


class Names:
    """Unique names."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self._taken = set(taken or ())

    def unique(self, wanted: str, *, numbered: bool = False) -> str:
        """Returns the name; with a number appended if it is taken, or if ``numbered``."""
        if not numbered and wanted not in self._taken:
            self._taken.add(wanted)
            return wanted
        number = 0 if numbered else 1
        separator = "" if len(wanted) == 1 else "_"
        while f"{wanted}{separator}{number}" in self._taken:
            number += 1
        self._taken.add(f"{wanted}{separator}{number}")
        return f"{wanted}{separator}{number}"


def name_functions(program: Program) -> None:
    """Names all functions; internal functions after the dispatches that they record."""
    names = Names(_PUBLIC)
    for export, function in program.exports.items():
        if function.name == export:
            function.name = names.unique(method_of(export, function))
    names = Names({*_INTERNAL, *[function.name for function in program.functions.values()]})
    for function in program.functions.values():
        if function.exported:
            continue
        if function.ordinal in program.initializers:
            function.name = names.unique("initialize")
        else:
            function.name = names.unique(_subject(program, function) or f"function_{function.ordinal}")


def method_of(export: str, function: Function) -> str:
    """Returns the method name of an export: ``f_async`` for ``f$async``, and for an asynchronous ``f``."""
    is_async = function.declaration is not None and function.declaration.is_async
    base = export.removesuffix("$async")
    name = identifier(base)
    name = f"{name}_" if name in _PUBLIC else name  # for both of a pair, to find one by the other
    return f"{name}_async" if is_async or base != export else name


def _subject(program: Program, function: Function) -> str | None:
    made = [instruction for instruction in function.instructions() if instruction.callee == "hal.command_buffer.create"]
    if not made or any(kind != "hal.command_buffer" for kind in function.result_types):
        return None
    for instruction in function.instructions():
        if instruction.callee == "hal.executable.lookup.function":
            operand = instruction.operands[1]
            if isinstance(operand, Rodata):
                return identifier(f"record_{program.text(operand)}")
    return "record"


def name_variables(function: Function, taken: frozenset[str] = frozenset()) -> None:
    """Names all variables of a function, avoiding the names in ``taken``."""
    names = Names(set(taken))
    for variable, _ in occurrences(function):
        variable.name = ""
    declared = (
        [identifier(argument.name) for argument in function.declaration.arguments] if function.declaration else []
    )
    if function.declaration is not None and function.declaration.is_async:
        declared += ["wait_fence", "signal_fence"]
    for position, variable in enumerate(function.arguments):
        known = position < len(declared)
        variable.name = names.unique(declared[position] if known else f"argument{position}")
    _name_results(function, names)
    for block in function.blocks:
        for edge in block.edges:
            for target, _ in edge.copies:
                if not target.name:
                    target.name = names.unique(_of_type(target), numbered=target.kind != "r" or target.type is None)
        for instruction in block.instructions:
            for position, variable in enumerate(instruction.results):
                if not variable.name:
                    _name(instruction, position, variable, names)


def _name_results(function: Function, names: Names) -> None:
    """Names returned variables as in the declaration."""
    if function.declaration is None:
        return
    for instruction in function.instructions():
        if instruction.operation == "return":
            for value, declared in zip(instruction.operands, function.declaration.results, strict=False):
                if isinstance(value, Variable) and not value.name:
                    value.name = names.unique(identifier(declared.name))


def _name(instruction: Instruction, position: int, variable: Variable, names: Names) -> None:
    if instruction.callee == "hal.buffer_view.buffer":
        view = instruction.operands[0]
        if isinstance(view, Variable) and view.name:
            variable.name = names.unique(f"{view.name}_buffer")
            return
    wanted = _RESULTS.get(str(instruction.callee), ())
    if position < len(wanted):
        variable.name = names.unique(wanted[position])
        return
    variable.name = names.unique(_of_type(variable), numbered=variable.kind != "r" or variable.type is None)


def _of_type(variable: Variable) -> str:
    if variable.kind == "r" and variable.type is not None:
        return identifier(variable.type.split("<")[0].rpartition(".")[2]).replace("command_buffer", "commands")
    return _KINDS[variable.kind]
