"""Expressions over axes, such as ``n // local_size``: arithmetic, comparisons, conditions and a few functions.

simpleeval evaluates them. What is switched off of it is what a figure has no use for and a study from elsewhere should
not have: attributes, subscripts, formatted strings, and assignments. A power is refused where its result would have
more than 4096 bits.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...status import InvalidArgumentError
from .point import AxisValue
from .suggestion import did_you_mean

__all__ = ["FUNCTIONS", "Expression", "UndefinedResultError"]

_MAX_LENGTH: Final = 2000
_MAX_POWER_BITS: Final = 4096


class UndefinedResultError(InvalidArgumentError):
    """The expression divides by zero, or is no number otherwise, for these values; it may be one for others."""


def cdiv(dividend: int | float, divisor: int | float) -> int | float:
    """The quotient, rounded up: how many groups of ``divisor`` hold ``dividend``."""
    return -(-dividend // divisor)


FUNCTIONS: Final[Mapping[str, Callable[..., object]]] = {
    "abs": abs,
    "cdiv": cdiv,
    "ceil": math.ceil,
    "floor": math.floor,
    "int": int,
    "log2": math.log2,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}
"""What expressions may call, by name."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A text that gives a value, once its names have values.

    Attributes:
        text: as it was written, without a leading ``$``.
        names: those that it needs values for.

    Raises:
        InvalidArgumentError: it is no expression, calls what is no function of :data:`FUNCTIONS`, or does what is
            switched off.
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
        except SyntaxError as error:
            raise InvalidArgumentError(f"expected an expression, got {self.text!r}: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise InvalidArgumentError(f"expected an expression, got {self.text!r}: {error}") from None
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        for function in called:
            if not isinstance(function, ast.Name) or function.id not in FUNCTIONS:
                name = ast.unparse(function)
                hint = did_you_mean(name, FUNCTIONS)
                raise InvalidArgumentError(
                    f"{self.text!r}: no function is named {name!r}{hint}; known are {', '.join(FUNCTIONS)}"
                )
        for node in nodes:
            if isinstance(node, (ast.expr, ast.keyword)) and not isinstance(node, _ALLOWED):
                raise InvalidArgumentError(
                    f"{self.text!r}: an expression has arithmetic, comparisons, conditions and functions, "
                    f"no {type(node).__name__}"
                )
        names = {node.id for node in nodes if isinstance(node, ast.Name) and not any(node is each for each in called)}
        object.__setattr__(self, "names", frozenset(names))
        object.__setattr__(self, "_tree", tree)

    def check_names(self, known: Iterable[str]) -> None:
        """Holds that all names are known.

        Raises:
            InvalidArgumentError: one is not; the message says which, and lists those that are.
        """
        known = list(known)
        for name in sorted(self.names.difference(known)):
            listed = ", ".join(known) or "none"
            raise InvalidArgumentError(
                f"{self.text!r}: nothing is named {name!r}{did_you_mean(name, known)}; known are {listed}"
            )

    def evaluate(self, values: Mapping[str, object]) -> AxisValue:
        """Its value.

        Args:
            values: of its names; more do no harm.

        Raises:
            InvalidArgumentError: a name without a value, an operation that these values have not, or a result that is
                neither a number, a text nor a truth value.
            UndefinedResultError: division by zero, the root of a negative number, or a result too large for a number.
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
            raise UndefinedResultError(f"{self._shown(values)} is {result}, which is no number to go on with")
        if not isinstance(result, (int, float, str)):
            raise InvalidArgumentError(
                f"{self._shown(values)} is {result!r}, which is neither a number, a text nor a truth value"
            )
        return result

    def _shown(self, values: Mapping[str, object]) -> str:
        """The expression and what its names stand for."""
        given = ", ".join(f"{name} = {values[name]!r}" for name in sorted(self.names))
        return f"{self.text!r} with {given}" if given else repr(self.text)


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


def _evaluator() -> tuple[Any, tuple[type[Exception], ...]]:
    """A fresh evaluator, as an evaluator keeps its names, and what it raises for values that do not fit."""
    import simpleeval  # the extra's, and of no use to commands that run no study

    operators = {**simpleeval.DEFAULT_OPERATORS, ast.Pow: _power}
    refusals = (TypeError, RecursionError, simpleeval.InvalidExpression)
    return simpleeval.SimpleEval(operators=operators, functions=FUNCTIONS), refusals


def _power(base: int | float, exponent: int | float) -> object:
    """A power; simpleeval's own guard lets numbers pass that take minutes."""
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and exponent * int(base).bit_length() > _MAX_POWER_BITS:
        raise OverflowError(f"{base} ** {exponent} is too large")
    return operator.pow(base, exponent)
