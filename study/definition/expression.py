"""Expressions over axes, such as ``n // local_size``: arithmetic, comparisons, conditions and a few functions.
Templates are JSON values in which texts that begin with ``$`` are expressions.

simpleeval evaluates them, without attributes, subscripts, formatted strings and assignments. Time and memory are
bounded: no operation yields an int of more than ``_MAX_BITS`` bits or a text of more than ``_MAX_TEXT`` characters.
Powers, shifts, rounding and text formatting, whose cost the size of their operands does not bound, are checked first.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...base.syntax_tree import syntax_tree
from ...status import InvalidArgumentError, shown
from .messages import did_you_mean, located
from .point import AxisValue

_MAX_LENGTH: Final = 2000
_MAX_BITS: Final = 8192  # an int literal of _MAX_LENGTH digits has 6644
_MAX_POWER_BITS: Final = 4096
_MAX_TEXT: Final = 100_000
_MAX_DEPTH: Final = 32
# A field width or precision of four digits or more in a conversion of "%".
_WIDE_CONVERSION: Final = re.compile(r"%[^a-zA-Z%]*?\d{4}")


class UndefinedResultError(InvalidArgumentError):
    """The expression has no value for these names, such as for a division by zero; other values may give a result."""


def cdiv(dividend: int | float, divisor: int | float) -> int | float:
    """Divides and rounds up: the number of groups of ``divisor`` that hold ``dividend``."""
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
    """An expression that can be evaluated; InvalidArgumentError for other syntax and unknown functions."""

    text: str
    names: frozenset[str] = field(init=False, compare=False)
    _tree: ast.expr = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.text) > _MAX_LENGTH:
            raise InvalidArgumentError(f"an expression has at most {_MAX_LENGTH} characters, this has {len(self.text)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = syntax_tree(self.text.strip(), "eval").body
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
        if isinstance(tree, (ast.List, ast.Tuple)):
            form = ", ".join(f'"${ast.unparse(element)}"' for element in tree.elts)
            raise InvalidArgumentError(
                f"{shown(self.text)}: an expression has one value; for a list write an expression for each, [{form}]"
            )
        for node in nodes:
            bad = isinstance(node, (ast.expr, ast.keyword)) and not isinstance(node, _ALLOWED)
            kind = node.value if isinstance(node, ast.Constant) else node
            if bad or (kind is not node and not isinstance(kind, (int, float, str))):
                raise InvalidArgumentError(
                    f"{shown(self.text)}: an expression has arithmetic, comparisons, conditions and functions, "
                    f"no {type(kind).__name__}"
                )
        names = {
            node.id for node in nodes if isinstance(node, ast.Name) and not any(node is element for element in called)
        }
        object.__setattr__(self, "names", frozenset(names))
        object.__setattr__(self, "_tree", tree)

    def check_names(self, known: Iterable[str]) -> None:
        """Raises InvalidArgumentError unless all names are known; the message lists the known names."""
        known = list(known)
        for name in sorted(self.names.difference(known)):
            listed = ", ".join(known) or "none"
            raise InvalidArgumentError(
                f"{shown(self.text)}: nothing is named {shown(name)}{did_you_mean(name, known)}; known are {listed}"
            )

    def evaluate(self, values: Mapping[str, object]) -> AxisValue:
        """Returns the value. UndefinedResultError: a division by zero, the root of a negative number, or a number that
        is too large. InvalidArgumentError: wrong operands, a long text, or another type of result.
        """
        self.check_names(values)
        import simpleeval  # of the study extra

        operators, functions = _operations()
        evaluator: Any = simpleeval.SimpleEval(operators=operators, functions=functions, names=values)
        try:
            result: object = evaluator.eval(self.text, previously_parsed=self._tree)
        except (ArithmeticError, ValueError) as error:
            raise UndefinedResultError(f"{self._shown(values)}: {error}") from None
        except (TypeError, RecursionError, simpleeval.InvalidExpression) as error:
            raise InvalidArgumentError(f"{self._shown(values)}: {error}") from None
        if isinstance(result, complex) or (isinstance(result, float) and math.isinf(result)):
            raise UndefinedResultError(f"{self._shown(values)} is {result}, which is not a finite number")
        if not isinstance(result, (int, float, str)):
            raise InvalidArgumentError(
                f"{self._shown(values)} is {shown(result)}, which is neither a number, a text nor a truth value"
            )
        return result

    def _shown(self, values: Mapping[str, object]) -> str:
        bound = ", ".join(f"{name} = {shown(values[name])}" for name in sorted(self.names))
        return f"{shown(self.text)} with {bound}" if bound else shown(self.text)


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
    """Returns operators by the type of their node, and functions by name."""
    import simpleeval

    own = {ast.Pow: _power, ast.LShift: _shift_left, ast.Mult: _multiply, ast.Mod: _remainder}
    operators = {node: _bounded(operation) for node, operation in (simpleeval.DEFAULT_OPERATORS | own).items()}
    return operators, {name: _bounded(operation) for name, operation in FUNCTIONS.items()}


def _bounded(operation: Callable[..., object]) -> Callable[..., object]:
    """Makes an operation raise for a result that is too large, so that no chain of operations grows without bound."""

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


class Template:
    """A value with expressions in it, and their paths within it, such as ``[1].shape[0]``, where errors are located."""

    def __init__(self, value: object) -> None:
        expressions: list[tuple[str, Expression]] = []

        def compiled(leaf: object, path: str) -> object:
            if not isinstance(leaf, str) or not leaf.startswith("$"):
                return leaf
            expressions.append((path, Expression(leaf[1:])))
            return expressions[-1][1]

        self._compiled = _map_leaves(value, compiled)
        self.expressions: tuple[tuple[str, Expression], ...] = tuple(expressions)
        self.names: frozenset[str] = frozenset(name for _, expression in expressions for name in expression.names)

    def fill(self, values: Mapping[str, object]) -> object:
        """Replaces each expression by its value; an error is located at the expression's path."""
        return _map_leaves(
            self._compiled, lambda leaf, _: leaf.evaluate(values) if isinstance(leaf, Expression) else leaf
        )


def as_json_value(value: object) -> object:
    """Copies a value as JSON values: dicts with text keys, lists, texts, ints, finite floats, truth values and None."""
    return _map_leaves(value, _json_leaf)


def _json_leaf(value: object, _: str) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InvalidArgumentError(
        f"expected a finite number, a text, true, false, a list or a table, got {shown(value)} ({type(value).__name__})"
    )


def _map_leaves(value: object, change: Callable[[object, str], object], path: str = "", depth: int = 0) -> object:
    """Returns a copy with each leaf replaced by ``change(leaf, path)``; errors are located at the path."""
    if depth > _MAX_DEPTH:
        raise InvalidArgumentError(f"expected at most {_MAX_DEPTH} lists and tables within each other", location=path)
    if isinstance(value, Mapping):
        copy = {}
        for key, item in value.items():
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise InvalidArgumentError(
                    f"expected a table with texts for keys, got the key {shown(key)}", location=path
                )
            copy[str(key)] = _map_leaves(item, change, f"{path}.{key}" if path else str(key), depth + 1)
        return copy
    if isinstance(value, (list, tuple)):
        return [_map_leaves(item, change, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
    with located(path):
        return change(value, path)
