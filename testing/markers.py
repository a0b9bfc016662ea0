"""The markers of the plug-in: their descriptions for pytest, and their arguments.

Imported in every run of pytest, so it imports nothing else of pumice.
"""

from __future__ import annotations

from typing import Final

import pytest

MARKERS: Final = {
    "gpu": "gpu: needs real hardware; skipped on devices that run on the CPU",
    "needs": 'needs("shaderFloat16", "VK_KHR_…"): skipped where the device lacks a feature or an extension',
    "skip_driver": 'skip_driver("llvmpipe<23"): skipped on drivers, by part of the name and bounds of the version',
    "limit_live": 'limit_live("2 buffers", warmups=1): may leave so many native objects, after runs that do not count',
    "timeout_device": "timeout_device(5): fails where the device needs more seconds for what it was given",
}


def is_right(mark: pytest.Mark) -> bool:
    """Returns whether a marker has the right arguments."""
    texts = all(isinstance(argument, str) for argument in mark.args)
    match mark.name:
        case "gpu":
            return not (mark.args or mark.kwargs)
        case "limit_live":
            has_warmups = mark.kwargs.keys() <= {"warmups"} and warmups(mark) == mark.kwargs.get("warmups", 0)
            return texts and len(mark.args) == 1 and has_warmups
        case "timeout_device":
            number = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
            return isinstance(number, (int, float)) and number > 0
        case _:
            return texts and bool(mark.args) and not mark.kwargs


def warmups(mark: pytest.Mark) -> int:
    """Returns the number of runs before the counted run; 0 if the marker's number is invalid."""
    count = mark.kwargs.get("warmups", 0)
    return count if type(count) is int and count > 0 else 0
