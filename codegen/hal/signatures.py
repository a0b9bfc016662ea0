"""Signatures and docstrings of methods, from the declarations of the source program."""

from __future__ import annotations

import re

from ...base.terminal import printable
from ...vm.bytecode.declaration import DeclaredValue, ValueKind
from ..program.ir import Function, Program, Variable
from ..program.naming import identifier
from ..program.storages import result_of
from .calls import method_name
from .names import annotation

_REUSES = "pumice.abi.reuses"


def outputs_of(function: Function) -> list[tuple[int, Variable]]:
    """Returns the arguments that are storages for results, with the results' numbers."""
    if function.declaration is None:
        return []
    outputs = []
    for variable, declared in zip(function.arguments, function.declaration.arguments, strict=False):
        number = result_of(declared)
        if number is not None:
            outputs.append((number, variable))
    return outputs


def sync_with_outs(program: Program, function: Function) -> Function | None:
    """Returns the asynchronous function that a synchronous function can call with the user's storages, or ``None``."""
    if function.declaration is None or function.declaration.is_async or not function.results:
        return None
    for other in program.exports.values():
        declaration = other.declaration
        if declaration is None or not declaration.is_async or declaration.results:
            continue
        inputs = len(function.declaration.arguments)
        if other.name != f"{function.name}_async" or outputs_of(function):
            continue
        outputs = [position for position, _ in outputs_of(other)]
        kinds = {variable.type for _, variable in outputs_of(other)} | set(function.result_types)
        whole = outputs == list(range(len(function.results))) and len(other.arguments) == inputs + len(outputs) + 2
        if whole and kinds == {"hal.buffer_view"}:
            return other
    return None


def reuses_of(function: Function) -> list[list[int]]:
    """Returns for each storage the positions of the arguments whose memory it may reuse."""
    if function.declaration is None:
        return []
    texts = [
        declared.attributes.get(_REUSES, "")
        for declared in function.declaration.arguments
        if result_of(declared) is not None
    ]
    return [[int(number) for number in re.findall(r"\d+", text.partition(":")[0])] for text in texts]


def heading(function: Function, *, outs: bool, waiting: bool = False) -> list[str]:
    """Returns the ``def`` line, broken if it is long.

    With ``waiting``, that of the method that waits for an asynchronous method.
    """
    parameters = ["self"]
    is_async = function.declaration is not None and function.declaration.is_async
    arguments = function.arguments[:-2] if is_async else function.arguments
    is_async = is_async and not waiting
    name = method_name(function).removesuffix("_async") if waiting else method_name(function)
    parameters += [f"{parameter.name}: {annotation(parameter.kind, parameter.type)}" for parameter in arguments]
    if is_async:
        parameters += ["*", "wait: Semaphores = None", "signal: Semaphores = None"]
    results = _results(function)
    if outs:
        parameters += ["*", f"out: {results} | None = None"]
    text = f"def {name}({', '.join(parameters)})"
    line = f"{text} -> {results}:"
    if len(line) <= 112:
        return [line]
    joined = ", ".join(parameters)
    inner = [joined] if len(joined) <= 108 else [f"{parameter}," for parameter in parameters]
    return [f"def {name}(", *[f"    {parameter}" for parameter in inner], f") -> {results}:"]


def _results(function: Function) -> str:
    texts = [annotation(kind, type_) for kind, type_ in zip(function.results, function.result_types, strict=True)]
    if not texts:
        return "None"
    return texts[0] if len(texts) == 1 else f"tuple[{', '.join(texts)}]"


def docstring(program: Program, function: Function, *, outs: bool, waiting: bool = False) -> list[str]:
    """Returns the docstring of a method; a single line for internal methods."""
    declaration = function.declaration
    if declaration is None:
        if function.name.startswith("record"):
            return [f'"""Records ``{function.name.removeprefix("record_")}`` and what runs with it."""']
        if function.exported:
            return [f'"""``{function.name}``."""']
        return [f'"""Function {function.ordinal} of the module."""']
    name = function.name.removesuffix("_async")
    storages = [variable.name for _, variable in outputs_of(function)]
    first = f"``{name}``"
    is_async = declaration.is_async and not waiting
    if is_async:
        lines = [f'"""Starts {first}; returns before it is done where nothing has to be decided on the host.', ""]
    else:
        lines = [f'"""Runs {first} and waits for it.', ""]
    entries = []
    for variable, declared in zip(function.arguments, declaration.arguments, strict=False):
        use = ", written" if variable.name in storages else ""
        entries.append(f"    {variable.name}: {_described(declared)}{use}.")
    if is_async:
        entries.append("    wait: what it starts after: (semaphore, payload) pairs, or a fence.")
        entries.append("    signal: what is reached when the results are there; nothing is signalled if this raises.")
    if outs:
        entries.append(
            "    out: where to write instead of into new memory; shares none with an argument that is read later."
        )
    if entries:
        lines += ["Args:", *entries, ""]
    if declaration.results:
        lines += ["Returns:"]
        lines += [f"    {identifier(value.name)}: {_described(value)}." for value in declaration.results]
        lines += [""]
    if any(value.type == "hal.buffer_view" for value in function.arguments):
        lines += ["Raises:", "    InvalidArgumentError: another shape or element type."]
    while lines[-1] == "":
        lines.pop()
    lines = [lines[0], *(printable(line).replace('"""', "'''") for line in lines[1:])]
    return [*[line.replace("\\", "\\\\") for line in lines], '"""'] if len(lines) > 1 else [f'{lines[0]}"""']


def _described(declared: DeclaredValue) -> str:
    if declared.kind is not ValueKind.SCALAR and declared.element_type is not None and declared.shape is not None:
        lengths = ", ".join("any" if length is None else str(length) for length in declared.shape)
        comma = "," if len(declared.shape) == 1 else ""
        bare = "" if declared.kind is ValueKind.TENSOR else "a buffer of "
        return f"{bare}{declared.element_type} of shape ({lengths}{comma})"
    return declared.type_text
