"""Inverse and hyperbolic functions of complex numbers, from real functions of their parts.

The formulas are those of T. Hull, T. Fairgrieve and P. Tang, *Implementing the complex arcsine and arccosine functions
using exception handling* (1997), and of W. Kahan, *Branch cuts for complex elementary functions* (1987). They neither
overflow prematurely nor lose small parts.
"""

from __future__ import annotations

import math

from .expression import Expression
from .special_functions import cosh as real_cosh
from .special_functions import limits
from .special_functions import sinh as real_sinh


def _parts(z: Expression) -> tuple[Expression, Expression]:
    builder = z.builder
    return Expression(builder, builder.part("real", z.value)), Expression(builder, builder.part("imag", z.value))


def _joined(real: Expression, imaginary: Expression) -> Expression:
    return Expression(real.builder, real.builder.complex(real.value, imaginary.value))


def _with_sign(size: Expression, of: Expression) -> Expression:
    """Returns a magnitude with the sign of another number, including that of zeros."""
    negative = of.equals(0.0).then((1.0 / of) < 0.0, of < 0.0)
    return negative.then(-size, size)


def square(z: Expression) -> Expression:
    """Returns the square; infinite parts do not cancel each other."""
    x, y = _parts(z)
    size_x, size_y = abs(x), abs(y)
    real = (size_x.equals(size_y) & (size_x < math.inf)).then(0.0, (x - y) * (x + y))
    is_nan = x.differs(x) | y.differs(y)
    product = x * y
    return _joined(is_nan.then(math.nan, real), product + product)


def _hypot(x: Expression, y: Expression) -> Expression:
    """Returns the length of (x, y) without overflow."""
    large, small = x.call("maximum", y), x.call("minimum", y)
    ratio = small / large
    length = large * (1.0 + ratio * ratio).call("sqrt")
    return large.equals(0.0).then(
        0.0, large.equals(math.inf).then(math.inf, large.equals(small).then(large * math.sqrt(2), length))
    )


def _asin_parts(x: Expression, y: Expression) -> tuple[Expression, Expression, Expression]:
    """Returns the real parts of asin and acos, and the imaginary part of both, for magnitudes x and y of the parts."""
    largest = math.sqrt(limits(x.element).max) / 8
    smallest = math.sqrt(limits(x.element).tiny) * 4
    plus, minus = x + 1.0, x - 1.0
    r, s = _hypot(plus, y), _hypot(abs(minus), y)
    a = (r + s) * 0.5
    half_y2 = y * y
    # Where b is close to 1, the arcsine is an arctangent of the complement.
    b = x / a
    apx = a + x
    first = half_y2 / (r + plus)
    inside = (0.5 * apx * (first + (s - minus))).call("sqrt")
    outside = y * (0.5 * (apx / (r + plus) + apx / (s + minus))).call("sqrt")
    complement = (x <= 1.0).then(inside, outside)
    direct_asin = 2.0 * b.call("atan2", 1.0 + ((1.0 - b) * (1.0 + b)).call("sqrt"))
    real_asin = (b <= 0.6417).then(direct_asin, x.call("atan2", complement))
    real_acos = (b <= 0.6417).then(math.pi / 2 - direct_asin, complement.call("atan2", x))
    below = (x < 1.0).then(half_y2 / (s + (1.0 - x)), s + minus)
    am1 = 0.5 * (first + below)
    near = (am1 + (am1 * (a + 1.0)).call("sqrt")).call("log_plus_one")
    imaginary = (a <= 1.5).then(near, (a + (a * a - 1.0).call("sqrt")).call("log"))
    # Where squares underflow or overflow, simpler formulas are exact.
    tiny = (y < smallest) & (x < 1.0)
    imaginary = tiny.then(y / ((1.0 - x) * (1.0 + x)).call("sqrt"), imaginary)
    large = (x > largest) | (y > largest)
    length = x.call("maximum", y)
    ratio = x.call("minimum", y) / length
    far = math.log(2.0) + length.call("log") + 0.5 * (ratio * ratio).call("log_plus_one")
    far = length.equals(math.inf).then(math.inf, far)
    return (
        large.then(x.call("atan2", y), real_asin),
        large.then(y.call("atan2", x), real_acos),
        large.then(far, imaginary),
    )


def asin(z: Expression) -> Expression:
    """Returns the inverse sine."""
    x, y = _parts(z)
    real, _, imaginary = _asin_parts(abs(x), abs(y))
    return _joined(_with_sign(real, x), _with_sign(imaginary, y))


def acos(z: Expression) -> Expression:
    """Returns the inverse cosine."""
    x, y = _parts(z)
    _, real, imaginary = _asin_parts(abs(x), abs(y))
    whole = (x < 0.0).then(math.pi - real, real)
    return _joined(whole, -_with_sign(imaginary, y))


def asinh(z: Expression) -> Expression:
    """Returns the inverse hyperbolic sine: asin rotated by a right angle."""
    x, y = _parts(z)
    real, _, imaginary = _asin_parts(abs(y), abs(x))
    return _joined(_with_sign(imaginary, x), _with_sign(real, y))


def acosh(z: Expression) -> Expression:
    """Returns the inverse hyperbolic cosine."""
    x, y = _parts(z)
    _, real, imaginary = _asin_parts(abs(x), abs(y))
    whole = (x < 0.0).then(math.pi - real, real)
    return _joined(imaginary, _with_sign(whole, y))


def atanh(z: Expression) -> Expression:
    """Returns the inverse hyperbolic tangent."""
    x, y = _parts(z)
    size, height = abs(x), abs(y)
    largest = math.sqrt(limits(size.element).max) / 4
    less = 1.0 - size
    square = height * height
    real = 0.25 * (4.0 * size / (less * less + square)).call("log_plus_one")
    angle = (2.0 * height).call("atan2", less * (1.0 + size) - square) * 0.5
    far = (size > largest) | (height > largest)
    length = size.call("maximum", height)
    ratio = (
        (size / length)
        / length
        / (1.0 + (size.call("minimum", height) / length) * (size.call("minimum", height) / length))
    )
    real = far.then(length.equals(math.inf).then(0.0, ratio), real)
    angle = far.then(math.pi / 2, angle)
    return _joined(_with_sign(real, x), _with_sign(angle, y))


def atan(z: Expression) -> Expression:
    """Returns the inverse tangent: atanh rotated by a right angle."""
    x, y = _parts(z)
    real, imaginary = _parts(atanh(_joined(-y, x)))
    return _joined(imaginary, -real)


def sinh(z: Expression) -> Expression:
    """Returns the hyperbolic sine."""
    x, y = _parts(z)
    imaginary = y.equals(0.0).then(y, real_cosh(x) * y.call("sine"))
    return _joined(x.equals(0.0).then(x, real_sinh(x) * y.call("cosine")), imaginary)


def cosh(z: Expression) -> Expression:
    """Returns the hyperbolic cosine."""
    x, y = _parts(z)
    zero = x.equals(0.0) | y.equals(0.0)
    return _joined(real_cosh(x) * y.call("cosine"), zero.then(x * y, real_sinh(x) * y.call("sine")))
