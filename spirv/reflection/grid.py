"""Kernels that run a part of a larger grid, for dispatches beyond a device's workgroup limits.

``vkCmdDispatchBase`` does not help: the sum of base and count must not exceed the limit either
(VUID-vkCmdDispatchBase-groupCountX-00424). So the kernel is changed: constants are added to loads of WorkgroupId and
GlobalInvocationId, and loads of NumWorkgroups become constants.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from ...status import InvalidArgumentError, UnimplementedError
from ..binary.grammar import BuiltIn, Decoration, Op
from ..binary.words import BOUND, encode, pack, read_binary

Three = tuple[int, int, int]

_OFFSET_BUILTINS: Final = (BuiltIn.NumWorkgroups, BuiltIn.WorkgroupId, BuiltIn.GlobalInvocationId)
_ACCESS_CHAINS: Final = (Op.AccessChain, Op.InBoundsAccessChain)


def grid_parts(groups: Three, limits: Three) -> Iterator[tuple[Three, Three]]:
    """Returns the base and the workgroup counts of each part of a grid, none larger than `limits`."""
    axes = [
        [(base, min(limit, count - base)) for base in range(0, count, limit)]
        for count, limit in zip(groups, limits, strict=True)
    ]
    for z, y, x in itertools.product(axes[2], axes[1], axes[0]):
        yield (x[0], y[0], z[0]), (x[1], y[1], z[1])


def part_of_grid(code: bytes, base: Three, groups: Three, local_size: Three) -> bytes:
    """Returns the module, with workgroups numbered from ``base`` in a grid of ``groups``.

    Args:
        code: a valid SPIR-V module.
        base: the number of the part's first workgroup.
        groups: the workgroups of the whole grid.
        local_size: the number of invocations in a workgroup.

    Raises:
        UnimplementedError: the kernel reads its workgroup number other than by a plain load.
        InvalidArgumentError: the code is invalid.
    """
    binary = read_binary(code)
    words = binary.words
    starts: dict[int, Three] = {
        BuiltIn.NumWorkgroups: groups,
        BuiltIn.WorkgroupId: base,
        BuiltIn.GlobalInvocationId: (base[0] * local_size[0], base[1] * local_size[1], base[2] * local_size[2]),
    }
    maker = _Constants(binary.bound)
    # Pointers to a built-in vector of three, and to a component of such a vector.
    pointers: dict[int, tuple[int, int | None]] = {}
    indices: dict[int, int] = {}
    body: list[int] = []
    first_function = len(words)
    for opcode, start, end in binary:
        instruction = words[start:end]
        if opcode == Op.Decorate:
            if instruction[2] == Decoration.BuiltIn and instruction[3] in _OFFSET_BUILTINS:
                pointers[instruction[1]] = instruction[3], None
        elif opcode == Op.TypeVector:
            maker.vectors[instruction[1]] = instruction[2]
        elif opcode == Op.Constant and len(instruction) == 4:
            indices[instruction[2]] = instruction[3]
        elif opcode == Op.Function:
            first_function = min(first_function, start)
        if start < first_function:
            continue
        if opcode == Op.Load and instruction[3] in pointers:
            kind, component = pointers[instruction[3]]
            type_id, result = instruction[1:3]
            if component is None and type_id not in maker.vectors:
                raise InvalidArgumentError(
                    f"a kernel loads its workgroup's number as type {type_id}, which is no vector"
                )
            constant = maker.constant(type_id, starts[kind], component)
            if kind == BuiltIn.NumWorkgroups:
                body += encode(Op.CopyObject, type_id, result, constant)
            else:
                loaded = maker.take()
                body += (instruction[0], type_id, loaded, *instruction[3:])
                body += encode(Op.IAdd, type_id, result, loaded, constant)
            continue
        body += instruction
        if opcode in _ACCESS_CHAINS and len(instruction) == 5 and indices.get(instruction[4], 3) < 3:
            kind, component = pointers.get(instruction[3], (0, 0))
            if component is None:
                pointers[instruction[2]] = kind, indices[instruction[4]]
                continue
        if pointers.keys().isdisjoint(instruction) or opcode == Op.ExtInst:
            continue
        if not pointers.keys().isdisjoint(binary.used_ids(start, end)):
            raise UnimplementedError(
                f"a kernel reaches its workgroup's number by Op{Op.name(opcode)}, where a load of it, or of one of "
                "its components, is expected: it cannot be run in parts"
            )
    head = list(words[:first_function])
    head[BOUND] = maker.bound
    return pack([*head, *maker.code, *body])


class _Constants:
    """Allocates ids and emits constants."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.vectors: dict[int, int] = {}
        self.code: list[int] = []

    def take(self) -> int:
        self.bound += 1
        return self.bound - 1

    def constant(self, type_id: int, values: Three, component: int | None) -> int:
        """Returns a vector of three, or one of its components, of a type of the module."""
        if component is not None:
            return self._scalar(type_id, values[component])
        parts = [self._scalar(self.vectors[type_id], value) for value in values]
        made = self.take()
        self.code += encode(Op.ConstantComposite, type_id, made, *parts)
        return made

    def _scalar(self, type_id: int, value: int) -> int:
        made = self.take()
        self.code += encode(Op.Constant, type_id, made, value & 0xFFFFFFFF)
        return made
