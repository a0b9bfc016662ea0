"""Compute shaders that are called like functions of arrays.

Imports: runtime.arrays, hal_vulkan, spirv, status.
Read: shader_source, block, parameter, arguments, push, names, pointers, kernel.
"""

from .kernel import Kernel

__all__ = ["Kernel"]
