"""Element-wise operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ....ir.operation import Value, tensor_of
from ....ir.types import I1, ScalarType
from ....passes.formulas.expression import Expression
from .known_values import broadcast_all
from .node import Node, Translate

_SELU_SCALE: Final = 1.0507009873554804934193349852946
_SELU_ALPHA: Final = 1.6732632423543772848170429916717


def _floor_div(x: Expression, y: Expression) -> Expression:
    if not x.element.is_integer:
        return (x / y).call("floor")
    quotient = x / y
    if x.element.kind == "uint":
        return quotient
    inexact = (quotient * y).differs(x) & (x < 0).call("xor", y < 0)
    return inexact.then(quotient - 1, quotient)


def _floor_mod(x: Expression, y: Expression) -> Expression:
    rest = x.call("remainder", y)
    if x.element.kind == "uint":
        return rest
    wrong = rest.differs(0) & (rest < 0).call("xor", y < 0)
    return wrong.then(rest + y, rest)


def _truncate_div(x: Expression, y: Expression) -> Expression:
    if x.element.is_integer:
        return x / y
    quotient = x / y
    return (quotient < 0).then(quotient.call("ceil"), quotient.call("floor"))


def _squared_difference(x: Expression, y: Expression) -> Expression:
    difference = x - y
    return Expression(x.builder, x.builder.conjugate(difference.value)) * difference


def _selu(x: Expression) -> Expression:
    return (x > 0).then(x * _SELU_SCALE, x.call("exponential_minus_one") * (_SELU_SCALE * _SELU_ALPHA))


def _softplus(x: Expression) -> Expression:
    # log(1 + e^x) without overflow: max(x, 0) + log(1 + e^-|x|).
    return x.call("maximum", 0) + (-abs(x)).call("exponential").call("log_plus_one")


def _is_finite(x: Expression) -> Expression:
    return Expression(x.builder, x.builder.append("is_finite", [x.value], [tensor_of(x.value).of(I1)]).result)


def _unary(function: Callable[[Expression], Expression]) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        node.expect(1)
        return [function(node.expression(0)).value]

    return translate


def _named(name: str) -> Translate:
    return _unary(lambda x: x.call(name))


def _to_whole(name: str) -> Translate:
    """Rounds floats to whole numbers; returns integers unchanged."""
    return _unary(lambda x: x if x.element.is_integer else x.call(name))


def _chlo(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        (value,) = node.expect(1)
        return [node.chlo(name, value)]

    return translate


def _binary(function: Callable[[Expression, Expression], Expression]) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        left, right = node.expressions(2)
        if left.element is not right.element:
            raise node.error(f"expected inputs of one element type, got {node.type(0)} and {node.type(1)}")
        return [function(left, right).value]

    return translate


def _pair(name: str) -> Translate:
    return _binary(lambda x, y: x.call(name, y))


def _compared(direction: str) -> Translate:
    def function(left: Expression, right: Expression) -> Expression:
        return Expression(left.builder, left.builder.compare(direction, left.value, right.value))

    return _binary(function)


def _no_nan(combine: str) -> Translate:
    def function(x: Expression, y: Expression) -> Expression:
        return y.equals(0).then(0, x.call(combine, y))

    return _binary(function)


def _times_log(log: str) -> Translate:
    def function(x: Expression, y: Expression) -> Expression:
        return x.equals(0).then(0, x * y.call(log))

    return _binary(function)


def _leaky_relu(node: Node) -> Sequence[Value]:
    node.expect(1)
    x = node.expression(0)
    return [(x > 0).then(x, x * node.number("alpha", 0.2)).value]


def _ndtri(node: Node) -> Sequence[Value]:
    node.expect(1)
    x = node.expression(0)
    inverse = Expression(node.builder, node.chlo("erf_inv", (x * 2 - 1).value))
    return [(inverse * 2.0**0.5).value]


def _add_n(node: Node) -> Sequence[Value]:
    if not node.operands:
        raise node.error("expected at least one input")
    total = node.expression(0)
    for index in range(1, len(node.operands)):
        total = total + node.expression(index)
    return [total.value]


def _select(node: Node) -> Sequence[Value]:
    """Translates Select, whose predicate may be a vector along the first dimension, and SelectV2, which broadcasts."""
    predicate, chosen, other = node.expect(3)
    builder = node.builder
    if node.op == "Select":
        rank, predicate_rank = node.type(1).rank, node.type(0).rank
        if predicate_rank == 1 and rank > 1:
            predicate = builder.broadcast(predicate, node.type(1).shape, [0])
        elif predicate_rank not in (0, rank):
            raise node.error(
                f"expected a predicate of the shape of {node.type(1)}, a vector or one boolean, got {node.type(0)}"
            )
        return [builder.select(predicate, chosen, other)]
    predicate, chosen, other = broadcast_all(builder, [predicate, chosen, other])
    return [builder.select(predicate, chosen, other)]


def _cast(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    source, target = node.type(0).scalar, node.element("DstT")
    builder = node.builder
    if node.has("SrcT") and node.element("SrcT") is not source:
        raise node.error(f"SrcT is {node.element('SrcT')}, the input is {node.type(0)}")
    if source.kind == "complex" and target.kind not in ("complex", "bool"):
        value = builder.part("real", value)
    return [builder.convert(value, target)]


def _bitcast(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    source, target = node.type(0), node.element("type")
    shape = node.shape(0)
    if source.scalar.bits > target.bits:
        shape = (*shape, source.scalar.bits // target.bits)
    elif source.scalar.bits < target.bits:
        shape = shape[:-1]
    return [node.builder.append("bitcast_convert", [value], [type(source)(shape, target)]).result]


def _complex(node: Node) -> Sequence[Value]:
    real, imaginary = node.expressions(2)
    return [node.builder.complex(real.value, imaginary.value)]


def _part(name: str) -> Translate:
    def translate(node: Node) -> Sequence[Value]:
        (value,) = node.expect(1)
        return [node.builder.part(name, value)]

    return translate


def _complex_abs(node: Node) -> Sequence[Value]:
    (value,) = node.expect(1)
    type = node.type(0)
    return [node.builder.append("abs", [value], [type.of(type.scalar.part)]).result]


def _clip(node: Node) -> Sequence[Value]:
    x, low, high = node.expressions(3)
    return [x.call("minimum", high).call("maximum", low).value]


def _fake_quantized(node: Node) -> Sequence[Value]:
    """Rounds numbers to 2^bits evenly spaced values between bounds, which are moved so that 0 is a value."""
    bits = node.integer("num_bits", 8)
    if not 2 <= bits <= 16:
        raise node.error(f"expected 2 to 16 bits, got {bits}")
    if node.op.endswith("Args"):
        node.expect(1)
        x = node.expression(0)
        low, high = x.constant(node.number("min", -6.0)), x.constant(node.number("max", 6.0))
    else:
        x, low, high = node.expressions(3)
    least, most = int(node.flag("narrow_range")), (1 << bits) - 1
    scale = (high - low) / (most - least)
    zero = (least - low / scale).call("maximum", least).call("minimum", most).call("round_nearest_afz")
    start, end = (least - zero) * scale, (most - zero) * scale
    inside = x.call("maximum", start).call("minimum", end) - start
    return [((inside / scale + 0.5).call("floor") * scale + start).value]


def _approximate_equal(node: Node) -> Sequence[Value]:
    x, y = node.expressions(2)
    return [(abs(x - y) < node.number("tolerance", 1e-5)).value]


_UNARY: Final[Mapping[str, Translate]] = {
    "Abs": _named("abs"),
    "Acos": _chlo("acos"),
    "Acosh": _chlo("acosh"),
    "Asin": _chlo("asin"),
    "Asinh": _chlo("asinh"),
    "Atan": _chlo("atan"),
    "Atanh": _chlo("atanh"),
    "BesselI1e": _chlo("bessel_i1e"),
    "Ceil": _to_whole("ceil"),
    "ComplexAbs": _complex_abs,
    "Conj": _chlo("conj"),
    "Cos": _named("cosine"),
    "Cosh": _chlo("cosh"),
    "Digamma": _chlo("digamma"),
    "Elu": _unary(lambda x: (x > 0).then(x, x.call("exponential_minus_one"))),
    "Erf": _chlo("erf"),
    "Erfc": _chlo("erfc"),
    "Erfinv": _chlo("erf_inv"),
    "Exp": _named("exponential"),
    "Expm1": _named("exponential_minus_one"),
    "Floor": _to_whole("floor"),
    "Imag": _part("imag"),
    "Inv": _unary(lambda x: 1 / x),
    "Invert": _named("not"),
    "IsFinite": _unary(_is_finite),
    "IsInf": _unary(lambda x: abs(x).equals(float("inf"))),
    "IsNan": _unary(lambda x: x.differs(x)),
    "LeakyRelu": _leaky_relu,
    "Lgamma": _chlo("lgamma"),
    "Log": _named("log"),
    "Log1p": _named("log_plus_one"),
    "LogicalNot": _named("not"),
    "Ndtri": _ndtri,
    "Neg": _named("negate"),
    "PopulationCount": lambda node: [
        node.builder.convert(node.builder.elementwise("popcnt", *node.expect(1)), ScalarType("ui8"))
    ],
    "Real": _part("real"),
    "Reciprocal": _unary(lambda x: 1 / x),
    "Relu": _unary(lambda x: x.call("maximum", 0)),
    "Relu6": _unary(lambda x: x.call("maximum", 0).call("minimum", 6)),
    "Rint": _named("round_nearest_even"),
    "Round": _to_whole("round_nearest_even"),
    "Rsqrt": _named("rsqrt"),
    "Selu": _unary(_selu),
    "Sigmoid": _named("logistic"),
    "Sign": _unary(lambda x: x.call("sign") if x.element.kind != "uint" else x.call("minimum", 1)),
    "Sin": _named("sine"),
    "Sinh": _chlo("sinh"),
    "Softplus": _unary(_softplus),
    "Softsign": _unary(lambda x: x / (abs(x) + 1)),
    "Sqrt": _named("sqrt"),
    "Square": _unary(lambda x: x * x),
    "Tan": _named("tan"),
    "Tanh": _named("tanh"),
}
_BINARY: Final[Mapping[str, Translate]] = {
    "Add": _pair("add"),
    "AddV2": _pair("add"),
    "Atan2": _pair("atan2"),
    "BitwiseAnd": _pair("and"),
    "BitwiseOr": _pair("or"),
    "BitwiseXor": _pair("xor"),
    "Div": _pair("divide"),
    "DivNoNan": _no_nan("divide"),
    "Equal": _compared("EQ"),
    "FloorDiv": _binary(_floor_div),
    "FloorMod": _binary(_floor_mod),
    "Greater": _compared("GT"),
    "GreaterEqual": _compared("GE"),
    "LeftShift": _pair("shift_left"),
    "Less": _compared("LT"),
    "LessEqual": _compared("LE"),
    "LogicalAnd": _pair("and"),
    "LogicalOr": _pair("or"),
    "Maximum": _pair("maximum"),
    "Minimum": _pair("minimum"),
    "Mod": _pair("remainder"),
    "Mul": _pair("multiply"),
    "MulNoNan": _no_nan("multiply"),
    "NextAfter": lambda node: [node.chlo("next_after", *(operand.value for operand in node.expressions(2)))],
    "NotEqual": _compared("NE"),
    "Pow": _pair("power"),
    "RealDiv": _pair("divide"),
    "RightShift": _binary(
        lambda x, y: x.call("shift_right_logical" if x.element.kind == "uint" else "shift_right_arithmetic", y)
    ),
    "SquaredDifference": _binary(_squared_difference),
    "Sub": _pair("subtract"),
    "TruncateDiv": _binary(_truncate_div),
    "TruncateMod": _pair("remainder"),
    "Xdivy": _binary(lambda x, y: x.equals(0).then(0, x / y)),
    "Xlog1py": _times_log("log_plus_one"),
    "Xlogy": _times_log("log"),
}

ELEMENTWISE: Final[Mapping[str, Translate]] = {
    **_UNARY,
    **_BINARY,
    "AddN": _add_n,
    "ApproximateEqual": _approximate_equal,
    "Bitcast": _bitcast,
    "Cast": _cast,
    "ClipByValue": _clip,
    "FakeQuantWithMinMaxArgs": _fake_quantized,
    "FakeQuantWithMinMaxVars": _fake_quantized,
    "FakeQuantWithMinMaxVarsPerChannel": _fake_quantized,
    "Complex": _complex,
    "Select": _select,
    "SelectV2": _select,
}
