"""Reduction bodies that join values, and exchanges between invocations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ...spirv.binary.declarations import BOOL, U32, Kind
from ...spirv.binary.expression import Id
from ...spirv.binary.grammar import Op
from ..analysis.identities import REPLACED, joined_by
from ..ir.operation import Operation
from .elements import Frame, scalar_of
from .scalars import complex_math
from .scalars.scalars import Complex, Scalar, Scalars, as_complex, as_id, parts_of, select, with_parts
from .scalars.target import Target

Values: TypeAlias = Sequence[Scalar]
Join: TypeAlias = Callable[[Values, Values], Values]

WHOLE_SUBGROUPS: Final = frozenset({"cpu", "nvidia", "amd"})
"""Families whose subgroups are full, of one size, and in the order of invocations."""


def subgroup_of(target: Target) -> int:
    """Returns how many consecutive invocations can exchange values; 1 if none can."""
    can = "shuffle" in target.subgroup_operations and target.family in WHOLE_SUBGROUPS
    return target.subgroup_size if can else 1


def is_commutative(reduction: Operation) -> bool:
    """Returns whether a body may join elements in any order."""
    return joined_by(reduction.regions[0].block) not in ("", REPLACED)


def join_of(frame: Frame, reduction: Operation) -> Join:
    """Returns the function that joins values of a reduction; sums of floats are not rounded to narrow types."""
    body = reduction.regions[0].block
    type = scalar_of(body.arguments[0])
    if joined_by(body) != "add" or type.kind not in ("float", "complex"):
        return lambda left, right: frame.call(body, [*left, *right])

    def add(left: Values, right: Values) -> Values:
        first, other = left[0], right[0]
        if isinstance(first, Complex):
            return [complex_math.add(first, as_complex(other))]
        return [as_id(first) + as_id(other)]

    return add


def rounded(frame: Frame, reduction: Operation, values: Values) -> list[Scalar]:
    """Rounds the results of a reduction to their types."""
    types = [scalar_of(value) for value in reduction.results]
    return [
        frame.scalars.rounded(type, as_id(value)) if type.kind == "float" else value
        for type, value in zip(types, values, strict=True)
    ]


def join_all(chains: Sequence[Values], join: Join) -> Values:
    """Joins values pair by pair, in order."""
    while len(chains) > 1:
        pairs = [join(left, right) for left, right in zip(chains[::2], chains[1::2], strict=False)]
        chains = [*pairs, *chains[2 * len(pairs) :]]
    return chains[0]


def chosen(condition: Id, then: Values, otherwise: Values) -> list[Scalar]:
    return [select(condition, value, other) for value, other in zip(then, otherwise, strict=True)]


def words_of(scalars: Scalars, values: Values) -> list[Id]:
    """Returns the bits of values in the type of the computation, which may be wider than their own."""
    words: list[Id] = []
    for part in (scalar_part for value in values for scalar_part in parts_of(value)):
        if part.kind == BOOL:
            words.append(part.select(scalars.builder.word(1), 0))
        elif part.kind.bits == 64:
            words.extend(scalars.halves(part))
        else:
            words.append(part.bits(U32))
    return words


def of_words(scalars: Scalars, like: Values, words: Sequence[Id]) -> list[Scalar]:
    """Rebuilds values from the words of ``words_of``; ``like`` has their forms."""
    left = list(words)
    parts: list[Id] = []
    for part in (scalar_part for value in like for scalar_part in parts_of(value)):
        word = left.pop(0)
        if part.kind == BOOL:
            parts.append(word.differs(0))
        elif part.kind.bits == 64:
            pair = scalars.builder.emit(Op.CompositeConstruct, Kind("u", 32, 2), word, left.pop(0))
            parts.append(pair.bits(part.kind))
        else:
            parts.append(word.bits(part.kind))
    return with_parts(like, parts)
