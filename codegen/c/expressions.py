"""Expressions in C: their text, and operations on numbers.

Signed integers wrap, which C defines only for unsigned integers.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ...vm.translation.expressions import (
    ZERO,
    Attribute,
    Binary,
    Call,
    Cast,
    Comparison,
    Conditional,
    Display,
    Expression,
    Item,
    Keyword,
    Literal,
    Logical,
    Name,
    Not,
    Unary,
    call,
)
from ...vm.translation.operations import Builder, binary, called, compared, select

# The precedence of operators, loosest first: section 6.5 of the C standard.
_CONDITIONAL, _OR, _AND, _EQUALITY, _ORDER, _UNARY, _PRIMARY = 1, 2, 3, 7, 8, 12, 13
_BINARY: Final = {"|": 4, "^": 5, "&": 6, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11}
_ARITHMETIC: Final = frozenset("+-*/")


def c_text(tree: Expression, level: int = 0) -> str:
    """Returns an expression in C, in parentheses if it binds less tightly than ``level``.

    Line feeds mark possible breaks.

    Compilers warn about bitwise operators next to other operators without parentheses, so these get parentheses.
    """
    match tree:
        case Name(name):
            return name
        case Literal(value):
            own, text = _PRIMARY, string_literal(value) if isinstance(value, str) else str(value)
        case Unary(operator, operand):
            own, text = _UNARY, f"{operator}{c_text(operand, _UNARY)}"
        case Cast(type_, operand):
            own, text = _UNARY, f"({type_}){c_text(operand, _UNARY)}"
        case Not(operand):
            own, text = _UNARY, f"!{c_text(operand, _UNARY)}"
        case Binary(operator, left, right):
            own = _BINARY[operator]
            sides = (own, own + 1) if operator in _ARITHMETIC else (_UNARY, _UNARY)
            text = f"{c_text(left, sides[0])} {operator} {c_text(right, sides[1])}"
        case Comparison(operator, left, right):
            own = _EQUALITY if operator in ("==", "!=") else _ORDER
            text = f"{c_text(left, _ORDER + 1)} {operator} {c_text(right, _ORDER + 1)}"
        case Logical(operator, left, right):
            own = _AND if operator == "and" else _OR
            sign = "&&" if operator == "and" else "||"
            is_chain = isinstance(left, Logical) and left.operator == operator
            text = f"{c_text(left, own if is_chain else _EQUALITY)} {sign} {c_text(right, _EQUALITY)}"
        case Conditional(test, yes, no):
            own = _CONDITIONAL
            text = f"{c_text(test, own + 1)} ? {c_text(yes, own + 1)} : {c_text(no, own)}"
        case Call(function, arguments):
            texts = ",\n".join(map(c_text, arguments))
            return f"{c_text(function, _PRIMARY)}({texts})"
        case Display(items):  # an initializer
            separator = ", " if any(isinstance(item, Keyword) for item in items) else ",\n"
            return f"{{{separator.join(map(c_text, items))}}}"
        case Keyword(name, value):  # in an initializer
            return f".{name} = {c_text(value)}"
        case Attribute(value, name):
            return f"{c_text(value, _PRIMARY)}->{name}"
        case Item(value, key):
            return f"{c_text(value, _PRIMARY)}[{c_text(key)}]"
    return f"({text})" if own < level else text


def string_literal(text: str) -> str:
    """Returns a string literal in C. Placeholders for a program's names in templates are kept."""
    shown = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        if char in '"\\?':
            shown.append(f"\\{char}")
        else:
            shown.append(char if 32 <= byte < 127 else f"\\{byte:03o}")
    literal = f'"{"".join(shown)}"'
    return literal.replace("NAME", r"\116AME").replace("STEM", r"\123TEM")


def _integers(bits: int) -> dict[str, Builder]:
    t = f"i{bits}"
    signed, unsigned = partial(Cast, f"int{bits}_t"), partial(Cast, f"uint{bits}_t")

    def wrapping(operator: str, a: Expression, b: Expression) -> Expression:
        return signed(Binary(operator, unsigned(a), unsigned(b)))

    def amount(a: Expression) -> Expression:
        return Binary("&", Cast("uint32_t", a), Name(f"{bits - 1}u"))

    def unsigned_comparison(operator: str, a: Expression, b: Expression) -> Expression:
        return Comparison(operator, unsigned(a), unsigned(b))

    def absolute(a: Expression) -> Expression:
        negative = Binary("-", Name("0u"), unsigned(a))
        return signed(Conditional(Comparison("<", a, ZERO), negative, unsigned(a)))

    return {
        f"add.{t}": partial(wrapping, "+"),
        f"sub.{t}": partial(wrapping, "-"),
        f"mul.{t}": partial(wrapping, "*"),
        f"fma.{t}": lambda a, b, c: signed(Binary("+", Binary("*", unsigned(a), unsigned(b)), unsigned(c))),
        f"not.{t}": partial(Unary, "~"),
        f"and.{t}": binary("&"),
        f"or.{t}": binary("|"),
        f"xor.{t}": binary("^"),
        f"abs.{t}": absolute,
        f"ctlz.{t}": called(f"count_leading_zeros_{t}"),
        f"shl.{t}": lambda a, b: signed(Binary("<<", unsigned(a), amount(b))),
        f"shr.{t}.s": lambda a, b: call(f"shift_right_{t}", a, amount(b)),
        f"shr.{t}.u": lambda a, b: signed(Binary(">>", unsigned(a), amount(b))),
        f"min.{t}.s": lambda a, b: Conditional(Comparison("<", a, b), a, b),
        f"max.{t}.s": lambda a, b: Conditional(Comparison(">", a, b), a, b),
        f"min.{t}.u": lambda a, b: Conditional(unsigned_comparison("<", a, b), a, b),
        f"max.{t}.u": lambda a, b: Conditional(unsigned_comparison(">", a, b), a, b),
        f"select.{t}": select,
        f"cmp.eq.{t}": compared("=="),
        f"cmp.ne.{t}": compared("!="),
        f"cmp.lt.{t}.s": compared("<"),
        f"cmp.lt.{t}.u": partial(unsigned_comparison, "<"),
        f"cmp.nz.{t}": lambda a: Comparison("!=", a, ZERO),
    }


def _cast(*types: str) -> Builder:
    """Builds successive conversions to these types."""

    def build(tree: Expression) -> Expression:
        for type_ in types:
            tree = Cast(type_, tree)
        return tree

    return build


def _low(bits: int) -> Builder:
    return lambda a: Binary("&", a, Name(f"0x{(1 << bits) - 1:X}"))


def _sign_extended(bits: int) -> Builder:
    half = Name(f"0x{1 << (bits - 1):X}")
    return lambda a: Binary("-", Binary("^", _low(bits)(a), half), half)


def _conversions() -> dict[str, Builder]:
    table = {
        "trunc.i32.i8": _low(8),
        "trunc.i32.i16": _low(16),
        "ext.i8.i32.s": _sign_extended(8),
        "ext.i8.i32.u": _low(8),
        "ext.i16.i32.s": _sign_extended(16),
        "ext.i16.i32.u": _low(16),
        "trunc.i64.i32": _cast("int32_t"),
        "ext.i32.i64.s": _cast("int64_t"),
        "ext.i32.i64.u": _cast("uint32_t", "int64_t"),
        "ext.f32.f64": _cast("double"),
        "trunc.f64.f32": _cast("float"),
        "bitcast.i32.f32": called("bits_to_float"),
        "bitcast.f32.i32": called("float_to_bits"),
        "bitcast.i64.f64": called("bits_to_double"),
        "bitcast.f64.i64": called("double_to_bits"),
    }
    for t, real in (("f32", "float"), ("f64", "double")):
        for bits in (32, 64):
            table[f"cast.si{bits}.{t}"] = _cast(real)
            table[f"cast.ui{bits}.{t}"] = _cast(f"uint{bits}_t", real)
    return table


def _reals(t: str) -> dict[str, Builder]:
    end = "f" if t == "f32" else ""
    table: dict[str, Builder] = {
        f"add.{t}": binary("+"),
        f"sub.{t}": binary("-"),
        f"mul.{t}": binary("*"),
        f"div.{t}": binary("/"),
        f"neg.{t}": partial(Unary, "-"),
        f"min.{t}": lambda a, b: Conditional(Comparison("<", b, a), b, a),
        f"max.{t}": lambda a, b: Conditional(Comparison("<", a, b), b, a),
        f"select.{t}": select,
        f"cmp.eq.{t}.o": compared("=="),
        f"cmp.ne.{t}.o": compared("!="),
        f"cmp.lt.{t}.o": compared("<"),
        f"cmp.lte.{t}.o": compared("<="),
        f"cmp.eq.{t}.u": lambda a, b: Not(Logical("or", Comparison("<", a, b), Comparison(">", a, b))),
        f"cmp.ne.{t}.u": compared("!="),
        f"cmp.lt.{t}.u": lambda a, b: Not(Comparison(">=", a, b)),
        f"cmp.lte.{t}.u": lambda a, b: Not(Comparison(">", a, b)),
        f"cmp.nan.{t}": called("isnan"),
    }
    for name in ("fma", "sqrt", "floor", "ceil", "round"):
        table[f"{name}.{t}"] = called(f"{name}{end}")
    return table | {f"abs.{t}": called(f"fabs{end}"), f"round.{t}.even": called(f"nearbyint{end}")}


EXPRESSIONS: Final = _integers(32) | _integers(64) | _conversions() | _reals("f32") | _reals("f64")
"""Builders by mnemonic. Mathematical functions whose last bit differs between C libraries are left out."""

DIVISIONS: Final = {f"{name}.i{bits}.{sign}" for name in ("div", "rem") for bits in (32, 64) for sign in "su"}
"""Operations that fail for a divisor of zero."""
