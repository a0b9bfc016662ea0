"""Specialization constants, packed in the types that a shader declares.

Constants are compared by bits: 0.0 and -0.0 differ, and NaN equals itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from ...spirv.reflection.reflection_types import ScalarType, SpecializationConstant
from ...status import InvalidArgumentError, NotFoundError
from ..vulkan.functions import CData, new

SpecializationValue = int | float | bool
"""A value for a specialization constant; it is converted to the type that the shader declares."""

PackedConstants = tuple[tuple[int, bytes], ...]
"""(constant id, bytes), sorted by id: the key of pipelines."""


def pack_constants(
    declared: Sequence[SpecializationConstant], values: Mapping[int, SpecializationValue] | None
) -> PackedConstants:
    """Returns the values, each in the type of its constant; raises for unknown constants and values that do not fit."""
    if not values:
        return ()
    by_id = {constant.constant_id: constant for constant in declared}
    packed = []
    for constant_id, value in sorted(values.items()):
        constant = by_id.get(constant_id)
        if constant is None:
            known = ", ".join(map(str, declared)) or "none"
            raise NotFoundError(f"the shader has no specialization constant {constant_id}; it has: {known}")
        ways = {_pack(constant, scalar, value) for scalar in constant.scalars or (constant.scalar,)}
        if len(ways) > 1:
            types = ", ".join(f"{scalar.kind}{scalar.bits}" for scalar in constant.scalars)
            raise InvalidArgumentError(
                f"the shader has constants of different types ({types}) for specialization constant {constant}, and "
                f"{value!r} is not the same bytes in each; rebuild it with an id for each"
            )
        packed.append((constant_id, ways.pop()))
    return tuple(packed)


def specialization_info(constants: PackedConstants) -> CData | None:
    """Returns the VkSpecializationInfo, or ``None`` for no constants."""
    entries, data = [], b""
    for constant_id, packed in constants:
        entries.append(new("VkSpecializationMapEntry", constantID=constant_id, offset=len(data), size=len(packed)))
        data += packed
    if not entries:
        return None
    return new("VkSpecializationInfo", mapEntryCount=len(entries), pMapEntries=entries, dataSize=len(data), pData=data)


def _pack(constant: SpecializationConstant, scalar: ScalarType, value: SpecializationValue) -> bytes:
    subject = f"specialization constant {constant}"
    if not isinstance(value, (bool, int, float)):
        raise InvalidArgumentError(f"{subject} takes a number, got {type(value).__name__}")
    try:
        if scalar.kind == "bool":
            return struct.pack("<I", bool(value))
        if scalar.kind == "float":
            return struct.pack({16: "<e", 32: "<f", 64: "<d"}[scalar.bits], float(value))
        if int(value) != value:
            raise InvalidArgumentError(f"{subject} is a {scalar.bits}-bit {scalar.kind}, got {value!r}")
        code = {8: "b", 16: "h", 32: "i", 64: "q"}[scalar.bits]
        return struct.pack("<" + (code if scalar.kind == "int" else code.upper()), int(value))
    except (struct.error, OverflowError, ValueError) as error:
        if isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(f"{subject} is a {scalar.bits}-bit {scalar.kind}; {value!r} does not fit") from None
