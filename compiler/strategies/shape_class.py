"""Classes of regions: the same strategy is expected to be the fastest for all regions of a class.

A class names the operations that strategies are about, with their types, attributes and bodies. Lengths are
approximate: the next power of two, and the divisor among 64, 16 and 4. Element-wise operations count only if there are
no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..analysis.weights import name_of
from ..ir.attributes import attribute_text
from ..ir.operation import Operation
from ..ir.sizes import Dim, Size
from ..ir.types import ShapedType
from ..kernels.region import KernelRegion

_HEROES: Final = frozenset(
    (
        *("convolution", "dot_general", "fft", "gather", "reduce", "reduce_window", "scatter", "select_and_scatter"),
        *("dynamic_update_slice", "sort", "transpose"),
    )
)
_EXACT: Final = 8
_DIVISORS: Final = (64, 16, 4)
_LONGEST: Final = 400
"""The most characters of an attribute in a class; constants have more."""


def class_of(region: KernelRegion) -> str:
    """Returns the class of a region, as text of one line."""
    heroes = [operation for operation in region.block.operations if name_of(operation) in _HEROES]
    parts = [_described(hero) for hero in heroes]
    if not heroes:
        names = sorted(
            {name_of(operation) for operation in region.block.operations[:-1]} - {"constant", "broadcast_in_dim"}
        )
        parts = ["+".join(names), *(_type(value.tensor) for value in region.block.arguments)]
    results = " ".join(_type(value.tensor) for value in region.results)
    return f"{'; '.join(parts)} -> {results}"


def _described(operation: Operation) -> str:
    """Describes an operation without the lengths of its tensors."""
    words = [name_of(operation), *(_type(value.tensor) for value in operation.operands)]
    words += (f"{name}={text}" for name, text in _attributes(operation))
    inner = [name_of(nested) for nested in operation.walk() if nested is not operation]
    return " ".join([*words, *(f"({'+'.join(inner)})" for _ in inner[:1])])


def _attributes(operation: Operation) -> Iterator[tuple[str, str]]:
    for name, value in sorted(operation.attributes.items()):
        text = " ".join(attribute_text(value).split())
        if len(text) <= _LONGEST:
            yield name, text.replace(" ", "")


def _type(type: ShapedType) -> str:
    return "x".join([*(_length(length) for length in type.lengths), str(type.scalar)])


def _length(length: Dim) -> str:
    if isinstance(length, Size):
        return "?"
    if length <= _EXACT:
        return str(length)
    power = 1 << (length - 1).bit_length()
    divisor = next((candidate for candidate in _DIVISORS if length % candidate == 0), 1)
    return f"{power}/{divisor}"
