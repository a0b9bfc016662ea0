"""Kernels that run a part of a larger grid, for dispatches of more workgroups than a device takes at once.

``vkCmdDispatchBase`` is no help: base and count together may not pass the limit either (VUID-vkCmdDispatchBase-groupCountX-00424).
So the kernel itself is told where its part begins: what it loads as WorkgroupId and GlobalInvocationId gets constants added,
and what it loads as NumWorkgroups becomes one.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Final

from ..status import UnimplementedError

__all__ = ["grid_parts", "part_of_grid"]

Three = tuple[int, int, int]

_TYPE_VECTOR: Final = 23
_CONSTANT: Final = 43
_CONSTANT_COMPOSITE: Final = 44
_FUNCTION: Final = 54
_LOAD: Final = 61
_DECORATE: Final = 71
_COPY_OBJECT: Final = 83
_ADD: Final = 128
_BUILTIN: Final = 11
_NUM_WORKGROUPS: Final = 24
_WORKGROUP_ID: Final = 26
_GLOBAL_INVOCATION_ID: Final = 28
_HEADER_WORDS: Final = 5
_BOUND: Final = 3
_OFFSET_BUILTINS: Final = (_NUM_WORKGROUPS, _WORKGROUP_ID, _GLOBAL_INVOCATION_ID)
_ACCESS_CHAINS: Final = (65, 66)
# What else takes a pointer to an input variable: calls, copies, access chains of other shapes.
_POINTER_OPERANDS: Final = {
    57: slice(4, None),
    63: slice(1, 3),
    65: slice(3, 4),
    66: slice(3, 4),
    67: slice(3, 4),
    83: slice(3, 4),
}


def grid_parts(groups: Three, most: Three) -> Iterator[tuple[Three, Three]]:
    """Base and workgroup counts of the parts that a grid falls into, none larger than ``most``."""
    axes = [
        [(base, min(limit, count - base)) for base in range(0, count, limit)]
        for count, limit in zip(groups, most, strict=True)
    ]
    for z, y, x in itertools.product(axes[2], axes[1], axes[0]):
        yield (x[0], y[0], z[0]), (x[1], y[1], z[1])


def part_of_grid(code: bytes, base: Three, groups: Three, local_size: Three) -> bytes:
    """The module, with workgroups numbered from ``base`` in a grid of ``groups``.

    Args:
        code: valid SPIR-V.
        base: number of the part's first workgroup (x, y, z).
        groups: workgroups of the whole grid.
        local_size: invocations of a workgroup.

    Raises:
        UnimplementedError: the kernel reaches its number in a way that is not a plain load.
    """
    words = struct.unpack(f"<{len(code) // 4}I", code)
    instructions = tuple(_instructions(words))
    builtins = {
        words[at + 1]: words[at + 3]
        for at, count, opcode in instructions
        if opcode == _DECORATE and count == 4 and words[at + 2] == _BUILTIN and words[at + 3] in _OFFSET_BUILTINS
    }
    starts: dict[int, Three] = {
        _NUM_WORKGROUPS: groups,
        _WORKGROUP_ID: base,
        _GLOBAL_INVOCATION_ID: (base[0] * local_size[0], base[1] * local_size[1], base[2] * local_size[2]),
    }
    maker = _Constants(words[_BOUND])
    # What points to a vector of three, or to a component of one.
    pointers: dict[int, tuple[int, int | None]] = {variable: (kind, None) for variable, kind in builtins.items()}
    indices: dict[int, int] = {}
    body: list[int] = []
    first_function = len(words)
    for at, count, opcode in instructions:
        instruction = words[at : at + count]
        if opcode == _TYPE_VECTOR:
            maker.vectors[instruction[1]] = instruction[2]
        elif opcode == _CONSTANT and count == 4:
            indices[instruction[2]] = instruction[3]
        elif opcode == _FUNCTION:
            first_function = min(first_function, at)
        elif opcode in _ACCESS_CHAINS and count == 5 and instruction[3] in builtins and instruction[4] in indices:
            pointers[instruction[2]] = builtins[instruction[3]], indices[instruction[4]]
            body += instruction
            continue
        elif opcode == _LOAD and instruction[3] in pointers:
            kind, component = pointers[instruction[3]]
            type_id, result = instruction[1:3]
            constant = maker.constant(type_id, starts[kind], component)
            if kind == _NUM_WORKGROUPS:
                body += (4 << 16 | _COPY_OBJECT, type_id, result, constant)
            else:
                loaded = maker.take()
                body += (instruction[0], type_id, loaded, *instruction[3:])
                body += (5 << 16 | _ADD, type_id, result, loaded, constant)
            continue
        elif any(word in pointers for word in instruction[_POINTER_OPERANDS.get(opcode, slice(0))]):
            raise UnimplementedError(
                f"a kernel reaches its workgroup's number by operation {opcode}, where a load of it, or of one of its components, "
                "is expected: it cannot be run in parts"
            )
        if at >= first_function:
            body += instruction
    head = list(words[:first_function])
    head[_BOUND] = maker.bound
    return struct.pack(f"<{len(head) + len(maker.code) + len(body)}I", *head, *maker.code, *body)


class _Constants:
    """New ids, and the constants made with some of them."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.vectors: dict[int, int] = {}
        self.code: list[int] = []
        self._made: dict[tuple[int, Three, int | None], int] = {}

    def take(self) -> int:
        self.bound += 1
        return self.bound - 1

    def constant(self, type_id: int, values: Three, component: int | None) -> int:
        """A vector of three, or one of its components, of a type of the module."""
        key = type_id, values, component
        found = self._made.get(key)
        if found is None:
            if component is not None:
                found = self._scalar(type_id, values[component])
            else:
                parts = [self._scalar(self.vectors[type_id], value) for value in values]
                found = self.take()
                self.code += (6 << 16 | _CONSTANT_COMPOSITE, type_id, found, *parts)
            self._made[key] = found
        return found

    def _scalar(self, type_id: int, value: int) -> int:
        made = self.take()
        self.code += (4 << 16 | _CONSTANT, type_id, made, value & 0xFFFFFFFF)
        return made


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    at = _HEADER_WORDS
    while at < len(words):
        count = words[at] >> 16
        yield at, count, words[at] & 0xFFFF
        at += count
