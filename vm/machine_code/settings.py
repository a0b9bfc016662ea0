"""Settings that determine whether and when machine code is generated. It has few imports, for fast starts."""

from __future__ import annotations

import importlib.util
import os
import struct
import sys
from functools import cache
from typing import Final

from ...base.switches import wrong_value

NEVER: Final = 1 << 62
_HOT: Final = 50_000  # instructions executed in a function's loops: some milliseconds
_MODES: Final = {"": _HOT, "off": NEVER, "always": 0}
_VARIABLE: Final = "PUMICE_MACHINE_CODE"
ASK: Final = 300  # instructions of a call after which translated code checks whether the function is hot
ASK_AGAIN: Final = 200  # likewise, once there is machine code: entering and leaving it costs about as much


def _chosen() -> int:
    """Parses ``PUMICE_MACHINE_CODE``; raises InvalidArgumentError for an unknown value."""
    hot = _MODES.get(os.environ.get(_VARIABLE, ""))
    if hot is None:
        raise wrong_value(_VARIABLE, "off, always, or nothing")
    return hot


class Settings:
    """The conditions under which machine code is generated; tests change them.

    Attributes:
        hot: the instructions after which a function is compiled; 0 compiles every supported function at its first call.
    """

    hot: int = _chosen()


@cache
def is_available() -> bool:
    """Whether machine code can be generated: on a 64-bit little-endian machine with llvmlite."""
    if struct.calcsize("P") != 8 or sys.byteorder != "little":
        return False
    try:
        return importlib.util.find_spec("llvmlite") is not None
    except (ImportError, ValueError):
        return False
