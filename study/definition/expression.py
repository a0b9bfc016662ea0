"""Expressions over axes, such as ``n // local_size``: arithmetic, comparisons, conditions and a few functions.

Evaluated by simpleeval, without attributes, subscripts, formatted strings and assignments. Time and memory are bounded:
no operation yields an int of more than ``_MAX_BITS`` bits or a text of more than ``_MAX_TEXT`` characters, and those
whose cost is not bounded by the size of their operands (powers, shifts, rounding, text formatting) check it first.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...status import InvalidArgumentError, shown
from .messages import did_you_mean
from .point import AxisValue

_MAX_LENGTH: Final = 2000
_MAX_BITS: Final = 8192  # an int literal of _MAX_LENGTH digits has 6644
_MAX_POWER_BITS: Final = 4096
_MAX_TEXT: Final = 100_000
# A field width or precision of four digits or more in a conversion of "%".
_WIDE_CONVERSION: Final = re.compile(r"%[^a-zA-Z%]*?\d{4}")


class UndefinedResultError(InvalidArgumentError):
    """The expression divides by zero or has no value otherwise for these names; it may have one for others."""


def cdiv(dividend: int | float, divisor: int | float) -> int | float:
    """The quotient, rounded up: how many groups of ``divisor`` hold ``dividend``."""
    return -(-dividend // divisor)


def _round(number: float, ndigits: int | None = None) -> float:
    # For an int, round() computes 10 ** -ndigits; with more digits than the number has bits the result is 0.
    if isinstance(number, int) and isinstance(ndigits, int) and -ndigits > number.bit_length():
        return 0
    return round(number, ndigits)


FUNCTIONS: Final[Mapping[str, Callable[..., object]]] = {
    "abs": abs,
    "cdiv": cdiv,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": _round,
    "sqrt": math.sqrt,
}
"""The functions that expressions may call, by name."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be evaluated.

    Attributes:
        text: as written, without a leading ``$``.
        names: the names that it needs values for.

    Raises:
        InvalidArgumentError: not an expression, a function that is not in :data:`FUNCTIONS`, or unsupported syntax.
    """

    text: str
    names: frozenset[str] = field(init=False, compare=False)
    _tree: ast.expr = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.text) > _MAX_LENGTH:
            raise InvalidArgumentError(f"an expression has at most {_MAX_LENGTH} characters, this has {len(self.text)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text.strip(), mode="eval").body
            nodes = list(ast.walk(tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = error.msg if isinstance(error, SyntaxError) else error
            raise InvalidArgumentError(f"expected an expression, got {shown(self.text)}: {why}") from None
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        for function in called:
            if not isinstance(function, ast.Name) or function.id not in FUNCTIONS:
                name = ast.unparse(function)
                hint = did_you_mean(name, FUNCTIONS)
                raise InvalidArgumentError(
                    f"{shown(self.text)}: no function is named {shown(name)}{hint}; known are {', '.join(FUNCTIONS)}"
                )
        for node in nodes:
            bad = isinstance(node, (ast.expr, ast.keyword)) and not isinstance(node, _ALLOWED)
            kind = node.value if isinstance(node, ast.Constant) else node
            if bad or (kind is not node and not isinstance(kind, (int, float, str))):
                raise InvalidArgumentError(
                    f"{shown(self.text)}: an expression has arithmetic, comparisons, conditions and functions, "
                    f"no {type(kind).__name__}"
                )
        names = {node.id for node in nodes if isinstance(node, ast.Name) and not any(node is each for each in called)}
        object.__setattr__(self, "names", frozenset(names))
        object.__setattr__(self, "_tree", tree)

    def check_names(self, known: Iterable[str]) -> None:
        """Raises unless all names are known.

        Raises:
            InvalidArgumentError: an unknown name; the message lists the known ones.
        """
        known = list(known)
        for name in sorted(self.names.difference(known)):
            listed = ", ".join(known) or "none"
            raise InvalidArgumentError(
                f"{shown(self.text)}: nothing is named {shown(name)}{did_you_mean(name, known)}; known are {listed}"
            )

    def evaluate(self, values: Mapping[str, object]) -> AxisValue:
        """Its value.

        Args:
            values: of its names, and possibly of others.

        Raises:
            InvalidArgumentError: a name without a value, operands of the wrong type, a text that gets too long, or a
                result that is neither a number, a text nor a truth value.
            UndefinedResultError: division by zero, the root of a negative number, or a number that gets too large.
        """
        self.check_names(values)
        evaluator, refusals = _evaluator()
        evaluator.names = values
        try:
            result: object = evaluator.eval(self.text, previously_parsed=self._tree)
        except (ArithmeticError, ValueError) as error:
            raise UndefinedResultError(f"{self._shown(values)}: {error}") from None
        except refusals as error:
            raise InvalidArgumentError(f"{self._shown(values)}: {error}") from None
        if isinstance(result, complex) or (isinstance(result, float) and math.isinf(result)):
            raise UndefinedResultError(f"{self._shown(values)} is {result}, which is not a finite number")
        if not isinstance(result, (int, float, str)):
            raise InvalidArgumentError(
                f"{self._shown(values)} is {shown(result)}, which is neither a number, a text nor a truth value"
            )
        return result

    def _shown(self, values: Mapping[str, object]) -> str:
        """The expression with the values of its names."""
        given = ", ".join(f"{name} = {shown(values[name])}" for name in sorted(self.names))
        return f"{shown(self.text)} with {given}" if given else shown(self.text)


_ALLOWED: Final = (
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.IfExp,
    ast.keyword,
    ast.Name,
    ast.UnaryOp,
)


@functools.cache
def _operations() -> tuple[Mapping[type[ast.AST], Any], Mapping[str, Any]]:
    """Operators by the type of their node, and functions by name."""
    import simpleeval  # of the study extra

    own = {ast.Pow: _power, ast.LShift: _shift_left, ast.Mult: _multiply, ast.Mod: _remainder}
    operators = {node: _bounded(each) for node, each in (simpleeval.DEFAULT_OPERATORS | own).items()}
    return operators, {name: _bounded(each) for name, each in FUNCTIONS.items()}


def _evaluator() -> tuple[Any, tuple[type[Exception], ...]]:
    """A new evaluator (it keeps its names), and the exceptions that it raises for operands of the wrong type."""
    import simpleeval

    operators, functions = _operations()
    refusals = (TypeError, RecursionError, simpleeval.InvalidExpression)
    return simpleeval.SimpleEval(operators=operators, functions=functions), refusals


def _bounded(operation: Callable[..., object]) -> Callable[..., object]:
    """The operation; a result that is too large is an error, so that no chain of operations grows without a bound."""

    @functools.wraps(operation)
    def call(*operands: object, **named: object) -> object:
        result = operation(*operands, **named)
        if isinstance(result, int) and result.bit_length() > _MAX_BITS:
            raise OverflowError(f"a number of {result.bit_length()} bits is too large, {_MAX_BITS} are possible")
        if isinstance(result, str):
            _check_length(len(result))
        return result

    return call


def _check_length(length: int) -> None:
    if length > _MAX_TEXT:
        raise TypeError(f"a text of {length} characters is too long, {_MAX_TEXT} are possible")


def _power(base: int | float, exponent: int | float) -> object:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and exponent * int(base).bit_length() > _MAX_POWER_BITS:
        raise OverflowError(f"{shown(base)} ** {shown(exponent)} is too large")
    return operator.pow(base, exponent)


def _shift_left(value: int, count: int) -> object:
    if isinstance(count, int) and count > _MAX_BITS:
        raise OverflowError(f"{shown(value)} << {shown(count)} is too large")
    return operator.lshift(value, count)


def _multiply(left: Any, right: Any) -> object:
    for text, count in ((left, right), (right, left)):
        if isinstance(text, str) and isinstance(count, int):
            _check_length(len(text) * count)
    return operator.mul(left, right)


def _remainder(left: Any, right: Any) -> object:
    if isinstance(left, str) and (wide := _WIDE_CONVERSION.search(left)):
        raise TypeError(f"{shown(wide[0])} asks for more than 999 characters")
    return operator.mod(left, right)
