"""``arith`` and ``math``: element-wise arithmetic and functions of signless integers and floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..dialects.builder import Values
from ..dialects.rules.requirements import OperationError
from ..dialects.syntax.arith import CMPF, CMPI
from ..ir.attributes import DenseElements, FloatAttr, IntegerAttr
from ..ir.operation import Operation, Value, tensor_of
from ..ir.types import I1, ScalarType
from ..passes.formulas.expand import expand_operation
from ..passes.formulas.expression import Expression
from .conversion import Handler, Rule, Site, formula, same_types, simple


def unsigned(site: Site, value: Value) -> Value:
    """Reinterprets an integer as unsigned."""
    element = tensor_of(value).scalar
    return site.builder.bitcast(value, ScalarType(f"ui{element.bits}")) if element.kind == "int" else value


def _unsigned(name: str) -> Handler:
    """Returns a handler for an operation on unsigned integers."""

    def handler(site: Site) -> Values:
        element = same_types(site).scalar
        result = site.builder.elementwise(name, *(unsigned(site, value) for value in site.operands))
        return [site.builder.bitcast(result, element) if tensor_of(result).element is not element else result]

    return handler


def _ignoring_nan(name: str) -> Callable[[Expression, Expression], Expression]:
    def function(x: Expression, y: Expression) -> Expression:
        return x.differs(x).then(y, y.differs(y).then(x, x.call(name, y)))

    return function


def _rounded_quotient(is_up: bool) -> Callable[[Expression, Expression], Expression]:
    """Divides signed integers and rounds down or up."""

    def function(x: Expression, y: Expression) -> Expression:
        quotient = x.call("divide", y)
        is_inexact = x.call("remainder", y).differs(0)
        alike = (x < 0).equals(y < 0)
        moves = is_inexact & (alike if is_up else ~alike)
        return quotient + moves.then(x.constant(1 if is_up else -1), x.constant(0))

    return function


def _ceildivui(site: Site) -> Values:
    element = same_types(site).scalar
    x, y = (Expression(site.builder, unsigned(site, value)) for value in site.operands)
    quotient = x.call("divide", y) + x.call("remainder", y).differs(0).then(x.constant(1), x.constant(0))
    return [site.builder.bitcast(quotient.value, element)]


def _constant(site: Site) -> Values:
    value = site.operation.attributes.get("value")
    type = site.result_type()
    if isinstance(value, DenseElements):
        return [site.builder.constant(value.array, type)]
    if isinstance(value, bool):
        return [site.builder.constant(value, type)]
    if isinstance(value, IntegerAttr | FloatAttr):
        return [site.builder.constant(value.value, type)]
    raise OperationError("a value such as 1 : i32 or dense<0> : tensor<4xi32>")


def _predicate(site: Site, names: Sequence[str]) -> str:
    value = site.operation.attributes.get("predicate")
    if not isinstance(value, IntegerAttr) or not 0 <= value.value < len(names):
        raise OperationError(f"a predicate, one of {', '.join(names)}")
    return names[value.value]


def _cmpi(site: Site) -> Values:
    same_types(site)
    name = _predicate(site, CMPI)
    left, right = site.operands
    if name.startswith("u"):
        left, right = unsigned(site, left), unsigned(site, right)
    is_bool = tensor_of(left).element is I1
    if is_bool and name.startswith("s"):
        # As a signed one-bit number, true is -1.
        left, right = right, left
    return [site.builder.compare(name[-2:].upper(), left, right)]


def _cmpf(site: Site) -> Values:
    same_types(site)
    name = _predicate(site, CMPF)
    x, y = (Expression(site.builder, value) for value in site.operands)
    ordered = x.equals(x) & y.equals(y)
    if name in ("true", "false"):
        return [site.builder.constant(name == "true", tensor_of(ordered.value))]
    if name in ("ord", "uno"):
        return [(ordered if name == "ord" else ~ordered).value]
    result = Expression(site.builder, site.builder.compare(name[1:].upper(), x.value, y.value))
    return [(ordered & result if name.startswith("o") else ~ordered | result).value]


def _select(site: Site) -> Values:
    predicate, chosen, other = site.operands
    if tensor_of(predicate).element is not I1 or chosen.type is not other.type:
        raise OperationError(
            f"a condition of i1 and two values of one type, got {predicate.type}, {chosen.type} and {other.type}", 0
        )
    return [site.builder.select(predicate, chosen, other)]


def _converted(site: Site) -> Values:
    (value,) = site.operands
    return [site.builder.convert(value, _element(site, value))]


def _element(site: Site, value: Value) -> ScalarType:
    result = site.result_type()
    if tensor_of(value).shape != result.shape:
        raise OperationError(f"an operand of the result's shape {result}, got {value.type}", 0)
    return result.scalar


def _from_unsigned(site: Site) -> Values:
    (value,) = site.operands
    element = _element(site, value)
    result = unsigned(site, value)
    if element.kind == "int":
        wide = site.builder.convert(result, ScalarType(f"ui{element.bits}"))
        return [site.builder.bitcast(wide, element)]
    return [site.builder.convert(result, element)]


def _from_signed(site: Site) -> Values:
    (value,) = site.operands
    result = site.builder.convert(value, _element(site, value))
    return [site.builder.elementwise("negate", result) if tensor_of(value).element is I1 else result]


def _to_unsigned(site: Site) -> Values:
    (value,) = site.operands
    element = _element(site, value)
    return [site.builder.bitcast(site.builder.convert(value, ScalarType(f"ui{element.bits}")), element)]


def _truncated(site: Site) -> Values:
    (value,) = site.operands
    element = _element(site, value)
    if element is I1:
        return [site.builder.compare("NE", site.builder.elementwise("and", value, 1), 0)]
    return [site.builder.convert(value, element)]


def _bitcast(site: Site) -> Values:
    (value,) = site.operands
    return [site.builder.bitcast(value, _element(site, value))]


def _mul_extended(is_signed: bool) -> Handler:
    def handler(site: Site) -> Values:
        element = same_types(site).scalar
        low = site.builder.elementwise("multiply", *site.operands)
        operands = site.operands if is_signed else [unsigned(site, value) for value in site.operands]
        (high,) = expand_operation(site.builder, Operation("chlo.mulhi", operands, [operands[0].type]))
        return [low, site.builder.bitcast(high, element)]

    return handler


def _addui_extended(site: Site) -> Values:
    same_types(site)
    total = site.builder.elementwise("add", *site.operands)
    carry = site.builder.compare("LT", unsigned(site, total), unsigned(site, site.operands[0]))
    return [total, carry]


_SIMPLE: Final = {
    **dict.fromkeys(("addf", "addi"), "add"),
    **dict.fromkeys(("subf", "subi"), "subtract"),
    **dict.fromkeys(("mulf", "muli"), "multiply"),
    **dict.fromkeys(("divf", "divsi"), "divide"),
    **dict.fromkeys(("remf", "remsi"), "remainder"),
    **dict.fromkeys(("maximumf", "maxsi"), "maximum"),
    **dict.fromkeys(("minimumf", "minsi"), "minimum"),
    "andi": "and",
    "ori": "or",
    "shli": "shift_left",
    "shrsi": "shift_right_arithmetic",
    "shrui": "shift_right_logical",
    "xori": "xor",
}
_CASTS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(("extf", "truncf", "fptosi", "index_cast"), _converted),
    **dict.fromkeys(("extui", "uitofp", "index_castui"), _from_unsigned),
    **dict.fromkeys(("extsi", "sitofp"), _from_signed),
    "bitcast": _bitcast,
    "fptoui": _to_unsigned,
    "trunci": _truncated,
}

ARITH: Final[Mapping[str, Rule]] = {
    **{name: Rule(2, simple(to)) for name, to in _SIMPLE.items()},
    **{name: Rule(1, handler) for name, handler in _CASTS.items()},
    "addui_extended": Rule(2, _addui_extended),
    "ceildivsi": Rule(2, formula(_rounded_quotient(True))),
    "ceildivui": Rule(2, _ceildivui),
    "cmpf": Rule(2, _cmpf),
    "cmpi": Rule(2, _cmpi),
    "constant": Rule(0, _constant),
    "divui": Rule(2, _unsigned("divide")),
    "floordivsi": Rule(2, formula(_rounded_quotient(False))),
    "maxnumf": Rule(2, formula(_ignoring_nan("maximum"))),
    "maxui": Rule(2, _unsigned("maximum")),
    "minnumf": Rule(2, formula(_ignoring_nan("minimum"))),
    "minui": Rule(2, _unsigned("minimum")),
    "mulsi_extended": Rule(2, _mul_extended(True)),
    "mului_extended": Rule(2, _mul_extended(False)),
    "negf": Rule(1, simple("negate")),
    "remui": Rule(2, _unsigned("remainder")),
    "select": Rule(3, _select),
}
"""Conversions of ``arith`` operations. Keys are operation names without ``arith.``."""


def _chlo(name: str) -> Handler:
    def handler(site: Site) -> Values:
        same_types(site)
        return expand_operation(site.builder, Operation(f"chlo.{name}", site.operands, [site.operands[0].type]))

    return handler


def _trailing_zeros(x: Expression) -> Expression:
    """Counts the zeros below the lowest set bit; the number of bits if none is set."""
    return ((x & -x) - 1).call("popcnt")


def _copysign(x: Expression, y: Expression) -> Expression:
    bits = ScalarType(f"i{x.element.bits}")
    sign = -(1 << (x.element.bits - 1))
    raw, other = x.bitcast(bits), y.bitcast(bits)
    return ((raw & raw.constant(~sign)) | (other & other.constant(sign))).bitcast(x.element)


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
    "trunc": Rule(1, formula(lambda x: (x < 0.0).then(x.call("ceil"), x.call("floor")))),
}
"""Conversions of ``math`` operations. Keys are operation names without ``math.``."""
