"""A compiled region as data: the shader, its buffers, and what a dispatch and a call have to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ..ir.attributes import sizes_in
from ..ir.operation import Block
from ..ir.sizes import Dim, Size, symbols_of
from ..ir.types import ScalarType, ShapedType
from .scalars.scalars import storage_bits

MAX_WORDS: Final = (1 << 31) - 1
"""Words, and elements, of a tensor at most: indices are words, some of them signed."""

MAX_BYTES: Final = (1 << 32) - 1
"""Bytes of a tensor that is stored: no device binds more (``maxStorageBufferRange`` is 32 bits)."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A storage buffer of a kernel, at its position in set 0.

    Attributes:
        size: bytes, a multiple of four; four for an empty tensor, 0 where it depends on the call.
        is_read: whether the kernel reads it: not every input is needed.
        is_written: whether the kernel writes it: an empty result has nothing to write.
    """

    size: int
    is_read: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Workload:
    """How many workgroups a kernel needs, where that depends on the call.

    Attributes:
        elements: to compute.
        per_group: elements that a workgroup computes.
    """

    elements: Size
    per_group: int


class Limit(NamedTuple):
    """A size that has to be at most a number in a call.

    Attributes:
        size: that depends on the call.
        most: what it is at most.
        what: what it counts.
    """

    size: Size
    most: int
    what: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled region.

    Attributes:
        code: the SPIR-V module.
        entry_point: its name.
        workgroup_size: invocations of a workgroup.
        workgroup_count: workgroups to dispatch; one with a zero in it where there is nothing to compute.
        bindings: inputs in order, then results.
        symbols: whose values are the push constants, 32 bits each.
        limits: what a call has to hold.
        pushes_addresses: whether its push constants end with the addresses of all bindings and the words 0 to 15.
        longer: the entry point of another executable, with the same buffers, for calls that the limits rule out.
    """

    code: bytes
    entry_point: str
    workgroup_size: tuple[int, int, int]
    workgroup_count: tuple[int, int, int] | Workload
    bindings: tuple[Binding, ...]
    symbols: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    pushes_addresses: bool = False
    longer: str | None = None


def buffer_size(type: ShapedType) -> int:
    """Bytes of a tensor's buffer; 0 where they depend on the call."""
    return max(1, word_count(type.scalar, type.count)) * 4 if isinstance(type.count, int) else 0


def symbols_in(block: Block) -> tuple[str, ...]:
    """Symbols that any type or attribute of a block depends on, in the order in which a dispatch gives their values."""
    sizes: set[Dim] = set()
    for operation in (inner for outer in block.operations for inner in outer.walk()):
        for attribute in operation.attributes.values():
            sizes.update(sizes_in(attribute))
        for value in (*operation.operands, *operation.results):
            sizes.update(value.tensor.lengths)
    return tuple(sorted(symbols_of(sizes)))


def word_count(type: ScalarType, count: int) -> int:
    """Words of so many elements."""
    return -(-count * storage_bits(type) // 32)
