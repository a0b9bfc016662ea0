"""Dot products of four bytes (``SPV_KHR_integer_dot_product``)."""

from __future__ import annotations

from typing import Final

from .builder import Builder
from .declarations import U32
from .expression import Id
from .grammar import ENUMERATIONS, Op

_FORMAT: Final = ENUMERATIONS["PackedVectorFormat"].PackedVectorFormat4x8Bit


def dot(builder: Builder, left: Id, right: Id, is_signed: bool) -> Id:
    """Returns the dot product of the bytes of two words, modulo 2**32."""
    for capability in ("DotProduct", "DotProductInput4x8BitPacked"):
        builder.declarations.require(capability, "SPV_KHR_integer_dot_product")
    return builder.emit(Op.SDot if is_signed else Op.UDot, U32, left, right, _FORMAT)
