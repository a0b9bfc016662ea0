"""What runs for one sample of a point, by kind of target, and the devices and clocks of a run.

Imports: ``study.definition``, ``runtime``, ``hal_vulkan`` and ``shaders``.

Read: workload, clock, openers, kernel, kernel_settings, module, copy, pipeline, semaphore, submit, timed_commands,
peaks, reference_kernel.
"""

# Loaded on first use, with SciPy and Vulkan.
from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .peaks import Peaks, measure_peaks

__all__ = ["Peaks", "measure_peaks"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".peaks": (
            "Peaks",
            "measure_peaks",
        ),
    },
)
