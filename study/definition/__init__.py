"""Studies: targets, axes, sampling settings and derived figures, their checks, and their expansion to points.

Imports: ``formats``, ``runtime.values`` and ``status``.

Read: study, axis, expression, template, target_settings, setting_types, settings, figures, point, expansion,
study_file.
"""

# Loaded on first use, with SciPy and Vulkan.
from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .axis import Axis
    from .expansion import derive, expand
    from .point import Point
    from .sample import MEASURES, SEGMENTS, Sample
    from .settings import Sampling
    from .study import Study, Target
    from .study_file import load_study, parse_study

__all__ = [
    "MEASURES",
    "SEGMENTS",
    "Axis",
    "Point",
    "Sample",
    "Sampling",
    "Study",
    "Target",
    "derive",
    "expand",
    "load_study",
    "parse_study",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".axis": ("Axis",),
        ".expansion": (
            "derive",
            "expand",
        ),
        ".point": ("Point",),
        ".sample": (
            "MEASURES",
            "SEGMENTS",
            "Sample",
        ),
        ".settings": ("Sampling",),
        ".study": (
            "Study",
            "Target",
        ),
        ".study_file": (
            "load_study",
            "parse_study",
        ),
    },
)
