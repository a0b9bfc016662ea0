"""The semantics of each operation as LLVM IR: the counterpart of ``translation/operations.py``.

A template's operands are numbered in the order of the operation's fields; ``{r}`` is the result, and local names begin
with ``%{n}``. If an operation cannot continue, a *guard* sets ``%{n}bad``: the machine code then exits before the
instruction, and the translation to Python raises the error. So there are no error messages here.

A reference is the ordinal of a descriptor of four words: address, bytes that may be loaded, bytes that may be stored,
and a bit for each reference type that the program checks; bit 63 is set for buffers. Null is ordinal 0, without bytes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

IS_BUFFER: Final = 63
# Symbols by the C function's name. LLVM must not see that name, since it folds calls of functions that it knows.
_UNARY: Final = ("atan", "cos", "sin", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "tanh", "erf")
_BINARY: Final = ("atan2", "pow", "remainder")
LIBRARY: Final = {name: f"pumice_{name}" for name in (*_UNARY, *_BINARY)}


class Template(NamedTuple):
    """The lines of IR of an operation."""

    text: str
    guard: str = ""  # the lines before it, which define ``%{n}bad``
    is_bit: bool = False  # whether the result is an i1 that represents an i32
    takes_bit: bool = False  # whether operand 0 is a condition, given as an i1
    cost: int = 1  # the rough cost in additions


def _integers() -> dict[str, Template]:
    table: dict[str, Template] = {}
    for bits in (32, 64):
        t = f"i{bits}"
        amount = f"%{{n}}a = and i32 {{1}}, {bits - 1}\n%{{n}}w = zext i32 %{{n}}a to i64\n"
        if bits == 32:
            amount = "%{n}w = and i32 {1}, 31\n"
        # The lowest integer divided by -1 traps on some processors and is undefined in LLVM.
        divisor = f"%{{n}}m = icmp eq {t} {{1}}, -1\n%{{n}}d = select i1 %{{n}}m, {t} 1, {t} {{1}}\n"
        zero = f"%{{n}}bad = icmp eq {t} {{1}}, 0"
        table |= {
            f"add.{t}": Template(f"{{r}} = add {t} {{0}}, {{1}}"),
            f"sub.{t}": Template(f"{{r}} = sub {t} {{0}}, {{1}}"),
            f"mul.{t}": Template(f"{{r}} = mul {t} {{0}}, {{1}}"),
            f"fma.{t}": Template(f"%{{n}}m = mul {t} {{0}}, {{1}}\n{{r}} = add {t} %{{n}}m, {{2}}"),
            f"not.{t}": Template(f"{{r}} = xor {t} {{0}}, -1"),
            f"and.{t}": Template(f"{{r}} = and {t} {{0}}, {{1}}"),
            f"or.{t}": Template(f"{{r}} = or {t} {{0}}, {{1}}"),
            f"xor.{t}": Template(f"{{r}} = xor {t} {{0}}, {{1}}"),
            f"abs.{t}": Template(f"{{r}} = call {t} @llvm.abs.{t}({t} {{0}}, i1 false)"),
            f"ctlz.{t}": Template(f"{{r}} = call {t} @llvm.ctlz.{t}({t} {{0}}, i1 false)"),
            f"shl.{t}": Template(f"{amount}{{r}} = shl {t} {{0}}, %{{n}}w"),
            f"shr.{t}.s": Template(f"{amount}{{r}} = ashr {t} {{0}}, %{{n}}w"),
            f"shr.{t}.u": Template(f"{amount}{{r}} = lshr {t} {{0}}, %{{n}}w"),
            f"select.{t}": Template(f"{{r}} = select i1 {{0}}, {t} {{1}}, {t} {{2}}", takes_bit=True),
            f"cmp.eq.{t}": Template(f"{{r}} = icmp eq {t} {{0}}, {{1}}", is_bit=True),
            f"cmp.ne.{t}": Template(f"{{r}} = icmp ne {t} {{0}}, {{1}}", is_bit=True),
            f"cmp.lt.{t}.s": Template(f"{{r}} = icmp slt {t} {{0}}, {{1}}", is_bit=True),
            f"cmp.lt.{t}.u": Template(f"{{r}} = icmp ult {t} {{0}}, {{1}}", is_bit=True),
            f"cmp.nz.{t}": Template(f"{{r}} = icmp ne {t} {{0}}, 0", is_bit=True),
            f"div.{t}.u": Template(f"{{r}} = udiv {t} {{0}}, {{1}}", zero, cost=16),
            f"rem.{t}.u": Template(f"{{r}} = urem {t} {{0}}, {{1}}", zero, cost=16),
            f"div.{t}.s": Template(
                f"{divisor}%{{n}}q = sdiv {t} {{0}}, %{{n}}d\n%{{n}}g = sub {t} 0, {{0}}\n"
                f"{{r}} = select i1 %{{n}}m, {t} %{{n}}g, {t} %{{n}}q",
                zero,
                cost=16,
            ),
            f"rem.{t}.s": Template(f"{divisor}{{r}} = srem {t} {{0}}, %{{n}}d", zero, cost=16),
        }
        for name in ("min", "max"):
            for sign in "su":
                call = f"{{r}} = call {t} @llvm.{sign}{name}.{t}({t} {{0}}, {t} {{1}})"
                table[f"{name}.{t}.{sign}"] = Template(call)
    return table


def _conversions() -> dict[str, Template]:
    # A signalling NaN stays one, as it does in Python; the processor's conversion would make it quiet.
    widened = """%{n}w = fpext float {0} to double
%{n}x = bitcast float {0} to i32
%{n}b = zext i32 %{n}x to i64
%{n}s = lshr i64 %{n}b, 31
%{n}h = shl i64 %{n}s, 63
%{n}f = and i64 %{n}b, 8388607
%{n}l = shl i64 %{n}f, 29
%{n}o = or i64 %{n}h, %{n}l
%{n}p = or i64 %{n}o, 9218868437227405312
%{n}v = bitcast i64 %{n}p to double
%{n}u = fcmp uno float {0}, {0}
{r} = select i1 %{n}u, double %{n}v, double %{n}w"""
    table = {
        "trunc.i32.i8": "{r} = and i32 {0}, 255",
        "trunc.i32.i16": "{r} = and i32 {0}, 65535",
        "ext.i8.i32.s": "%{n}t = trunc i32 {0} to i8\n{r} = sext i8 %{n}t to i32",
        "ext.i8.i32.u": "{r} = and i32 {0}, 255",
        "ext.i16.i32.s": "%{n}t = trunc i32 {0} to i16\n{r} = sext i16 %{n}t to i32",
        "ext.i16.i32.u": "{r} = and i32 {0}, 65535",
        "trunc.i64.i32": "{r} = trunc i64 {0} to i32",
        "ext.i32.i64.s": "{r} = sext i32 {0} to i64",
        "ext.i32.i64.u": "{r} = zext i32 {0} to i64",
        "ext.f32.f64": widened,
        "trunc.f64.f32": "{r} = fptrunc double {0} to float",
        "bitcast.i32.f32": "{r} = bitcast i32 {0} to float",
        "bitcast.f32.i32": "{r} = bitcast float {0} to i32",
        "bitcast.i64.f64": "{r} = bitcast i64 {0} to double",
        "bitcast.f64.i64": "{r} = bitcast double {0} to i64",
    }
    for real, t in (("f32", "float"), ("f64", "double")):
        for bits in (32, 64):
            table[f"cast.si{bits}.{real}"] = f"{{r}} = sitofp i{bits} {{0}} to {t}"
            table[f"cast.ui{bits}.{real}"] = f"{{r}} = uitofp i{bits} {{0}} to {t}"
    wide = "%{n}x = fpext float {0} to double\n"
    # Casts of f64 to 32 bits pass through f32.
    narrowed = "%{n}y = fptrunc double {0} to float\n%{n}x = fpext float %{n}y to double\n"
    rounded = "%{n}i = call i64 @round_to_i64(double %{n}x)\n{r} = trunc i64 %{n}i to i32"
    for sign in ("si", "ui"):
        table[f"cast.f32.{sign}32"] = wide + rounded
        table[f"cast.f64.{sign}32"] = narrowed + rounded
    table["cast.f32.si64"] = wide + "{r} = call i64 @round_to_i64(double %{n}x)"
    table["cast.f32.ui64"] = wide + "{r} = call i64 @round_to_ui64(double %{n}x)"
    table["cast.f64.si64"] = table["cast.f64.ui64"] = "{r} = call i64 @round_to_i64(double {0})"
    return {name: Template(text, cost=1 + text.count("call") * 8) for name, text in table.items()}


def _reals() -> dict[str, Template]:
    table: dict[str, Template] = {}
    for real, t in (("f32", "float"), ("f64", "double")):
        table |= {
            f"add.{real}": Template(f"{{r}} = fadd {t} {{0}}, {{1}}"),
            f"sub.{real}": Template(f"{{r}} = fsub {t} {{0}}, {{1}}"),
            f"mul.{real}": Template(f"{{r}} = fmul {t} {{0}}, {{1}}"),
            f"div.{real}": Template(f"{{r}} = fdiv {t} {{0}}, {{1}}", cost=8),
            f"neg.{real}": Template(f"{{r}} = fneg {t} {{0}}"),
            f"fma.{real}": Template(f"{{r}} = call {t} @llvm.fma.{real}({t} {{0}}, {t} {{1}}, {t} {{2}})", cost=32),
            f"rsqrt.{real}": Template(
                f"%{{n}}s = call {t} @llvm.sqrt.{real}({t} {{0}})\n{{r}} = fdiv {t} 1.0, %{{n}}s", cost=16
            ),
            f"min.{real}": Template(
                f"%{{n}}c = fcmp olt {t} {{1}}, {{0}}\n{{r}} = select i1 %{{n}}c, {t} {{1}}, {t} {{0}}"
            ),
            f"max.{real}": Template(
                f"%{{n}}c = fcmp olt {t} {{0}}, {{1}}\n{{r}} = select i1 %{{n}}c, {t} {{1}}, {t} {{0}}"
            ),
            f"select.{real}": Template(f"{{r}} = select i1 {{0}}, {t} {{1}}, {t} {{2}}", takes_bit=True),
            f"cmp.nan.{real}": Template(f"{{r}} = fcmp uno {t} {{0}}, {{0}}", is_bit=True),
        }
        for name, function in (
            ("floor", "floor"),
            ("ceil", "ceil"),
            ("abs", "fabs"),
            ("round", "round"),
            ("round_even", "rint"),
            ("sqrt", "sqrt"),
        ):
            mnemonic = f"round.{real}.even" if name == "round_even" else f"{name}.{real}"
            table[mnemonic] = Template(f"{{r}} = call {t} @llvm.{function}.{real}({t} {{0}})", cost=8)
        # "Ordered" inequality is true for NaN, as in the runtime.
        for name, predicate in (
            ("eq.o", "oeq"),
            ("eq.u", "ueq"),
            ("ne.o", "une"),
            ("ne.u", "une"),
            ("lt.o", "olt"),
            ("lt.u", "ult"),
            ("lte.o", "ole"),
            ("lte.u", "ule"),
        ):
            comparison, _, order = name.partition(".")
            table[f"cmp.{comparison}.{real}.{order}"] = Template(
                f"{{r}} = fcmp {predicate} {t} {{0}}, {{1}}", is_bit=True
            )
        for name in LIBRARY:
            mnemonic = f"{'rem' if name == 'remainder' else name}.{real}"
            table[mnemonic] = Template(_library_call(name, single=real == "f32"), cost=64)
    return table


def _library_call(name: str, *, single: bool) -> str:
    """Returns the call of a C function, which computes in f64 like Python."""
    lines: list[str] = []
    operands = ["double {0}", "double {1}"] if name in _BINARY else ["double {0}"]
    if single:
        lines = [f"%{{n}}w{index} = fpext float {{{index}}} to double" for index in range(len(operands))]
        operands = [f"double %{{n}}w{index}" for index in range(len(operands))]
    result = "%{n}d" if single else "{r}"
    if name == "remainder":
        # A remainder of 0 has the sign of the first operand. C libraries get it wrong for divisors near the smallest
        # double.
        lines += [
            f"%{{n}}m = call double @{LIBRARY[name]}({', '.join(operands)})",
            "%{n}z = fcmp oeq double %{n}m, 0.0",
            f"%{{n}}s = call double @llvm.copysign.f64(double %{{n}}m, {operands[0]})",
            f"{result} = select i1 %{{n}}z, double %{{n}}s, double %{{n}}m",
        ]
    else:
        lines.append(f"{result} = call double @{LIBRARY[name]}({', '.join(operands)})")
    if single:
        lines.append("{r} = fptrunc double %{n}d to float")
    return "\n".join(lines)


_DESCRIPTOR: Final = "%{n}h = shl i64 {0}, 2\n%{n}p = getelementptr i64, ptr %table, i64 %{n}h\n"


def _bounds(word: int, shift: int) -> str:
    """Returns the lines of a guard that checks whether element {1} is outside of a descriptor's bytes."""
    return (
        f"{_DESCRIPTOR}%{{n}}q = getelementptr i64, ptr %{{n}}p, i64 {word}\n"
        f"%{{n}}c = load i64, ptr %{{n}}q, !invariant.load !0\n%{{n}}e = lshr i64 %{{n}}c, {shift}\n"
        "%{n}bad = icmp uge i64 {1}, %{n}e"
    )


def _buffers() -> dict[str, Template]:
    table: dict[str, Template] = {
        "cmp.eq.ref": Template("{r} = icmp eq i64 {0}, {1}", is_bit=True),
        "cmp.ne.ref": Template("{r} = icmp ne i64 {0}, {1}", is_bit=True),
        "cmp.nz.ref": Template("{r} = icmp ne i64 {0}, 0", is_bit=True),
        "buffer.length": Template(
            "%{n}l = getelementptr i64, ptr %{n}p, i64 1\n{r} = load i64, ptr %{n}l, !invariant.load !0",
            f"{_DESCRIPTOR}%{{n}}q = getelementptr i64, ptr %{{n}}p, i64 3\n"
            "%{n}c = load i64, ptr %{n}q, !invariant.load !0\n%{n}bad = icmp sge i64 %{n}c, 0",
            cost=4,
        ),
    }
    address = "%{n}d = load ptr, ptr %{n}p, !invariant.load !0\n"
    for kind, t, shift in (
        ("i8", "i8", 0),
        ("i16", "i16", 1),
        ("i32", "i32", 2),
        ("i64", "i64", 3),
        ("f32", "float", 2),
        ("f64", "double", 3),
    ):
        element = f"{address}%{{n}}a = getelementptr {t}, ptr %{{n}}d, i64 {{1}}\n"
        if shift < 2:
            for sign in "su":
                table[f"buffer.load.{kind}.{sign}"] = Template(
                    f"{element}%{{n}}v = load {t}, ptr %{{n}}a, align 1\n"
                    f"{{r}} = {'sext' if sign == 's' else 'zext'} {t} %{{n}}v to i32",
                    _bounds(1, shift),
                    cost=16,
                )
            store = f"{element}%{{n}}v = trunc i32 {{2}} to {t}\nstore {t} %{{n}}v, ptr %{{n}}a, align 1"
        else:
            table[f"buffer.load.{kind}"] = Template(
                f"{element}{{r}} = load {t}, ptr %{{n}}a, align 1", _bounds(1, shift), cost=16
            )
            store = f"{element}store {t} {{2}}, ptr %{{n}}a, align 1"
        table[f"buffer.store.{kind}"] = Template(store, _bounds(2, shift), cost=16)
    return table


TEMPLATES: Final[dict[str, Template]] = _integers() | _conversions() | _reals() | _buffers()

# Casts round to the nearest integer, halves away from zero; values out of range give the lowest integer.
SUPPORT: Final = """
define internal i64 @round_to_i64(double %x) {
  %whole = call double @llvm.trunc.f64(double %x)
  %rest = fsub double %x, %whole
  %up = fcmp oge double %rest, 5.0e-1
  %down = fcmp ole double %rest, -5.0e-1
  %magnitude = call double @llvm.fabs.f64(double %x)
  %fits = fcmp olt double %magnitude, 0x43E0000000000000
  %integer = fptosi double %x to i64
  %plus = zext i1 %up to i64
  %minus = zext i1 %down to i64
  %above = add i64 %integer, %plus
  %near = sub i64 %above, %minus
  %result = select i1 %fits, i64 %near, i64 -9223372036854775808
  ret i64 %result
}
define internal i64 @round_to_ui64(double %x) {
  %least = fcmp oge double %x, 0x43E0000000000000
  %most = fcmp olt double %x, 0x43F0000000000000
  %large = and i1 %least, %most
  %unsigned = fptoui double %x to i64
  %signed = call i64 @round_to_i64(double %x)
  %result = select i1 %large, i64 %unsigned, i64 %signed
  ret i64 %result
}
"""
