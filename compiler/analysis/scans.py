"""Scans: windows that reach from each element to an end of its dimension, as in cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from ..ir.attributes import DenseElements
from ..ir.operation import Operation, Value
from .identities import identity_of, joined_by
from .weights import bits_of, iterations_of

MIN_LENGTH = 16
"""With fewer elements, each result is reduced separately."""

LOOK_BACK: Final = "look_back"
"""The attribute of single-pass scans: the words of their kernel's scratch memory."""

LOOK_BACK_INVOCATIONS: Final = 256
"""Invocations that share a tile of a single-pass scan, if the device's workgroups can be that large."""

LOOK_BACK_RUNS: Final = (16, 8, 4)
"""Elements per invocation; row lengths are multiples of the largest."""

LOOK_BACK_CODE: Final = 1 << 13
"""The most words of code of an element, which is written twice for each element of a run."""

_COUNTING: Final = frozenset({"add", "multiply", "xor"})
"""Bodies whose result depends on how many times an element is joined, such as the initial value in padding."""


class Scan(NamedTuple):
    """A scan.

    Attributes:
        shape: the shape of the operands and the results.
        axis: the scanned dimension.
        is_reverse: whether the scan begins with the last element.
        is_exclusive: whether a result covers only the elements before its own.
    """

    shape: tuple[int, ...]
    axis: int
    is_reverse: bool
    is_exclusive: bool

    @property
    def length(self) -> int:
        """The length of the scanned dimension."""
        return self.shape[self.axis]

    @property
    def outer(self) -> tuple[int, ...]:
        """The lengths of the dimensions around it."""
        return self.shape[: self.axis]

    @property
    def inner(self) -> tuple[int, ...]:
        """The lengths of the dimensions inside, whose elements are contiguous."""
        return self.shape[self.axis + 1 :]

    @property
    def is_of_rows(self) -> bool:
        """Whether consecutive elements are contiguous."""
        return math.prod(self.inner) == 1


def scan_of(operation: Operation) -> Scan | None:
    """Returns the scan that windows compute; None for other operations, and if separate windows cost no more."""
    if operation.name != "stablehlo.reduce_window":
        return None
    tensors = [value.tensor for value in (operation.operands[0], *operation.results)]
    if not all(tensor.is_static for tensor in tensors) or tensors[0].lengths != tensors[1].lengths:
        return None
    shape = tuple(length for length in tensors[0].lengths if isinstance(length, int))
    ones = (1,) * len(shape)
    steps = ("window_strides", "window_dilations", "base_dilations")
    if any(operation.integers(name, ones) != ones for name in steps):
        return None
    sizes = operation.integers("window_dimensions", ones)
    axes = [axis for axis, size in enumerate(sizes) if size > 1]
    padding = operation.integers("padding", [0] * (2 * len(shape)))
    if len(axes) != 1 or any(padding[2 * axis] for axis in range(len(shape)) if axis != axes[0]):
        return None
    if 0 in shape or any(iterations_of(inner) for inner in operation.regions[0].block.operations):
        return None
    joined = joined_by(operation.regions[0].block)
    if joined in _COUNTING and constant_of(operation.operands[1]) != identity_of(joined, tensors[0].scalar):
        return None
    axis = axes[0]
    length, size, low = shape[axis], sizes[axis], padding[2 * axis]
    if length < MIN_LENGTH:
        return None
    # A window begins at its index minus the leading padding, and ends correspondingly after it.
    behind = size - 1 - low
    if low >= length - 1 and behind in (0, -1):
        return Scan(shape, axis, False, behind == -1)
    if behind >= length - 1 and low in (0, -1):
        return Scan(shape, axis, True, low == -1)
    return None


def value_words(operation: Operation) -> int:
    """Returns the words that a scan carries from one element to the next."""
    return sum(max(bits_of(value.tensor.scalar) // 32, 1) for value in operation.results)


def look_back_words(operation: Operation, tiles: int) -> int:
    """Returns the words that the tiles of a scan publish: a counter, and two values in halves for each tile."""
    return 1 + tiles * 4 * value_words(operation)


def scratch_words(operations: Iterable[Operation]) -> int:
    """Returns the words of a region's scratch memory, initially zero; single-pass scans need some."""
    return max((operation.integer(LOOK_BACK, 0) for operation in operations), default=0)


def constant_of(value: Value) -> complex | None:
    """Returns the number of a constant of rank 0, or None."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.constant" or value.tensor.rank:
        return None
    constant = owner.attributes["value"]
    return constant.array.reshape(-1)[0].item() if isinstance(constant, DenseElements) else None


def fills_words(scan: Scan, value: Value) -> bool:
    """Returns whether the innermost dimension of a scan fills whole words of memory for a value's element type."""
    return scan.shape[-1] * bits_of(value.tensor.scalar) % 32 == 0
