"""Code that runs a module without the virtual machine: Python on the HAL, or C on Vulkan.

Calling sequence: ``pumice.vm.read_module`` → ``write_hal`` or ``write_c``.

Read: program, c, hal.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .c.writer import write_c
    from .hal.module_writer import HalCode, write_hal

__all__ = [
    "HalCode",
    "write_c",
    "write_hal",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".c.writer": ("write_c",),
            ".hal.module_writer": (
                "HalCode",
                "write_hal",
            ),
        },
    )
