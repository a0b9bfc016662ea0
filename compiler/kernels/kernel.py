"""A compiled region as data: the shader, its buffers, and the facts needed for dispatches and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ..ir.attributes import sizes_in
from ..ir.operation import Block
from ..ir.sizes import Dim, Size, symbols_of
from ..ir.types import ScalarType, ShapedType
from .scalars.scalars import storage_bits

MAX_WORDS: Final = (1 << 31) - 1
"""The upper bound of a tensor's words and elements: indices are words, some of them signed."""

MAX_BYTES: Final = (1 << 32) - 1
"""The upper bound of a stored tensor's bytes: no device binds more (``maxStorageBufferRange`` has 32 bits)."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A storage buffer of a kernel, at its position in set 0.

    Attributes:
        size: the size in bytes, a multiple of four; four for an empty tensor, 0 if it is call-dependent.
        is_read: whether the kernel reads it; some inputs are unused.
        is_written: whether the kernel writes it; an empty result is not written.
    """

    size: int
    is_read: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Workload:
    """A call-dependent number of workgroups.

    Attributes:
        elements: the number of elements to compute.
        per_group: the number of elements that a workgroup computes.
    """

    elements: Size
    per_group: int


class Limit(NamedTuple):
    """An upper bound checked at each call.

    Attributes:
        size: the call-dependent size.
        most: the bound.
        noun: a noun for the counted things.
    """

    size: Size
    most: int
    noun: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled region.

    Attributes:
        code: the SPIR-V module.
        entry_point: the name of the module's entry point.
        workgroup_size: the number of invocations in a workgroup.
        workgroup_count: the number of workgroups to dispatch; contains a zero if there is nothing to compute.
        bindings: the inputs in order, then the results.
        symbols: the sizes that are passed as push constants, 32 bits each.
        limits: the upper bounds that a call must not exceed.
        pushes_addresses: whether the push constants end with the addresses of all bindings and the words 0 to 15.
        longer: the entry point of another executable, with the same buffers, for calls beyond the limits.
        subgroup_size: the only subgroup size with which its results are right; 0 if every size works.
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
    subgroup_size: int = 0


def buffer_size(type: ShapedType) -> int:
    """Returns the bytes of a tensor's buffer; 0 if they are call-dependent."""
    return max(1, word_count(type.scalar, type.count)) * 4 if isinstance(type.count, int) else 0


def symbols_in(block: Block) -> tuple[str, ...]:
    """Returns the symbols in the types and attributes of a block, in the order of the dispatch's values."""
    sizes: set[Dim] = set()
    for operation in (inner for outer in block.operations for inner in outer.walk()):
        for attribute in operation.attributes.values():
            sizes.update(sizes_in(attribute))
        for value in (*operation.operands, *operation.results):
            sizes.update(value.tensor.lengths)
    return tuple(sorted(symbols_of(sizes)))


def word_count(type: ScalarType, count: int) -> int:
    """Returns the words that ``count`` elements occupy."""
    return -(-count * storage_bits(type) // 32)


@dataclass(frozen=True, slots=True)
class Variant:
    """An executable for one target.

    Attributes:
        kind: the kind of devices, such as ``"SPIRV"``; their executables may have several formats.
        format: the name of the format of ``data``, in modules and on devices.
        data: the bytes that the device loads.
        kernel: the entry point, workgroups and bindings; only the workgroups differ between targets.
        features: the features that it is made for, by Vulkan's names; a device that lacks any gets another variant.
        needs: the features that its code declares.
    """

    kind: str
    format: str
    data: bytes
    kernel: Kernel
    features: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
