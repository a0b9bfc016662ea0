"""Scans: windows that reach from each element to an end of its dimension, as cumulative sums have them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from ..ir.attributes import DenseElements
from ..ir.operation import Operation, Value
from .identities import identity_of, joined_by
from .weights import bits_of, iterations_of

MIN_LENGTH = 16
"""Fewer elements are reduced anew for each of the results, one after another."""

LOOK_BACK: Final = "look_back"
"""The attribute of scans in one pass: so many words of scratch memory has their kernel."""

LOOK_BACK_INVOCATIONS: Final = 256
"""Invocations that share a tile of a scan in one pass, where a device runs so many in a workgroup."""

LOOK_BACK_RUNS: Final = (16, 8, 4)
"""Elements of each of them; rows have a multiple of the most."""

LOOK_BACK_CODE: Final = 1 << 13
"""Words of code of an element, at most: it is written out for each of a run, twice."""

_COUNTING: Final = frozenset({"add", "multiply", "xor"})
"""Bodies for which it counts how often an element is joined, such as the initial value in place of what is padded."""


class Scan(NamedTuple):
    """What a scan does.

    Attributes:
        shape: of the operands and the results.
        axis: the dimension along which it goes.
        is_reverse: whether it begins with the last element.
        is_exclusive: whether a result is of the elements before its own only.
    """

    shape: tuple[int, ...]
    axis: int
    is_reverse: bool
    is_exclusive: bool

    @property
    def length(self) -> int:
        """Elements that follow each other."""
        return self.shape[self.axis]

    @property
    def outer(self) -> tuple[int, ...]:
        """The dimensions around."""
        return self.shape[: self.axis]

    @property
    def inner(self) -> tuple[int, ...]:
        """The dimensions inside, of which elements lie side by side."""
        return self.shape[self.axis + 1 :]

    @property
    def is_of_rows(self) -> bool:
        """Whether elements that follow each other lie side by side."""
        return math.prod(self.inner) == 1


def scan_of(operation: Operation) -> Scan | None:
    """The scan that windows are; None of any other operation, and where windows of each element are as good."""
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
    if 0 in shape or any(iterations_of(each) for each in operation.regions[0].block.operations):
        return None
    joined = joined_by(operation.regions[0].block)
    if joined in _COUNTING and constant_of(operation.operands[1]) != identity_of(joined, tensors[0].scalar):
        return None
    axis = axes[0]
    length, size, low = shape[axis], sizes[axis], padding[2 * axis]
    if length < MIN_LENGTH:
        return None
    # Windows begin at the place less what is padded in front, and end so far behind it.
    behind = size - 1 - low
    if low >= length - 1 and behind in (0, -1):
        return Scan(shape, axis, False, behind == -1)
    if behind >= length - 1 and low in (0, -1):
        return Scan(shape, axis, True, low == -1)
    return None


def value_words(operation: Operation) -> int:
    """Words of what a scan carries from one element to the next."""
    return sum(max(bits_of(value.tensor.scalar) // 32, 1) for value in operation.results)


def look_back_words(operation: Operation, tiles: int) -> int:
    """Words that so many tiles of a scan publish: a counter, and for each tile two values in halves."""
    return 1 + tiles * 4 * value_words(operation)


def scratch_words(operations: Iterable[Operation]) -> int:
    """Words of scratch memory of a region of some operations, zeros at first: scans in one pass have some."""
    return max((operation.integer(LOOK_BACK, 0) for operation in operations), default=0)


def constant_of(value: Value) -> complex | None:
    """The number that a constant without dimensions is."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.constant" or value.tensor.rank:
        return None
    constant = owner.attributes["value"]
    return constant.array.reshape(-1)[0].item() if isinstance(constant, DenseElements) else None


def fills_words(scan: Scan, value: Value) -> bool:
    """Whether so many elements of a value as the innermost dimension of a scan has fill whole words of memory."""
    return scan.shape[-1] * bits_of(value.tensor.scalar) % 32 == 0
