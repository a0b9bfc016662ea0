"""MHLO, StableHLO's origin: its operations are StableHLO's and CHLO's under other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..dialects.rules.chlo import CHLO_RULES
from ..dialects.rules.hlo import RULES
from ..ir.attributes import Attribute, EnumAttr, StructAttr

_RENAMED: Final = {"topk": "chlo.top_k"}


def stablehlo_name(name: str) -> str | None:
    """Returns the StableHLO or CHLO name of an MHLO operation; None where it has none."""
    if name in RULES:
        return f"stablehlo.{name}"
    return f"chlo.{name}" if name in CHLO_RULES else _RENAMED.get(name)


def stablehlo_attribute(value: Attribute) -> Attribute:
    """Converts an attribute of MHLO to StableHLO's."""
    if isinstance(value, EnumAttr):
        return EnumAttr("stablehlo", value.kind, value.case)
    if isinstance(value, StructAttr) and value.name.startswith("mhlo."):
        return StructAttr(f"stablehlo.{value.name[5:]}", value.fields)
    if isinstance(value, tuple):
        return tuple(map(stablehlo_attribute, value))
    if isinstance(value, Mapping):
        return {key: stablehlo_attribute(item) for key, item in value.items()}
    return value
