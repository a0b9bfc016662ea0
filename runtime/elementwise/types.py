"""Types of elements: names in C and NumPy, types in GLSL's buffers and in its expressions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """A type of elements.

    Attributes:
        stored: the GLSL type in buffers.
        computed: the GLSL type of a value. As in C, small integers are computed with 32 bits and halves as floats;
            stores round them.
        extensions: the GLSL extensions that the type needs.
        feature: the Vulkan feature that the type needs; empty for none.
    """

    dtype: np.dtype[np.generic]
    stored: str
    computed: str
    extensions: tuple[str, ...] = ()
    feature: str = ""

    def loaded(self, lvalue: str) -> str:
        """Returns an expression for the value in an lvalue of a buffer."""
        if self.computed == "bool":
            return f"(uint({lvalue}) != 0u)"
        return lvalue if self.stored == self.computed else f"{self.computed}({lvalue})"

    def converted(self, value: str) -> str:
        """Returns an expression that converts a value for a buffer."""
        if self.computed == "bool":
            return f"{self.stored}(uint({value}))"
        return value if self.stored == self.computed else f"{self.stored}({value})"


_STORAGE_8: Final = (("GL_EXT_shader_8bit_storage",), "storageBuffer8BitAccess")
_STORAGE_16: Final = (("GL_EXT_shader_16bit_storage",), "storageBuffer16BitAccess")
_INT_64: Final = (("GL_EXT_shader_explicit_arithmetic_types_int64",), "shaderInt64")

ELEMENTS: Final = {
    element.dtype: element
    for element in (
        Element(np.dtype(np.bool_), "uint8_t", "bool", *_STORAGE_8),
        Element(np.dtype(np.int8), "int8_t", "int", *_STORAGE_8),
        Element(np.dtype(np.uint8), "uint8_t", "uint", *_STORAGE_8),
        Element(np.dtype(np.int16), "int16_t", "int", *_STORAGE_16),
        Element(np.dtype(np.uint16), "uint16_t", "uint", *_STORAGE_16),
        Element(np.dtype(np.float16), "float16_t", "float", *_STORAGE_16),
        Element(np.dtype(np.int32), "int", "int"),
        Element(np.dtype(np.uint32), "uint", "uint"),
        Element(np.dtype(np.float32), "float", "float"),
        Element(np.dtype(np.int64), "int64_t", "int64_t", *_INT_64),
        Element(np.dtype(np.uint64), "uint64_t", "uint64_t", *_INT_64),
        Element(np.dtype(np.float64), "double", "double", (), "shaderFloat64"),
    )
}
"""The types that shaders support, by dtype."""

NAMES: Final[dict[str, np.dtype[Any]]] = {
    **{str(dtype): dtype for dtype in ELEMENTS},
    **{f"{dtype}_t": dtype for dtype in ELEMENTS if dtype.kind in "iu"},
    "float16_t": np.dtype(np.float16),
    "half": np.dtype(np.float16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "char": np.dtype(np.int8),
    "uchar": np.dtype(np.uint8),
    "unsigned char": np.dtype(np.uint8),
    "short": np.dtype(np.int16),
    "ushort": np.dtype(np.uint16),
    "unsigned short": np.dtype(np.uint16),
    "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32),
    "unsigned": np.dtype(np.uint32),
    "unsigned int": np.dtype(np.uint32),
    "long": np.dtype(np.int64),
    "long long": np.dtype(np.int64),
    "ulong": np.dtype(np.uint64),
    "unsigned long": np.dtype(np.uint64),
    "unsigned long long": np.dtype(np.uint64),
    "size_t": np.dtype(np.uint64),
}
"""Names of types: from NumPy, and from C with the widths of OpenCL."""
