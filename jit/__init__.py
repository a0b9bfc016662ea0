"""JAX functions on any Vulkan device: ``pumice.jit``, which joins the compiler and the runtime.

``pumice.jit`` names this package, and calling the package calls ``jit``. So it means the same whether a program wrote
``import pumice`` or ``import pumice.jit.stages`` first. JAX is imported when the first function is decorated.

Read: devices, leaves, parameters, places, stages, cache, function, decorator.
"""

import sys

from .decorator import CallablePackage, jit

__all__ = ["jit"]

sys.modules[__name__].__class__ = CallablePackage
