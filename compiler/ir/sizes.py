"""Call-dependent lengths: polynomials in the lengths of a function's arguments.

Polynomials cover most computations on lengths: concatenation and padding add, reshapes multiply. They have a canonical
form, so that equal lengths compare equal. A quotient that is not a polynomial is a separate symbol, ``[d0+1]/2``, whose
name is its definition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

Monomial: TypeAlias = tuple[str, ...]

SIZE_TEXT: Final = r"\([0-9d*+/\[\]-]{1,1000}\)"
"""A pattern for the result of ``str()``."""

_SYMBOL: Final = r"(?:d[0-9]{1,9}|\[[0-9d*+-]{1,1000}\]/[1-9][0-9]{0,8})"
_TERM: Final = re.compile(rf"([+-]?)([0-9]{{1,40}}(?![0-9d])|{_SYMBOL})((?:\*{_SYMBOL})*)", re.ASCII)
_PLAIN: Final = re.compile(r"d[0-9]+", re.ASCII)
_QUOTIENT: Final = re.compile(r"\[(.*)\]/([0-9]+)", re.ASCII)


MAX_DEGREE: Final = 16
"""The most symbols in a product."""

MAX_TERMS: Final = 256

_MAX_FACTOR: Final = 1 << 56


class SizeError(ValueError):
    """A size whose expression is too large."""


class Size:
    """A non-constant polynomial with integer coefficients: ``(2*d0*d1+3)``, ``(d0-2*[d0+1]/2)``.

    Sums, differences and products are sizes or, if no symbol is left, integers. Sizes have no order, since it depends
    on the call: see ``is_at_least``.

    Attributes:
        terms: pairs of a sorted product of symbols and its nonzero coefficient; sorted, with the constant last.
    """

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms: tuple[tuple[Monomial, int], ...] = terms
        self._hash = hash(terms)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that it depends on."""
        return frozenset(symbol for monomial, _ in self.terms for symbol in monomial)

    @property
    def name(self) -> str | None:
        """The symbol, if the size is a single symbol other than a quotient."""
        ((monomial, factor), *others) = self.terms
        is_symbol = not others and factor == 1 and len(monomial) == 1 and monomial[0].startswith("d")
        return monomial[0] if is_symbol else None

    @property
    def plain_symbols(self) -> frozenset[str]:
        """The symbols that are not quotients, including those inside quotients."""
        return frozenset(_PLAIN.findall(str(self)))

    @property
    def constant(self) -> int:
        """The term without symbols."""
        return self.terms[-1][1] if not self.terms[-1][0] else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __add__(self, other: Dim) -> Dim:
        return _sum((*self.terms, *_terms(other)))

    __radd__ = __add__

    def __neg__(self) -> Size:
        return Size(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Dim) -> Dim:
        return self + -other

    def __rsub__(self, other: Dim) -> Dim:
        return -self + other

    def __mul__(self, other: Dim) -> Dim:
        pairs = [(left, right) for left in self.terms for right in _terms(other)]
        return _sum((tuple(sorted((*left[0], *right[0]))), left[1] * right[1]) for left, right in pairs)

    __rmul__ = __mul__

    def __str__(self) -> str:
        text = ""
        for monomial, factor in self.terms:
            number = "*".join(monomial) if abs(factor) == 1 and monomial else "*".join([str(abs(factor)), *monomial])
            text += ("-" if factor < 0 else "+" if text else "") + number
        return f"({text})"

    __repr__ = __str__


Dim: TypeAlias = int | Size
"""A length: a number, or a call-dependent size."""


def symbol(number: int) -> Size:
    """Returns the symbol with a number: ``d0``, ``d1``, …"""
    return Size((((f"d{number}",), 1),))


def parse_size(text: str) -> Dim:
    """Parses a size, with parentheses.

    Raises:
        ValueError: the text is not a polynomial.
    """
    inner, terms, position = text[1:-1], [], 0
    while position < len(inner):
        match = _TERM.match(inner, position)
        if match is None or (position and not match[1]):
            raise ValueError(f"{text} is no sum of products of numbers and symbols such as (2*d0+1)")
        names = re.findall(_SYMBOL, match[3])
        factor = 1
        if not match[2].isdigit():
            names.append(match[2])
        else:
            factor = int(match[2])
        terms.append((tuple(sorted(names)), -factor if match[1] == "-" else factor))
        position = match.end()
    if any(abs(factor) >= _MAX_FACTOR for _, factor in terms):
        raise ValueError(f"{text} has factors of 2**56 or more")
    return _sum(terms)


def number_of(size: Dim) -> int:
    """Returns a size, already known to be constant, as an integer.

    Raises:
        ValueError: the size is not constant.
    """
    if isinstance(size, Size):
        raise ValueError(f"{size} depends on the call")
    return size


def product(lengths: Iterable[Dim]) -> Dim:
    return math.prod(lengths)


def symbols_of(lengths: Iterable[Dim]) -> frozenset[str]:
    """Returns the symbols that any of the lengths depends on."""
    return frozenset(name for length in lengths if isinstance(length, Size) for name in length.symbols)


def is_at_least(size: Dim, low: int) -> bool | None:
    """Returns whether a size is at least a number if all calls agree, else None. Symbols are at least 0."""
    if isinstance(size, int):
        return size >= low
    factors = [factor for monomial, factor in size.terms if monomial]
    if min(factors) > 0 and size.constant >= low:
        return True
    return False if max(factors) < 0 and size.constant < low else None


def is_multiple(size: Dim, divisor: int) -> bool:
    """Returns whether a size is a multiple of a number in every call."""
    return all(factor % divisor == 0 for _, factor in _terms(size))


def quotient(size: Dim, divisor: int) -> Dim:
    """Divides a size that is at least 0 in every call, rounding down.

    Raises:
        ValueError: the size contains a quotient and is not a multiple.
    """
    if is_multiple(size, divisor) or isinstance(size, int):
        return _sum((monomial, factor // divisor) for monomial, factor in _terms(size))
    if "[" in str(size):
        raise ValueError(f"{size} divided by {divisor} is a quotient of a quotient")
    return Size((((f"[{str(size)[1:-1]}]/{divisor}",), 1),))


def parts_at_most(length: Dim, size: int) -> Dim:
    """Returns an upper bound of the number of parts of a size in a length, rounded up."""
    try:
        return quotient(length + (size - 1), size)
    except ValueError:
        return length


def parts_of_quotient(name: str) -> tuple[Dim, int] | None:
    """Returns the dividend and divisor of a quotient symbol, or None."""
    match = _QUOTIENT.fullmatch(name)
    return None if match is None else (parse_size(f"({match[1]})"), int(match[2]))


def upper_bound(left: Dim, other: Dim) -> Dim:
    """Returns a size that is at least as large as two sizes in every call."""
    if isinstance(left, int) and isinstance(other, int):
        return max(left, other)
    factors, others = dict(_terms(left)), dict(_terms(other))
    every = factors.keys() | others.keys()
    return _sum((monomial, max(factors.get(monomial, 0), others.get(monomial, 0))) for monomial in every)


def evaluated(size: Dim, values: Mapping[str, int]) -> int:
    """Evaluates a size at values of the symbols."""
    if isinstance(size, int):
        return size
    return sum(factor * math.prod(_value(name, values) for name in monomial) for monomial, factor in size.terms)


def _value(name: str, values: Mapping[str, int]) -> int:
    parts = parts_of_quotient(name)
    return values[name] if parts is None else evaluated(parts[0], values) // parts[1]


def estimated(size: Dim, symbol: int = 64) -> int:
    """Evaluates a size at one value for all symbols, for decisions that affect only the cost."""
    return size if isinstance(size, int) else max(0, evaluated(size, dict.fromkeys(size.plain_symbols, symbol)))


def substituted(size: Dim, values: Mapping[str, Dim]) -> Dim:
    """Replaces symbols in a size by sizes."""
    total: Dim = 0
    for monomial, factor in _terms(size):
        total = total + factor * product(_replacement(name, values) for name in monomial)
    return total


def _replacement(name: str, values: Mapping[str, Dim]) -> Dim:
    parts = parts_of_quotient(name)
    if parts is None:
        return values.get(name, Size((((name,), 1),)))
    return quotient(substituted(parts[0], values), parts[1])


class Place(NamedTuple):
    """A location from which a symbol can be read: the value is a factor times the symbol, plus a constant.

    Attributes:
        argument: the argument of the function.
        axis: the dimension whose length it is; None for the argument's value.
        factor: the factor, 1 or more.
        constant: the number added.
    """

    argument: int
    axis: int | None
    factor: int
    constant: int

    def __str__(self) -> str:
        source = f"argument {self.argument}"
        return f"the value of {source}" if self.axis is None else f"dimension {self.axis} of {source}"


def definitions(shapes: Iterable[Iterable[Dim | None]], values: Mapping[int, Dim] = {}) -> dict[str, Place]:
    """Returns the places where symbols can be read.

    Lengths precede values, and among lengths the first that is a single symbol comes first.

    Args:
        shapes: the shapes of the arguments.
        values: the sizes of arguments that are lengths.
    """
    lengths = [
        *((argument, axis, length) for argument, shape in enumerate(shapes) for axis, length in enumerate(shape)),
        *((argument, None, value) for argument, value in values.items()),
    ]
    symbols: dict[str, Place] = {}
    others: dict[str, Place] = {}
    for argument, axis, length in lengths:
        if not isinstance(length, Size):
            continue
        ((monomial, factor), *rest) = length.terms
        if len(monomial) == 1 and monomial[0].startswith("d") and factor > 0 and all(not other for other, _ in rest):
            found_at = Place(argument, axis, factor, length.constant)
            (symbols if length.name is not None else others).setdefault(monomial[0], found_at)
    return {**others, **symbols}


def solved(difference: Dim) -> tuple[str, Dim] | None:
    """Returns a symbol and the size it must have for a difference to be 0; None if no symbol can be isolated.

    The last symbol is preferred, so that arguments depend on earlier arguments.
    """
    if isinstance(difference, int):
        return None
    inside = {name for quotient in difference.symbols - difference.plain_symbols for name in _PLAIN.findall(quotient)}
    names = (difference.symbols & difference.plain_symbols) - inside
    for name in sorted(names, key=lambda name: -int(name[1:])):
        rest = _sum(term for term in difference.terms if name not in term[0])
        factors = [term for term in difference.terms if name in term[0]]
        if len(factors) == 1 and factors[0][0] == (name,) and is_multiple(rest, factors[0][1]):
            return name, quotient(-rest, factors[0][1])
    return None


def _terms(size: Dim) -> tuple[tuple[Monomial, int], ...]:
    return size.terms if isinstance(size, Size) else (((), size),)


def _sum(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    factors: dict[Monomial, int] = {}
    for monomial, factor in terms:
        factors[monomial] = factors.get(monomial, 0) + factor
    kept = [(monomial, factor) for monomial, factor in factors.items() if factor]
    if all(not monomial for monomial, _ in kept):
        return sum(factor for _, factor in kept)
    if len(kept) > MAX_TERMS or any(len(term[0]) > MAX_DEGREE or abs(term[1]) >= _MAX_FACTOR for term in kept):
        raise SizeError(
            f"lengths with at most {MAX_TERMS} terms of at most {MAX_DEGREE} symbols, and factors below 2**56"
        )
    return Size(tuple(sorted(kept, key=lambda term: (-len(term[0]), term[0]))))
