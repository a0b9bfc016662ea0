"""Tests of GPU code: the pytest plug-in, and its parts for separate use.

Public: `assert_close`, `NotCloseError`, `tolerance`; `nothing_left`, `LiveLimit`; `DriverRange`, `missing_features`.

pytest loads `plugin` wherever pumice is installed, so it imports nothing else of pumice until a test uses it.

Read: live, markers, pictures, closeness, recording, reproduction, requirements, timing, watch, testbed, plugin.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from .closeness import NotCloseError, assert_close, tolerance
    from .live import LiveLimit, nothing_left
    from .requirements import DriverRange, missing_features

__all__ = ["DriverRange", "LiveLimit", "NotCloseError", "assert_close", "missing_features", "nothing_left", "tolerance"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".closeness": ("NotCloseError", "assert_close", "tolerance"),
            ".live": ("LiveLimit", "nothing_left"),
            ".requirements": ("DriverRange", "missing_features"),
        },
    )
