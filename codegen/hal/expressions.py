"""Operations as Python expressions, wrapped only if their values may leave their type's range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...vm.translation.expressions import (
    CONDITIONS,
    NONE,
    Binary,
    Comparison,
    Expression,
    Literal,
    Logical,
    call,
    negated,
)
from ...vm.translation.operations import OPERATIONS, Builder, binary, called, same
from ...vm.translation.ranges import FULL, Range, fits, result_range
from ...vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64
from ..program.ir import Constant, Instruction, Value, Variable

_OPPOSITES = {"==": "!=", "!=": "==", "is": "is not", "is not": "is"}
_INTEGER_OPPOSITES = {**_OPPOSITES, "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Hexadecimal(Literal):
    """A number in hexadecimal."""

    def python(self, level: int = 0) -> str:
        return f"0x{int(self.value or 0):X}"


@dataclass(slots=True)
class Term:
    """An expression, and known facts about its value.

    Attributes:
        bounds: the smallest and largest value of an integer.
        is_float: whether the expression compares floats. Because of NaN, the negation of a float comparison is not a
            comparison.
        truth: a simpler condition that holds if the number is not 0.
    """

    tree: Expression
    bounds: Range | None = None
    is_float: bool = False
    truth: Expression | None = None

    @property
    def is_condition(self) -> bool:
        """Whether it is a truth value, representing 1 or 0."""
        return isinstance(self.tree, CONDITIONS)

    def number(self) -> Expression:
        """Returns it as a number."""
        return call("int", self.tree) if self.is_condition else self.tree

    def opposite(self) -> Expression:
        """Returns the opposite condition, as a comparison if possible."""
        tree = self.tree
        opposites = _OPPOSITES if self.is_float else _INTEGER_OPPOSITES
        if isinstance(tree, Comparison) and tree.operator in opposites:
            return Comparison(opposites[tree.operator], tree.left, tree.right)
        return negated(tree)


def constant(value: Constant) -> Term:
    """Returns a constant."""
    number = value.number
    if value.kind == "r":
        return Term(NONE)
    if not isinstance(number, float):
        return Term(Literal(number), (number, number))
    if math.isnan(number):
        if value.kind == "f":
            return Term(call("bitcast_i32_f32", Literal(bitcast_f32_i32(number))))
        return Term(call("bitcast_i64_f64", Literal(bitcast_f64_i64(number))))
    return Term(call("float", Literal(repr(number))) if math.isinf(number) else Literal(number))


def expression(instruction: Instruction, operands: Sequence[Term], counters: Mapping[Variable, Value]) -> Term:
    """Returns an operation of the VM's tables; ``counters`` are variables that a loop increments below a bound."""
    mnemonic = instruction.operation
    kind = instruction.results[0].kind
    operation = OPERATIONS[mnemonic]
    bounds = [operand.bounds or FULL["i"] for operand in operands]
    exact: Range | None = None
    if _is_integer(mnemonic):
        logical = _logical(mnemonic, instruction, operands)
        if logical is not None:
            return logical
        exact = _range(mnemonic, bounds)
    build = _simpler(mnemonic, operands, bounds) or operation.build
    if mnemonic.startswith(("cmp.eq.i", "cmp.ne.i")) and isinstance(instruction.operands[0], Constant):
        operands = operands[::-1]
    tree = build(*[operand.number() for operand in operands])
    if isinstance(tree, CONDITIONS):
        return Term(tree, (0, 1), is_float=".f" in mnemonic)
    if kind in "fF":
        return Term(call("round_f32", tree) if operation.single else tree)
    if operation.wrap and not (exact is not None and fits(exact, operation.wrap)):
        if _counts(instruction, counters):
            return Term(tree, (0, FULL[kind][1]))
        return Term(call(f"wrap{operation.wrap}", tree), FULL[kind])
    return Term(tree, exact or FULL.get(kind))


def _range(mnemonic: str, bounds: Sequence[Range]) -> Range | None:
    """Returns the bounds of a result, if they are narrower than its type's range."""
    name, _, kind = mnemonic.partition(".")
    if name in ("div", "rem") and kind.endswith(".u") and bounds[1][0] == bounds[1][1] > 1:
        highest, divisor = (1 << int(kind[1:3])) - 1, bounds[1][0]
        return 0, highest // divisor if name == "div" else divisor - 1
    return result_range(mnemonic, bounds)


def _is_integer(mnemonic: str) -> bool:
    return ".f" not in mnemonic and ".ref" not in mnemonic


def _counts(instruction: Instruction, counters: Mapping[Variable, Value]) -> bool:
    first = instruction.operands[0]
    return instruction.results[0] in counters and first is instruction.results[0]


def _logical(mnemonic: str, instruction: Instruction, operands: Sequence[Term]) -> Term | None:
    """Returns a bitwise operation on truth values as ``and``, ``or`` or ``not``; ``None`` for other operations."""
    truths = [operand.is_condition for operand in operands]
    if mnemonic in ("and.i32", "or.i32") and all(truths):
        return Term(Logical(mnemonic.partition(".")[0], operands[0].tree, operands[1].tree), (0, 1))
    if mnemonic == "cmp.nz.i32" and truths[0]:
        return operands[0]
    if mnemonic.startswith("cmp.nz.") and operands[0].truth is not None:
        return Term(operands[0].truth, (0, 1))
    if mnemonic not in ("and.i32", "xor.i32"):
        return None
    for this, other in ((0, 1), (1, 0)):
        value = instruction.operands[other]
        if truths[this] and isinstance(value, Constant):
            if mnemonic == "and.i32" and int(value.number) & 1:
                return operands[this]
            if mnemonic == "xor.i32" and value.number == 1:
                return Term(operands[this].opposite(), (0, 1), operands[this].is_float)
    return None


def _simpler(mnemonic: str, operands: Sequence[Term], bounds: Sequence[Range]) -> Builder | None:
    """Returns a simpler form of an operation for operands within bounds; ``None`` if there is none."""
    if mnemonic == "ext.i32.i64.u":
        return same if bounds[0][0] >= 0 else None
    name, *kinds = mnemonic.split(".")
    if not _is_integer(mnemonic) or not {"i32", "i64"} & set(kinds):
        return None
    bits = 32 if "i32" in kinds else 64
    is_unsigned = kinds[-1] == "u"
    first, second = bounds[0], bounds[-1]

    def unsigned(side: int, tree: Expression) -> Expression:
        return tree if bounds[side][0] >= 0 else Binary("&", tree, Hexadecimal((1 << bits) - 1))

    def with_unsigned(operator: str, a: Expression, b: Expression) -> Expression:
        return Binary(operator, unsigned(0, a), b)

    if name == "cmp" and kinds[0] == "lt":

        def less(a: Expression, b: Expression) -> Expression:
            left, right = (unsigned(0, a), unsigned(1, b)) if is_unsigned else (a, b)
            return Comparison(">", right, left) if isinstance(a, Literal) else Comparison("<", left, right)

        return less
    if name in ("div", "rem") and second[0] > 0:
        operator = "//" if name == "div" else "%"
        if is_unsigned and (first[0] >= 0 or second[0] > 1):
            return partial(with_unsigned, operator)
        return binary(operator) if first[0] >= 0 else None
    if name in ("shl", "shr") and second[0] >= 0 and second[1] < bits:
        if name == "shl":
            return binary("<<")
        return partial(with_unsigned, ">>") if is_unsigned else binary(">>")
    if name in ("min", "max") and (not is_unsigned or all(low >= 0 for low, _ in bounds)):
        return called(name)
    return same if name == "abs" and first[0] >= 0 else None
