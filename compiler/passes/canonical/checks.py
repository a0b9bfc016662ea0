"""Checks in programs (custom calls), in terms of the few that the host has.

The host compares bits, compares within tolerances, and looks for zeros. Distances in units of the last place are
computed by the program, which then expects its own verdict to be true.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...dialects.builder import Builder
from ...dialects.rules.requirements import OperationError
from ...ir.attributes import Attribute, FloatAttr
from ...ir.element_types import element_type
from ...ir.operation import Operation, Value, tensor_of
from ...ir.types import F32, ScalarType
from ..formulas.expression import Expression

TOLERANCE: Final = 1e-3
MAX_ULPS: Final = 3
"""The default tolerance: enough for the programs of ``stablehlo/testdata``, and what these allow."""


_UNBOUNDED: Final = (1 << 64) - 1


def check_call(builder: Builder, operation: Operation) -> Sequence[Value] | None:
    """Replaces a check; returns None where the host has it."""
    target = operation.attributes["call_target_name"]
    operands = operation.operands
    if target == "check.expect_close" and len(operands) == 2:
        _expect_close(builder, operation)
        return []
    if target == "check.eq" and len(operands) == 2 and len(operation.results) == 1:
        return [_are_equal(builder, *operands)]
    if len(operands) != 2 or "rtol" in operation.attributes:
        return None
    element = tensor_of(operands[0]).scalar
    if element_type(element) is None or element.bits in (2, 4):
        # Buffer views do not have these element types, but wider ones that hold all their values.
        wider = ScalarType(f"{'u' if element.kind == 'uint' else ''}i32") if element.is_integer else F32
        operands = [builder.convert(value, wider) for value in operands]
        if element.is_integer:
            _call(builder, "expect_eq", operands)
            return []
    is_inexact = tensor_of(operands[0]).scalar.kind in ("float", "complex")
    if target not in ("check.expect_almost_eq", "check.expect_eq") or not is_inexact:
        return None
    tolerance = operation.attributes.get("atol", operation.attributes.get("tolerance"))
    absolute, relative = (tolerance.value, 0.0) if isinstance(tolerance, FloatAttr) else (TOLERANCE, TOLERANCE)
    if target == "check.expect_eq":
        # Compared as numbers: zeros of either sign are equal, and so are all NaNs.
        absolute = relative = 0.0
    tolerances = {"atol": FloatAttr(_upward(absolute), F32), "rtol": FloatAttr(_upward(relative), F32)}
    _call(builder, "expect_almost_eq", operands, {**tolerances})
    return []


def _are_equal(builder: Builder, left: Value, right: Value) -> Value:
    """Whether all elements are equal."""
    same = builder.compare("EQ", left, right)
    return builder.reduce("and", same, True, range(tensor_of(same).rank))


def _upward(number: float) -> float:
    """Returns the smallest f32 that is not below a number."""
    rounded = np.float32(number)
    return float(rounded if float(rounded) >= number else np.nextafter(rounded, np.float32(math.inf)))


def _call(builder: Builder, name: str, operands: Sequence[Value], extra: dict[str, Attribute] | None = None) -> None:
    attributes: dict[str, Attribute] = {"call_target_name": f"check.{name}", "has_side_effect": True, **(extra or {})}
    builder.append("custom_call", operands, [], attributes)


def _expect_close(builder: Builder, operation: Operation) -> None:
    """Expects every element within a distance in units in the last place; of complex numbers, the larger one of the
    parts.
    """
    type = tensor_of(operation.operands[0])
    if type.scalar.kind not in ("float", "complex"):
        raise OperationError(f"floats or complex numbers, got {type}", 0)
    most, least = operation.integer("max_ulp_difference", MAX_ULPS), operation.integer("min_ulp_difference")
    parts = ("real", "imag") if type.scalar.kind == "complex" else ("",)
    verdicts = []
    for part in parts:
        values = [builder.part(part, value) if part else value for value in operation.operands]
        distance, is_defined = _distance(*(Expression(builder, value) for value in values))
        limit = (1 << distance.element.bits) - 1
        is_near, is_far = distance <= min(most, limit), distance >= min(least, limit)
        if most >= _UNBOUNDED:
            verdicts.append((is_defined.constant(True), ~is_defined if least >= _UNBOUNDED else ~is_defined | is_far))
        else:
            verdicts.append((is_defined & is_near, ~is_defined | is_far))
    (is_near, is_far), *others = verdicts
    for near, far in others:
        is_near, is_far = is_near & near, is_far | far
    _call(builder, "expect_all_true", [(is_near & is_far).value])


def _distance(x: Expression, y: Expression) -> tuple[Expression, Expression]:
    """Returns the distance in units in the last place, and whether it is defined: both are finite, or equal."""
    # By bits, since a device may flush subnormal numbers to zero.
    bits = ScalarType(f"ui{x.element.bits}")
    raws = [value.bitcast(bits) for value in (x, y)]
    sign = raws[0].constant(1 << (bits.bits - 1))
    infinity = Expression(x.builder, x.builder.like(x.value, math.inf)).bitcast(bits)
    sizes = [raw & ~sign for raw in raws]
    pairs = zip(raws, sizes, strict=True)
    left, right = ((raw & sign).equals(0).then(sign + size, sign - size) for raw, size in pairs)
    distance = (left > right).then(left - right, right - left)
    is_equal = left.equals(right) | ((sizes[0] > infinity) & (sizes[1] > infinity))
    are_finite = (sizes[0] < infinity) & (sizes[1] < infinity)
    return is_equal.then(distance.constant(0), distance), is_equal | are_finite
