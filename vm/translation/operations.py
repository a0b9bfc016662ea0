"""The semantics of each operation as Python source.

Two tables by mnemonic, of expressions and of statements; calls, control flow and the few operations that need a
module's tables are in the writers. Operands are numbered in the order of the operation's
fields. Integers are signed and canonical: an expression that may leave its type's range has ``wrap``.

Semantics: ``runtime/src/iree/vm/ops.h`` of IREE, releases 3.0 to 3.13. The functions named here are in numerics.py and
float_numerics.py.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Expression(NamedTuple):
    """A result computed from operands."""

    text: str  # a ``str.format`` template over the operands' texts
    wrap: int = 0  # 32 or 64 if the result has to be wrapped into that many bits, 0 otherwise
    condition: bool = False  # whether the text is a Python truth value, which becomes 1 or 0 as a number
    single: bool = False  # whether the result has to be rounded to f32
    atomic: bool = False  # whether an operand occurs twice in the text, so that it must be a name or literal
    pure: bool = True  # whether it cannot fail and reads only its operands, so that it may move to its use


def _integers() -> dict[str, Expression]:
    table: dict[str, Expression] = {}
    for bits in (32, 64):
        t = f"i{bits}"
        mask = (1 << bits) - 1
        table |= {
            f"add.{t}": Expression("{0} + {1}", wrap=bits),
            f"sub.{t}": Expression("{0} - {1}", wrap=bits),
            f"mul.{t}": Expression("{0} * {1}", wrap=bits),
            f"fma.{t}": Expression("{0} * {1} + {2}", wrap=bits),
            f"not.{t}": Expression("~{0}"),
            f"and.{t}": Expression("{0} & {1}"),
            f"or.{t}": Expression("{0} | {1}"),
            f"xor.{t}": Expression("{0} ^ {1}"),
            f"abs.{t}": Expression("abs({0})", wrap=bits),
            f"ctlz.{t}": Expression(f"{bits} - ({{0}} & {mask}).bit_length()"),
            f"shl.{t}": Expression(f"{{0}} << ({{1}} & {bits - 1})", wrap=bits),
            f"shr.{t}.s": Expression(f"{{0}} >> ({{1}} & {bits - 1})"),
            f"shr.{t}.u": Expression(f"({{0}} & {mask}) >> ({{1}} & {bits - 1})", wrap=bits),
            f"min.{t}.s": Expression("{0} if {0} < {1} else {1}", atomic=True),
            f"max.{t}.s": Expression("{0} if {0} > {1} else {1}", atomic=True),
            f"min.{t}.u": Expression(f"{{0}} if {{0}} & {mask} < {{1}} & {mask} else {{1}}", atomic=True),
            f"max.{t}.u": Expression(f"{{0}} if {{0}} & {mask} > {{1}} & {mask} else {{1}}", atomic=True),
            f"select.{t}": Expression("{1} if {0} else {2}"),
            f"cmp.eq.{t}": Expression("{0} == {1}", condition=True),
            f"cmp.ne.{t}": Expression("{0} != {1}", condition=True),
            f"cmp.lt.{t}.s": Expression("{0} < {1}", condition=True),
            f"cmp.lt.{t}.u": Expression(f"{{0}} & {mask} < {{1}} & {mask}", condition=True),
            f"cmp.nz.{t}": Expression("{0} != 0", condition=True),
        }
        for name in ("div", "rem"):
            for sign in "su":
                table[f"{name}.{t}.{sign}"] = Expression(f"{name}_{sign}({{0}}, {{1}}, {bits})", pure=False)
    return table


def _conversions() -> dict[str, Expression]:
    table = {
        "trunc.i32.i8": Expression("{0} & 255"),
        "trunc.i32.i16": Expression("{0} & 65535"),
        "ext.i8.i32.s": Expression("(({0} & 255) ^ 128) - 128"),
        "ext.i8.i32.u": Expression("{0} & 255"),
        "ext.i16.i32.s": Expression("(({0} & 65535) ^ 32768) - 32768"),
        "ext.i16.i32.u": Expression("{0} & 65535"),
        "trunc.i64.i32": Expression("{0}", wrap=32),
        "ext.i32.i64.s": Expression("{0}"),
        "ext.i32.i64.u": Expression("{0} & 4294967295"),
        "ext.f32.f64": Expression("{0}"),
        "trunc.f64.f32": Expression("{0}", single=True),
        "bitcast.i32.f32": Expression("bitcast_i32_f32({0})"),
        "bitcast.f32.i32": Expression("bitcast_f32_i32({0})"),
        "bitcast.i64.f64": Expression("bitcast_i64_f64({0})"),
        "bitcast.f64.i64": Expression("bitcast_f64_i64({0})"),
    }
    for real in ("f32", "f64"):
        operand = "{0}" if real == "f32" else "round_f32({0})"  # casts of f64 to 32 bits go by way of f32
        table |= {
            f"cast.si32.{real}": Expression("float({0})", single=real == "f32"),
            f"cast.ui32.{real}": Expression("float({0} & 4294967295)", single=real == "f32"),
            f"cast.{real}.si32": Expression(f"round_to_i32({operand})"),
            f"cast.{real}.ui32": Expression(f"round_to_i32({operand})"),
            f"cast.{real}.si64": Expression("round_to_i64({0})"),
        }
    table |= {
        "cast.si64.f32": Expression("integer_to_f32({0})"),
        "cast.ui64.f32": Expression("integer_to_f32({0} & 18446744073709551615)"),
        "cast.si64.f64": Expression("float({0})"),
        "cast.ui64.f64": Expression("float({0} & 18446744073709551615)"),
        "cast.f32.ui64": Expression("round_to_ui64({0})"),
        "cast.f64.ui64": Expression("round_to_i64({0})"),
    }
    return table


def _reals() -> dict[str, Expression]:
    table: dict[str, Expression] = {}
    rounded = ("atan", "cos", "sin", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sqrt", "tanh", "erf")
    for t in ("f32", "f64"):
        single = t == "f32"
        table |= {
            f"add.{t}": Expression("{0} + {1}", single=single),
            f"sub.{t}": Expression("{0} - {1}", single=single),
            f"mul.{t}": Expression("{0} * {1}", single=single),
            f"div.{t}": Expression("div({0}, {1})", single=single),
            f"rem.{t}": Expression("rem({0}, {1})"),
            f"pow.{t}": Expression("power({0}, {1})", single=single),
            f"atan2.{t}": Expression("atan2({0}, {1})", single=single),
            f"fma.{t}": Expression(f"fma_{t}({{0}}, {{1}}, {{2}})"),
            f"rsqrt.{t}": Expression(f"rsqrt_{t}({{0}})"),
            f"floor.{t}": Expression("floor({0})"),
            f"ceil.{t}": Expression("ceil({0})"),
            f"abs.{t}": Expression("abs({0})"),
            f"neg.{t}": Expression("-{0}"),
            f"min.{t}": Expression("{1} if {1} < {0} else {0}", atomic=True),
            f"max.{t}": Expression("{1} if {0} < {1} else {0}", atomic=True),
            f"round.{t}": Expression("round_away({0})"),
            f"round.{t}.even": Expression("round_even({0})"),
            f"select.{t}": Expression("{1} if {0} else {2}"),
            f"cmp.eq.{t}.o": Expression("{0} == {1}", condition=True),
            f"cmp.ne.{t}.o": Expression("{0} != {1}", condition=True),
            f"cmp.lt.{t}.o": Expression("{0} < {1}", condition=True),
            f"cmp.lte.{t}.o": Expression("{0} <= {1}", condition=True),
            f"cmp.eq.{t}.u": Expression("not ({0} < {1} or {0} > {1})", condition=True, atomic=True),
            f"cmp.ne.{t}.u": Expression("{0} != {1}", condition=True),
            f"cmp.lt.{t}.u": Expression("not {0} >= {1}", condition=True),
            f"cmp.lte.{t}.u": Expression("not {0} > {1}", condition=True),
            f"cmp.nan.{t}": Expression("{0} != {0}", condition=True, atomic=True),
        }
        for name in rounded:
            table[f"{name}.{t}"] = Expression(f"{name}({{0}})", single=single)
    return table


def _references() -> dict[str, Expression]:
    table = {
        "cmp.eq.ref": Expression("{0} is {1}", condition=True),
        "cmp.ne.ref": Expression("{0} is not {1}", condition=True),
        "cmp.nz.ref": Expression("{0} is not None", condition=True),
        "list.size": Expression("{0}.size()", pure=False),
        "buffer.alloc": Expression("new_buffer({0}, {1})", pure=False),
        "buffer.clone": Expression("{0}.clone({1}, {2}, {3})", pure=False),
        "buffer.length": Expression("{0}.length", pure=False),
        "buffer.compare": Expression("{0}.compare({1}, {2}, {3}, {4})", pure=False),
        "buffer.hash": Expression("{0}.hash({1}, {2})", pure=False),
    }
    for kind in ("i8.u", "i8.s", "i16.u", "i16.s", "i32", "i64", "f32", "f64"):
        table[f"buffer.load.{kind}"] = Expression(f"{{0}}.load_{kind.replace('.', '_')}({{1}})", pure=False)
    for kind in ("i32", "i64", "f32", "f64"):
        table[f"list.get.{kind}"] = Expression(f"{{0}}.get_{kind}({{1}})", pure=False)
    return table


def _effects() -> dict[str, str]:
    table = {
        "list.reserve": "{0}.reserve({1})",
        "list.resize": "{0}.resize({1})",
        "list.set.ref": "{0}.set_ref({1}, {2})",
        "buffer.copy": "{2}.copy({0}, {1}, {3}, {4})",
    }
    for kind in ("i8", "i16", "i32", "i64", "f32", "f64"):
        table[f"buffer.store.{kind}"] = f"{{0}}.store_{kind}({{1}}, {{2}})"
        table[f"buffer.fill.{kind}"] = f"{{0}}.fill_{kind}({{1}}, {{2}}, {{3}})"
    for kind in ("i32", "i64", "f32", "f64"):
        table[f"list.set.{kind}"] = f"{{0}}.set_{kind}({{1}}, {{2}})"
    return table


EXPRESSIONS: Final[dict[str, Expression]] = _integers() | _conversions() | _reals() | _references()
EFFECTS: Final[dict[str, str]] = _effects()
