"""The exact remainder of floats."""

from __future__ import annotations

from collections.abc import Sequence

from ....spirv.binary.declarations import F32
from ....spirv.binary.expression import Id
from ...ir.types import F32 as F32_TYPE
from ...ir.types import F64 as F64_TYPE
from ...ir.types import ScalarType
from .conversions import convert
from .floats import Floats
from .scalars import Scalar, as_id
from .wide_integers import choose


def remainder(f: Floats, x: Id, y: Id) -> Id:
    """Returns the remainder of division towards zero, by long division of the significands as integers."""
    scalars = f.scalars
    type = ScalarType("ui32" if f.kind == F32 else "ui64")
    (first, dividend), (second, divisor) = _integers(f, type, x), _integers(f, type, y)
    divisor = choose(divisor.equals(0), scalars.integer(type, 1), divisor)
    step = type.bits - f.digits
    is_less = first.below(second)
    left = is_less.select(0, first - second)

    def divide(values: Sequence[Scalar]) -> tuple[Sequence[Scalar], Id]:
        rest, count = map(as_id, values)
        by = (count < step).select(count, step)
        amount = as_id(convert(scalars, by, ScalarType("ui32"), type))
        after = count - by
        return ((rest << amount) % divisor, after), after.differs(0)

    most = -(-2 * (f.bias + f.digits) // step)
    rest = as_id(scalars.loop([dividend, left], divide, most)[0])
    # The rest has no more digits than a float, so the conversion is exact.
    result = f.scaled(as_id(convert(scalars, rest, type, F32_TYPE if f.kind == F32 else F64_TYPE)), second)
    result = (f.absolute(x) < f.absolute(y)).select(f.absolute(x), result)
    is_wrong = y.equals(0) | ~f.is_finite(x) | f.is_nan(y)
    return is_wrong.select(f.nan, f.with_sign(result, x))


def _integers(f: Floats, type: ScalarType, x: Id) -> tuple[Id, Id]:
    """Splits a float's magnitude into an exponent and an integer."""
    scalars = f.scalars
    field = (f.top(x) >> f.shift) & (0xFF if f.kind == F32 else 0x7FF)
    is_normal = field.differs(0)
    bits = scalars.float_bits(x) & ((1 << (f.digits - 1)) - 1)
    hidden = choose(is_normal, scalars.integer(type, 1 << (f.digits - 1)), scalars.integer(type, 0))
    exponent = is_normal.select(field, 1) - (f.bias + f.digits - 1)
    return exponent, bits | hidden
