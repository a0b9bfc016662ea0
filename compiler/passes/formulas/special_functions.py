"""CHLO's functions of real numbers as formulas in f32 or f64.

lgamma and digamma come from the Lanczos approximation with g = 7, whose coefficients are published; zeta from Euler and
Maclaurin's sum; Bessel functions from Chebyshev series fitted here. Tests compare them with SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...ir.types import ScalarType
from .expression import Expression

Values = Sequence[float]

_LANCZOS_G: Final = 7.0
_LANCZOS_BASE: Final = 0.99999999999980993227684700473478
_LANCZOS: Final = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)


def limits(element: ScalarType) -> np.finfo[np.float32 | np.float64]:
    """Limits of f32 or f64."""
    return np.finfo(np.float64 if element.bits == 64 else np.float32)


def _finite_limit(element: ScalarType) -> float:
    return float(limits(element).max)


def _lanczos_sum(z: Expression) -> Expression:
    total = z.constant(_LANCZOS_BASE)
    for index, coefficient in enumerate(_LANCZOS):
        total = total + coefficient / (z + float(index + 1))
    return total


def _logarithm(z: Expression) -> tuple[Expression, Expression]:
    """``t = z + g + 1/2`` and its logarithm."""
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
    """Clenshaw's recurrence over coefficients, the highest first; the last one is halved."""
    first, second, third = x.constant(0.0), x.constant(0.0), x.constant(0.0)
    for coefficient in coefficients:
        first, second, third = x * first - second + coefficient, first, second
    return (first - third) * 0.5


def _bessel_coefficients(start: float, stop: float, count: int) -> Values:
    """Chebyshev coefficients of exp(-x) I1(x) / x below 8, and of exp(-x) sqrt(x) I1(x) in 1 / x above."""
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
    """exp(-x) I1(x) as the mean of cos(t) exp(x (cos(t) - 1)), by the trapezoidal rule, to full precision."""
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
    """Hurwitz's zeta function by ten terms and the Euler-Maclaurin remainder; NaN for x below 1 and at poles of q."""
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
