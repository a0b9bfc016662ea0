"""Arithmetic of 32-bit integers with known differences, to recognise neighbouring addresses.

Each expression is ``start + distance`` modulo 2**32, and ``start`` is a multiple of a power of two. Additions of
constants are combined on emission, so that neighbours' common parts are computed once. Where the distance is below that
power of two, nothing carries into ``start``. Then quotients, remainders and comparisons with constants follow from
``start`` and are the same for all neighbours. No ranges are assumed: values that wrap around stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Protocol

from .declarations import BOOL, U32, Kind
from .expression import Arithmetic, Id, power_of_two_in
from .grammar import Op

_MASK: Final = 0xFFFFFFFF


class Plain(Arithmetic, Protocol):
    """The builder's method that the rules call: a binary instruction without these rules."""

    def plain(self, opcode: int, kind: Kind, left: Id, right: Id) -> Id: ...


class Sum(Id):
    """The sum of an expression and a constant, written as an instruction only where it is used as an operand."""

    __slots__ = ()

    def __init__(self, start: Id, distance: int, run: int) -> None:
        self.builder: Arithmetic = start.builder
        self.kind = U32
        self.value: int | None = None
        self.start = start
        self.distance = distance
        self.multiple: int = min(start.multiple, power_of_two_in(distance))
        self.run = run

    def __getattr__(self, name: str) -> Any:
        # The id stays unset: the instruction may stand in a block that does not dominate the next use.
        if name != "number":
            raise AttributeError(name)
        return self.here.number

    @property
    def here(self) -> Id:
        """Returns the result of an instruction in this block, or in a dominating one."""
        return self.builder.emit(Op.IAdd, U32, self.start, self.builder.word(self.distance))

    @property
    def key(self) -> Hashable:
        """A key that is equal for expressions known to be equal."""
        return self.start.number, self.distance


def neighbours(base: Id, count: int) -> list[Id]:
    """Returns ``count * base`` and the ``count - 1`` numbers after it: indices of elements that are loaded together."""
    if count == 1:
        return [base]
    first = base * count
    if first.value is not None:
        # Constants are shared objects.
        known = [base.builder.word(first.value + number) for number in range(count)]
        indices = [Id(base.builder, index.number, index.kind, index.value) for index in known]
    else:
        indices = [first + number for number in range(count)]
    for index in indices:
        index.run = count
    return indices


def quotient(number: Id, divisor: int) -> Id:
    """Divides an index by a power of two; by its known parts where it cannot wrap around."""
    if number.value is None and 0 < number.distance < 1 << 31 and number.start.multiple % divisor == 0:
        return number.start // divisor + number.distance // divisor
    return number // divisor


def _more(builder: Plain, base: Id, offset: int, run: int) -> Id:
    """Returns the sum of an expression and a number."""
    distance = (base.distance + offset) & _MASK
    start = base.start
    if start.value is not None:
        return builder.word(start.value + distance)
    if distance:
        return Sum(start, distance, run)
    start.run = run or start.run
    return start


def _known(builder: Plain, opcode: int, left: Id, right: Id, multiple: int, run: int) -> Id:
    """Returns the result of an instruction, with its known facts."""
    result = builder.plain(opcode, U32, left, right)
    if result.value is None and result is not left and result is not right:
        result.multiple, result.run = min(multiple, 1 << 32), run
    return result


def _parted(builder: Plain, number: Id, most: int) -> tuple[Id, int]:
    """Splits a number into a multiple of a power of two, at most ``most``, and a known remainder."""
    size = min(number.start.multiple, most)
    rest = number.distance % size
    return (_more(builder, number, -rest, number.run) if rest else number), rest


def _add(builder: Plain, left: Id, right: Id) -> Id | None:
    if left.value is not None:
        left, right = right, left
    run = 0 if left.run and right.run else left.run or right.run
    if right.value is not None:
        return _more(builder, left, right.value, run)
    if left.distance or right.distance:
        return _more(builder, left.start + right.start, left.distance + right.distance, run)
    return _known(builder, Op.IAdd, left, right, min(left.multiple, right.multiple), run)


def _subtract(builder: Plain, left: Id, right: Id) -> Id | None:
    if right.value is not None:
        return _more(builder, left, -right.value, left.run)
    if left.value is not None:
        # Mirrored, neighbours are as far from the multiple below as they were from the multiple above.
        number = (left.value - right.distance) & _MASK
        rest = number % min(right.start.multiple, 1 << 31)
        base = builder.word(number - rest)
        result = _known(builder, Op.ISub, base, right.start, min(base.multiple, right.start.multiple), 0)
        return _more(builder, result, rest, 0) if rest else result
    if left.distance or right.distance:
        return _more(builder, left.start - right.start, left.distance - right.distance, 0)
    return _known(builder, Op.ISub, left, right, min(left.multiple, right.multiple), 0)


def _multiply(builder: Plain, left: Id, right: Id) -> Id | None:
    if left.value is not None:
        left, right = right, left
    if right.value == 1:
        return left
    if right.value is not None and left.distance:
        return _more(builder, left.start * right, left.distance * right.value, 0)
    return _known(builder, Op.IMul, left, right, left.multiple * right.multiple, 0)


def _divide(builder: Plain, left: Id, right: Id) -> Id | None:
    number = right.value
    if not number or left.value is not None:
        return None
    multiple = left.start.multiple
    if number & (number - 1) or number > multiple:
        base, _ = _parted(builder, left, power_of_two_in(number))
        return _known(builder, Op.UDiv, base, right, 1, 0)
    # Elements of a run share words.
    run = max(left.run // number, 1) if left.run else 0
    base, rest = _parted(builder, left, multiple)
    result = _known(builder, Op.UDiv, base, right, multiple // number, run)
    return _more(builder, result, rest // number, run) if rest >= number else result


def _remainder(builder: Plain, left: Id, right: Id) -> Id | None:
    number = right.value
    if not number or left.value is not None:
        return None
    power = power_of_two_in(number)
    if power == number <= left.start.multiple:
        return builder.word(left.distance % number)
    base, rest = _parted(builder, left, power)
    result = _known(builder, Op.UMod, base, right, min(left.start.multiple, power), left.run)
    return _more(builder, result, rest, left.run) if rest else result


def _less(builder: Plain, left: Id, right: Id) -> Id | None:
    if right.value is not None:
        base, rest = _parted(builder, left, 1 << 31)
        if right.value <= rest:
            return builder.boolean(False)
        size = min(left.start.multiple, 1 << 31)
        limit = -(-(right.value - rest) // size) * size
        return builder.boolean(True) if limit > _MASK else builder.plain(Op.ULessThan, BOOL, base, builder.word(limit))
    if left.value is not None:
        base, rest = _parted(builder, right, 1 << 31)
        if left.value < rest:
            return builder.boolean(True)
        size = min(right.start.multiple, 1 << 31)
        limit = (left.value - rest) // size * size
        return builder.plain(Op.ULessThan, BOOL, builder.word(limit), base)
    return None


def _at_most(builder: Plain, left: Id, right: Id) -> Id | None:
    if right.value is not None:
        return builder.boolean(True) if right.value == _MASK else left < right.value + 1
    if left.value is not None:
        return builder.word(left.value - 1) < right if left.value else builder.boolean(True)
    return None


def _equal(builder: Plain, left: Id, right: Id) -> Id | None:
    if left.value is not None:
        left, right = right, left
    if right.value is None:
        return None
    base, rest = _parted(builder, left, 1 << 31)
    if right.value % min(left.start.multiple, 1 << 31) != rest:
        return builder.boolean(False)
    return builder.plain(Op.IEqual, BOOL, base, builder.word(right.value - rest))


def _signed_less(builder: Plain, left: Id, right: Id) -> Id | None:
    if right.value != 0 or left.value is not None:
        return None
    return builder.plain(Op.SLessThan, BOOL, _parted(builder, left, 1 << 31)[0], right)


RULES: Final[Mapping[int, Callable[[Plain, Id, Id], Id | None]]] = {
    Op.IAdd: _add,
    Op.ISub: _subtract,
    Op.IMul: _multiply,
    Op.UDiv: _divide,
    Op.UMod: _remainder,
    Op.ULessThan: _less,
    Op.ULessThanEqual: _at_most,
    Op.IEqual: _equal,
    Op.SLessThan: _signed_less,
}
"""Results of 32-bit integer instructions with at most one known operand; None where no rule applies."""
