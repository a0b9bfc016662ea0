"""Discrete Fourier transforms of a few numbers, as expressions: radix by radix, the smallest first."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

from ...spirv.binary.expression import Id
from .scalars import complex_math
from .scalars.scalars import Complex


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
    """Transforms a prime number of values by sums and differences of the values at both ends."""
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
