"""The values of WGSL's overrides.

WebGPU sets overrides when it makes a pipeline. They may be lengths of arrays and sizes of workgroups, and naga writes
no specialization constants for them. So each becomes a ``const`` in the text that is compiled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from ...status import InvalidArgumentError, NotFoundError, shown

OverrideValue: TypeAlias = bool | int | float

_COMMENT: Final = r"//[^\n]*|/\*.*?\*/"
_DECLARATION: Final = re.compile(
    rf"{_COMMENT}|(?:@id\s*\(\s*(?P<id>\d+)\w*\s*\)\s*)?\boverride\s+(?P<name>\w+)\s*(?::\s*(?P<type>\w+)\s*)?"
    r"(?:=(?P<value>[^;]*))?;",
    re.DOTALL,
)
# The type of a default: of its suffix, of a conversion, or of the kind of number.
_TYPES: Final = (
    (re.compile(r"(bool|i32|u32|f32|f16)\s*\(.*\)", re.DOTALL), ""),
    (re.compile(r"true|false"), "bool"),
    (re.compile(r"-?(?:0[xX])?[0-9a-fA-F]+u"), "u32"),
    (re.compile(r"-?(?:\d+|0[xX][0-9a-fA-F]+)i?"), "i32"),
    (re.compile(r"-?[\d.]+(?:[eE][+-]?\d+)?h"), "f16"),
    (re.compile(r"-?[\d.]+(?:[eE][+-]?\d+)?f?"), "f32"),
)
_RANGES: Final = {"i32": (-(1 << 31), (1 << 31) - 1), "u32": (0, (1 << 32) - 1)}


def with_values(text: str, values: Mapping[int | str, OverrideValue]) -> str:
    """Returns a source with its overrides as constants, with the same line numbers.

    Args:
        text: the source in WGSL.
        values: the values by name or by the number in ``@id``; overrides without one have their default.

    Raises:
        NotFoundError: there is no override of that name or number.
        InvalidArgumentError: an override has neither a value nor a default, or its type does not have the value.
    """
    names: list[str] = []
    used: set[int | str] = set()

    def constant(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match[0]
        number = None if match["id"] is None else int(match["id"])
        names.append(name if number is None else f"{name} (id {number})")
        keys = [key for key in values if key in (name, number)]
        used.update(keys)
        if len(keys) > 1:
            raise InvalidArgumentError(f"override {name} is given twice, by its name and by its id {number}")
        default = (match["value"] or "").strip()
        kind = match["type"] or _type_of(default)
        if keys:
            value = _literal(name, kind, values[keys[0]])
        elif default:
            value = default
        else:
            raise InvalidArgumentError(
                f"override {name} has no default: give its value, such as specialization={{{name!r}: 1}}"
            )
        declared = f"const {name}{f': {kind}' if kind else ''} = {value};"
        return declared + "\n" * (match[0].count("\n") - declared.count("\n"))

    replaced = _DECLARATION.sub(constant, text)
    for key in values:
        if key not in used:
            name = shown(key) if isinstance(key, str) else key
            raise NotFoundError(f"the shader has no override {name}; it has: {', '.join(names) or 'none'}")
    return replaced


def _type_of(default: str) -> str:
    for pattern, kind in _TYPES:
        if match := pattern.fullmatch(default):
            return kind or match[1]
    return ""  # an expression of other overrides


def _literal(name: str, kind: str, value: object) -> str:
    if not isinstance(value, (bool, int, float)) and not hasattr(value, "item"):
        raise InvalidArgumentError(f"override {name} takes a number, got {shown(str(value))}")
    number: object = value.item() if hasattr(value, "item") else value
    if kind == "bool" and number in (0, 1):
        return "true" if number else "false"
    if isinstance(number, (bool, int, float)) and math.isfinite(number):
        low, high = _RANGES.get(kind, (-math.inf, math.inf))
        if kind in _RANGES and number == int(number) and low <= number <= high:
            return f"{kind}({int(number)})"
        if kind in ("f32", "f16", ""):
            plain = repr(float(number)) if kind else repr(number).lower()
            return f"{kind}({plain})" if kind else plain
    raise InvalidArgumentError(f"override {name} is {kind}, which has no value {shown(str(value))}")
