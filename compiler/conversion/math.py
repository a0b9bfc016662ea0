"""``math``: element-wise functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ..ir.operation import Operation, Value, tensor_of
from ..ir.types import ScalarType
from ..passes.formulas.expand import expand_operation
from ..passes.formulas.expression import Expression
from .conversion import Handler, Rule, Site, formula, same_types, simple

Values = Sequence[Value]


def _chlo(name: str) -> Handler:
    def handler(site: Site) -> Values:
        same_types(site)
        return expand_operation(site.builder, Operation(f"chlo.{name}", site.operands, [site.operands[0].type]))

    return handler


def _trailing_zeros(x: Expression) -> Expression:
    """Zeros below the lowest bit that is set; all bits where none is."""
    return ((x & -x) - 1).call("popcnt")


def _copysign(x: Expression, y: Expression) -> Expression:
    bits = ScalarType(f"i{x.element.bits}")
    sign = -(1 << (x.element.bits - 1))
    raw, other = x.bitcast(bits), y.bitcast(bits)
    return ((raw & raw.constant(~sign)) | (other & other.constant(sign))).bitcast(x.element)


def _truncated(x: Expression) -> Expression:
    return (x < 0.0).then(x.call("ceil"), x.call("floor"))


def _is_normal(x: Expression) -> Expression:
    smallest = {"f64": 2.0**-1022, "f16": 2.0**-14}.get(str(x.element), 2.0**-126)
    return x.call_to("is_finite", ScalarType("i1")) & (abs(x) >= smallest)


def _with_integer_power(site: Site) -> Values:
    base, exponent = site.operands
    element = tensor_of(base).scalar
    return [site.builder.elementwise("power", base, site.builder.convert(exponent, element))]


MATH: Final[Mapping[str, Rule]] = {
    **{
        name: Rule(1, simple(to))
        for name, to in {
            "absf": "abs",
            "absi": "abs",
            "cbrt": "cbrt",
            "ceil": "ceil",
            "cos": "cosine",
            "ctlz": "count_leading_zeros",
            "ctpop": "popcnt",
            "exp": "exponential",
            "expm1": "exponential_minus_one",
            "floor": "floor",
            "log": "log",
            "log1p": "log_plus_one",
            "round": "round_nearest_afz",
            "roundeven": "round_nearest_even",
            "rsqrt": "rsqrt",
            "sin": "sine",
            "sqrt": "sqrt",
            "tan": "tan",
            "tanh": "tanh",
        }.items()
    },
    **{
        name: Rule(1, _chlo(name))
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erfc", "sinh")
    },
    "atan2": Rule(2, simple("atan2")),
    "clampf": Rule(3, formula(lambda x, low, high: x.call("maximum", low).call("minimum", high))),
    "copysign": Rule(2, formula(_copysign)),
    "cttz": Rule(1, formula(_trailing_zeros)),
    "exp2": Rule(1, formula(lambda x: x.constant(2.0).call("power", x))),
    "fma": Rule(3, formula(lambda x, y, z: x * y + z)),
    "fpowi": Rule(2, _with_integer_power),
    "ipowi": Rule(2, simple("power")),
    "isfinite": Rule(1, formula(lambda x: x.call_to("is_finite", ScalarType("i1")))),
    "isinf": Rule(1, formula(lambda x: abs(x).equals(math.inf))),
    "isnan": Rule(1, formula(lambda x: x.differs(x))),
    "isnormal": Rule(1, formula(_is_normal)),
    "log10": Rule(1, formula(lambda x: x.call("log") / math.log(10.0))),
    "log2": Rule(1, formula(lambda x: x.call("log") / math.log(2.0))),
    "powf": Rule(2, simple("power")),
    "trunc": Rule(1, formula(_truncated)),
}
"""Conversions of ``math`` operations. Keys are operation names without ``math.``."""
