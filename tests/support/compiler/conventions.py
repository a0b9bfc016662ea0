"""Types of functions for tests of calling conventions, and conversions of them."""

from __future__ import annotations

from collections.abc import Callable

from pumice.compiler.abi.type_converter import TypeConverter, parse_type
from pumice.compiler.ir.types import FunctionType, MemRefType, TensorType, Type

KERNEL = "(tensor<?xf32>, tensor<?xf32>) -> tensor<?x?xf32>"
"""XLA's own example."""

CONTEXT = "!rt.kernel_context"


def function_type(text: str) -> FunctionType:
    found = parse_type(text)
    assert isinstance(found, FunctionType)
    return found


def converted(convention: Callable[[FunctionType], FunctionType | None], text: str = KERNEL) -> str:
    return str(convention(function_type(text)))


def memrefs() -> TypeConverter:
    return TypeConverter().add(
        lambda type: MemRefType(type.shape, type.element) if isinstance(type, TensorType) else None
    )


def replaced(before: str, after: str) -> Callable[[Type], Type | None]:
    """A conversion of one type."""
    return lambda type: parse_type(after) if str(type) == before else None
