"""What users of a C program call: the types of arguments and results, and a C function for each function.

A program exports a function that takes storages for its results and fences (``f$async``), and one that allocates them.
The C function takes the first where the shapes of the results are known beforehand, which then allocates nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...formats.element_type import ElementType
from ...status import UnimplementedError
from ...vm.bytecode.declaration import DeclaredValue, ValueKind
from ..program.ir import Function, Program, Variable
from .arguments import literal
from .types import c_type

_ASYNC = "$async"
_OUTPUT = "iree.abi.output"
_REUSES = "pumice.abi.reuses"
_ASYNCHRONOUS = """\
/* The same on device memory, without waiting for the results: work begins once all of `waits` are reached, and
 * `signals` are signalled behind it. Inputs, outputs and semaphores are the call's until then. A call that fails
 * signals nothing. The host waits only where the program has to decide something. */"""
_SCALARS = {"index": "i64", "i1": "i8"}


@dataclass
class Export:
    """A function of the program for users.

    Attributes:
        name: as the program exports it.
        symbol: its name in C, behind the prefix.
        inputs, outputs: types.
        known: the function that takes storages for all results.
        unknown: the function that allocates some.
        reuses: bits of the inputs by output whose memory the output may be.
    """

    name: str
    symbol: str
    inputs: list[DeclaredValue]
    outputs: list[DeclaredValue]
    known: Function | None = None
    unknown: Function | None = None
    reuses: list[int] = field(default_factory=list)


def storages(function: Function) -> dict[int, int]:
    """The arguments of a function that are storages, with the results that they are for."""
    assert function.declaration is not None
    return {
        index: int(value.attributes[_OUTPUT].split(":")[0])
        for index, value in enumerate(function.declaration.arguments)
        if _OUTPUT in value.attributes
    }


def exports_of(program: Program) -> list[Export]:
    """The functions for users, in the order of the module.

    Raises:
        UnimplementedError: an export without a declaration, by its name; none at all.
    """
    found: list[Export] = []
    taken = {"create", "destroy", "error", "status_name", "device_name", "allocation_count", "functions"}
    for name, function in program.exports.items():
        base = name.removesuffix(_ASYNC)
        if name != base and base in program.exports:
            continue
        if function.declaration is None:
            raise UnimplementedError(
                f"function {name} does not say the types of its arguments (iree.abi.declaration), which its C function "
                "needs; compile the program with them"
            )
        symbol = re.sub(r"\W", "_", base)
        while symbol in taken or symbol.startswith("buffer_") or symbol.endswith("_async"):
            symbol += "_"
        taken.add(symbol)
        found.append(_export(base, symbol, function, program.exports.get(base + _ASYNC)))
    if not found:
        raise UnimplementedError("the module has no functions for users, so there is nothing to write")
    return found


def _export(name: str, symbol: str, function: Function, primitive: Function | None) -> Export:
    candidates = [each for each in (primitive, function) if each is not None and each.declaration is not None]
    inputs: list[DeclaredValue] = []
    outputs: dict[int, DeclaredValue] = {}
    known = unknown = None
    reuses: dict[int, int] = {}
    for each in candidates:
        declaration = each.declaration
        assert declaration is not None
        places = storages(each)
        inputs = [value for index, value in enumerate(declaration.arguments) if index not in places]
        listed = {places[index]: declaration.arguments[index] for index in places}
        if declaration.results:
            listed |= dict(enumerate(declaration.results))
        outputs |= {index: value for index, value in listed.items() if index not in outputs or declaration.results}
        if places and not declaration.results and known is None:
            known = each
            for index, output in places.items():
                text = declaration.arguments[index].attributes.get(_REUSES, "")
                reuses[output] = sum(1 << int(bit) for bit in re.findall(r"\d+", text.split(":")[0]))
        elif not places and not declaration.is_async:
            unknown = each
    if known is None and unknown is None:
        raise UnimplementedError(f"function {name} takes storages for some results only, which has no form in C")
    listed_outputs = [outputs[index] for index in sorted(outputs)]
    if known is not None and not any(map(_is_dynamic, listed_outputs)):
        unknown = None
    found = Export(name, symbol, inputs, listed_outputs, known, unknown)
    found.reuses = [reuses.get(index, 0) for index in range(len(found.outputs))]
    return found


def _is_dynamic(value: DeclaredValue) -> bool:
    return value.kind is ValueKind.TENSOR and None in (value.shape or ())


def element_of(value: DeclaredValue) -> ElementType:
    """The type of a value's elements."""
    text = value.element_type or ""
    try:
        return ElementType.parse(_SCALARS.get(text, text) if value.kind is ValueKind.SCALAR else text)
    except Exception:
        raise UnimplementedError(f"{value}: C programs have no elements of this type") from None


class InterfaceWriter:
    """Writes the C functions of a program.

    Args:
        exports: of the program.
        names: of its functions in C, by ordinal.
    """

    def __init__(self, exports: Sequence[Export], names: dict[int, str]) -> None:
        self._exports = exports
        self._names = names

    @property
    def max_rank(self) -> int:
        """The most axes of a tensor, 8 at least."""
        values = [value for export in self._exports for value in (*export.inputs, *export.outputs)]
        return max(8, *(len(value.shape or ()) for value in values)) if values else 8

    def declarations(self) -> str:
        """What the header declares."""
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
        return known is not None and known.declaration is not None and known.declaration.is_async

    def text(self) -> str:
        """Tables of types, and the functions."""
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
        count, results = len(export.inputs), len(export.outputs)
        test = " && ".join(
            f"outputs[{index}].rank == {len(value.shape or ())}"
            for index, value in enumerate(export.outputs)
            if _is_dynamic(value)
        )
        lines = [
            f"int NAME_{export.symbol}(NAME_program *p, const NAME_tensor *inputs, NAME_tensor *outputs)",
            "{",
            "    int status = OK;",
            *self._variables(export),
            *(["    fence *signal = NULL;"] if self._is_asynchronous(export) else []),
            *(["    (void)inputs;"] if not count else []),
            *(["    (void)outputs;"] if not results else []),
            *self._views(export),
        ]
        is_storage = "true" if unknown is None else "false"
        if known is not None:
            calls = self._known(export, known)
            if test and unknown is not None:
                lines.append(f"    const bool is_known = {test};")
                lines += ["    if (is_known) {", *(f"    {line}" for line in calls), "    } else {"]
                lines += [f"    {line}" for line in self._unknown(unknown, export)]
                lines.append("    }")
                is_storage = "is_known"
            else:
                lines += calls
                is_storage = "true"
        elif unknown is not None:
            lines += self._unknown(unknown, export)
        for index, value in enumerate(export.outputs):
            place = f"&{export.symbol}_outputs[{index}]"
            if value.kind is ValueKind.SCALAR:
                lines.append(f"    TRY(scalar_write(p, {place}, &scalar_result_{index}, &outputs[{index}]));")
            else:
                lines.append(f"    TRY(tensor_deliver(p, {place}, results[{index}], {is_storage}, &outputs[{index}]));")
        return "\n".join([*lines, *self._end(export, ["signal"] if self._is_asynchronous(export) else [])])

    def _asynchronous(self, export: Export) -> str:
        assert export.known is not None
        lines = [
            f"int NAME_{export.symbol}_async(NAME_program *p, const NAME_tensor *inputs, NAME_tensor *outputs,",
            "                  const NAME_semaphore *waits, uint32_t wait_count, const NAME_semaphore *signals,",
            "                  uint32_t signal_count)",
            "{",
            "    int status = OK;",
            *self._variables(export),
            "    fence *wait = NULL, *signal = NULL;",
            *(["    (void)inputs;"] if not export.inputs else []),
            *(["    (void)outputs;"] if not export.outputs else []),
        ]
        for kind, values in (("inputs", export.inputs), ("outputs", export.outputs)):
            tensors = [str(index) for index, value in enumerate(values) if value.kind is not ValueKind.SCALAR]
            lines += [f"    TRY(tensor_on_device(p, &{export.symbol}_{kind}[{i}], &{kind}[{i}]));" for i in tensors]
        lines += [
            *self._views(export),
            *self._storages(export),
            "    TRY(fence_create(p, &wait));",
            "    wait->points = waits;",
            "    wait->point_count = wait_count;",
            "    wait->is_submitted = true;",
            "    TRY(fence_create(p, &signal));",
            "    signal->signals = signals;",
            "    signal->signal_count = signal_count;",
            f"    {self._invoke(export.known, export, 'wait')}",
            "    if (!signal->is_submitted) TRY(fence_follow(p, wait, signal));",
        ]
        return "\n".join([*lines, *self._end(export, ["wait", "signal"])])

    def _variables(self, export: Export) -> list[str]:
        lines = []
        if any(value.kind is not ValueKind.SCALAR for value in export.inputs):
            lines.append(f"    view *given[{len(export.inputs)}] = {{NULL}};")
        if any(value.kind is not ValueKind.SCALAR for value in export.outputs):
            lines.append(f"    view *results[{len(export.outputs)}] = {{NULL}};")
        for name, values in (("scalar", export.inputs), ("scalar_result", export.outputs)):
            for index, value in enumerate(values):
                if value.kind is ValueKind.SCALAR:
                    lines.append(f"    {_scalar(value)} {name}_{index} = 0;")
        return lines

    def _views(self, export: Export) -> list[str]:
        lines = []
        for index, value in enumerate(export.inputs):
            place = f"&{export.symbol}_inputs[{index}], &inputs[{index}]"
            if value.kind is ValueKind.SCALAR:
                lines.append(f"    TRY(scalar_read(p, {place}, &scalar_{index}));")
            else:
                lines.append(f"    TRY(tensor_view(p, {place}, false, &given[{index}]));")
        return lines

    def _storages(self, export: Export) -> list[str]:
        lines = []
        for index in range(len(export.outputs)):
            place = f"&{export.symbol}_outputs[{index}], &outputs[{index}]"
            lines.append(f"    TRY(tensor_view(p, {place}, true, &results[{index}]));")
        if any(value.kind is not ValueKind.SCALAR for value in export.inputs) and export.outputs:
            masks = ", ".join(f"{mask & (1 << 64) - 1:#x}" for mask in export.reuses)
            lines += [
                f"    TRY(tensors_check(p, given, COUNT(given), results, COUNT(results), {export.symbol}_outputs,",
                f"                      (const uint64_t[]){{{masks}}}));",
            ]
        return lines

    def _known(self, export: Export, known: Function) -> list[str]:
        lines = self._storages(export)
        if known.declaration is not None and known.declaration.is_async:
            return [
                *lines,
                "    TRY(fence_create(p, &signal));",
                f"    {self._invoke(known, export, 'NULL')}",
                "    if (signal->is_submitted) TRY(wait_until(p, signal->value));",
            ]
        return [*lines, f"    {self._invoke(known, export, '')}"]

    def _unknown(self, unknown: Function, export: Export) -> list[str]:
        return [f"    {self._invoke(unknown, export, '')}"]

    def _invoke(self, function: Function, export: Export, wait: str) -> str:
        assert function.declaration is not None
        places, arguments, taken = storages(function), ["p"], 0
        for index, (value, variable) in enumerate(
            zip(function.declaration.arguments, function.arguments, strict=False)
        ):
            if index in places:
                arguments.append(_passed(variable, f"results[{places[index]}]"))
                continue
            number, taken = taken, taken + 1
            if value.kind is ValueKind.SCALAR:
                arguments.append(f"scalar_{number}")
            else:
                arguments.append(_passed(variable, f"given[{number}]"))
        if function.declaration.is_async:
            arguments += [wait, "signal"]
        for index, (kind, named) in enumerate(zip(function.results, function.result_types, strict=True)):
            if kind != "r":
                arguments.append(f"&scalar_result_{index}")
            elif c_type(Variable(kind, named)) != "view" and named is not None:
                raise UnimplementedError(
                    f"function {export.name} gives a !{named}; C programs give tensors and numbers"
                )
            else:
                arguments.append(f"&results[{index}]")
        return f"TRY({self._names[function.ordinal]}({', '.join(arguments)}));"

    def _end(self, export: Export, fences: Sequence[str]) -> list[str]:
        lines = ["done:"]
        for name, values in (("given", export.inputs), ("results", export.outputs)):
            if any(value.kind is not ValueKind.SCALAR for value in values):
                lines.append(f"    for (uint32_t index = 0; index < COUNT({name}); index++) release(p, {name}[index]);")
        lines += [f"    release(p, {name});" for name in fences]
        return [*lines, "    return status;", "}"]


def _passed(variable: Variable, view: str) -> str:
    """A tensor as a function takes it: its view, or the buffer of that."""
    return f"{view}->buffer" if variable.type == "hal.buffer" else view


def _scalar(value: DeclaredValue) -> str:
    element = element_of(value)
    if element.is_float:
        if element.bits not in (32, 64):
            raise UnimplementedError(f"{value}: C programs take numbers of 32 and 64 bits")
        return "float" if element.bits == 32 else "double"
    return "int64_t" if element.bits == 64 else "int32_t"


def _type(value: DeclaredValue) -> str:
    """A row of the table of types."""
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
