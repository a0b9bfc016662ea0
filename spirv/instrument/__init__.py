"""Passes that make compute shaders report what goes wrong in them, through one more storage buffer.

Imports: the files of `spirv`, and the ground files at the root.

Read: `editor`, `reports`, `blocks`, `loop_guard`, `instrument`.
"""

from __future__ import annotations

from .instrument import Instrumented, instrument
from .reports import REPORT_BYTES, Place, Report, ReportKind

__all__ = ["REPORT_BYTES", "Instrumented", "Place", "Report", "ReportKind", "instrument"]
