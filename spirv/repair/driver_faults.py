"""The faults of drivers that pumice has a repair for, by the names that caches and commands use.

A repair changes a module in front of a driver that has the fault: its results are then what SPIR-V, and IEEE 754 for
floats, say. ``self_test`` finds a driver's faults, ``driver_repairs`` has the repairs.
"""

from __future__ import annotations

import enum
from typing import Final


class DriverFault(enum.Enum):
    """A fault; its value is its name."""

    DOUBLE_ROUNDING = "double rounding"
    SIGNED_MODULO = "signed modulo"
    SIGN_EXTENSION = "sign extension"
    SPECIAL_CONSTANTS = "special constants"


ALL_FAULTS: Final = frozenset(DriverFault)
"""Every fault: a repair of what a driver does right costs speed, and changes no result."""
NO_FAULTS: Final[frozenset[DriverFault]] = frozenset()
