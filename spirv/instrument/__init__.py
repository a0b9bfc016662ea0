"""Passes that make compute shaders report what goes wrong in them, through one more storage buffer.

Read: editor, blocks, lines, paths, reports, rewrite, reporter, conditions, checks, addresses, images, trip_counts,
loop_guard, workgroup, accesses, passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .checks import NARROW_CAPABILITIES, SanitizeOptions
    from .passes import instrument
    from .reports import REPORT_BYTES, Instrumented, Place, Report, ReportKind

__all__ = [
    "NARROW_CAPABILITIES",
    "REPORT_BYTES",
    "Instrumented",
    "Place",
    "Report",
    "ReportKind",
    "SanitizeOptions",
    "instrument",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".checks": ("NARROW_CAPABILITIES", "SanitizeOptions"),
            ".passes": ("instrument",),
            ".reports": ("REPORT_BYTES", "Instrumented", "Place", "Report", "ReportKind"),
        },
    )
