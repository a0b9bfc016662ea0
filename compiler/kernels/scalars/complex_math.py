"""Arithmetic and functions of complex numbers.

Special values follow from the formulas, even if annex G of C99 requires other values.
"""

from __future__ import annotations

import math

from ....spirv.binary.expression import Id
from . import exponentials, trigonometry
from .floats import FloatPair, Floats
from .scalars import Complex, Scalar, as_complex, as_id


def add(x: Complex, y: Complex) -> Complex:
    return Complex(x.real + y.real, x.imaginary + y.imaginary)


def plus(x: Scalar, y: Scalar) -> Scalar:
    """Adds numbers of the same type, complex or not."""
    return add(x, as_complex(y)) if isinstance(x, Complex) else x + as_id(y)


def subtract(x: Complex, y: Complex) -> Complex:
    return Complex(x.real - y.real, x.imaginary - y.imaginary)


def multiply(x: Complex, y: Complex) -> Complex:
    return Complex(
        x.real * y.real - x.imaginary * y.imaginary,
        x.real * y.imaginary + x.imaginary * y.real,
    )


def scale(x: Complex, factor: Id | float) -> Complex:
    """Multiplies x by a real number."""
    return Complex(x.real * factor, x.imaginary * factor)


def divide(f: Floats, x: Complex, y: Complex) -> Complex:
    """Divides by Smith's method."""
    by_real = f.absolute(y.real) >= f.absolute(y.imaginary)
    large = by_real.select(y.real, y.imaginary)
    small = by_real.select(y.imaginary, y.real)
    # 0 / 0 would be NaN even if the numerator is not.
    ratio = small / large
    ratio = large.equals(0).select(small, ratio)
    divisor = 1.0 / (large + small * ratio)
    a, b = by_real.select(x.real, x.imaginary), by_real.select(x.imaginary, x.real)
    real = (a + b * ratio) * divisor
    difference = by_real.select(b - a * ratio, a * ratio - b)
    return Complex(real, difference * divisor)


def absolute(f: Floats, x: Complex) -> Id:
    """Returns the modulus."""
    large, small, scale = _scaled(f, x)
    squares = f.pair_sum(f.exact_product(large, large), f.exact_product(small, small))
    result = f.scaled(_root(f, squares), scale)
    result = (f.absolute(x.real).equals(math.inf) | f.absolute(x.imaginary).equals(math.inf)).select(f.infinity, result)
    is_nan = (f.is_nan(x.real) | f.is_nan(x.imaginary)) & f.absolute(result).differs(math.inf)
    return is_nan.select(f.nan, result)


def _scaled(f: Floats, x: Complex) -> tuple[Id, Id, Id]:
    """Returns the magnitudes of the parts, the larger first, scaled to about one, and the exponent of the scale."""
    a, b = f.absolute(x.real), f.absolute(x.imaginary)
    large, small = f.larger(a, b), f.smaller(a, b)
    exponent = ((f.top(large) >> f.shift) & (2 * f.bias + 1)) - f.bias
    return f.scaled(large, -exponent), f.scaled(small, -exponent), exponent


def _root(f: Floats, square: FloatPair) -> Id:
    """Returns the square root of a pair between about one and eight."""
    root = square[0].function("sqrt")
    safe = root.equals(0).select(1.0, root)
    high, low = f.exact_product(root, root)
    return root + ((square[0] - high) - low + square[1]) / (safe * 2.0)


def sign(f: Floats, x: Complex) -> Complex:
    """Returns x / |x|; zero for zero."""
    size = absolute(f, x)
    is_zero = size.equals(0)
    safe = is_zero.select(1.0, size)
    return Complex(
        is_zero.select(x.real, x.real / safe),
        is_zero.select(x.imaginary, x.imaginary / safe),
    )


def exponential(f: Floats, x: Complex) -> Complex:
    # Half the power: the power itself may overflow although the product does not.
    size = exponentials.exponential(f, x.real, halvings=1)
    is_real = x.imaginary.equals(0)
    real = size * trigonometry.cosine(f, x.imaginary) * 2.0
    imaginary = size * trigonometry.sine(f, x.imaginary) * 2.0
    return Complex(real, is_real.select(x.imaginary, imaginary))


def exponential_minus_one(f: Floats, x: Complex) -> Complex:
    grown = exponentials.exponential_minus_one(f, x.real)
    half = trigonometry.sine(f, x.imaginary * 0.5)
    lost = 2.0 * half * half  # 1 - cos
    # grown cos(y) - (1 - cos(y)), in pairs: the two may cancel.
    cosine = trigonometry.cosine(f, x.imaginary)
    product = f.exact_product(grown, cosine)
    real = (product[0] - lost) + product[1]
    real = x.imaginary.equals(0).select(grown, real)
    imaginary = exponentials.exponential(f, x.real) * trigonometry.sine(f, x.imaginary)
    return Complex(real, x.imaginary.equals(0).select(x.imaginary, imaginary))


def _logarithm_of_size(f: Floats, x: Complex) -> Id:
    """Returns log |x|, accurate near |x| = 1."""
    large, small, exponent = _scaled(f, x)
    squares = f.pair_sum(f.exact_product(large, large), f.exact_product(small, small))
    # Halved or doubled so that values near one stay near one.
    high, low = squares
    difference = f.exact_sum(high, f.constant(-1.0))
    near = difference[0] + (difference[1] + low)
    is_near = exponent.equals(0) & (high < 2.0)
    below_large, below_small, below = large * 0.5, small * 0.5, exponent + 1
    lower = f.pair_sum(f.exact_product(below_large, below_large), f.exact_product(below_small, below_small))
    lower_difference = f.exact_sum(lower[0], f.constant(-1.0))
    near_below = lower_difference[0] + (lower_difference[1] + lower[1])
    is_near_below = below.equals(0) & (lower[0] > 0.5)
    general = exponentials.logarithm(f, high) * 0.5 + f.from_word(exponent) * f.nearest(math.log(2))
    result = is_near.select(near, is_near_below.select(near_below, f.constant(0)))
    accurate = exponentials.logarithm_of_next(f, result) * 0.5
    result = (is_near | is_near_below).select(accurate, general)
    result = large.equals(0).select(-f.infinity, result)
    is_infinite = f.absolute(x.real).equals(math.inf) | f.absolute(x.imaginary).equals(math.inf)
    result = is_infinite.select(f.infinity, result)
    return ((f.is_nan(x.real) | f.is_nan(x.imaginary)) & ~is_infinite).select(f.nan, result)


def logarithm(f: Floats, x: Complex) -> Complex:
    return Complex(_logarithm_of_size(f, x), trigonometry.arc_tangent(f, x.imaginary, x.real))


def logarithm_of_next(f: Floats, x: Complex) -> Complex:
    """Returns log(1 + x)."""
    # |1 + x|**2 - 1 = x (2 + x) + y**2, in pairs.
    two = f.exact_sum(x.real, f.constant(2.0))
    first = f.pair_product((x.real, f.constant(0)), two)
    total = f.pair_sum(first, f.exact_product(x.imaginary, x.imaginary))
    is_small = (f.absolute(x.real) < 2.0) & (f.absolute(x.imaginary) < 2.0) & (total[0] > -0.75)
    near = exponentials.logarithm_of_next(f, total[0] + total[1]) * 0.5
    next = Complex(x.real + 1.0, x.imaginary)
    real = is_small.select(near, _logarithm_of_size(f, next))
    return Complex(real, trigonometry.arc_tangent(f, x.imaginary, next.real))


def square_root(f: Floats, x: Complex) -> Complex:
    """Returns the root with a nonnegative real part."""
    large, small, exponent = _scaled(f, x)
    even = exponent & 0xFFFFFFFE
    is_odd = (exponent & 1).differs(0)
    large, small = is_odd.select(large * 2.0, large), is_odd.select(small * 2.0, small)
    real_is_large = f.absolute(x.real) >= f.absolute(x.imaginary)
    real = real_is_large.select(large, small)
    imaginary = real_is_large.select(small, large)
    size = _root(f, f.pair_sum(f.exact_product(large, large), f.exact_product(small, small)))
    first = ((size + real) * 0.5).function("sqrt")
    safe = first.equals(0).select(1.0, first)
    second = imaginary / (safe * 2.0)
    half = even.shifted_signed(1)
    first, second = f.scaled(first, half), f.scaled(second, half)
    is_negative = f.is_negative(x.real)
    found_real = is_negative.select(second, first)
    found_imaginary = f.with_sign(is_negative.select(first, second), x.imaginary)
    is_zero = large.equals(0)
    found_real, found_imaginary = is_zero.select(0, found_real), is_zero.select(x.imaginary, found_imaginary)
    # Infinities follow C99.
    infinite = f.absolute(x.imaginary).equals(math.inf)
    real_infinite = f.absolute(x.real).equals(math.inf)
    found_real = real_infinite.select(is_negative.select(f.constant(0), f.infinity), found_real)
    found_imaginary = real_infinite.select(
        f.with_sign(is_negative.select(f.infinity, f.constant(0)), x.imaginary), found_imaginary
    )
    found_real, found_imaginary = infinite.select(f.infinity, found_real), infinite.select(x.imaginary, found_imaginary)
    is_nan = (f.is_nan(x.real) | f.is_nan(x.imaginary)) & ~infinite & ~real_infinite
    return Complex(is_nan.select(f.nan, found_real), is_nan.select(f.nan, found_imaginary))


def reciprocal_root(f: Floats, x: Complex) -> Complex:
    return divide(f, Complex(f.constant(1), f.constant(0)), square_root(f, x))


def sine(f: Floats, x: Complex) -> Complex:
    sinh, cosh = exponentials.hyperbolic(f, x.imaginary)
    return Complex(trigonometry.sine(f, x.real) * cosh, trigonometry.cosine(f, x.real) * sinh)


def cosine(f: Floats, x: Complex) -> Complex:
    sinh, cosh = exponentials.hyperbolic(f, x.imaginary)
    return Complex(trigonometry.cosine(f, x.real) * cosh, -(trigonometry.sine(f, x.real) * sinh))


def hyperbolic_tangent(f: Floats, x: Complex) -> Complex:
    bounded = f.larger(f.smaller(x.real, 20.0), -20.0)
    sinh, cosh = exponentials.hyperbolic(f, bounded)
    tangent = trigonometry.tangent(f, x.imaginary)
    secant = 1.0 + tangent * tangent
    divisor = 1.0 + secant * sinh * sinh
    real, imaginary = secant * cosh * sinh / divisor, tangent / divisor
    is_large = f.absolute(x.real) > 20.0
    real = is_large.select(f.with_sign(f.constant(1), x.real), real)
    decay = exponentials.exponential(f, f.absolute(x.real) * -2.0)
    double = trigonometry.sine(f, x.imaginary * 2.0)
    imaginary = is_large.select(double * decay * 2.0, imaginary)
    return Complex(real, imaginary)


def tangent(f: Floats, x: Complex) -> Complex:
    """Computes tan(x) = -i tanh(i x)."""
    result = hyperbolic_tangent(f, Complex(-x.imaginary, x.real))
    return Complex(result.imaginary, -result.real)


def logistic(f: Floats, x: Complex) -> Complex:
    """Computes 1 / (1 + exp(-x))."""
    decayed = exponential(f, Complex(-x.real, -x.imaginary))
    # Near the poles 1 + e cos(y) cancels; (1 - e) + 2 e cos(y / 2)**2 is equal to it.
    size = exponentials.exponential(f, -x.real)
    half = trigonometry.cosine(f, x.imaginary * 0.5)
    near = 2.0 * size * half * half - exponentials.exponential_minus_one(f, -x.real)
    real = (decayed.real < -0.5).select(near, decayed.real + 1.0)
    return divide(f, Complex(f.constant(1), f.constant(0)), Complex(real, decayed.imaginary))


def cube_root(f: Floats, x: Complex) -> Complex:
    """Computes exp(log(x) / 3)."""
    angle = trigonometry.arc_tangent(f, x.imaginary, x.real) * f.nearest(1 / 3)
    size = exponentials.cube_root(f, absolute(f, x))
    return Complex(size * trigonometry.cosine(f, angle), size * trigonometry.sine(f, angle))


def power(f: Floats, base: Complex, exponent: Complex) -> Complex:
    """Computes exp(exponent log(base)); one if the exponent is zero, zero if the base is."""
    size, angle = absolute(f, base), trigonometry.arc_tangent(f, base.imaginary, base.real)
    is_zero = size.equals(0)
    logarithm = exponentials.logarithm_pair(f, is_zero.select(1.0, size))
    # |base| ** real part, exp(-imaginary part angle); each with the rounding errors of the products.
    first = f.pair_product(logarithm, (exponent.real, f.constant(0)))
    second = f.exact_product(angle, exponent.imaginary)
    growth = f.pair_sum(first, (-second[0], -second[1]))
    length = exponentials.exponential(f, growth[0], growth[1])
    turn = f.pair_sum(
        f.pair_product(logarithm, (exponent.imaginary, f.constant(0))), f.exact_product(angle, exponent.real)
    )
    cosine, sine = trigonometry.cosine(f, turn[0]), trigonometry.sine(f, turn[0])
    real = length * (cosine - sine * turn[1])
    imaginary = length * (sine + cosine * turn[1])
    no_exponent = exponent.real.equals(0) & exponent.imaginary.equals(0)
    real = no_exponent.select(1.0, is_zero.select(0, real))
    return Complex(real, (no_exponent | is_zero).select(0, imaginary))


def arc_tangent(f: Floats, y: Complex, x: Complex) -> Complex:
    """Computes -i log((x + i y) / sqrt(x**2 + y**2))."""
    numerator = Complex(x.real - y.imaginary, x.imaginary + y.real)
    log = logarithm(f, divide(f, numerator, square_root(f, add(multiply(x, x), multiply(y, y)))))
    return Complex(log.imaginary, -log.real)
