"""The public C functions of a program, and the types of their arguments and results.

A program exports a function that takes fences and storages for its results (``f$async``), and a function that allocates
the results. The C function calls the first if the shapes of the results are known beforehand; then the program
allocates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...status import InvalidArgumentError, UnimplementedError
from ...vm.bytecode.declaration import DeclaredValue, ValueKind
from ...vm.translation.expressions import (
    ZERO,
    Attribute,
    Cast,
    Comparison,
    Display,
    Expression,
    Item,
    Literal,
    Logical,
    Name,
    Not,
    Unary,
    call,
)
from ..program.ir import Function, Variable
from .arguments import array
from .exports import Export, element_of, is_dynamic, storages
from .expressions import string_literal
from .statements import NULL, Assign, Declare, Definition, Evaluate, If, P, Statement, attempt, comment_text, names_in
from .types import c_type, pointer

_ASYNCHRONOUS: Final = """\
/* The same on device memory, without waiting for the results: work begins once all of `waits` are reached, and
 * `signals` are signalled behind it. Inputs, outputs and semaphores are the call's until then. A call that fails
 * signals nothing. The host waits only where the program has to decide something. */"""
_TENSORS: Final = (("const NAME_tensor *", "inputs"), ("NAME_tensor *", "outputs"))
_SEMAPHORES: Final = (
    *(("const NAME_semaphore *", "waits"), ("uint32_t", "wait_count")),
    *(("const NAME_semaphore *", "signals"), ("uint32_t", "signal_count")),
)
_TRUE, _FALSE, _WAIT, _SIGNAL = Name("true"), Name("false"), Name("wait"), Name("signal")
_TO_SIGNAL: Final = Unary("&", _SIGNAL)


class InterfaceWriter:
    """Writes the public C functions of a program.

    Args:
        exports: the program's exports.
        names: the names of the program's functions in C, by ordinal.
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
        texts = []
        for export in self._exports:
            sides = (("inputs", export.inputs, "  "), ("outputs", export.outputs, " "))
            rows = [
                f"\n *     {kind}[{i}]{space} {comment_text(str(value))}"
                for kind, values, space in sides
                for i, value in enumerate(values)
            ]
            name = comment_text(export.name)
            comment = f"/* Calls {name}, and waits until its results are there:\n *{''.join(rows)}\n */"
            texts.append(f"{comment}\n{_declared(export, '', program='program').prototype()};")
            if _is_asynchronous(export):
                texts.append(f"{_ASYNCHRONOUS}\n{_declared(export, '_async', program='program').prototype()};")
        return "\n\n".join(texts)

    def definitions(self) -> list[Definition]:
        """Returns the definitions of all functions for users."""
        made = []
        for export in self._exports:
            made.append(_whole(export, "", self._call(export)))
            if _is_asynchronous(export):
                made.append(_whole(export, "_async", self._asynchronous(export)))
        return made

    def tables(self) -> str:
        """Returns the tables of types."""
        texts = []
        for export in self._exports:
            for kind, values in (("inputs", export.inputs), ("outputs", export.outputs)):
                if values:
                    rows = "\n".join(f"    {_type(value)}," for value in values)
                    texts.append(f"static const NAME_type {export.symbol}_{kind}[] = {{\n{rows}\n}};")
        return "\n\n".join(texts)

    def table_of_functions(self) -> str:
        """Returns the function that lists the functions for users."""
        rows = []
        for export in self._exports:
            inputs = f"{export.symbol}_inputs" if export.inputs else "NULL"
            outputs = f"{export.symbol}_outputs" if export.outputs else "NULL"
            counts = f"{len(export.inputs)}, {len(export.outputs)}"
            rows.append(
                f"        {{{string_literal(export.name)}, {counts}, {inputs}, {outputs}, NAME_{export.symbol}}},"
            )
        return (
            "const NAME_function *NAME_functions(uint32_t *count)\n{\n    static const NAME_function functions[] = {\n"
            + "\n".join(rows)
            + "\n    };\n    *count = COUNT(functions);\n    return functions;\n}"
        )

    # -- calls -----------------------------------------------------------------------------------------

    def _call(self, export: Export) -> list[Statement]:
        known, unknown = export.known, export.unknown
        paths = [self._path(export, function) for function in (known, unknown) if function is not None]
        taken = _arguments(export, known or unknown)
        if len(paths) == 1:
            return [*taken, *paths[0]]
        test: Expression | None = None
        for index, value in enumerate(export.outputs):
            if is_dynamic(value):
                rank = Attribute(_address("outputs", index), "rank")
                fits = Comparison("==", rank, Literal(len(value.shape or ())))
                test = fits if test is None else Logical("and", test, fits)
        assert test is not None
        return [*taken, If(test, *paths)]

    def _path(self, export: Export, function: Function) -> list[Statement]:
        """Writes a call of a waiting function, with the code before and after it."""
        assert function.declaration is not None
        places = set(storages(function).values())
        statements = _storages(export, function) if places else []
        if function.declaration.is_async:
            statements += [attempt("fence_create", _TO_SIGNAL), self._invoke(export, function, NULL)]
            reached = attempt("wait_until", Attribute(_SIGNAL, "value"))
            statements.append(If(Attribute(_SIGNAL, "is_submitted"), [reached]))
        else:
            statements.append(self._invoke(export, function))
        for index, value in enumerate(export.outputs):
            type, output = _address(f"{export.symbol}_outputs", index), _address("outputs", index)
            is_storage = index in places
            kind = "view" if is_storage else _result_kind(export, function, index)
            if kind not in ("view", "buffer"):
                statements.append(attempt("scalar_write", type, _address(f"scalar_result_{index}"), output))
                continue
            if kind == "buffer":
                shape = [Literal(length) for length in value.shape or ()]
                lengths = Cast("const int64_t[]", Display(tuple(shape or [ZERO])))
                element = Name(f"{int(element_of(value)):#x}")
                view = ZERO, Name("UINT64_MAX"), element, Literal(1), lengths, Literal(len(shape))
                statements.append(
                    attempt("view_create", Name(f"buffer_result_{index}"), *view, _address("results", index))
                )
            delivered = Item(Name("results"), Literal(index)), _TRUE if is_storage else _FALSE
            statements.append(attempt("tensor_deliver", type, *delivered, output))
        return statements

    def _asynchronous(self, export: Export) -> list[Statement]:
        known = export.known
        assert known is not None
        statements: list[Statement] = []
        for kind, values in (("inputs", export.inputs), ("outputs", export.outputs)):
            for index in range(len(values)):
                if kind == "outputs" or _argument(known, index).kind == "r":
                    type = _address(f"{export.symbol}_{kind}", index)
                    statements.append(attempt("tensor_on_device", type, _address(kind, index)))
        is_submitted = Attribute(_SIGNAL, "is_submitted")
        return [
            *statements,
            *_arguments(export, known),
            *_storages(export, known),
            attempt("fence_create", Unary("&", _WAIT)),
            Assign(Attribute(_WAIT, "points"), Name("waits")),
            Assign(Attribute(_WAIT, "point_count"), Name("wait_count")),
            Assign(Attribute(_WAIT, "is_submitted"), _TRUE),
            attempt("fence_create", _TO_SIGNAL),
            Assign(Attribute(_SIGNAL, "signals"), Name("signals")),
            Assign(Attribute(_SIGNAL, "signal_count"), Name("signal_count")),
            self._invoke(export, known, _WAIT),
            If(Not(is_submitted), [attempt("fence_follow", _WAIT, _SIGNAL)]),
        ]

    def _invoke(self, export: Export, function: Function, wait: Expression = NULL) -> Statement:
        assert function.declaration is not None
        places, arguments, taken = storages(function), [], 0
        for index in range(len(function.declaration.arguments)):
            variable = function.arguments[index]
            if index in places:
                arguments.append(_passed(variable, "results", places[index]))
                continue
            number, taken = taken, taken + 1
            is_number = variable.kind != "r"
            arguments.append(Name(f"scalar_{number}") if is_number else _passed(variable, "given", number))
        if function.declaration.is_async:
            arguments += [wait, _SIGNAL]
        for index in range(len(function.results)):
            kind = _result_kind(export, function, index)
            if index in places.values():
                arguments.append(_address(f"returned_{index}"))  # the storage again
            elif kind == "view":
                arguments.append(_address("results", index))
            else:
                arguments.append(_address(f"{'buffer' if kind == 'buffer' else 'scalar'}_result_{index}"))
        return attempt(self._names[function.ordinal], *arguments)


def _address(name: str, index: int | None = None) -> Expression:
    """Returns the address of a variable, or of an element of an array."""
    return Unary("&", Name(name) if index is None else Item(Name(name), Literal(index)))


def _declared(
    export: Export, suffix: str, body: Sequence[Statement] = (), ends: Sequence[Statement] = (), *, program: str = "p"
) -> Definition:
    parameters = (("NAME_program *", program), *_TENSORS, *(_SEMAPHORES if suffix else ()))
    return Definition(f"NAME_{export.symbol}{suffix}", parameters, body, ends, result="NAME_API int")


def _whole(export: Export, suffix: str, body: Sequence[Statement]) -> Definition:
    """Returns a function, with declarations of the variables that its statements use."""
    names = set(names_in(body))
    start: list[Statement] = []
    ends: list[Statement] = []

    def hold(name: str, type: str) -> None:
        if name in names:
            start.append(Declare(type, name, NULL))
            ends.append(Evaluate(call("release", P, Name(name))))

    for name, count in (("given", len(export.inputs)), ("results", len(export.outputs))):
        if name in names:
            start.append(Declare("view *", f"{name}[{count}]", Display((NULL,))))
            ends += [Evaluate(call("release", P, Item(Name(name), Literal(index)))) for index in range(count)]
    hold("wait", "fence *")
    hold("signal", "fence *")
    functions = [function for function in (export.known, export.unknown) if function is not None]
    scalars = [(f"scalar_{index}", value, index) for index, value in enumerate(export.inputs)]
    for name, value, index in scalars:
        if name in names:
            start.append(_number(name, value, _argument(functions[0], index)))
    for index, value in enumerate(export.outputs):
        if f"scalar_result_{index}" in names:
            start.append(_number(f"scalar_result_{index}", value, Variable(functions[-1].results[index])))
        if f"returned_{index}" in names:
            hold(f"returned_{index}", pointer(Variable("r", functions[0].result_types[index])))
        hold(f"buffer_result_{index}", "buffer *")
    return _declared(export, suffix, [*start, *body], ends)._replace(result="int")


def _number(name: str, value: DeclaredValue, variable: Variable) -> Statement:
    """Declares a number; checks that its type fits its register, as small integers use only the low bits."""
    element = element_of(value)
    bits = 64 if variable.kind in "IF" else 32
    is_float = variable.kind in "fF"
    if element.is_float != is_float or element.bits > bits or (element.is_float and element.bits != bits):
        raise UnimplementedError(f"{value}: the program takes it as a number of {bits} bits of another kind")
    return Declare(str(c_type(variable)), name, ZERO)


def _arguments(export: Export, function: Function | None) -> list[Statement]:
    assert function is not None
    statements: list[Statement] = []
    for index in range(len(export.inputs)):
        addresses = _address(f"{export.symbol}_inputs", index), _address("inputs", index)
        if _argument(function, index).kind == "r":
            statements.append(attempt("tensor_view", *addresses, _FALSE, _address("given", index)))
        else:
            statements.append(attempt("scalar_read", *addresses, _address(f"scalar_{index}")))
    return statements


def _storages(export: Export, function: Function) -> list[Statement]:
    statements: list[Statement] = []
    for index in sorted(storages(function).values()):
        addresses = _address(f"{export.symbol}_outputs", index), _address("outputs", index)
        statements.append(attempt("tensor_view", *addresses, _TRUE, _address("results", index)))
    if export.outputs:
        inputs = (Name("given"), call("COUNT", Name("given"))) if export.inputs else (NULL, ZERO)
        results = Name("results"), call("COUNT", Name("results")), Name(f"{export.symbol}_outputs")
        masks, _ = array("const uint64_t", [Name(f"{mask:#x}") for mask in export.reuses])
        statements.append(attempt("tensors_check", *inputs, *results, masks))
    return statements


def _is_asynchronous(export: Export) -> bool:
    known = export.known
    if known is None or known.declaration is None or not known.declaration.is_async:
        return False
    return len(storages(known)) == len(export.outputs)


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


def _passed(variable: Variable, array: str, index: int) -> Expression:
    """Returns a tensor in the function's form: its view, or the view's buffer."""
    view = Item(Name(array), Literal(index))
    return Attribute(view, "buffer") if variable.type == "hal.buffer" else view


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
    texts = ", ".join(map(string_literal, (value.name, text, named)))
    return f"{{{texts}, {int(element):#x}, {element.bits}, {len(shape)}, {is_static}, {{{lengths}}}}}"
