"""Checks that programs state by custom calls, in terms of the few that the host has.

The host compares bits, compares within tolerances, and looks for zeros. Distances in units of the last place are
computed by the program, which then expects its own verdict to be true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..dialects.builder import Builder
from ..dialects.rules import OperationError
from ..ir.attributes import Attribute, FloatAttr
from ..ir.operation import Operation, Value, tensor_of
from ..ir.types import F32, I1, ScalarType
from .expression import Expression

TOLERANCE: Final = 1e-4
MAX_ULPS: Final = 3
"""Where a call says nothing else (``stablehlo/tests/CheckOps.td``, and the interpreter's custom calls)."""

HOST: Final = ("check.expect_all_true", "check.expect_almost_eq", "check.expect_eq")
"""Checks that are left."""

_UNBOUNDED: Final = (1 << 64) - 1


def check_call(builder: Builder, operation: Operation) -> Sequence[Value] | None:
    """What stands for a check; None where the host has it as it is."""
    target = operation.attributes["call_target_name"]
    operands = operation.operands
    if target == "check.expect_close" and len(operands) == 2:
        _expect_close(builder, operation)
        return []
    if len(operands) != 2 or "rtol" in operation.attributes:
        return None
    is_inexact = tensor_of(operands[0]).scalar.kind in ("float", "complex")
    if target not in ("check.expect_almost_eq", "check.expect_eq") or not is_inexact:
        return None
    given = operation.attributes.get("atol", operation.attributes.get("tolerance"))
    tolerance = given.value if isinstance(given, FloatAttr) else TOLERANCE
    # As numbers, zeros of either sign are equal, and so are NaNs of any bits.
    tolerance = 0.0 if target == "check.expect_eq" else tolerance
    _call(builder, "expect_almost_eq", operands, {"atol": FloatAttr(tolerance, F32), "rtol": FloatAttr(0.0, F32)})
    return []


def _call(builder: Builder, name: str, operands: Sequence[Value], extra: dict[str, Attribute] | None = None) -> None:
    attributes: dict[str, Attribute] = {"call_target_name": f"check.{name}", "has_side_effect": True, **(extra or {})}
    builder.append("custom_call", operands, [], attributes)


def _expect_close(builder: Builder, operation: Operation) -> None:
    """Every element is as many units in the last place off as is permitted: the larger part of a complex number's."""
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
    """How many numbers of the type lie between two, and whether that is defined: both are finite, or they are equal."""
    bits = ScalarType(f"ui{x.element.bits}")
    keys = []
    for value in (x, y):
        raw = value.bitcast(bits)
        sign = raw.constant(1 << (bits.bits - 1))
        keys.append((raw & sign).equals(0).then(raw | sign, ~raw))
    one, other = keys
    distance = (one > other).then(one - other, other - one)
    is_equal = x.equals(y) | (x.differs(x) & y.differs(y))
    are_finite = x.call_to("is_finite", I1) & y.call_to("is_finite", I1)
    return is_equal.then(distance.constant(0), distance), is_equal | are_finite
