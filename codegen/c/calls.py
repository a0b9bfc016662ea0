"""Calls of the HAL's imports, and operations on lists and byte buffers of the host, as statements in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ...status import UnimplementedError
from ...vm.translation.expressions import (
    ZERO,
    Attribute,
    Cast,
    Conditional,
    Display,
    Expression,
    Item,
    Literal,
    Name,
    Unary,
    call,
)
from ..program.ir import Constant, Instruction, Operand, Rodata, Value, Variable
from .arguments import Values, array, rows
from .executables import FEATURES
from .statements import NULL, Assign, Declare, Evaluate, Group, P, Statement, assign_reference, attempt
from .types import KINDS, c_type, is_owned

Write: TypeAlias = Callable[[Values, Instruction], list[Statement]]

_LIMITS: Final[dict[str, Expression]] = {
    "api_version": Name("VK_API_VERSION_1_2"),
    "subgroup_size": Attribute(P, "subgroup_size"),
    "max_compute_workgroup_invocations": Attribute(P, "limits.maxComputeWorkGroupInvocations"),
    **{
        f"max_compute_workgroup_{noun.lower()}_{axis}": Item(
            Attribute(P, f"limits.maxComputeWorkGroup{noun}"), Literal(index)
        )
        for noun in ("Size", "Count")
        for index, axis in enumerate("xyz")
    },
}
_FEATURE_KEYS: Final = {re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name): name for name in FEATURES}


def write_call(values: Values, instruction: Instruction) -> list[Statement]:
    """Writes a call of an import.

    Raises:
        UnimplementedError: the import has no translation; the message names it.
    """
    name = str(instruction.callee)
    write = _CALLS.get(name)
    if write is None:
        module = name.partition(".")[0]
        why = "C programs have only the hal module" if module != "hal" else "it has no form in C"
        raise UnimplementedError(f"{values.where()} calls {name}: {why}; run the program with pumice run")
    return write(values, instruction)


# -- by a description -----------------------------------------------------------------------------------


def _arguments(values: Values, instruction: Instruction, described: str) -> Iterator[Expression]:
    """Yields arguments by a description: for each argument a letter for its form, and the numbers of its operands."""
    operands = instruction.operands
    for item in described.split():
        form, numbers = item[0], [int(digit) for digit in item[1:]]
        operand: Operand = operands[numbers[0]] if numbers else ()
        match form:
            case "v":  # a value
                yield values.value(operand)
            case "u":  # an offset or a size
                yield values.unsigned(operand)
            case "w":  # a word
                yield values.word(operand)
            case "t":  # a text
                yield values.text(operand)
            case "a":  # an array of lengths
                yield from array("const int64_t", (values.value(row[0]) for row in rows(operand)))
            case "f":  # an array of the fences, which are the last operand
                yield from array("fence *const", (values.value(row[0]) for row in rows(operands[-1])))
            case "b":  # a range: a slot, a buffer, an offset and a length
                yield _range(values, *(operands[number] for number in numbers))
            case "n":  # nothing
                yield NULL
            case "r":  # the address of the result
                yield values.result(instruction)


def _range(values: Values, *operands: Operand) -> Expression:
    slot, buffer, offset, length = (operand for operand in operands if not isinstance(operand, tuple))
    return Cast("binding", values.binding(slot, buffer, offset, length))


def _attempt(function: str, described: str) -> Write:
    """Writes a call that may fail."""
    return lambda values, instruction: [attempt(function, *_arguments(values, instruction, described))]


def _compute(function: str, described: str) -> Write:
    """Writes a call that returns the result."""
    return lambda values, instruction: _set(
        values, instruction.results[0], call(function, *_arguments(values, instruction, described))
    )


def _constant(value: int) -> Write:
    return lambda values, instruction: _set(values, instruction.results[0], Literal(value))


def _set(values: Values, result: Variable, value: Expression) -> list[Statement]:
    return [Assign(values.name(result), value)] if result.uses else []


def _nothing(values: Values, instruction: Instruction) -> list[Statement]:
    return []


# -- with separate code -----------------------------------------------------------------------------


def _query(values: Values, instruction: Instruction) -> list[Statement]:
    _, category, key = instruction.operands
    if not isinstance(category, Rodata) or not isinstance(key, Rodata):
        raise UnimplementedError(f"{values.where()} asks the device a question that it makes itself")
    asked, about = values.program.text(category), values.program.text(key)
    known, value = instruction.results
    answer: Expression | None = None
    if asked == "vulkan.feature" and about in _FEATURE_KEYS:
        answer = call("query_feature", P, Literal(values.executables.feature(_FEATURE_KEYS[about])))
    elif asked == "vulkan.device" and about in _LIMITS:
        answer = Cast("int64_t", _LIMITS[about])
    elif asked in ("hal.device", "hal.dispatch") and about == "concurrency":
        answer = Literal(1)
    elif asked == "hal.executable.format":
        answer = Literal(int(about == "vulkan-spirv-fb"))
    return [*_set(values, known, Literal(int(answer is not None))), *_set(values, value, answer or ZERO)]


def _select_allocator(values: Values, instruction: Instruction) -> list[Statement]:
    affinity = rows(instruction.operands[3])[0][1]
    return _set(values, instruction.results[1], values.value(affinity))


def _await(values: Values, instruction: Instruction) -> list[Statement]:
    timeout = instruction.operands[0]
    if not (isinstance(timeout, Constant) and timeout.number == -1):
        return _attempt("fence_await_for", "v0 f r")(values, instruction)
    statements = _attempt("fence_await", "f")(values, instruction)
    return statements + [item for result in instruction.results for item in _set(values, result, Name("OK"))]


def _buffer_length(values: Values, instruction: Instruction) -> list[Statement]:
    return _set(values, instruction.results[0], size_of(values.value(instruction.operands[0]), "size", "int64_t"))


def size_of(tree: Expression, member: str, type: str) -> Expression:
    """Returns a member of a reference's object; 0 for null."""
    return Conditional(tree, Cast(type, Attribute(tree, member)), ZERO)


def _allocate(values: Values, instruction: Instruction) -> list[Statement]:
    is_host = call("is_host_memory", values.value(instruction.operands[2]))
    size = values.unsigned(instruction.operands[4])
    return [attempt("buffer_new", size, is_host, values.result(instruction))]


def _executable_create(values: Values, instruction: Instruction) -> list[Statement]:
    data, constants = instruction.operands[-2:]
    if not isinstance(data, Rodata) or not (isinstance(constants, Constant) and constants.kind == "r"):
        raise UnimplementedError(
            f"{values.where()} makes an executable from data or constants that it computes; C programs have them as "
            "they were compiled"
        )
    index = values.executables.add(data.ordinal, values.program.rodata[data.ordinal])
    return [attempt("executable_create", Literal(index), values.result(instruction))]


def _dispatch(values: Values, instruction: Instruction) -> list[Statement]:
    *leading, x, y, z, _, constants, bindings = instruction.operands
    counts = Cast("const uint32_t[]", Display(tuple(map(values.word, (x, y, z)))))
    return _dispatched(values, leading, Name("DISPATCH"), counts, constants, _bindings(values, bindings))


def _dispatch_indirect(values: Values, instruction: Instruction) -> list[Statement]:
    *leading, slot, buffer, offset, _, constants, bindings = instruction.operands
    assert not isinstance(slot, tuple) and not isinstance(buffer, tuple) and not isinstance(offset, tuple)
    bound = [*_bindings(values, bindings), values.binding(slot, buffer, offset, Constant("I", 12))]
    return _dispatched(values, leading, Name("DISPATCH_INDIRECT"), NULL, constants, bound)


def _bindings(values: Values, operand: Operand) -> list[Display]:
    return [values.binding(slot, buffer, offset, length) for _, slot, buffer, offset, length in rows(operand)]


def _dispatched(
    values: Values,
    leading: list[Operand],
    operation: Name,
    counts: Expression,
    constants: Operand,
    bound: list[Display],
) -> list[Statement]:
    words = array("const uint32_t", (values.word(row[0]) for row in rows(constants)))
    first = map(values.value, leading)
    return [attempt("commands_dispatch", *first, operation, counts, *words, *array("const binding", bound))]


def _execute_indirect(values: Values, instruction: Instruction) -> list[Statement]:
    table = [values.binding(Constant("i"), *row) for row in rows(instruction.operands[-1])]
    leading = _arguments(values, instruction, "v2 v3 v4")
    return [attempt("queue_execute", *leading, *array("const binding", table))]


_follow: Final = _attempt("fence_follow", "v2 v3")


def _execute(values: Values, instruction: Instruction) -> list[Statement]:
    wait, signal = _arguments(values, instruction, "v2 v3")
    operand = instruction.operands[4]
    several: list[Value] = [row[0] for row in rows(operand)] if isinstance(operand, tuple) else [operand]
    if not several:
        return _follow(values, instruction)
    waits, signals = [wait, *[NULL] * (len(several) - 1)], [*[NULL] * (len(several) - 1), signal]
    return [
        attempt("queue_execute", before, after, values.value(commands), *array("const binding", ()))
        for before, after, commands in zip(waits, signals, several, strict=True)
    ]


def _queue_fill(values: Values, instruction: Instruction) -> list[Statement]:
    to = _range(values, Constant("i"), *instruction.operands[4:7])
    wait, signal, pattern, width = _arguments(values, instruction, "v2 v3 w7 w8")
    return [attempt("queue_fill", wait, signal, to, pattern, width)]


def _queue_update(values: Values, instruction: Instruction) -> list[Statement]:
    if not isinstance(instruction.operands[4], Rodata | Variable):
        raise UnimplementedError(f"{values.where()} writes from no buffer")
    data = Name("data")
    wait, signal, *target = _arguments(values, instruction, "v2 v3 u8 v6 u7")
    return [
        Group(
            [
                Declare("uint8_t *", "data", NULL),
                attempt("bytes_at", *_arguments(values, instruction, "v4 v5 v8"), Unary("&", data)),
                attempt("queue_update", wait, signal, data, *target),
            ]
        )
    ]


def _fence_fail(values: Values, instruction: Instruction) -> list[Statement]:
    return [Evaluate(call("fence_fail", *_arguments(values, instruction, "v0 v1")))]


_CALLS: Final[dict[str, Write]] = {
    "hal.allocator.allocate": _allocate,
    "hal.allocator.import": _attempt("buffer_import", "v5 v6 v7 r"),
    "hal.allocator.select": _select_allocator,
    "hal.buffer.allocation.discard": _constant(0),
    "hal.buffer.allocation.is_terminal": _constant(0),
    "hal.buffer.allocation.preserve": _nothing,
    "hal.buffer.assert": _attempt("buffer_assert", "v0 t1 u3"),
    "hal.buffer.length": _buffer_length,
    "hal.buffer.load": _attempt("buffer_load", "v0 u1 v2 r"),
    "hal.buffer.store": _attempt("buffer_store", "v0 v1 u2 v3"),
    "hal.buffer.subspan": _attempt("buffer_part", "v0 u1 u2 r"),
    "hal.buffer_view.assert": _attempt("view_assert", "v0 t1 v2 v3 a4"),
    "hal.buffer_view.buffer": _attempt("view_buffer", "v0 r"),
    "hal.buffer_view.create": _attempt("view_create", "v0 u1 u2 v3 v4 a5 r"),
    "hal.buffer_view.dim": _compute("view_dim", "v0 v1"),
    "hal.buffer_view.element_type": _compute("view_element_type", "v0"),
    "hal.buffer_view.encoding_type": _compute("view_encoding", "v0"),
    "hal.buffer_view.rank": _compute("view_rank", "v0"),
    "hal.command_buffer.advise_buffer": _nothing,
    "hal.command_buffer.begin_debug_group": _nothing,
    "hal.command_buffer.copy_buffer": _attempt("commands_copy", "v0 b1347 b2567"),
    "hal.command_buffer.create": _attempt("commands_create", "w4 r"),
    "hal.command_buffer.dispatch": _dispatch,
    "hal.command_buffer.dispatch.indirect": _dispatch_indirect,
    "hal.command_buffer.end_debug_group": _nothing,
    "hal.command_buffer.execution_barrier": _attempt("commands_barrier", "v0"),
    "hal.command_buffer.fill_buffer": _attempt("commands_fill", "v0 b4123 w5 w6"),
    "hal.command_buffer.finalize": _nothing,
    "hal.command_buffer.update_buffer": _attempt("commands_update", "v0 v1 v2 u5 b6345"),
    "hal.device.allocator": _nothing,
    "hal.device.query.i64": _query,
    "hal.device.queue.alloca": _attempt("queue_alloca", "v2 v3 v5 u7 r"),
    "hal.device.queue.barrier": _follow,
    "hal.device.queue.copy": _attempt("transfer", "v4 u5 v6 u7 u8 v2 v3"),
    "hal.device.queue.dealloca": _follow,
    "hal.device.queue.execute": _execute,
    "hal.device.queue.execute.indirect": _execute_indirect,
    "hal.device.queue.fill": _queue_fill,
    "hal.device.queue.flush": _nothing,
    "hal.device.queue.read": _attempt("queue_read", "v2 v3 v4 u5 v6 u7 u8"),
    "hal.device.queue.update": _queue_update,
    "hal.devices.count": _constant(1),
    "hal.devices.get": _nothing,
    "hal.ex.file.from_memory": _attempt("file_create", "v3 v4 v5 r"),
    "hal.executable.create": _executable_create,
    "hal.executable.lookup.function": _attempt("executable_lookup", "v0 t1 r"),
    "hal.fence.await": _await,
    "hal.fence.create": _attempt("fence_create", "r"),
    "hal.fence.fail": _fence_fail,
    "hal.fence.join": _attempt("fence_join", "f r"),
    "hal.fence.query": _attempt("fence_query", "v0 r"),
    "hal.fence.signal": _attempt("fence_follow", "n v0"),
}


# -- lists and byte buffers --------------------------------------------------------------------------------

_HELD: Final = Name("held")
_ADDRESS: Final = Unary("&", _HELD)


def write_list(values: Values, instruction: Instruction) -> list[Statement]:
    """Writes an operation on a list."""
    _, verb, *rest = instruction.operation.split(".")
    operands = [values.value(operand) for operand in instruction.operands]
    if verb == "alloc":
        return [attempt("list_alloc", values.result(instruction))]
    if verb == "reserve":
        return []
    if verb == "resize":
        return [attempt("list_resize", *operands)]
    if verb == "size":
        return [Assign(values.name(instruction.results[0]), size_of(operands[0], "count", "int32_t"))]
    kind = rest[0]
    form, wide = ("real", "double") if kind[0] == "f" else ("integer", "int64_t")
    if verb == "set":
        return [attempt(f"list_set_{'reference' if kind == 'ref' else form}", *operands)]
    target = instruction.results[0]
    name, narrow = values.name(target), c_type(target)
    if kind == "ref":
        if not is_owned(target) or narrow == "object":
            raise UnimplementedError(f"{values.where()} has a list of {target.type}, which has no form in C")
        got = attempt("list_get_reference", *operands, Name(f"{narrow}_destroy"), _ADDRESS)
        return [Group([Declare("void *", "held", NULL), got, assign_reference(name, _HELD)])]
    if narrow == wide:
        return [attempt(f"list_get_{form}", *operands, Unary("&", name))]
    got = attempt(f"list_get_{form}", *operands, _ADDRESS)
    return [Group([Declare(wide, "held", ZERO), got, Assign(name, Cast(str(narrow), _HELD))])]


def write_bytes(values: Values, instruction: Instruction) -> list[Statement]:
    """Writes an operation on a byte buffer."""
    _, verb, *rest = instruction.operation.split(".")
    operands = [values.value(operand) for operand in instruction.operands]
    results = [values.name(result) for result in instruction.results]
    addresses = [Unary("&", result) for result in results]
    match verb:
        case "alloc" | "clone" | "copy" | "compare":  # host memory has sufficient alignment for any type
            taken = operands[:-1] if verb in ("alloc", "clone") else operands
            return [attempt(f"bytes_{verb}", *taken, *addresses)]
        case "length":
            return [Assign(results[0], size_of(operands[0], "size", "int64_t"))]
        case "load" | "store" | "fill":
            kind = f"{'u' if rest[1:] == ['u'] else ''}{KINDS[rest[0]]}"
            size = call("sizeof", _HELD)
            if verb == "load":
                loaded = attempt("bytes_load", *operands, _ADDRESS, size)
                return [Group([Declare(kind, "held", ZERO), loaded, Assign(results[0], _HELD)])]
            held = Declare(f"const {kind}", "held", Cast(kind, operands[-1]))
            return [Group([held, attempt(f"bytes_{verb}", *operands[:-1], _ADDRESS, size)])]
    raise UnimplementedError(f"{values.where()} does {instruction.operation}, which has no form in C")
