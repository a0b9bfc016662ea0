"""Scalar types as element types of buffer views."""

from __future__ import annotations

import functools

from ...formats.element_type import ElementType
from .types import ScalarType


@functools.cache
def element_type(type: ScalarType) -> ElementType | None:
    """Returns the element type of a buffer view of these scalars, or None."""
    name = {"complex<f32>": "cf64", "complex<f64>": "cf128", "index": "i64"}.get(str(type), str(type))
    return next((candidate for candidate in ElementType if candidate.short_name == name), None)
