"""``check``: expectations about values, as custom calls of the same names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..dialects.rules.requirements import OperationError
from ..ir.attributes import Attribute, DenseElements
from ..ir.operation import Value
from .conversion import Handler, Rule, Site, same_types

Values = Sequence[Value]

_KEPT: Final = ("atol", "rtol", "tolerance", "max_ulp_difference", "min_ulp_difference")


def _expect(name: str) -> Handler:
    def handler(site: Site) -> Values:
        operands = list(site.operands)
        value = site.operation.attributes.get("value")
        if isinstance(value, DenseElements):
            operands.append(site.builder.append("constant", (), [value.type], {"value": value}).result)
        same_types(site)
        if len(operands) != (1 if name == "expect_all_true" else 2) or operands[-1].type is not operands[0].type:
            raise OperationError("a value, and what it is to be, of the same type")
        attributes: dict[str, Attribute] = {"call_target_name": f"check.{name}", "has_side_effect": True}
        attributes |= {key: site.operation.attributes[key] for key in _KEPT if key in site.operation.attributes}
        site.builder.append("custom_call", operands, [], attributes)
        return []

    return handler


CHECK: Final[Mapping[str, Rule]] = {
    "expect_all_true": Rule(1, _expect("expect_all_true")),
    "expect_almost_eq": Rule(2, _expect("expect_almost_eq")),
    "expect_almost_eq_const": Rule(1, _expect("expect_almost_eq")),
    "expect_close": Rule(2, _expect("expect_close")),
    "expect_eq": Rule(2, _expect("expect_eq")),
    "expect_eq_const": Rule(1, _expect("expect_eq")),
}
"""Conversions of ``check`` operations. Keys are operation names without ``check.``."""
