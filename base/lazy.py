"""Exports that are imported at their first use, so that a program loads only what it needs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .locks import RLock

_lock: Final = RLock()


def lazy_exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Returns a package's ``__getattr__`` and ``__dir__`` (PEP 562).

    Args:
        package: the package's ``__name__``.
        homes: the names that each relative module defines. A module with the name of its export is the export itself:
            ``".jit": ("jit",)``.
    """
    home_of = {name: home for home, names in homes.items() for name in names}
    namespace = vars(sys.modules[package])

    def look_up(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if _is_importing():
            home = importlib.import_module(home_of[name], package)
        else:  # circular imports in two threads see unfinished modules, or deadlock
            with _lock:
                home = importlib.import_module(home_of[name], package)
        value: object = home if home_of[name] == f".{name}" else getattr(home, name)
        namespace[name] = value
        return value

    def names() -> list[str]:
        dunders = {name for name in namespace if name.startswith("__")}
        return sorted({*namespace.get("__all__", ()), *home_of, *dunders})

    return look_up, names


def _is_importing() -> bool:
    """Whether this thread is importing a module, and so holds module locks: waiting for another lock could then
    deadlock.
    """
    frame = sys._getframe(2)
    while frame.f_back is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
