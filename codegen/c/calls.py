"""Calls of the HAL's imports as statements in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from ...status import UnimplementedError
from ..program.ir import Constant, Instruction, Operand, Program, Rodata, Value, Variable
from .executables import FEATURES, Executables

_LIMITS: Final = {
    "api_version": "(int64_t)VK_API_VERSION_1_2",
    "subgroup_size": "(int64_t)p->subgroup_size",
    "max_compute_workgroup_invocations": "(int64_t)p->limits.maxComputeWorkGroupInvocations",
    **{f"max_compute_workgroup_size_{x}": f"(int64_t)p->limits.maxComputeWorkGroupSize[{i}]" for i, x in enumerate("xyz")},
    **{
        f"max_compute_workgroup_count_{x}": f"(int64_t)p->limits.maxComputeWorkGroupCount[{i}]"
        for i, x in enumerate("xyz")
    },
}
_FEATURE_KEYS: Final = {re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name): name for name in FEATURES}


class Texts(Protocol):
    """What the writer of a function gives."""

    program: Program
    executables: Executables

    def value(self, value: Operand) -> str:
        """A value as an expression."""

    def name(self, variable: Variable) -> str:
        """The name of a variable."""

    def where(self) -> str:
        """The function, for messages."""


def call_text(texts: Texts, one: Instruction) -> list[str]:
    """The statements of a call of an import.

    Raises:
        UnimplementedError: an import without a translation, by its name.
    """
    name = str(one.callee)
    found = _CALLS.get(name)
    if found is None:
        module = name.partition(".")[0]
        why = "C programs have only the hal module" if module != "hal" else "it has no form in C"
        raise UnimplementedError(f"{texts.where()} calls {name}: {why}; run the program with pumice run")
    return found(texts, one)


def unsigned(texts: Texts, value: Operand) -> str:
    """A 64-bit number that is an offset or a size: -1 is the largest."""
    if isinstance(value, Constant):
        if value.number == -1:
            return "UINT64_MAX"
        if value.number >= 0:
            return f"UINT64_C({value.number})" if value.number > 0x7FFFFFFF else f"{value.number}"
    return f"(uint64_t){texts.value(value)}"


def word(texts: Texts, value: Operand) -> str:
    """A 32-bit number as an unsigned one."""
    if isinstance(value, Constant) and value.number >= 0:
        return f"{value.number}"
    return f"(uint32_t){texts.value(value)}"


def literal(text: str) -> str:
    """A string literal."""
    shown = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        if char in '"\\?':
            shown.append(f"\\{char}")
        elif 32 <= byte < 127:
            shown.append(char)
        else:
            shown.append(f"\\{byte:03o}")
    return f'"{"".join(shown)}"'


def _text(texts: Texts, value: Operand) -> str:
    """A constant text as a literal."""
    if not isinstance(value, Rodata):
        raise UnimplementedError(f"{texts.where()} passes a text that it makes itself; C programs have constant ones")
    return literal(texts.program.text(value))


def _rows(value: Operand) -> Sequence[Sequence[Value]]:
    assert isinstance(value, tuple)
    return [row if isinstance(row, tuple) else (row,) for row in value]


def _result(texts: Texts, one: Instruction, position: int = 0) -> str:
    return f"&{texts.name(one.results[position])}"


def _attempt(function: str, *arguments: str) -> list[str]:
    return [f"TRY({function}(p{''.join(f', {each}' for each in arguments)}));"]


def _nothing(texts: Texts, one: Instruction) -> list[str]:
    return []


def _binding(texts: Texts, slot: Value, buffer: Value, offset: Value, length: Value) -> str:
    place = f".slot = {word(texts, slot)}" if isinstance(buffer, Constant) else f".buffer = {texts.value(buffer)}"
    if isinstance(buffer, Variable) and not (isinstance(slot, Constant) and slot.number == 0):
        place = f".slot = {word(texts, slot)}, {place}"
    start = "" if isinstance(offset, Constant) and offset.number == 0 else f", .offset = {unsigned(texts, offset)}"
    return f"{{{place}{start}, .length = {unsigned(texts, length)}}}"


def _array(kind: str, rows: Sequence[str]) -> str:
    return f"(const {kind}[]){{{', '.join(rows)}}}, {len(rows)}" if rows else "NULL, 0"


def _array_of_pointers(kind: str, rows: Sequence[str]) -> str:
    return f"({kind} *const[]){{{', '.join(rows)}}}, {len(rows)}" if rows else "NULL, 0"


def _fences(texts: Texts, one: Instruction) -> tuple[str, str]:
    return texts.value(one.operands[2]), texts.value(one.operands[3])


def _executable_create(texts: Texts, one: Instruction) -> list[str]:
    data, constants = one.operands[-2:]
    if not isinstance(data, Rodata) or not (isinstance(constants, Constant) and constants.kind == "r"):
        raise UnimplementedError(
            f"{texts.where()} makes an executable from data or constants that it computes; C programs have them as they "
            "were compiled"
        )
    index = texts.executables.add(data.ordinal, texts.program.rodata[data.ordinal])
    return _attempt("executable_create", str(index), _result(texts, one))


def _lookup(texts: Texts, one: Instruction) -> list[str]:
    executable, name = one.operands
    return _attempt("executable_lookup", texts.value(executable), _text(texts, name), _result(texts, one))


def _query(texts: Texts, one: Instruction) -> list[str]:
    _, category, key = one.operands
    if not isinstance(category, Rodata) or not isinstance(key, Rodata):
        raise UnimplementedError(f"{texts.where()} asks the device a question that it makes itself")
    asked, about = texts.program.text(category), texts.program.text(key)
    known, value = one.results
    answer = None
    if asked == "vulkan.feature" and about in _FEATURE_KEYS:
        answer = f"query_feature(p, {texts.executables.feature(_FEATURE_KEYS[about])})"
    elif asked == "vulkan.device":
        answer = _LIMITS.get(about)
    elif asked in ("hal.device", "hal.dispatch") and about == "concurrency":
        answer = "1"
    elif asked == "hal.executable.format":
        answer = str(int(about == "vulkan-spirv-fb"))
    lines = [f"{texts.name(known)} = {int(answer is not None)};"] if known.uses else []
    return [*lines, f"{texts.name(value)} = {answer or 0};"] if value.uses else lines


def _dispatch(texts: Texts, one: Instruction) -> list[str]:
    commands, executable, function, x, y, z, _, constants, bindings = one.operands
    counts = ", ".join(word(texts, each) for each in (x, y, z))
    return _dispatch_text(texts, (commands, executable, function), "DISPATCH", f"(const uint32_t[]){{{counts}}}",
                          constants, [_binding(texts, *row[1:]) for row in _rows(bindings)])


def _dispatch_indirect(texts: Texts, one: Instruction) -> list[str]:
    commands, executable, function, slot, buffer, offset, _, constants, bindings = one.operands
    assert not isinstance(slot, tuple) and not isinstance(buffer, tuple) and not isinstance(offset, tuple)
    rows = [_binding(texts, *row[1:]) for row in _rows(bindings)]
    rows.append(_binding(texts, slot, buffer, offset, Constant("I", 12)))
    return _dispatch_text(texts, (commands, executable, function), "DISPATCH_INDIRECT", "NULL", constants, rows)


def _dispatch_text(
    texts: Texts, leading: Sequence[Operand], operation: str, counts: str, constants: Operand, rows: Sequence[str]
) -> list[str]:
    words = [word(texts, row[0]) for row in _rows(constants)]
    first = ", ".join(texts.value(each) for each in leading)
    return [
        f"TRY(commands_dispatch(p, {first}, {operation}, {counts}, {_array('uint32_t', words)},",
        "                      (const binding[]){" if rows else "                      NULL, 0));",
        *(f"                          {each}," for each in rows),
        *([f"                      }}, {len(rows)}));"] if rows else []),
    ]


def _fill(texts: Texts, one: Instruction) -> list[str]:
    commands, target, offset, size, slot, pattern, width = one.operands[:7]
    to = f"(binding){_binding(texts, _one(slot), _one(target), _one(offset), _one(size))}"
    return _attempt("commands_fill", texts.value(commands), to, word(texts, pattern), word(texts, width))


def _update(texts: Texts, one: Instruction) -> list[str]:
    commands, source, start, target, offset, size, slot = one.operands[:7]
    to = f"(binding){_binding(texts, _one(slot), _one(target), _one(offset), _one(size))}"
    return _attempt(
        "commands_update", texts.value(commands), texts.value(source), texts.value(start), unsigned(texts, size), to
    )


def _copy(texts: Texts, one: Instruction) -> list[str]:
    commands, from_slot, to_slot, source, source_offset, target, target_offset, size = map(_one, one.operands[:8])
    return [
        f"TRY(commands_copy(p, {texts.value(commands)}, "
        f"(binding){_binding(texts, from_slot, source, source_offset, size)},",
        f"                  (binding){_binding(texts, to_slot, target, target_offset, size)}));",
    ]


def _one(value: Operand) -> Value:
    assert not isinstance(value, tuple)
    return value


def _alloca(texts: Texts, one: Instruction) -> list[str]:
    types, size = one.operands[5], one.operands[7]
    return _attempt("queue_alloca", *_fences(texts, one), texts.value(types), unsigned(texts, size), _result(texts, one))


def _follow(texts: Texts, one: Instruction) -> list[str]:
    return _attempt("fence_follow", *_fences(texts, one))


def _execute_indirect(texts: Texts, one: Instruction) -> list[str]:
    table = [
        f"                      {{.buffer = {texts.value(buffer)}, .offset = {unsigned(texts, offset)}, "
        f".length = {unsigned(texts, length)}}},"
        for buffer, offset, length in _rows(one.operands[-1])
    ]
    start = f"TRY(queue_execute(p, {', '.join(_fences(texts, one))}, {texts.value(one.operands[4])}, "
    if not table:
        return [f"{start}NULL, 0));"]
    return [f"{start}(const binding[]){{", *table, f"                  }}, {len(table)}));"]


def _execute(texts: Texts, one: Instruction) -> list[str]:
    wait, signal = _fences(texts, one)
    given = one.operands[4]
    rows = [row[0] for row in _rows(given)] if isinstance(given, tuple) else [given]
    if not rows:
        return _follow(texts, one)
    lines = []
    for index, commands in enumerate(rows):
        last = signal if index + 1 == len(rows) else "NULL"
        lines += _attempt("queue_execute", "NULL" if index else wait, last, texts.value(commands), "NULL", "0")
    return lines


def _queue_fill(texts: Texts, one: Instruction) -> list[str]:
    buffer, offset, size, pattern, width = map(_one, one.operands[4:9])
    to = f"(binding){_binding(texts, Constant('i', 0), buffer, offset, size)}"
    value = f"(uint32_t){texts.value(pattern)}"
    return _attempt("queue_fill", *_fences(texts, one), to, value, word(texts, width))


def _queue_update(texts: Texts, one: Instruction) -> list[str]:
    source, start, buffer, offset, size = one.operands[4:9]
    if not isinstance(source, Rodata | Variable):
        raise UnimplementedError(f"{texts.where()} writes from no buffer")
    return [
        "{",
        "    uint8_t *data = NULL;",
        f"    TRY(bytes_at(p, {texts.value(source)}, {texts.value(start)}, {texts.value(size)}, &data));",
        f"    TRY(queue_update(p, {', '.join(_fences(texts, one))}, data, {unsigned(texts, size)}, "
        f"{texts.value(buffer)}, {unsigned(texts, offset)}));",
        "}",
    ]


def _queue_copy(texts: Texts, one: Instruction) -> list[str]:
    source, start, target, offset, size = one.operands[4:9]
    return _attempt(
        "transfer",
        texts.value(source),
        unsigned(texts, start),
        texts.value(target),
        unsigned(texts, offset),
        unsigned(texts, size),
        *_fences(texts, one),
    )


def _queue_read(texts: Texts, one: Instruction) -> list[str]:
    file, start, buffer, offset, size = one.operands[4:9]
    return _attempt(
        "queue_read",
        *_fences(texts, one),
        texts.value(file),
        unsigned(texts, start),
        texts.value(buffer),
        unsigned(texts, offset),
        unsigned(texts, size),
    )


def _select_allocator(texts: Texts, one: Instruction) -> list[str]:
    rows = _rows(one.operands[3])
    return [f"{texts.name(one.results[1])} = {texts.value(rows[0][1])};"] if one.results[1].uses else []


def _view_create(texts: Texts, one: Instruction) -> list[str]:
    buffer, offset, length, kind, encoding, shape = one.operands
    lengths = [texts.value(row[0]) for row in _rows(shape)]
    return _attempt(
        "view_create",
        texts.value(buffer),
        unsigned(texts, offset),
        unsigned(texts, length),
        texts.value(kind),
        texts.value(encoding),
        _array("int64_t", lengths),
        _result(texts, one),
    )


def _view_assert(texts: Texts, one: Instruction) -> list[str]:
    view, message, kind, encoding, shape = one.operands
    lengths = [texts.value(row[0]) for row in _rows(shape)]
    return _attempt(
        "view_assert",
        texts.value(view),
        _text(texts, message),
        texts.value(kind),
        texts.value(encoding),
        _array("int64_t", lengths),
    )


def _property(function: str) -> Callable[[Texts, Instruction], list[str]]:
    def text(texts: Texts, one: Instruction) -> list[str]:
        arguments = ", ".join(texts.value(each) for each in one.operands)
        return [f"{texts.name(one.results[0])} = {function}({arguments});"] if one.results[0].uses else []

    return text


def _constant(value: int) -> Callable[[Texts, Instruction], list[str]]:
    def text(texts: Texts, one: Instruction) -> list[str]:
        return [f"{texts.name(one.results[0])} = {value};"] if one.results[0].uses else []

    return text


def _await(texts: Texts, one: Instruction) -> list[str]:
    timeout = one.operands[0]
    fences = _array_of_pointers("fence", [texts.value(row[0]) for row in _rows(one.operands[-1])])
    forever = isinstance(timeout, Constant) and timeout.number == -1
    if forever:
        lines = _attempt("fence_await", fences)
        status = one.results[0] if one.results and one.results[0].uses else None
        return [*lines, f"{texts.name(status)} = OK;"] if status is not None else lines
    return _attempt("fence_await_for", texts.value(timeout), fences, _result(texts, one))


def _join(texts: Texts, one: Instruction) -> list[str]:
    fences = _array_of_pointers("fence", [texts.value(row[0]) for row in _rows(one.operands[-1])])
    return _attempt("fence_join", fences, _result(texts, one))


def _buffer_assert(texts: Texts, one: Instruction) -> list[str]:
    buffer, message, _, length = one.operands[:4]
    return _attempt("buffer_assert", texts.value(buffer), _text(texts, message), unsigned(texts, length))


def _buffer_length(texts: Texts, one: Instruction) -> list[str]:
    buffer = texts.value(one.operands[0])
    return [f"{texts.name(one.results[0])} = {buffer} ? (int64_t){buffer}->size : 0;"] if one.results[0].uses else []


def _import(texts: Texts, one: Instruction) -> list[str]:
    source, offset, size = (texts.value(each) for each in one.operands[5:8])
    return _attempt("buffer_import", source, offset, size, _result(texts, one))


def _allocate(texts: Texts, one: Instruction) -> list[str]:
    types, size = one.operands[2], one.operands[4]
    is_host = f"is_host_memory({texts.value(types)})"
    return _attempt("buffer_new", unsigned(texts, size), is_host, _result(texts, one))


_CALLS: Final[dict[str, Callable[[Texts, Instruction], list[str]]]] = {
    "hal.allocator.allocate": _allocate,
    "hal.allocator.import": _import,
    "hal.allocator.select": _select_allocator,
    "hal.buffer.allocation.discard": _constant(0),
    "hal.buffer.allocation.is_terminal": _constant(0),
    "hal.buffer.allocation.preserve": _nothing,
    "hal.buffer.assert": _buffer_assert,
    "hal.buffer.length": _buffer_length,
    "hal.buffer.load": lambda texts, one: _attempt(
        "buffer_load",
        texts.value(one.operands[0]),
        unsigned(texts, one.operands[1]),
        texts.value(one.operands[2]),
        _result(texts, one),
    ),
    "hal.buffer.store": lambda texts, one: _attempt(
        "buffer_store",
        texts.value(one.operands[0]),
        texts.value(one.operands[1]),
        unsigned(texts, one.operands[2]),
        texts.value(one.operands[3]),
    ),
    "hal.buffer.subspan": lambda texts, one: _attempt(
        "buffer_part",
        texts.value(one.operands[0]),
        unsigned(texts, one.operands[1]),
        unsigned(texts, one.operands[2]),
        _result(texts, one),
    ),
    "hal.buffer_view.assert": _view_assert,
    "hal.buffer_view.buffer": lambda texts, one: _attempt(
        "view_buffer", texts.value(one.operands[0]), _result(texts, one)
    ),
    "hal.buffer_view.create": _view_create,
    "hal.buffer_view.dim": _property("view_dim"),
    "hal.buffer_view.element_type": _property("view_element_type"),
    "hal.buffer_view.encoding_type": _property("view_encoding"),
    "hal.buffer_view.rank": _property("view_rank"),
    "hal.command_buffer.advise_buffer": _nothing,
    "hal.command_buffer.begin_debug_group": _nothing,
    "hal.command_buffer.copy_buffer": _copy,
    "hal.command_buffer.create": lambda texts, one: _attempt(
        "commands_create", word(texts, one.operands[4]), _result(texts, one)
    ),
    "hal.command_buffer.dispatch": _dispatch,
    "hal.command_buffer.dispatch.indirect": _dispatch_indirect,
    "hal.command_buffer.end_debug_group": _nothing,
    "hal.command_buffer.execution_barrier": lambda texts, one: _attempt(
        "commands_barrier", texts.value(one.operands[0])
    ),
    "hal.command_buffer.fill_buffer": _fill,
    "hal.command_buffer.finalize": _nothing,
    "hal.command_buffer.update_buffer": _update,
    "hal.device.allocator": _nothing,
    "hal.device.query.i64": _query,
    "hal.device.queue.alloca": _alloca,
    "hal.device.queue.barrier": _follow,
    "hal.device.queue.copy": _queue_copy,
    "hal.device.queue.dealloca": _follow,
    "hal.device.queue.execute": _execute,
    "hal.device.queue.execute.indirect": _execute_indirect,
    "hal.device.queue.fill": _queue_fill,
    "hal.device.queue.flush": _nothing,
    "hal.device.queue.read": _queue_read,
    "hal.device.queue.update": _queue_update,
    "hal.devices.count": _constant(1),
    "hal.devices.get": _nothing,
    "hal.ex.file.from_memory": lambda texts, one: _attempt(
        "file_create", *(texts.value(each) for each in one.operands[3:6]), _result(texts, one)
    ),
    "hal.executable.create": _executable_create,
    "hal.executable.lookup.function": _lookup,
    "hal.fence.await": _await,
    "hal.fence.create": lambda texts, one: _attempt("fence_create", _result(texts, one)),
    "hal.fence.fail": lambda texts, one: [
        f"fence_fail({texts.value(one.operands[0])}, {texts.value(one.operands[1])});"
    ],
    "hal.fence.join": _join,
    "hal.fence.query": lambda texts, one: _attempt("fence_query", texts.value(one.operands[0]), _result(texts, one)),
    "hal.fence.signal": lambda texts, one: _attempt("fence_follow", "NULL", texts.value(one.operands[0])),
}
