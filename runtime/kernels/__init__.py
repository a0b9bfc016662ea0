"""Compute shaders that are called like functions of arrays.

Imports: runtime.arrays, runtime.images, hal_vulkan, spirv, status.
Read: shader_source, block, parameter, image_parameter, runtime_array, parameters, arguments, push, names, pointers,
specialization, recorder, verdicts, kernel.
"""

from .kernel import Kernel

__all__ = ["Kernel"]
