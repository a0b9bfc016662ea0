"""The driver faults that pumice can repair, by the names that caches and commands use.

A repair changes a module before a faulty driver sees it, so that its results follow SPIR-V, and IEEE 754 for floats.
``self_test`` finds a driver's faults; ``driver_repairs`` has the repairs.
"""

from __future__ import annotations

import enum
from typing import Final


class DriverFault(enum.Enum):
    """A fault; its value is its name."""

    DOUBLE_ROUNDING = "double rounding"
    LOOP_EXITS = "loop exits"
    NARROW_ROUNDING = "narrow rounding"
    SIGNED_MODULO = "signed modulo"
    SIGN_EXTENSION = "sign extension"
    SPECIAL_CONSTANTS = "special constants"


ALL_FAULTS: Final = frozenset(DriverFault)
"""Every fault: a repair that a driver does not need costs speed, and changes no result."""
NO_FAULTS: Final[frozenset[DriverFault]] = frozenset()
