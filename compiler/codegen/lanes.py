"""Neighbouring places of one invocation: indices as ``base * step + offset``, of which only the offset differs.

Arithmetic of indices keeps the form where it can, so that what neighbours have in common is computed once, what divides
the step is known while compiling, and loads of neighbouring words are seen to be one of 128 bits. Only indices are in
this form: they are products that do not wrap around, and differences that are used only where they are not negative.
"""

from __future__ import annotations

import math
from typing import Any

from ...spirv.builder import Builder
from ...spirv.declarations import U32
from ...spirv.expression import Id
from ...spirv.grammar import Op

_SIGN = 1 << 31


class Lane(Id):
    """An index that is written as instructions only where one takes it.

    Attributes:
        base: which it has in common with its neighbours.
        step: what the base is multiplied by.
        offset: from 0 to the step.
        along: by how much it grows from one lane of the invocation to the next, 0 if by nothing; 1 too if lanes share
            a word.
    """

    __slots__ = ("along", "base", "offset", "step")

    def __init__(self, base: Id, step: int, offset: int = 0, along: int = 0) -> None:
        self.builder = base.builder
        self.kind = U32
        self.value = None
        self.base = base
        self.step = step
        self.offset = offset
        self.along = along

    def __getattr__(self, name: str) -> Any:
        # The slot of the number stays empty: instructions may stand in a block that does not dominate the next use.
        if name not in ("number", "start", "distance", "multiple"):
            raise AttributeError(name)
        return getattr(self.written, name)

    @property
    def written(self) -> Id:
        """The same as instructions."""
        builder = self.builder
        found = builder.emit(Op.IMul, U32, self.base, builder.word(self.step)) if self.step > 1 else self.base
        return builder.emit(Op.IAdd, U32, found, builder.word(self.offset)) if self.offset else found

    @property
    def key(self) -> object:
        """Equal for equal places."""
        return self.base.key, self.step, self.offset

    def moved(self, distance: int) -> Lane:
        """The index so many places further."""
        carry, offset = divmod(self.offset + distance, self.step)
        return Lane(self.base + carry if carry else self.base, self.step, offset, self.along)

    def in_steps(self, step: int) -> Lane:
        """The same in steps that divide the step."""
        more, offset = divmod(self.offset, step)
        base = multiple(self.base, self.step // step)
        return Lane(base + more if more else base, step, offset, self.along)


def multiple(base: Id, step: int) -> Id:
    """An index times a number."""
    if step == 1:
        return base
    if base.value is not None:
        return base * step
    if isinstance(base, Lane):
        return Lane(base.base, base.step * step, base.offset * step, base.along * step)
    return Lane(base, step)


def arithmetic(builder: Builder, opcode: int, left: Id, right: Id) -> Id | None:
    """What an instruction on indices gives, one of which is a lane; None where the instruction has to be written."""
    if isinstance(left, Lane) and isinstance(right, Lane):
        return _of_two(opcode, left, right)
    if isinstance(left, Lane) and right.value is not None:
        return _with_number(builder, opcode, left, right.value)
    if isinstance(right, Lane) and left.value is not None:
        return _of_number(builder, opcode, left.value, right)
    return None


def _of_two(opcode: int, left: Lane, right: Lane) -> Id | None:
    step = math.gcd(left.step, right.step)
    if step == 1 or opcode not in (Op.IAdd, Op.ISub):
        return None
    one, other = left.in_steps(step), right.in_steps(step)
    if opcode == Op.IAdd:
        return Lane(one.base + other.base, step, one.offset, one.along + other.along).moved(other.offset)
    return Lane(one.base - other.base, step, one.offset, one.along - other.along).moved(-other.offset)


def _with_number(builder: Builder, opcode: int, left: Lane, number: int) -> Id | None:
    base, step, offset, along = left.base, left.step, left.offset, left.along
    signed = number - 2 * _SIGN if number >= _SIGN else number
    if opcode == Op.IAdd:
        return left.moved(signed)
    if opcode == Op.ISub:
        return left.moved(-signed)
    if opcode == Op.IMul and 0 < number < _SIGN // step:
        return multiple(left, number)
    if opcode == Op.UDiv and number and step % number == 0:
        rest = offset // number
        if step == number:
            return base
        return Lane(base, step // number, rest, 1 if along == 1 else along // number)
    if opcode == Op.UDiv and number and number % step == 0:
        return base // (number // step)
    if opcode == Op.UMod and number and step % number == 0:
        return builder.word(offset % number)
    if opcode == Op.UMod and number and number % step == 0:
        return Lane(base % (number // step), step, offset, along)
    if opcode == Op.ULessThan:
        return base < -(-(number - offset) // step) if number > offset else builder.boolean(False)
    if opcode == Op.ULessThanEqual:
        return _with_number(builder, Op.ULessThan, left, number + 1)
    if opcode == Op.SLessThan and number == 0:
        return base.below(0)
    if opcode == Op.IEqual:
        return base.equals(number // step) if number % step == offset else builder.boolean(False)
    return None


def _of_number(builder: Builder, opcode: int, number: int, right: Lane) -> Id | None:
    if opcode in (Op.IAdd, Op.IMul):
        return _with_number(builder, opcode, right, number)
    if opcode == Op.ISub:
        more, offset = divmod(number - right.offset, right.step)
        return Lane(builder.word(more) - right.base, right.step, offset, -right.along)
    if opcode == Op.ULessThan:
        if number < right.offset:
            return builder.boolean(True)
        return builder.word((number - right.offset) // right.step) < right.base
    if opcode == Op.ULessThanEqual:
        return _of_number(builder, Op.ULessThan, number - 1, right) if number else builder.boolean(True)
    return None
