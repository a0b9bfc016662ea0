"""Calls of the HAL's imports as statements in C."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ...status import UnimplementedError
from ..program.ir import Constant, Instruction, Rodata
from .arguments import Texts, array, attempt, nothing, pointers, result, rows, text_literal, unsigned
from .command_calls import COMMAND_CALLS
from .executables import FEATURES

_LIMITS: Final = {
    "api_version": "(int64_t)VK_API_VERSION_1_2",
    "subgroup_size": "(int64_t)p->subgroup_size",
    "max_compute_workgroup_invocations": "(int64_t)p->limits.maxComputeWorkGroupInvocations",
    **{
        f"max_compute_workgroup_size_{x}": f"(int64_t)p->limits.maxComputeWorkGroupSize[{i}]"
        for i, x in enumerate("xyz")
    },
    **{
        f"max_compute_workgroup_count_{x}": f"(int64_t)p->limits.maxComputeWorkGroupCount[{i}]"
        for i, x in enumerate("xyz")
    },
}
_FEATURE_KEYS: Final = {re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name): name for name in FEATURES}


def call_text(texts: Texts, instruction: Instruction) -> list[str]:
    """Writes a call of an import.

    Raises:
        UnimplementedError: an import without a translation; the message names it.
    """
    name = str(instruction.callee)
    found = _CALLS.get(name)
    if found is None:
        module = name.partition(".")[0]
        why = "C programs have only the hal module" if module != "hal" else "it has no form in C"
        raise UnimplementedError(f"{texts.where()} calls {name}: {why}; run the program with pumice run")
    return found(texts, instruction)


def _query(texts: Texts, instruction: Instruction) -> list[str]:
    _, category, key = instruction.operands
    if not isinstance(category, Rodata) or not isinstance(key, Rodata):
        raise UnimplementedError(f"{texts.where()} asks the device a question that it makes itself")
    asked, about = texts.program.text(category), texts.program.text(key)
    known, value = instruction.results
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


def _select_allocator(texts: Texts, instruction: Instruction) -> list[str]:
    affinity = rows(instruction.operands[3])[0][1]
    return [f"{texts.name(instruction.results[1])} = {texts.value(affinity)};"] if instruction.results[1].uses else []


def _view_create(texts: Texts, instruction: Instruction) -> list[str]:
    buffer, offset, length, kind, encoding, shape = instruction.operands
    lengths = [texts.value(row[0]) for row in rows(shape)]
    return attempt(
        "view_create",
        texts.value(buffer),
        unsigned(texts, offset),
        unsigned(texts, length),
        texts.value(kind),
        texts.value(encoding),
        array("int64_t", lengths),
        result(texts, instruction),
    )


def _view_assert(texts: Texts, instruction: Instruction) -> list[str]:
    view, message, kind, encoding, shape = instruction.operands
    lengths = [texts.value(row[0]) for row in rows(shape)]
    return attempt(
        "view_assert",
        texts.value(view),
        text_literal(texts, message),
        texts.value(kind),
        texts.value(encoding),
        array("int64_t", lengths),
    )


def _property(function: str) -> Callable[[Texts, Instruction], list[str]]:
    def text(texts: Texts, instruction: Instruction) -> list[str]:
        arguments = ", ".join(texts.value(operand) for operand in instruction.operands)
        return (
            [f"{texts.name(instruction.results[0])} = {function}({arguments});"] if instruction.results[0].uses else []
        )

    return text


def _constant(value: int) -> Callable[[Texts, Instruction], list[str]]:
    def text(texts: Texts, instruction: Instruction) -> list[str]:
        return [f"{texts.name(instruction.results[0])} = {value};"] if instruction.results[0].uses else []

    return text


def _await(texts: Texts, instruction: Instruction) -> list[str]:
    timeout = instruction.operands[0]
    fences = pointers("fence", [texts.value(row[0]) for row in rows(instruction.operands[-1])])
    forever = isinstance(timeout, Constant) and timeout.number == -1
    if forever:
        lines = attempt("fence_await", fences)
        status = instruction.results[0] if instruction.results and instruction.results[0].uses else None
        return [*lines, f"{texts.name(status)} = OK;"] if status is not None else lines
    return attempt("fence_await_for", texts.value(timeout), fences, result(texts, instruction))


def _join(texts: Texts, instruction: Instruction) -> list[str]:
    fences = pointers("fence", [texts.value(row[0]) for row in rows(instruction.operands[-1])])
    return attempt("fence_join", fences, result(texts, instruction))


def _buffer_assert(texts: Texts, instruction: Instruction) -> list[str]:
    buffer, message, _, length = instruction.operands[:4]
    return attempt("buffer_assert", texts.value(buffer), text_literal(texts, message), unsigned(texts, length))


def _buffer_length(texts: Texts, instruction: Instruction) -> list[str]:
    buffer = texts.value(instruction.operands[0])
    return (
        [f"{texts.name(instruction.results[0])} = {buffer} ? (int64_t){buffer}->size : 0;"]
        if instruction.results[0].uses
        else []
    )


def _import(texts: Texts, instruction: Instruction) -> list[str]:
    source, offset, size = (texts.value(operand) for operand in instruction.operands[5:8])
    return attempt("buffer_import", source, offset, size, result(texts, instruction))


def _allocate(texts: Texts, instruction: Instruction) -> list[str]:
    types, size = instruction.operands[2], instruction.operands[4]
    is_host = f"is_host_memory({texts.value(types)})"
    return attempt("buffer_new", unsigned(texts, size), is_host, result(texts, instruction))


_CALLS: Final[dict[str, Callable[[Texts, Instruction], list[str]]]] = {
    **COMMAND_CALLS,
    "hal.allocator.allocate": _allocate,
    "hal.allocator.import": _import,
    "hal.allocator.select": _select_allocator,
    "hal.buffer.allocation.discard": _constant(0),
    "hal.buffer.allocation.is_terminal": _constant(0),
    "hal.buffer.allocation.preserve": nothing,
    "hal.buffer.assert": _buffer_assert,
    "hal.buffer.length": _buffer_length,
    "hal.buffer.load": lambda texts, instruction: attempt(
        "buffer_load",
        texts.value(instruction.operands[0]),
        unsigned(texts, instruction.operands[1]),
        texts.value(instruction.operands[2]),
        result(texts, instruction),
    ),
    "hal.buffer.store": lambda texts, instruction: attempt(
        "buffer_store",
        texts.value(instruction.operands[0]),
        texts.value(instruction.operands[1]),
        unsigned(texts, instruction.operands[2]),
        texts.value(instruction.operands[3]),
    ),
    "hal.buffer.subspan": lambda texts, instruction: attempt(
        "buffer_part",
        texts.value(instruction.operands[0]),
        unsigned(texts, instruction.operands[1]),
        unsigned(texts, instruction.operands[2]),
        result(texts, instruction),
    ),
    "hal.buffer_view.assert": _view_assert,
    "hal.buffer_view.buffer": lambda texts, instruction: attempt(
        "view_buffer", texts.value(instruction.operands[0]), result(texts, instruction)
    ),
    "hal.buffer_view.create": _view_create,
    "hal.buffer_view.dim": _property("view_dim"),
    "hal.buffer_view.element_type": _property("view_element_type"),
    "hal.buffer_view.encoding_type": _property("view_encoding"),
    "hal.buffer_view.rank": _property("view_rank"),
    "hal.device.allocator": nothing,
    "hal.device.query.i64": _query,
    "hal.devices.count": _constant(1),
    "hal.devices.get": nothing,
    "hal.fence.await": _await,
    "hal.fence.create": lambda texts, instruction: attempt("fence_create", result(texts, instruction)),
    "hal.fence.fail": lambda texts, instruction: [
        f"fence_fail({texts.value(instruction.operands[0])}, {texts.value(instruction.operands[1])});"
    ],
    "hal.fence.join": _join,
    "hal.fence.query": lambda texts, instruction: attempt(
        "fence_query", texts.value(instruction.operands[0]), result(texts, instruction)
    ),
    "hal.fence.signal": lambda texts, instruction: attempt(
        "fence_follow", "NULL", texts.value(instruction.operands[0])
    ),
}
