"""Reports of timing studies, for people: one HTML file, or tables for a terminal."""

from .page import write_report
from .terminal import terminal_report, terminal_summary

__all__ = ["terminal_report", "terminal_summary", "write_report"]
