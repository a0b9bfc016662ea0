"""Modules written in Python, and how their functions are called.

Imports: `bytecode`, `translation`, `wait` and the ground files at the root.

Read: `module`, `coroutine`, `checked`.
"""

from __future__ import annotations

from .module import NativeModule, export

__all__ = [
    "NativeModule",
    "export",
]
