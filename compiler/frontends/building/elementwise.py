"""Element-wise formulas: rounding, division, and activations."""

from __future__ import annotations

from typing import Final

from ...ir.operation import tensor_of
from ...ir.types import I1
from ...passes.formulas.expression import Expression

_SELU_SCALE: Final = 1.0507009873554804934193349852946
_SELU_ALPHA: Final = 1.6732632423543772848170429916717


def _is_integer(x: Expression) -> bool:
    return x.element.is_integer


def rounded(x: Expression) -> Expression:
    return x if _is_integer(x) else x.call("round_nearest_even")


def floor(x: Expression) -> Expression:
    return x if _is_integer(x) else x.call("floor")


def ceil(x: Expression) -> Expression:
    return x if _is_integer(x) else x.call("ceil")


def floor_div(x: Expression, y: Expression) -> Expression:
    if not _is_integer(x):
        return (x / y).call("floor")
    quotient = x / y
    if x.element.kind == "uint":
        return quotient
    inexact = (quotient * y).differs(x) & (x < 0).call("xor", y < 0)
    return inexact.then(quotient - 1, quotient)


def floor_mod(x: Expression, y: Expression) -> Expression:
    rest = x.call("remainder", y)
    if x.element.kind == "uint":
        return rest
    wrong = rest.differs(0) & (rest < 0).call("xor", y < 0)
    return wrong.then(rest + y, rest)


def truncate_div(x: Expression, y: Expression) -> Expression:
    if _is_integer(x):
        return x / y
    quotient = x / y
    return (quotient < 0).then(quotient.call("ceil"), quotient.call("floor"))


def squared_difference(x: Expression, y: Expression) -> Expression:
    difference = x - y
    return Expression(x.builder, x.builder.conjugate(difference.value)) * difference


def relu6(x: Expression) -> Expression:
    return x.call("maximum", 0).call("minimum", 6)


def elu(x: Expression) -> Expression:
    return (x > 0).then(x, x.call("exponential_minus_one"))


def selu(x: Expression) -> Expression:
    return (x > 0).then(x * _SELU_SCALE, x.call("exponential_minus_one") * (_SELU_SCALE * _SELU_ALPHA))


def softplus(x: Expression) -> Expression:
    # log(1 + e^x) without overflow: max(x, 0) + log(1 + e^-|x|).
    return x.call("maximum", 0) + (-abs(x)).call("exponential").call("log_plus_one")


def softsign(x: Expression) -> Expression:
    return x / (abs(x) + 1)


def sign(x: Expression) -> Expression:
    return x.call("sign") if x.element.kind != "uint" else x.call("minimum", 1)


def is_nan(x: Expression) -> Expression:
    return x.differs(x)


def is_inf(x: Expression) -> Expression:
    return abs(x).equals(float("inf"))


def is_finite(x: Expression) -> Expression:
    return Expression(x.builder, x.builder.append("is_finite", [x.value], [tensor_of(x.value).of(I1)]).result)
