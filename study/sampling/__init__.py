"""Runs a study on this machine: samples its points interleaved, until each has enough samples.

Imports: ``study.definition``, ``study.statistics``, ``study.workloads``, ``study.results``, ``runtime`` and
``hal_vulkan``.

Read: runner, sampler, point_run, stopping, environment, device_clocks.
"""

# Loaded on first use, with SciPy and Vulkan.
from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .runner import run_study
    from .sampler import Progress, SampleRun

__all__ = ["Progress", "SampleRun", "run_study"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".runner": ("run_study",),
        ".sampler": (
            "Progress",
            "SampleRun",
        ),
    },
)
