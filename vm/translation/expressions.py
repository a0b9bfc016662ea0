"""Expressions of generated code as trees, and their text in Python.

The nodes serve all languages that code is generated in; ``codegen/c/expressions.py`` prints them in C. A tree is
printed once, in its statement. ``python(level)`` adds parentheses if the tree binds less tightly than ``level``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, cast

from ...base.lazy_dataclass import dataclass
from ..bytecode.decoder import Instruction
from ..types.numerics import bitcast_f64_i64

# Precedences of Python's operators, lowest first: section 6.17 of the language reference.
_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, _UNARY, _PRIMARY = 1, 2, 3, 4, 5, 12, 13
_BINARY: Final = {"|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "//": 11, "%": 11}


class Name(NamedTuple):
    """A variable, a function, or a constant as written in the language."""

    name: str

    def python(self, level: int = 0) -> str:
        return self[0]


class Literal(NamedTuple):
    """A constant: a number, a string, bytes or ``None``."""

    value: int | float | str | bytes | None

    def python(self, level: int = 0) -> str:
        text = repr(self[0])
        if text[-1] == "'" and '"' not in text:
            return text.replace("'", '"')
        return f"({text})" if level >= _UNARY and text[0] == "-" else text


class Unary(NamedTuple):
    """An arithmetic operator in front of its operand: ``-`` or ``~``."""

    operator: str
    operand: Expression

    def python(self, level: int = 0) -> str:
        text = f"{self.operator}{self.operand.python(_UNARY)}"
        return f"({text})" if level > _UNARY else text


class Binary(NamedTuple):
    """An arithmetic or bitwise operator between its operands."""

    operator: str
    left: Expression
    right: Expression

    def python(self, level: int = 0) -> str:
        operator, left, right = self
        own = _BINARY[operator]
        text = f"{left.python(own)} {operator} {right.python(own + 1)}"
        return f"({text})" if own < level else text


class Comparison(NamedTuple):
    """A comparison, as Python spells it: ``==``, ``is not``, ``<``."""

    operator: str
    left: Expression
    right: Expression

    def python(self, level: int = 0) -> str:
        operator, left, right = self
        text = f"{left.python(_COMPARISON + 1)} {operator} {right.python(_COMPARISON + 1)}"
        return f"({text})" if level > _COMPARISON else text


class Logical(NamedTuple):
    """``and`` or ``or`` of two conditions."""

    operator: str
    left: Expression
    right: Expression

    def python(self, level: int = 0) -> str:
        own = _AND if self.operator == "and" else _OR
        # Only repeated uses of the same operator are readable without parentheses.
        inner = own if isinstance(self.left, Logical) and self.left.operator == self.operator else _NOT
        text = f"{self.left.python(inner)} {self.operator} {self.right.python(_NOT)}"
        return f"({text})" if own < level else text


class Not(NamedTuple):
    """The negation of a condition."""

    operand: Expression

    def python(self, level: int = 0) -> str:
        text = f"not {self.operand.python(_NOT)}"
        return f"({text})" if level > _NOT else text


class Conditional(NamedTuple):
    """A choice between two values by a condition."""

    test: Expression
    yes: Expression
    no: Expression

    def python(self, level: int = 0) -> str:
        own = _CONDITIONAL
        text = f"{self.yes.python(own + 1)} if {self.test.python(own + 1)} else {self.no.python(own)}"
        return f"({text})" if own < level else text


class Call(NamedTuple):
    """A call."""

    function: Expression
    arguments: tuple[Expression, ...] = ()

    def python(self, level: int = 0) -> str:
        function, arguments = self
        return f"{function.python(_PRIMARY)}({', '.join([item.python() for item in arguments])})"


class Keyword(NamedTuple):
    """An argument that is passed by name."""

    name: str
    value: Expression

    def python(self, level: int = 0) -> str:
        return f"{self.name}={self.value.python()}"


class Attribute(NamedTuple):
    """An attribute of a value."""

    value: Expression
    name: str

    def python(self, level: int = 0) -> str:
        return f"{self.value.python(_PRIMARY)}.{self.name}"


class Item(NamedTuple):
    """An element of a value."""

    value: Expression
    key: Expression

    def python(self, level: int = 0) -> str:
        return f"{self.value.python(_PRIMARY)}[{self.key.python()}]"


class Display(NamedTuple):
    """A tuple or a list."""

    items: tuple[Expression, ...] = ()
    is_list: bool = False

    def python(self, level: int = 0) -> str:
        texts = ", ".join([item.python() for item in self.items])
        if self.is_list:
            return f"[{texts}]"
        return f"({texts},)" if len(self.items) == 1 else f"({texts})"


class Cast(NamedTuple):
    """A conversion to a type; prints nothing in Python."""

    type: str
    operand: Expression

    def python(self, level: int = 0) -> str:
        raise AssertionError("Python has no casts")


Expression: TypeAlias = (
    Name
    | Literal
    | Unary
    | Binary
    | Comparison
    | Logical
    | Not
    | Conditional
    | Call
    | Keyword
    | Attribute
    | Item
    | Display
    | Cast
)
CONDITIONS: Final = (Comparison, Logical, Not)
"""Nodes whose value is a truth value: 1 or 0 as a number."""

NONE: Final = Literal(None)
ZERO: Final = Literal(0)
ONE: Final = Literal(1)


def call(function: str, *arguments: Expression) -> Call:
    """Builds a call of a function by its name."""
    return Call(Name(function), arguments)


def method(target: Expression, name: str, *arguments: Expression) -> Call:
    """Builds a call of a method."""
    return Call(Attribute(target, name), arguments)


def listed(items: Iterable[Expression]) -> Display:
    """Builds a list."""
    return Display(tuple(items), is_list=True)


def is_atom(tree: Expression) -> bool:
    """Whether an expression is a name or a literal, which may be repeated at no cost."""
    return isinstance(tree, Name | Literal)


def negated(test: Expression) -> Expression:
    """Builds the negation of a condition."""
    return test.operand if isinstance(test, Not) else Not(test)


def wrapped(tree: Expression, bits: int) -> Expression:
    """Builds an integer wrapped to a signed integer of ``bits`` bits."""
    half = 1 << (bits - 1)
    return Binary("-", Binary("&", Binary("+", tree, Literal(half)), Literal(2 * half - 1)), Literal(half))


def renamed(tree: Expression, old: str, new: str) -> Expression:
    """Returns an expression with a variable renamed."""

    def copied(part: Any) -> Any:
        if isinstance(part, Name):
            return Name(new) if part.name == old else part
        if isinstance(part, _NODES):
            return type(part)(*map(copied, part))
        return tuple(map(copied, part)) if isinstance(part, tuple) else part

    return cast("Expression", copied(tree))


_NODES: Final = (
    *(Name, Literal, Unary, Binary, Comparison, Logical, Not, Conditional, Call, Keyword, Attribute, Item, Display),
    Cast,
)


def constant_of(instruction: Instruction) -> Expression:
    """Returns the value of a constant operation."""
    mnemonic = instruction.operation.mnemonic
    if mnemonic.endswith(".zero"):
        return Literal(0.0) if ".f" in mnemonic else ZERO
    value = cast("int | float", instruction.values[0])
    if math.isnan(value):
        return call("bitcast_i64_f64", Literal(bitcast_f64_i64(value)))
    if math.isinf(value):
        return Name("inf") if value > 0 else Unary("-", Name("inf"))
    return Literal(value)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a variant."""

    text: str  # the text of a function ``make(…)`` that returns ``f(frame, a)``
    names: tuple[str, ...]  # the parameters of ``make``, bound by each context (``im3`` import 3, ``ro1`` rodata, …)
    pcs: tuple[int, ...]  # the pc of each line of the text, or -1


class SourceWriter:
    """Lines of Python with their pcs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pcs: list[int] = []
        self.indent: int = 2
        self.pc = -1  # the pc of the current instruction
        self._names: dict[str, None] = {}

    def line(self, text: str) -> None:
        """Adds a line."""
        self.lines.append("    " * self.indent + text)
        self.pcs.append(self.pc)

    @contextmanager
    def suite(self, header: str) -> Iterator[None]:
        """Adds a header and indents the lines written inside; an empty suite becomes ``pass``."""
        self.line(header)
        count = len(self.lines)
        self.indent += 1
        yield
        if len(self.lines) == count:
            self.line("pass")
        self.indent -= 1

    def bound(self, name: str) -> Name:
        """Records a name that each context binds, and returns it."""
        self._names[name] = None
        return Name(name)

    def ask_tier(self, entry: int, count: Expression, registers: Expression) -> None:
        """Continues the call in machine code from an entry on, if it is ready."""
        asked = Call(self.bound("tier"), (Name("frame"), Literal(entry), count, registers))
        self.line(f"t = {asked.python()}")
        with self.suite("if t is not COLD:"):
            self.line("return t")

    def source(self, head: SourceWriter) -> Source:
        """Returns the whole function, with the lines of ``head`` first."""
        names = tuple(head._names | self._names)
        start = (f"def make({', '.join(names)}):", "    def f(frame, a):")
        text = "\n".join((*start, *head.lines, *self.lines, "    return f", ""))
        return Source(text, names, (-1, -1, *head.pcs, *self.pcs, -1))
