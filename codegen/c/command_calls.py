"""Calls that make executables, record commands and submit work, as statements in C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...status import UnimplementedError
from ..program.ir import Constant, Instruction, Operand, Rodata, Variable
from .arguments import (
    Texts,
    array,
    attempt,
    binding,
    fences,
    nothing,
    result,
    rows,
    single,
    text_literal,
    unsigned,
    word,
)


def _executable_create(texts: Texts, instruction: Instruction) -> list[str]:
    data, constants = instruction.operands[-2:]
    if not isinstance(data, Rodata) or not (isinstance(constants, Constant) and constants.kind == "r"):
        raise UnimplementedError(
            f"{texts.where()} makes an executable from data or constants that it computes; C programs have them as "
            "they were compiled"
        )
    index = texts.executables.add(data.ordinal, texts.program.rodata[data.ordinal])
    return attempt("executable_create", str(index), result(texts, instruction))


def _lookup(texts: Texts, instruction: Instruction) -> list[str]:
    executable, name = instruction.operands
    return attempt("executable_lookup", texts.value(executable), text_literal(texts, name), result(texts, instruction))


def _dispatch(texts: Texts, instruction: Instruction) -> list[str]:
    commands, executable, function, x, y, z, _, constants, bindings = instruction.operands
    counts = ", ".join(word(texts, operand) for operand in (x, y, z))
    return _dispatch_text(
        texts,
        (commands, executable, function),
        "DISPATCH",
        f"(const uint32_t[]){{{counts}}}",
        constants,
        [binding(texts, *row[1:]) for row in rows(bindings)],
    )


def _dispatch_indirect(texts: Texts, instruction: Instruction) -> list[str]:
    commands, executable, function, slot, buffer, offset, _, constants, bindings = instruction.operands
    assert not isinstance(slot, tuple) and not isinstance(buffer, tuple) and not isinstance(offset, tuple)
    bound = [binding(texts, *row[1:]) for row in rows(bindings)]
    bound.append(binding(texts, slot, buffer, offset, Constant("I", 12)))
    return _dispatch_text(texts, (commands, executable, function), "DISPATCH_INDIRECT", "NULL", constants, bound)


def _dispatch_text(
    texts: Texts, leading: Sequence[Operand], operation: str, counts: str, constants: Operand, bound: Sequence[str]
) -> list[str]:
    words = [word(texts, row[0]) for row in rows(constants)]
    first = ", ".join(texts.value(operand) for operand in leading)
    return [
        f"TRY(commands_dispatch(p, {first}, {operation}, {counts}, {array('uint32_t', words)},",
        "                      (const binding[]){" if bound else "                      NULL, 0));",
        *(f"                          {operand}," for operand in bound),
        *([f"                      }}, {len(bound)}));"] if bound else []),
    ]


def _fill(texts: Texts, instruction: Instruction) -> list[str]:
    commands, target, offset, size, slot, pattern, width = instruction.operands[:7]
    to = f"(binding){binding(texts, single(slot), single(target), single(offset), single(size))}"
    return attempt("commands_fill", texts.value(commands), to, word(texts, pattern), word(texts, width))


def _update(texts: Texts, instruction: Instruction) -> list[str]:
    commands, source, start, target, offset, size, slot = instruction.operands[:7]
    to = f"(binding){binding(texts, single(slot), single(target), single(offset), single(size))}"
    return attempt(
        "commands_update", texts.value(commands), texts.value(source), texts.value(start), unsigned(texts, size), to
    )


def _copy(texts: Texts, instruction: Instruction) -> list[str]:
    commands, from_slot, to_slot, source, source_offset, target, target_offset, size = map(
        single, instruction.operands[:8]
    )
    return [
        f"TRY(commands_copy(p, {texts.value(commands)}, "
        f"(binding){binding(texts, from_slot, source, source_offset, size)},",
        f"                  (binding){binding(texts, to_slot, target, target_offset, size)}));",
    ]


def _alloca(texts: Texts, instruction: Instruction) -> list[str]:
    types, size = instruction.operands[5], instruction.operands[7]
    return attempt(
        "queue_alloca",
        *fences(texts, instruction),
        texts.value(types),
        unsigned(texts, size),
        result(texts, instruction),
    )


def _follow(texts: Texts, instruction: Instruction) -> list[str]:
    return attempt("fence_follow", *fences(texts, instruction))


def _execute_indirect(texts: Texts, instruction: Instruction) -> list[str]:
    table = [
        f"                      {{.buffer = {texts.value(buffer)}, .offset = {unsigned(texts, offset)}, "
        f".length = {unsigned(texts, length)}}},"
        for buffer, offset, length in rows(instruction.operands[-1])
    ]
    start = f"TRY(queue_execute(p, {', '.join(fences(texts, instruction))}, {texts.value(instruction.operands[4])}, "
    if not table:
        return [f"{start}NULL, 0));"]
    return [f"{start}(const binding[]){{", *table, f"                  }}, {len(table)}));"]


def _execute(texts: Texts, instruction: Instruction) -> list[str]:
    wait, signal = fences(texts, instruction)
    given = instruction.operands[4]
    several = [row[0] for row in rows(given)] if isinstance(given, tuple) else [given]
    if not several:
        return _follow(texts, instruction)
    lines = []
    for index, commands in enumerate(several):
        last = signal if index + 1 == len(several) else "NULL"
        lines += attempt("queue_execute", "NULL" if index else wait, last, texts.value(commands), "NULL", "0")
    return lines


def _queue_fill(texts: Texts, instruction: Instruction) -> list[str]:
    buffer, offset, size, pattern, width = map(single, instruction.operands[4:9])
    to = f"(binding){binding(texts, Constant('i', 0), buffer, offset, size)}"
    value = f"(uint32_t){texts.value(pattern)}"
    return attempt("queue_fill", *fences(texts, instruction), to, value, word(texts, width))


def _queue_update(texts: Texts, instruction: Instruction) -> list[str]:
    source, start, buffer, offset, size = instruction.operands[4:9]
    if not isinstance(source, Rodata | Variable):
        raise UnimplementedError(f"{texts.where()} writes from no buffer")
    return [
        "{",
        "    uint8_t *data = NULL;",
        f"    TRY(bytes_at(p, {texts.value(source)}, {texts.value(start)}, {texts.value(size)}, &data));",
        f"    TRY(queue_update(p, {', '.join(fences(texts, instruction))}, data, {unsigned(texts, size)}, "
        f"{texts.value(buffer)}, {unsigned(texts, offset)}));",
        "}",
    ]


def _queue_copy(texts: Texts, instruction: Instruction) -> list[str]:
    source, start, target, offset, size = instruction.operands[4:9]
    return attempt(
        "transfer",
        texts.value(source),
        unsigned(texts, start),
        texts.value(target),
        unsigned(texts, offset),
        unsigned(texts, size),
        *fences(texts, instruction),
    )


def _queue_read(texts: Texts, instruction: Instruction) -> list[str]:
    file, start, buffer, offset, size = instruction.operands[4:9]
    return attempt(
        "queue_read",
        *fences(texts, instruction),
        texts.value(file),
        unsigned(texts, start),
        texts.value(buffer),
        unsigned(texts, offset),
        unsigned(texts, size),
    )


COMMAND_CALLS: Final[dict[str, Callable[[Texts, Instruction], list[str]]]] = {
    "hal.command_buffer.advise_buffer": nothing,
    "hal.command_buffer.begin_debug_group": nothing,
    "hal.command_buffer.copy_buffer": _copy,
    "hal.command_buffer.create": lambda texts, instruction: attempt(
        "commands_create", word(texts, instruction.operands[4]), result(texts, instruction)
    ),
    "hal.command_buffer.dispatch": _dispatch,
    "hal.command_buffer.dispatch.indirect": _dispatch_indirect,
    "hal.command_buffer.end_debug_group": nothing,
    "hal.command_buffer.execution_barrier": lambda texts, instruction: attempt(
        "commands_barrier", texts.value(instruction.operands[0])
    ),
    "hal.command_buffer.fill_buffer": _fill,
    "hal.command_buffer.finalize": nothing,
    "hal.command_buffer.update_buffer": _update,
    "hal.device.queue.alloca": _alloca,
    "hal.device.queue.barrier": _follow,
    "hal.device.queue.copy": _queue_copy,
    "hal.device.queue.dealloca": _follow,
    "hal.device.queue.execute": _execute,
    "hal.device.queue.execute.indirect": _execute_indirect,
    "hal.device.queue.fill": _queue_fill,
    "hal.device.queue.flush": nothing,
    "hal.device.queue.read": _queue_read,
    "hal.device.queue.update": _queue_update,
    "hal.ex.file.from_memory": lambda texts, instruction: attempt(
        "file_create", *(texts.value(operand) for operand in instruction.operands[3:6]), result(texts, instruction)
    ),
    "hal.executable.create": _executable_create,
    "hal.executable.lookup.function": _lookup,
}
"""Writers by the name of the import."""
