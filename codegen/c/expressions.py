"""Operations on numbers as C expressions. Signed integers wrap, which C allows for unsigned ones only."""

from __future__ import annotations

from typing import Final


def _integers() -> dict[str, str]:
    table: dict[str, str] = {}
    for bits in (32, 64):
        t, s, u = f"i{bits}", f"int{bits}_t", f"uint{bits}_t"
        amount = f"((uint32_t){{1}} & {bits - 1}u)"
        table |= {
            f"add.{t}": f"({s})(({u}){{0}} + ({u}){{1}})",
            f"sub.{t}": f"({s})(({u}){{0}} - ({u}){{1}})",
            f"mul.{t}": f"({s})(({u}){{0}} * ({u}){{1}})",
            f"fma.{t}": f"({s})(({u}){{0}} * ({u}){{1}} + ({u}){{2}})",
            f"not.{t}": "~{0}",
            f"and.{t}": "{0} & {1}",
            f"or.{t}": "{0} | {1}",
            f"xor.{t}": "{0} ^ {1}",
            f"abs.{t}": f"({s})({{0}} < 0 ? 0u - ({u}){{0}} : ({u}){{0}})",
            f"ctlz.{t}": f"count_leading_zeros_{t}({{0}})",
            f"shl.{t}": f"({s})(({u}){{0}} << {amount})",
            f"shr.{t}.s": f"shift_right_{t}({{0}}, {amount})",
            f"shr.{t}.u": f"({s})(({u}){{0}} >> {amount})",
            f"min.{t}.s": "{0} < {1} ? {0} : {1}",
            f"max.{t}.s": "{0} > {1} ? {0} : {1}",
            f"min.{t}.u": f"({u}){{0}} < ({u}){{1}} ? {{0}} : {{1}}",
            f"max.{t}.u": f"({u}){{0}} > ({u}){{1}} ? {{0}} : {{1}}",
            f"select.{t}": "{0} ? {1} : {2}",
            f"cmp.eq.{t}": "{0} == {1}",
            f"cmp.ne.{t}": "{0} != {1}",
            f"cmp.lt.{t}.s": "{0} < {1}",
            f"cmp.lt.{t}.u": f"({u}){{0}} < ({u}){{1}}",
            f"cmp.nz.{t}": "{0} != 0",
        }
    return table


def _conversions() -> dict[str, str]:
    return {
        "trunc.i32.i8": "{0} & 0xFF",
        "trunc.i32.i16": "{0} & 0xFFFF",
        "ext.i8.i32.s": "(({0} & 0xFF) ^ 0x80) - 0x80",
        "ext.i8.i32.u": "{0} & 0xFF",
        "ext.i16.i32.s": "(({0} & 0xFFFF) ^ 0x8000) - 0x8000",
        "ext.i16.i32.u": "{0} & 0xFFFF",
        "trunc.i64.i32": "(int32_t){0}",
        "ext.i32.i64.s": "(int64_t){0}",
        "ext.i32.i64.u": "(int64_t)(uint32_t){0}",
        "ext.f32.f64": "(double){0}",
        "trunc.f64.f32": "(float){0}",
        "bitcast.i32.f32": "bits_to_float({0})",
        "bitcast.f32.i32": "float_to_bits({0})",
        "bitcast.i64.f64": "bits_to_double({0})",
        "bitcast.f64.i64": "double_to_bits({0})",
        "cast.si32.f32": "(float){0}",
        "cast.ui32.f32": "(float)(uint32_t){0}",
        "cast.si32.f64": "(double){0}",
        "cast.ui32.f64": "(double)(uint32_t){0}",
        "cast.si64.f32": "(float){0}",
        "cast.ui64.f32": "(float)(uint64_t){0}",
        "cast.si64.f64": "(double){0}",
        "cast.ui64.f64": "(double)(uint64_t){0}",
    }


def _reals() -> dict[str, str]:
    table: dict[str, str] = {}
    for t, end in (("f32", "f"), ("f64", "")):
        table |= {
            f"add.{t}": "{0} + {1}",
            f"sub.{t}": "{0} - {1}",
            f"mul.{t}": "{0} * {1}",
            f"div.{t}": "{0} / {1}",
            f"fma.{t}": f"fma{end}({{0}}, {{1}}, {{2}})",
            f"sqrt.{t}": f"sqrt{end}({{0}})",
            f"floor.{t}": f"floor{end}({{0}})",
            f"ceil.{t}": f"ceil{end}({{0}})",
            f"round.{t}": f"round{end}({{0}})",
            f"round.{t}.even": f"nearbyint{end}({{0}})",
            f"abs.{t}": f"fabs{end}({{0}})",
            f"neg.{t}": "-{0}",
            f"min.{t}": "{1} < {0} ? {1} : {0}",
            f"max.{t}": "{0} < {1} ? {1} : {0}",
            f"select.{t}": "{0} ? {1} : {2}",
            f"cmp.eq.{t}.o": "{0} == {1}",
            f"cmp.ne.{t}.o": "{0} != {1}",
            f"cmp.lt.{t}.o": "{0} < {1}",
            f"cmp.lte.{t}.o": "{0} <= {1}",
            f"cmp.eq.{t}.u": "!({0} < {1} || {0} > {1})",
            f"cmp.ne.{t}.u": "{0} != {1}",
            f"cmp.lt.{t}.u": "!({0} >= {1})",
            f"cmp.lte.{t}.u": "!({0} > {1})",
            f"cmp.nan.{t}": "isnan({0})",
        }
    return table


EXPRESSIONS: Final = _integers() | _conversions() | _reals()
"""Templates over operands. Functions of mathematics whose last bit differs between C libraries are not among them."""

DIVISIONS: Final = {f"{name}.i{bits}.{sign}" for name in ("div", "rem") for bits in (32, 64) for sign in "su"}
"""These fail for a divisor of zero."""
