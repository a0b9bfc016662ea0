"""The semantics of each operation, as expressions of Python over its operands.

Two tables by mnemonic: operations with a result, and operations with an effect. Calls, control flow and the few
operations that need a module's tables are in the writers. Operands come in the order of the operation's fields.
Integers are signed and canonical: the unwrapped result of an operation with ``wrap`` may be outside of its type's
range.

Semantics: ``runtime/src/iree/vm/ops.h`` of IREE, releases 3.0 to 3.13. The functions named here are in numerics.py and
float_numerics.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from .expressions import (
    NONE,
    ZERO,
    Attribute,
    Binary,
    Call,
    Comparison,
    Conditional,
    Expression,
    Literal,
    Logical,
    Name,
    Not,
    Unary,
    call,
    method,
)

Builder: TypeAlias = Callable[..., Expression]
"""Builds the expression of a result from those of the operands."""


class Formula(NamedTuple):
    """A result that is computed from operands."""

    build: Builder
    wrap: int = 0  # 32 or 64 if the result has to be wrapped to that width, otherwise 0
    single: bool = False  # whether the result has to be rounded to f32
    atomic: bool = False  # whether an operand occurs twice, so that it must be a name or literal
    pure: bool = True  # whether it cannot fail and reads only its operands, so that it may be moved to its use


def binary(operator: str) -> Builder:
    """Builds a binary operation."""
    return partial(Binary, operator)


def compared(operator: str) -> Builder:
    """Builds a comparison."""
    return partial(Comparison, operator)


def called(function: str) -> Builder:
    """Builds a call of a function with the operands."""
    name = Name(function)
    return lambda *operands: Call(name, operands)


def _method(name: str) -> Builder:
    return lambda target, *arguments: method(target, name, *arguments)


def same(operand: Expression) -> Expression:
    """Returns the operand unchanged."""
    return operand


def masked(mask: int) -> Builder:
    """Builds the operand's bits under a mask."""
    bits = Literal(mask)
    return lambda a: Binary("&", a, bits)


def select(test: Expression, yes: Expression, no: Expression) -> Expression:
    """Builds a choice between two values."""
    return Conditional(test, yes, no)


def lesser(a: Expression, b: Expression) -> Expression:
    """Builds the smaller operand, or the second operand if neither is smaller."""
    return Conditional(Comparison("<", a, b), a, b)


def greater(a: Expression, b: Expression) -> Expression:
    """Builds the larger operand, or the second operand if neither is larger."""
    return Conditional(Comparison(">", a, b), a, b)


def _integers(bits: int) -> dict[str, Formula]:
    t = f"i{bits}"
    unsigned, amount = masked((1 << bits) - 1), masked(bits - 1)

    def unsigned_comparison(operator: str, a: Expression, b: Expression) -> Expression:
        return Comparison(operator, unsigned(a), unsigned(b))

    table = {
        f"add.{t}": Formula(binary("+"), wrap=bits),
        f"sub.{t}": Formula(binary("-"), wrap=bits),
        f"mul.{t}": Formula(binary("*"), wrap=bits),
        f"fma.{t}": Formula(lambda a, b, c: Binary("+", Binary("*", a, b), c), wrap=bits),
        f"not.{t}": Formula(partial(Unary, "~")),
        f"and.{t}": Formula(binary("&")),
        f"or.{t}": Formula(binary("|")),
        f"xor.{t}": Formula(binary("^")),
        f"abs.{t}": Formula(called("abs"), wrap=bits),
        f"ctlz.{t}": Formula(lambda a: Binary("-", Literal(bits), method(unsigned(a), "bit_length"))),
        f"shl.{t}": Formula(lambda a, b: Binary("<<", a, amount(b)), wrap=bits),
        f"shr.{t}.s": Formula(lambda a, b: Binary(">>", a, amount(b))),
        f"shr.{t}.u": Formula(lambda a, b: Binary(">>", unsigned(a), amount(b)), wrap=bits),
        f"min.{t}.s": Formula(lesser, atomic=True),
        f"max.{t}.s": Formula(greater, atomic=True),
        f"min.{t}.u": Formula(lambda a, b: Conditional(unsigned_comparison("<", a, b), a, b), atomic=True),
        f"max.{t}.u": Formula(lambda a, b: Conditional(unsigned_comparison(">", a, b), a, b), atomic=True),
        f"select.{t}": Formula(select),
        f"cmp.eq.{t}": Formula(compared("==")),
        f"cmp.ne.{t}": Formula(compared("!=")),
        f"cmp.lt.{t}.s": Formula(compared("<")),
        f"cmp.lt.{t}.u": Formula(partial(unsigned_comparison, "<")),
        f"cmp.nz.{t}": Formula(lambda a: Comparison("!=", a, ZERO)),
    }
    for name in ("div", "rem"):
        for sign in "su":
            table[f"{name}.{t}.{sign}"] = Formula(_division(f"{name}_{sign}", bits), pure=False)
    return table


def _division(function: str, bits: int) -> Builder:
    name, width = Name(function), Literal(bits)
    return lambda a, b: Call(name, (a, b, width))


def _signed(bits: int) -> Builder:
    """Builds the sign extension of the low bits."""
    half, low = Literal(1 << (bits - 1)), masked((1 << bits) - 1)
    return lambda a: Binary("-", Binary("^", low(a), half), half)


def _conversions() -> dict[str, Formula]:
    low_32, low_64 = masked((1 << 32) - 1), masked((1 << 64) - 1)
    table = {
        "trunc.i32.i8": Formula(masked(255)),
        "trunc.i32.i16": Formula(masked(65535)),
        "ext.i8.i32.s": Formula(_signed(8)),
        "ext.i8.i32.u": Formula(masked(255)),
        "ext.i16.i32.s": Formula(_signed(16)),
        "ext.i16.i32.u": Formula(masked(65535)),
        "trunc.i64.i32": Formula(same, wrap=32),
        "ext.i32.i64.s": Formula(same),
        "ext.i32.i64.u": Formula(low_32),
        "ext.f32.f64": Formula(same),
        "trunc.f64.f32": Formula(same, single=True),
        "cast.si64.f32": Formula(called("integer_to_f32")),
        "cast.ui64.f32": Formula(lambda a: call("integer_to_f32", low_64(a))),
        "cast.si64.f64": Formula(called("float")),
        "cast.ui64.f64": Formula(lambda a: call("float", low_64(a))),
        "cast.f32.si64": Formula(called("round_to_i64")),
        "cast.f64.si64": Formula(called("round_to_i64")),
        "cast.f32.ui64": Formula(called("round_to_ui64")),
        "cast.f64.ui64": Formula(called("round_to_i64")),
    }
    for kind in ("i32_f32", "f32_i32", "i64_f64", "f64_i64"):
        table[f"bitcast.{kind.replace('_', '.')}"] = Formula(called(f"bitcast_{kind}"))
    for real in ("f32", "f64"):
        single = real == "f32"
        table[f"cast.si32.{real}"] = Formula(called("float"), single=single)
        table[f"cast.ui32.{real}"] = Formula(lambda a: call("float", low_32(a)), single=single)
    for sign in "su":
        table[f"cast.f32.{sign}i32"] = Formula(called("round_to_i32"))
        # Casts of f64 to 32 bits pass through f32.
        table[f"cast.f64.{sign}i32"] = Formula(lambda a: call("round_to_i32", call("round_f32", a)))
    return table


def _reals(t: str) -> dict[str, Formula]:
    single = t == "f32"
    table = {
        f"add.{t}": Formula(binary("+"), single=single),
        f"sub.{t}": Formula(binary("-"), single=single),
        f"mul.{t}": Formula(binary("*"), single=single),
        f"div.{t}": Formula(called("div"), single=single),
        f"rem.{t}": Formula(called("rem")),
        f"pow.{t}": Formula(called("power"), single=single),
        f"atan2.{t}": Formula(called("atan2"), single=single),
        f"fma.{t}": Formula(called(f"fma_{t}")),
        f"rsqrt.{t}": Formula(called(f"rsqrt_{t}")),
        f"floor.{t}": Formula(called("floor")),
        f"ceil.{t}": Formula(called("ceil")),
        f"abs.{t}": Formula(called("abs")),
        f"neg.{t}": Formula(partial(Unary, "-")),
        f"min.{t}": Formula(lambda a, b: Conditional(Comparison("<", b, a), b, a), atomic=True),
        f"max.{t}": Formula(lambda a, b: Conditional(Comparison("<", a, b), b, a), atomic=True),
        f"round.{t}": Formula(called("round_away")),
        f"round.{t}.even": Formula(called("round_even")),
        f"select.{t}": Formula(select),
        f"cmp.eq.{t}.o": Formula(compared("==")),
        f"cmp.ne.{t}.o": Formula(compared("!=")),
        f"cmp.lt.{t}.o": Formula(compared("<")),
        f"cmp.lte.{t}.o": Formula(compared("<=")),
        f"cmp.eq.{t}.u": Formula(
            lambda a, b: Not(Logical("or", Comparison("<", a, b), Comparison(">", a, b))), atomic=True
        ),
        f"cmp.ne.{t}.u": Formula(compared("!=")),
        f"cmp.lt.{t}.u": Formula(lambda a, b: Not(Comparison(">=", a, b))),
        f"cmp.lte.{t}.u": Formula(lambda a, b: Not(Comparison(">", a, b))),
        f"cmp.nan.{t}": Formula(lambda a: Comparison("!=", a, a), atomic=True),
    }
    for name in ("atan", "cos", "sin", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sqrt", "tanh", "erf"):
        table[f"{name}.{t}"] = Formula(called(name), single=single)
    return table


def _references() -> dict[str, Formula]:
    table = {
        "cmp.eq.ref": Formula(compared("is")),
        "cmp.ne.ref": Formula(compared("is not")),
        "cmp.nz.ref": Formula(lambda a: Comparison("is not", a, NONE)),
        "list.size": Formula(_method("size"), pure=False),
        "buffer.alloc": Formula(called("new_buffer"), pure=False),
        "buffer.length": Formula(lambda a: Attribute(a, "length"), pure=False),
    }
    for name in ("clone", "compare", "hash"):
        table[f"buffer.{name}"] = Formula(_method(name), pure=False)
    for kind in ("i8.u", "i8.s", "i16.u", "i16.s", "i32", "i64", "f32", "f64"):
        table[f"buffer.load.{kind}"] = Formula(_method(f"load_{kind.replace('.', '_')}"), pure=False)
    for kind in ("i32", "i64", "f32", "f64"):
        table[f"list.get.{kind}"] = Formula(_method(f"get_{kind}"), pure=False)
    return table


def _effects() -> dict[str, Builder]:
    table = {
        "list.reserve": _method("reserve"),
        "list.resize": _method("resize"),
        "list.set.ref": _method("set_ref"),
        "buffer.copy": lambda source, start, target, at, length: method(target, "copy", source, start, at, length),
    }
    for kind in ("i8", "i16", "i32", "i64", "f32", "f64"):
        table[f"buffer.store.{kind}"] = _method(f"store_{kind}")
        table[f"buffer.fill.{kind}"] = _method(f"fill_{kind}")
    for kind in ("i32", "i64", "f32", "f64"):
        table[f"list.set.{kind}"] = _method(f"set_{kind}")
    return table


OPERATIONS: Final[dict[str, Formula]] = (
    _integers(32) | _integers(64) | _conversions() | _reals("f32") | _reals("f64") | _references()
)
EFFECTS: Final[dict[str, Builder]] = _effects()
