"""File formats that several folders read: FlatBuffers, Vulkan executables (VKE1), NumPy headers, element types.

Imports: the ground files at the root.

Read: `element_type`, `npy`; `flatbuffer`, `vke1`, `vke1_reader`, `vke1_writer`.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_exports

if TYPE_CHECKING:
    from .element_type import (
        ElementType,
        EncodingType,
        NumericalType,
        format_shape,
        format_shape_and_type,
        parse_shape_and_type,
    )
    from .flatbuffer import FlatBuffer, Table
    from .npy import NpyHeader, read_npy_header
    from .vke1 import DispatchAbi, ExecutableDef, PipelineDef
    from .vke1_reader import parse_executable
    from .vke1_writer import build_executable

__all__ = [
    "DispatchAbi",
    "ElementType",
    "EncodingType",
    "ExecutableDef",
    "FlatBuffer",
    "NpyHeader",
    "NumericalType",
    "PipelineDef",
    "Table",
    "build_executable",
    "format_shape",
    "format_shape_and_type",
    "parse_executable",
    "parse_shape_and_type",
    "read_npy_header",
]

# Readers of FlatBuffers start sooner without NumPy.
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".element_type": (
            "ElementType",
            "EncodingType",
            "NumericalType",
            "format_shape",
            "format_shape_and_type",
            "parse_shape_and_type",
        ),
        ".flatbuffer": (
            "FlatBuffer",
            "Table",
        ),
        ".npy": (
            "NpyHeader",
            "read_npy_header",
        ),
        ".vke1": (
            "DispatchAbi",
            "ExecutableDef",
            "PipelineDef",
        ),
        ".vke1_reader": ("parse_executable",),
        ".vke1_writer": ("build_executable",),
    },
)
