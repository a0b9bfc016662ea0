"""JAX functions on any Vulkan device: ``pumice.jit``, which joins the compiler and the runtime.

The package is what ``pumice.jit`` names, and calling it is calling ``jit``: so it is the same whether a program said
``import pumice`` or ``import pumice.jit.stages`` first.

Imports: compiler, runtime, vm, hal, formats and the ground. JAX is imported when the first function is decorated.
Read: decorator; parameters, leaves, places, devices, stages, cache, function.
"""

import sys

from .decorator import CallablePackage, jit

__all__ = ["jit"]

sys.modules[__name__].__class__ = CallablePackage
