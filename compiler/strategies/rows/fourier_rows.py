"""Fourier transforms of short rows: an invocation transforms a whole row, radix by radix, the smallest first.

The following operations may move elements and compute with single elements: index maps of transposes and reshapes are
applied backwards, from operand to result.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ...analysis.special_forms import MAX_RADIX, follows_element_by_element
from ...ir.attributes import EnumAttr
from ...ir.operation import Operation
from ...ir.sizes import Size, product
from ...kernels.elements import Frame, scalar_of, shape_of
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars import complex_math
from ...kernels.scalars.complex_math import scale
from ...kernels.scalars.scalars import Complex, Scalar, as_complex, storage_bits
from ...kernels.strategy import Strategy


def transformed(values: Sequence[Complex], sign: int) -> list[Complex]:
    """Returns the unscaled transform of some numbers.

    Args:
        values: the numbers.
        sign: the sign of the exponent: -1, or 1 for the inverse.
    """
    count = len(values)
    radix = next((prime for prime in range(2, math.isqrt(count) + 1) if count % prime == 0), count)
    if radix == count:
        return _direct(values, sign)
    length = count // radix
    parts = [transformed(values[start::radix], sign) for start in range(radix)]
    results: list[Complex | None] = [None] * count
    for position in range(length):
        turned = [_turned(part[position], number * position, count, sign) for number, part in enumerate(parts)]
        for number, value in enumerate(_direct(turned, sign)):
            results[position + number * length] = value
    return [value for value in results if value is not None]


def _direct(values: Sequence[Complex], sign: int) -> list[Complex]:
    """Transforms a prime number of values, by sums and differences of values at opposite ends."""
    count = len(values)
    if count == 1:
        return list(values)
    first, rest = values[0], values[1:]
    if count == 2:
        return [complex_math.add(first, rest[0]), complex_math.subtract(first, rest[0])]
    half = count // 2
    sums = [complex_math.add(rest[at], rest[-1 - at]) for at in range(half)]
    differences = [complex_math.subtract(rest[at], rest[-1 - at]) for at in range(half)]
    total = first
    for pair in sums:
        total = complex_math.add(total, pair)
    results = [total] * count
    for position in range(1, half + 1):
        real, imaginary = first.real, first.imaginary
        across: list[Id] = []
        for number, (together, apart) in enumerate(zip(sums, differences, strict=True), 1):
            angle = 2 * math.pi * (position * number % count) / count
            real = real + together.real * math.cos(angle)
            imaginary = imaginary + together.imaginary * math.cos(angle)
            terms = [apart.imaginary * math.sin(angle), apart.real * math.sin(angle)]
            across = [term + other for term, other in zip(across, terms, strict=True)] if across else terms
        ahead = Complex(real + across[0], imaginary - across[1])
        behind = Complex(real - across[0], imaginary + across[1])
        results[position], results[count - position] = (ahead, behind) if sign < 0 else (behind, ahead)
    return results


def _turned(value: Complex, number: int, count: int, sign: int) -> Complex:
    """Multiplies a number by a power of a root of unity."""
    number %= count
    if number == 0:
        return value
    if 4 * number % count == 0:
        quarter = (4 * number // count * sign) % 4
        if quarter == 2:
            return Complex(-value.real, -value.imaginary)
        if quarter == 1:
            return Complex(-value.imaginary, value.real)
        return Complex(value.imaginary, -value.real)
    root = cmath.exp(sign * 2j * math.pi * number / count)
    return Complex(
        value.real * root.real - value.imaginary * root.imag, value.real * root.imag + value.imaginary * root.real
    )


WORKGROUPS: Final = {"cpu": 64, "default": 64}
"""Invocations of a workgroup, by the family of devices."""


@dataclass(frozen=True, slots=True)
class FourierRows(Strategy):
    """The schedule in which each invocation transforms a row.

    Attributes:
        workgroup: the number of invocations in a workgroup.
    """

    workgroup: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, FourierRows]]:
        """Yields the only candidate for `fft`."""
        if region.only(("fft",)) is not None:
            yield 0.0, cls(WORKGROUPS.get(region.target.family, WORKGROUPS["default"]))

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is a transform of short rows of complex numbers, followed by element-wise work."""
        hero, results = region.only(("fft",)), region.results
        if hero is None or region.is_update or len(results) != 1 or storage_bits(scalar_of(results[0])) < 32:
            return False
        length = shape_of(hero.result)[-1]
        return (
            len(hero.integers("fft_length")) == 1
            and _kind(hero) in ("FFT", "IFFT")
            and not isinstance(length, Size)
            and 1 <= length <= MAX_RADIX
            and 1 <= self.workgroup <= region.target.max_workgroup_invocations
            and _following(region, hero) is not None
        )

    def emit(self, region: KernelRegion) -> Kernel:
        hero = region.only(("fft",))
        assert hero is not None
        following = _following(region, hero)
        assert following is not None
        shader = Shader(region)
        builder, frame, shape = shader.builder, shader.frame, shape_of(hero.result)
        rows, (value,) = product(shape[:-1]), hero.operands
        sign = 1 if _kind(hero) == "IFFT" else -1

        def write(invocation: Id) -> None:
            row = split(builder, invocation, shape[:-1])
            length = shape[-1]
            assert isinstance(length, int)
            places = [frame.index(shape, [*row, builder.word(at)]) for at in range(length)]
            transform = transformed([as_complex(frame.at(value, index)) for index in places], sign)
            for index, number in zip(places, transform, strict=True):
                scalar = scale(number, 1.0 / length) if sign > 0 else number
                shader.store(0, [_followed(frame, hero, following, index, scalar)])

        return shader.over(rows, self.workgroup, write)


def _kind(hero: Operation) -> str:
    kind = hero.attributes["fft_type"]
    return kind.case if isinstance(kind, EnumAttr) else ""


def _following(region: KernelRegion, hero: Operation) -> list[Operation] | None:
    """Returns the operations from a transform to the result; None if any does not map elements one to one."""
    operations, value, following = region.block.operations[:-1], hero.result, list[Operation]()
    while value is not region.results[0]:
        users = [operation for operation in operations if value in operation.operands]
        if len(users) != 1 or not follows_element_by_element(users[0], value):
            return None
        following.append(users[0])
        value = users[0].result
    return following


def _followed(
    frame: Frame, hero: Operation, following: list[Operation], index: Index, scalar: Scalar
) -> tuple[Index, Scalar]:
    """Returns the index and the value of an element after the following operations."""
    frame.keep(hero.result, index, [scalar])
    for operation in following:
        moved = _moved(operation, index)
        if operation.name in ("stablehlo.reshape", "stablehlo.transpose"):
            frame.keep(operation.result, moved, [scalar])
        else:
            scalar = frame.at(operation.result, moved)
        index = moved
    return index, scalar


def _moved(operation: Operation, index: Index) -> Index:
    """Returns the index in the result of an element of the operand."""
    shape, name = shape_of(operation.result), operation.name.removeprefix("stablehlo.")
    if name == "reshape":
        return index.reshaped(shape)
    if name == "transpose":
        parts: list[Id] = list(index.parts)
        return Index(index.builder, shape, [parts[axis] for axis in operation.integers("permutation")])
    return index
