"""Passes that make compute shaders report what goes wrong in them, through one more storage buffer.

Imports: the files of `spirv`, and the ground files at the root.

Read: `editor`, `reports`, `messages`, `lines`; `blocks`, `trip_counts`, `conditions`, `loop_guard`; `rewrite`, `paths`,
`checks`, `addresses`, `images`, `workgroup`, `accesses`, `sanitize`; `instrument`.
"""

from __future__ import annotations

from .checks import NARROW_CAPABILITIES, SanitizeOptions
from .instrument import Instrumented, instrument
from .reports import REPORT_BYTES, Place, Report, ReportKind

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
