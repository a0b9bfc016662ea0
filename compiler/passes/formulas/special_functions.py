"""CHLO's functions of real numbers as formulas in f32 or f64.

lgamma and digamma come from the Lanczos approximation with g = 7, whose coefficients are published; zeta from Euler and
Maclaurin's sum; Bessel functions from Chebyshev series fitted here; erf and erfc from Cephes (S. Moshier); erf_inv from
M. Giles (*Approximating the erfinv function*, 2010). Tests compare them with SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...ir.types import ScalarType
from .expression import Expression

Values = Sequence[float]


def _table(text: str) -> Values:
    return tuple(map(float, text.split()))


_ERFC_P: Final = _table(
    """
    2.46196981473530512524e-10 5.64189564831068821977e-1 7.46321056442269912687e0 4.86371970985681366614e1
    1.96520832956077098242e2 5.26445194995477358631e2 9.34528527171957607540e2 1.02755188689515710272e3
    5.57535335369399327526e2
    """
)
_ERFC_Q: Final = _table(
    """
    1.0 1.32281951154744992508e1 8.67072140885989742329e1 3.54937778887819891062e2 9.75708501743205489753e2
    1.82390916687909736289e3 2.24633760818710981792e3 1.65666309194161350182e3 5.57535340817727675546e2
    """
)
_ERFC_R: Final = _table(
    """
    5.64189583547755073984e-1 1.27536670759978104416e0 5.01905042251180477414e0 6.16021097993053585195e0
    7.40974269950448939160e0 2.97886665372100240670e0
    """
)
_ERFC_S: Final = _table(
    """
    1.0 2.26052863220117276590e0 9.39603524938001434673e0 1.20489539808096656605e1 1.70814450747565897222e1
    9.60896809063285878198e0 3.36907645100081516050e0
    """
)
_ERF_T: Final = _table(
    """
    9.60497373987051638749e0 9.00260197203842689217e1 2.23200534594684319226e3 7.00332514112805075473e3
    5.55923013010394962768e4
    """
)
_ERF_U: Final = _table(
    """
    1.0 3.35617141647503099647e1 5.21357949780152679795e2 4.59432382970980127987e3 2.26290000613890934246e4
    4.92673942608635921086e4
    """
)
_ERF_INV_F32: Final = (
    _table(
        """
        2.81022636e-08 3.43273939e-07 -3.5233877e-06 -4.39150654e-06 0.00021858087 -0.00125372503 -0.00417768164
        0.246640727 1.50140941
        """
    ),
    _table(
        """
        -0.000200214257 0.000100950558 0.00134934322 -0.00367342844 0.00573950773 -0.0076224613 0.00943887047
        1.00167406 2.83297682
        """
    ),
)
_ERF_INV_F64: Final = (
    _table(
        """
        -3.6444120640178196996e-21 -1.685059138182016589e-19 1.2858480715256400167e-18 1.115787767802518096e-17
        -1.333171662854620906e-16 2.0972767875968561637e-17 6.6376381343583238325e-15 -4.0545662729752068639e-14
        -8.1519341976054721522e-14 2.6335093153082322977e-12 -1.2975133253453532498e-11
        -5.4154120542946279317e-11 1.051212273321532285e-09 -4.1126339803469836976e-09
        -2.9070369957882005086e-08 4.2347877827932403518e-07 -1.3654692000834678645e-06
        -1.3882523362786468719e-05 0.0001867342080340571352 -0.00074070253416626697512 -0.0060336708714301490533
        0.24015818242558961693 1.6536545626831027356
        """
    ),
    _table(
        """
        2.2137376921775787049e-09 9.0756561938885390979e-08 -2.7517406297064545428e-07 1.8239629214389227755e-08
        1.5027403968909827627e-06 -4.013867526981545969e-06 2.9234449089955446044e-06 1.2475304481671778723e-05
        -4.7318229009055733981e-05 6.8284851459573175448e-05 2.4031110387097893999e-05 -0.0003550375203628474796
        0.00095328937973738049703 -0.0016882755560235047313 0.0024914420961078508066 -0.0037512085075692412107
        0.005370914553590063617 1.0052589676941592334 3.0838856104922207635
        """
    ),
    _table(
        """
        -2.7109920616438573243e-11 -2.5556418169965252055e-10 1.5076572693500548083e-09
        -3.7894654401267369937e-09 7.6157012080783393804e-09 -1.4960026627149240478e-08
        2.9147953450901080826e-08 -6.7711997758452339498e-08 2.2900482228026654717e-07
        -9.9298272942317002539e-07 4.5260625972231537039e-06 -1.9681778105531670567e-05
        7.5995277030017761139e-05 -0.00021503011930044477347 -0.00013871931833623122026 1.0103004648645343977
        4.8499064014085844221
        """
    ),
)


def erf(x: Expression) -> Expression:
    """Returns the error function."""
    small = x * _ratio(x * x, _ERF_T, _ERF_U)
    large = 1.0 - _erfc_large(abs(x))
    signed = (x < 0.0).then(-large, large)
    result = (abs(x) < 1.0).then(small, signed)
    return x.differs(x).then(x, result)


def erfc(x: Expression) -> Expression:
    """Returns one minus the error function, accurate for small results."""
    large = _erfc_large(abs(x))
    result = (abs(x) < 1.0).then(1.0 - x * _ratio(x * x, _ERF_T, _ERF_U), (x < 0.0).then(2.0 - large, large))
    return x.differs(x).then(x, result)


def _erfc_large(size: Expression) -> Expression:
    """Returns the complement for arguments of at least 1.

    The square is split, so that the exponential does not magnify its rounding error.
    """
    bits = 28 if size.element.bits == 64 else 12
    # The high part of Dekker's split has an exact square.
    scaled = size.call("minimum", 1e4) * float(2**bits + 1)
    high = scaled - (scaled - size.call("minimum", 1e4))
    low = size - high
    power = (-(high * high)).call("exponential") * (-(low * (size + high))).call("exponential")
    ratio = (size < 8.0).then(_ratio(size, _ERFC_P, _ERFC_Q), _ratio(size, _ERFC_R, _ERFC_S))
    limit = 27.3 if size.element.bits == 64 else 10.1
    return (size > limit).then(0.0, power * ratio)


def _ratio(x: Expression, numerator: Values, denominator: Values) -> Expression:
    return x.polynomial(numerator) / x.polynomial(denominator)


def erf_inv(x: Expression) -> Expression:
    """Returns the inverse of the error function; infinite at -1 and 1."""
    w = -(abs(x) < 0.7).then((-(x * x)).call("log_plus_one"), ((1.0 - x) * (1.0 + x)).call("log"))
    if x.element.bits == 64:
        first, second, third = _ERF_INV_F64
        root = w.call("sqrt")
        middle = (w < 16.0).then((root - 3.25).polynomial(second), (root - 5.0).polynomial(third))
        factor = (w < 6.25).then((w - 3.125).polynomial(first), middle)
    else:
        near, far = _ERF_INV_F32
        factor = (w < 5.0).then((w - 2.5).polynomial(near), (w.call("sqrt") - 3.0).polynomial(far))
    return abs(x).equals(1.0).then(x * math.inf, x * factor)


_LANCZOS_G: Final = 7.0
_LANCZOS_BASE: Final = 0.99999999999980993227684700473478
_LANCZOS: Final = _table(
    """
    676.520368121885098567009190444019 -1259.13921672240287047156078755283 771.3234287776530788486528258894
    -176.61502916214059906584551354 12.507343278686904814458936853 -0.13857109526572011689554707
    9.984369578019570859563e-6 1.50563273514931155834e-7
    """
)


def limits(element: ScalarType) -> np.finfo[np.float32 | np.float64]:
    """Returns the limits of f32 or f64."""
    return np.finfo(np.float64 if element.bits == 64 else np.float32)


def _finite_limit(element: ScalarType) -> float:
    return float(limits(element).max)


def _lanczos_sum(z: Expression) -> Expression:
    total = z.constant(_LANCZOS_BASE)
    for index, coefficient in enumerate(_LANCZOS):
        total = total + coefficient / (z + float(index + 1))
    return total


def _logarithm(z: Expression) -> tuple[Expression, Expression]:
    """Returns ``t = z + g + 1/2`` and its logarithm."""
    g = _LANCZOS_G + 0.5
    return z + g, (z / g).call("log_plus_one") + math.log(g)


def lgamma(x: Expression) -> Expression:
    """Returns the logarithm of the magnitude of the gamma function; by reflection below one half."""
    reflects = x < 0.5
    z = reflects.then(-x, x - 1.0)
    t, log_t = _logarithm(z)
    result = math.log(math.sqrt(2 * math.pi)) + (z + 0.5 - t / log_t) * log_t + _lanczos_sum(z).call("log")
    size = abs(x)
    fraction = size - size.call("floor")
    near = (fraction > 0.5).then(1.0 - fraction, fraction)
    sine = (near * math.pi).call("sine").call("log")
    reflected = (abs(sine) <= _finite_limit(x.element)).then(math.log(math.pi) - sine - result, -sine)
    whole = reflects.then(reflected, result)
    return size.equals(math.inf).then(math.inf, whole)


def digamma(x: Expression) -> Expression:
    """Returns the derivative of lgamma; NaN at negative integers and zero."""
    reflects = x < 0.5
    z = reflects.then(-x, x - 1.0)
    total = z.constant(_LANCZOS_BASE)
    slope = z.constant(0.0)
    for index, coefficient in enumerate(_LANCZOS):
        distance = z + float(index + 1)
        slope = slope - coefficient / (distance * distance)
        total = total + coefficient / distance
    t, log_t = _logarithm(z)
    result = log_t + slope / total - _LANCZOS_G / t
    rest = x + abs((x + 0.5).call("floor"))
    reflected = result - math.pi * (rest * math.pi).call("cosine") / (rest * math.pi).call("sine")
    whole = reflects.then(reflected, result)
    is_pole = (x <= 0.0) & x.equals(x.call("floor"))
    return is_pole.then(math.nan, whole)


def _chebyshev(x: Expression, coefficients: Values) -> Expression:
    """Evaluates a Chebyshev series by Clenshaw's recurrence, the highest coefficient first; the last one is halved."""
    first, second, third = x.constant(0.0), x.constant(0.0), x.constant(0.0)
    for coefficient in coefficients:
        first, second, third = x * first - second + coefficient, first, second
    return (first - third) * 0.5


def _bessel_coefficients(start: float, stop: float, count: int) -> Values:
    """Returns Chebyshev coefficients of exp(-x) I1(x) / x below 8, and of exp(-x) sqrt(x) I1(x) in 1 / x above."""
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    if stop == math.inf:
        x = 16.0 / (nodes + 1.0)
        values = np.sqrt(x) * _scaled_bessel(x)
    else:
        x = (nodes + 1.0) * (stop - start) / 2 + start
        values = _scaled_bessel(x) / x
    orders = np.arange(count)[:, None]
    angles = np.pi * orders * (np.arange(count) + 0.5) / count
    coefficients = 2.0 / count * (np.cos(angles) @ values)
    return [float(value) for value in coefficients[::-1]]


def _scaled_bessel(
    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Returns exp(-x) I1(x) as the mean of cos(t) exp(x (cos(t) - 1)), by the trapezoidal rule, to full precision."""
    t = np.pi * (np.arange(4096) + 0.5) / 4096
    return np.asarray(np.mean(np.cos(t) * np.exp(x[:, None] * (np.cos(t) - 1.0)), -1))


def bessel_i1e(x: Expression) -> Expression:
    """Returns the exponentially scaled modified Bessel function of the first kind, of order 1."""
    size = abs(x)
    near = size * _chebyshev(size * 0.5 - 2.0, _bessel_coefficients(0.0, 8.0, 32))
    far = _chebyshev(32.0 / size - 2.0, _bessel_coefficients(8.0, math.inf, 28)) / size.call("sqrt")
    result = (size <= 8.0).then(near, far)
    return (x < 0.0).then(-result, result)


_BERNOULLI: Final = tuple(
    above / below
    for above, below in ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798))
)


def zeta(x: Expression, q: Expression) -> Expression:
    """Computes Hurwitz's zeta function by ten terms and the Euler-Maclaurin remainder; NaN for x below 1 and at poles
    of q.
    """
    total = q.call("power", -x)
    a = q
    for _ in range(9):
        a = a + 1.0
        total = total + a.call("power", -x)
    a = a + 1.0
    power = a.call("power", -x)
    total = total + power * a / (x - 1.0) + power * 0.5
    factor, derivative = x, power / a
    divisor = 1.0
    for order, bernoulli in enumerate(_BERNOULLI, 1):
        divisor *= (2 * order - 1) * (2 * order)
        total = total + factor * derivative * (bernoulli / divisor)
        factor = factor * (x + float(2 * order - 1)) * (x + float(2 * order))
        derivative = derivative / (a * a)
    is_pole = (q <= 0.0) & q.equals(q.call("floor"))
    wrong = (x < 1.0) | ((q <= 0.0) & x.differs(x.call("floor")))
    result = wrong.then(math.nan, is_pole.then(math.inf, total))
    return x.equals(1.0).then(math.inf, result)


def polygamma(n: Expression, x: Expression) -> Expression:
    """Returns the n-th derivative of digamma."""
    sign = (n - (n * 0.5).call("floor") * 2.0).equals(0.0).then(n.constant(-1.0), n.constant(1.0))
    result = sign * lgamma(n + 1.0).call("exponential") * zeta(n + 1.0, x)
    whole = n.equals(0.0).then(digamma(x), result)
    return ((n < 0.0) | n.differs(n.call("floor"))).then(math.nan, whole)


def sinh(x: Expression) -> Expression:
    """Returns the hyperbolic sine; accurate for small arguments, without early overflow."""
    small = x.call("exponential_minus_one")
    near = 0.5 * (small + small / (small + 1.0))
    size = abs(x)
    half = (size * 0.5).call("exponential")
    far = (half * 0.5) * half - (0.5 / half) / half
    return (size < 1.0).then(near, (x < 0.0).then(-far, far))


def cosh(x: Expression) -> Expression:
    """Returns the hyperbolic cosine, without early overflow."""
    half = (abs(x) * 0.5).call("exponential")
    return (half * 0.5) * half + (0.5 / half) / half


def asin(x: Expression) -> Expression:
    """Returns the inverse sine."""
    return 2.0 * x.call("atan2", 1.0 + ((1.0 - x) * (1.0 + x)).call("sqrt"))


def acos(x: Expression) -> Expression:
    """Returns the inverse cosine."""
    result = 2.0 * ((1.0 - x) * (1.0 + x)).call("sqrt").call("atan2", 1.0 + x)
    return x.equals(-1.0).then(math.pi, result)


def atan(x: Expression) -> Expression:
    """Returns the inverse tangent."""
    return x.call("atan2", 1.0)


def asinh(x: Expression) -> Expression:
    """Returns the inverse hyperbolic sine."""
    size = abs(x)
    large = size >= math.sqrt(_finite_limit(x.element))
    square = size * size
    near = (size + square / (1.0 + (square + 1.0).call("sqrt"))).call("log_plus_one")
    result = large.then(size.call("log") + math.log(2.0), near)
    return (x < 0.0).then(-result, x.equals(0.0).then(x, result))


def acosh(x: Expression) -> Expression:
    """Returns the inverse hyperbolic cosine; NaN below 1."""
    large = x >= math.sqrt(_finite_limit(x.element)) / 2
    less = x - 1.0
    near = (less + (less * (x + 1.0)).call("sqrt")).call("log_plus_one")
    return (x < 1.0).then(math.nan, large.then(x.call("log") + math.log(2.0), near))


def atanh(x: Expression) -> Expression:
    """Returns the inverse hyperbolic tangent; infinite at -1 and 1, NaN outside."""
    result = 0.5 * (x.call("log_plus_one") - (-x).call("log_plus_one"))
    return (abs(x) > 1.0).then(math.nan, result)


def next_after(x: Expression, y: Expression) -> Expression:
    """Returns the next number after x towards y, in x's type."""
    element = x.element
    bits = ScalarType(f"i{element.bits}")
    sign = -(1 << (element.bits - 1))
    raw, other = x.bitcast(bits), y.bitcast(bits)
    magnitude, target = raw & raw.constant(~sign), other & raw.constant(~sign)
    from_zero = (other & raw.constant(sign)) | raw.constant(1)
    differs = (raw & raw.constant(sign)).differs(other & raw.constant(sign))
    shrinks = (magnitude > target) | differs
    stepped = raw + shrinks.then(raw.constant(-1), raw.constant(1))
    at_zero = target.equals(0).then(other, from_zero)
    result = raw.equals(other).then(other, magnitude.equals(0).then(at_zero, stepped)).bitcast(element)
    is_nan = x.differs(x) | y.differs(y)
    return is_nan.then(math.nan, x.equals(y).then(y, result))
