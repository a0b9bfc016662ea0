"""The public C functions of a program, and the types of their arguments and results.

A program exports a function that takes storages for its results and fences (``f$async``), and one that allocates them.
The C function calls the first if the shapes of the results are known beforehand, and then allocates nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...status import InvalidArgumentError, UnimplementedError
from ...vm.bytecode.declaration import DeclaredValue, ValueKind
from ..program.ir import Function, Variable
from .arguments import literal
from .exports import Export, element_of, is_dynamic, storages
from .types import c_type

_ASYNCHRONOUS = """\
/* The same on device memory, without waiting for the results: work begins once all of `waits` are reached, and
 * `signals` are signalled behind it. Inputs, outputs and semaphores are the call's until then. A call that fails
 * signals nothing. The host waits only where the program has to decide something. */"""


class InterfaceWriter:
    """Writes the public C functions of a program.

    Args:
        exports: of the program.
        names: of its functions in C, by ordinal.
    """

    def __init__(self, exports: Sequence[Export], names: dict[int, str]) -> None:
        self._exports = exports
        self._names = names

    @property
    def max_rank(self) -> int:
        """Returns the highest rank of a tensor, at least 8."""
        values = [value for export in self._exports for value in (*export.inputs, *export.outputs)]
        return max(8, *(len(value.shape or ()) for value in values)) if values else 8

    def declarations(self) -> str:
        """Returns the header's declarations."""
        return "\n\n".join(self._declaration(export) for export in self._exports)

    def _declaration(self, export: Export) -> str:
        inputs = "".join(f"\n *     inputs[{i}]   {one}" for i, one in enumerate(export.inputs))
        outputs = "".join(f"\n *     outputs[{i}]  {one}" for i, one in enumerate(export.outputs))
        lines = [
            f"/* Calls {export.name}, and waits until its results are there:\n *{inputs}{outputs}\n */",
            f"NAME_API int NAME_{export.symbol}(NAME_program *program, const NAME_tensor *inputs,",
            "                  NAME_tensor *outputs);",
        ]
        if self._is_asynchronous(export):
            lines += [
                "",
                _ASYNCHRONOUS,
                f"NAME_API int NAME_{export.symbol}_async(NAME_program *program, const NAME_tensor *inputs,",
                "                  NAME_tensor *outputs, const NAME_semaphore *waits, uint32_t wait_count,",
                "                  const NAME_semaphore *signals, uint32_t signal_count);",
            ]
        return "\n".join(lines)

    @staticmethod
    def _is_asynchronous(export: Export) -> bool:
        known = export.known
        if known is None or known.declaration is None or not known.declaration.is_async:
            return False
        return len(storages(known)) == len(export.outputs)

    def text(self) -> str:
        """Returns the tables of types and the function definitions."""
        parts = []
        for export in self._exports:
            parts += self._types(export)
            parts.append(self._call(export))
            if self._is_asynchronous(export):
                parts.append(self._asynchronous(export))
        rows = []
        for export in self._exports:
            inputs = f"{export.symbol}_inputs" if export.inputs else "NULL"
            outputs = f"{export.symbol}_outputs" if export.outputs else "NULL"
            counts = f"{len(export.inputs)}, {len(export.outputs)}"
            rows.append(f"        {{{literal(export.name)}, {counts}, {inputs}, {outputs}, NAME_{export.symbol}}},")
        parts.append(
            "const NAME_function *NAME_functions(uint32_t *count)\n{\n    static const NAME_function functions[] = {\n"
            + "\n".join(rows)
            + "\n    };\n    *count = COUNT(functions);\n    return functions;\n}"
        )
        return "\n\n".join(parts)

    # -- types -----------------------------------------------------------------------------------------

    def _types(self, export: Export) -> list[str]:
        texts = []
        for kind, values in (("inputs", export.inputs), ("outputs", export.outputs)):
            if values:
                rows = "\n".join(f"    {_type(value)}," for value in values)
                texts.append(f"static const NAME_type {export.symbol}_{kind}[] = {{\n{rows}\n}};")
        return texts

    # -- calls -----------------------------------------------------------------------------------------

    def _call(self, export: Export) -> str:
        known, unknown = export.known, export.unknown
        lines = []
        if known is not None and unknown is not None:
            ranks = enumerate(len(value.shape or ()) for value in export.outputs)
            dynamic = {index: rank for index, rank in ranks if is_dynamic(export.outputs[index])}
            test = " && ".join(f"outputs[{index}].rank == {rank}" for index, rank in dynamic.items())
            lines += [f"    if ({test}) {{", *(f"    {line}" for line in self._path(export, known)), "    } else {"]
            lines += [*(f"    {line}" for line in self._path(export, unknown)), "    }"]
        else:
            lines = self._path(export, known or unknown)
        head = f"int NAME_{export.symbol}(NAME_program *p, const NAME_tensor *inputs, NAME_tensor *outputs)"
        return self._whole(export, [head], [*self._arguments(export, known or unknown), *lines])

    def _path(self, export: Export, function: Function | None) -> list[str]:
        """Writes a call of a function that waits, with the code before and behind it."""
        assert function is not None and function.declaration is not None
        places = set(storages(function).values())
        lines = self._storages(export, function) if places else []
        if function.declaration.is_async:
            lines += ["    TRY(fence_create(p, &signal));", self._invoke(export, function, "NULL")]
            lines.append("    if (signal->is_submitted) TRY(wait_until(p, signal->value));")
        else:
            lines.append(self._invoke(export, function, ""))
        for index, value in enumerate(export.outputs):
            place = f"&{export.symbol}_outputs[{index}]"
            is_storage = index in places
            kind = "view" if is_storage else _result_kind(export, function, index)
            if kind == "buffer":
                lengths = ", ".join(map(str, value.shape or ())) or "0"
                lines.append(
                    f"    TRY(view_create(p, buffer_result_{index}, 0, UINT64_MAX, {int(element_of(value)):#x}, 1, "
                    f"(const int64_t[]){{{lengths}}}, {len(value.shape or ())}, &results[{index}]));"
                )
            if kind in ("view", "buffer"):
                given = "true" if is_storage else "false"
                lines.append(f"    TRY(tensor_deliver(p, {place}, results[{index}], {given}, &outputs[{index}]));")
            else:
                lines.append(f"    TRY(scalar_write(p, {place}, &scalar_result_{index}, &outputs[{index}]));")
        return lines

    def _asynchronous(self, export: Export) -> str:
        assert export.known is not None
        head = [
            f"int NAME_{export.symbol}_async(NAME_program *p, const NAME_tensor *inputs, NAME_tensor *outputs,",
            "                  const NAME_semaphore *waits, uint32_t wait_count, const NAME_semaphore *signals,",
            "                  uint32_t signal_count)",
        ]
        lines = []
        for kind, values in (("inputs", export.inputs), ("outputs", export.outputs)):
            for index in range(len(values)):
                if kind == "outputs" or _argument(export.known, index).kind == "r":
                    lines.append(f"    TRY(tensor_on_device(p, &{export.symbol}_{kind}[{index}], &{kind}[{index}]));")
        lines += [
            *self._arguments(export, export.known),
            *self._storages(export, export.known),
            "    TRY(fence_create(p, &wait));",
            "    wait->points = waits;",
            "    wait->point_count = wait_count;",
            "    wait->is_submitted = true;",
            "    TRY(fence_create(p, &signal));",
            "    signal->signals = signals;",
            "    signal->signal_count = signal_count;",
            self._invoke(export, export.known, "wait"),
            "    if (!signal->is_submitted) TRY(fence_follow(p, wait, signal));",
        ]
        return self._whole(export, head, lines)

    def _arguments(self, export: Export, function: Function | None) -> list[str]:
        assert function is not None
        lines = []
        for index in range(len(export.inputs)):
            place = f"&{export.symbol}_inputs[{index}], &inputs[{index}]"
            if _argument(function, index).kind == "r":
                lines.append(f"    TRY(tensor_view(p, {place}, false, &given[{index}]));")
            else:
                lines.append(f"    TRY(scalar_read(p, {place}, &scalar_{index}));")
        return lines

    def _storages(self, export: Export, function: Function) -> list[str]:
        lines = []
        for index in sorted(storages(function).values()):
            place = f"&{export.symbol}_outputs[{index}], &outputs[{index}]"
            lines.append(f"    TRY(tensor_view(p, {place}, true, &results[{index}]));")
        if export.outputs:
            inputs = "given, COUNT(given)" if export.inputs else "NULL, 0"
            masks = ", ".join(f"{mask:#x}" for mask in export.reuses)
            lines += [
                f"    TRY(tensors_check(p, {inputs}, results, COUNT(results), {export.symbol}_outputs,",
                f"                      (const uint64_t[]){{{masks}}}));",
            ]
        return lines

    def _invoke(self, export: Export, function: Function, wait: str) -> str:
        assert function.declaration is not None
        places, arguments, taken = storages(function), ["p"], 0
        for index in range(len(function.declaration.arguments)):
            variable = function.arguments[index]
            if index in places:
                arguments.append(_passed(variable, f"results[{places[index]}]"))
                continue
            number, taken = taken, taken + 1
            arguments.append(f"scalar_{number}" if variable.kind != "r" else _passed(variable, f"given[{number}]"))
        if function.declaration.is_async:
            arguments += [wait, "signal"]
        for index in range(len(function.results)):
            kind = _result_kind(export, function, index)
            if index in places.values():
                arguments.append(f"&returned_{index}")  # the storage again
            elif kind == "view":
                arguments.append(f"&results[{index}]")
            else:
                arguments.append(f"&{'buffer' if kind == 'buffer' else 'scalar'}_result_{index}")
        return f"    TRY({self._names[function.ordinal]}({', '.join(arguments)}));"

    def _whole(self, export: Export, head: Sequence[str], lines: Sequence[str]) -> str:
        """Returns a function definition, with declarations of the variables that its lines use."""
        words = set(re.findall(r"\w+", "\n".join(lines)))
        start, end = [*head, "{", "    int status = OK;"], []
        for name, count in (("given", len(export.inputs)), ("results", len(export.outputs))):
            if name in words:
                start.append(f"    view *{name}[{count}] = {{NULL}};")
                end.append(f"    for (uint32_t index = 0; index < COUNT({name}); index++) release(p, {name}[index]);")
        for name in ("wait", "signal"):
            if name in words:
                start.append(f"    fence *{name} = NULL;")
                end.append(f"    release(p, {name});")
        functions = [each for each in (export.known, export.unknown) if each is not None]
        for index in range(len(export.inputs)):
            if f"scalar_{index}" in words:
                kind = _argument(functions[0], index)
                _check_register(export.inputs[index], kind.kind)
                start.append(f"    {c_type(kind)} scalar_{index} = 0;")
        for index in range(len(export.outputs)):
            if f"scalar_result_{index}" in words:
                kind = Variable(functions[-1].results[index])
                _check_register(export.outputs[index], kind.kind)
                start.append(f"    {c_type(kind)} scalar_result_{index} = 0;")
            if f"returned_{index}" in words:
                start.append(f"    {c_type(Variable('r', functions[0].result_types[index]))} *returned_{index} = NULL;")
                end.append(f"    release(p, returned_{index});")
            if f"buffer_result_{index}" in words:
                start.append(f"    buffer *buffer_result_{index} = NULL;")
                end.append(f"    release(p, buffer_result_{index});")
        start += [f"    (void){name};" for name in ("inputs", "outputs") if name not in words]
        return "\n".join([*start, *lines, "done:", *end, "    return status;", "}"])


def _argument(function: Function, index: int) -> Variable:
    """Returns the variable of an input; storages are not counted."""
    places = storages(function)
    return [variable for number, variable in enumerate(function.arguments) if number not in places][index]


def _result_kind(export: Export, function: Function, index: int) -> str:
    """Returns the kind of a result: a view, a buffer, or a number."""
    if index >= len(function.results):
        raise InvalidArgumentError(
            f"function {export.name} declares more results than the {len(function.results)} it has"
        )
    kind, named = function.results[index], function.result_types[index]
    if kind != "r":
        return kind
    if named not in (None, "hal.buffer", "hal.buffer_view"):
        raise UnimplementedError(f"function {export.name} gives a !{named}; C programs give tensors and numbers")
    return "buffer" if named == "hal.buffer" else "view"


def _check_register(value: DeclaredValue, kind: str) -> None:
    """Checks that a number's type fits its register: small integers are in the low bits."""
    element = element_of(value)
    bits = 64 if kind in "IF" else 32
    if element.is_float != (kind in "fF") or element.bits > bits or (element.is_float and element.bits != bits):
        raise UnimplementedError(f"{value}: the program takes it as a number of {bits} bits of another kind")


def _passed(variable: Variable, view: str) -> str:
    """Returns a tensor as the function takes it: its view, or the view's buffer."""
    return f"{view}->buffer" if variable.type == "hal.buffer" else view


def _type(value: DeclaredValue) -> str:
    """Returns a row of the table of types."""
    if value.kind not in (ValueKind.TENSOR, ValueKind.SCALAR):
        if value.type_text not in ("!hal.buffer", "!hal.buffer_view"):
            raise UnimplementedError(f"{value}: C programs take tensors and numbers")
        raise UnimplementedError(f"{value}: its shape and type are not known here; declare a tensor")
    element = element_of(value)
    shape = value.shape or () if value.kind is ValueKind.SCALAR else value.shape
    if shape is None:
        raise UnimplementedError(f"{value}: C programs take tensors whose number of axes is known")
    lengths = ", ".join(str(-1 if length is None else length) for length in shape) or "0"
    text = "x".join([*("?" if length is None else str(length) for length in shape), value.element_type or ""])
    dtype = element.dtype
    named = dtype.str.lstrip("<|=>") if dtype is not None else f"V{element.byte_count}"
    is_static = int(None not in shape)
    return (
        f"{{{literal(value.name)}, {literal(text)}, {literal(named)}, {int(element):#x}, {element.bits}, {len(shape)}, "
        f"{is_static}, {{{lengths}}}}}"
    )
