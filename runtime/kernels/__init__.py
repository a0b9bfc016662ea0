"""Compute shaders that are called like functions of arrays.

Read: parameters, bound_call, descriptors, push_memory, recorded_call, shader_source, specialization, wide_grids,
recorder, dispatcher, kernel.
"""

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .kernel import Kernel

__all__ = ["Kernel"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".kernel": ("Kernel",),
        },
    )
