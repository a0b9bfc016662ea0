"""Runs a study on the workers of a Dask cluster.

Imports: the other rooms but ``report``, ``hal_vulkan`` and ``runtime``.

Read: run, scheduler, chunks, worker, workers, client, devices, study_files.
"""

# Loaded on first use, with SciPy and Vulkan.
from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .run import run_on_cluster

__all__ = ["run_on_cluster"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".run": ("run_on_cluster",),
    },
)
