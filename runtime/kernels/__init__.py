"""Compute shaders that are called like functions of arrays.

Imports: runtime.arrays, runtime.images, hal_vulkan, spirv, status.
Read: shader_source, block, parameter, image_parameter, runtime_array, parameters, arguments, push, names, pointers,
specialization, descriptors, recorder, verdicts, results, block_dtypes, kernel.
"""

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .kernel import Kernel

__all__ = ["Kernel"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".kernel": ("Kernel",),
    },
)
