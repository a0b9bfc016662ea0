"""Syntax trees of Python source, in any thread.

CPython has one depth counter for all tree conversions of an interpreter. Concurrent conversions disturb it, and one
thread gets ``SystemError: AST constructor recursion depth mismatch`` (seen with 3.11).
"""

from __future__ import annotations

import ast
import threading
from typing import Final, Literal, overload

_lock: Final = threading.Lock()


@overload
def syntax_tree(source: str) -> ast.Module: ...
@overload
def syntax_tree(source: str, mode: Literal["eval"]) -> ast.Expression: ...
def syntax_tree(source: str, mode: Literal["exec", "eval"] = "exec") -> ast.mod:
    """Works like ``ast.parse``."""
    with _lock:
        return ast.parse(source, mode=mode)
