"""Tuning: the fastest strategies for the regions of a program, measured on the device at hand.

It joins the compiler and the studies, which know nothing of each other. The compiler lists the strategies for a region,
and takes the fastest as part of its target; the sampler of studies measures them.

Read: database, regions, duel, tuner.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .database import Finding, TuningDatabase, tuned_target
    from .regions import TunableRegion, tunable_regions
    from .tuner import Tuning, tune, tune_program

__all__ = [
    "Finding",
    "TunableRegion",
    "Tuning",
    "TuningDatabase",
    "tunable_regions",
    "tune",
    "tune_program",
    "tuned_target",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".database": ("Finding", "TuningDatabase", "tuned_target"),
            ".regions": ("TunableRegion", "tunable_regions"),
            ".tuner": ("Tuning", "tune", "tune_program"),
        },
    )
