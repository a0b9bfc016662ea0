"""Messages for reports of accesses."""

from __future__ import annotations

from typing import Final

from .reports import Report

_SIGN: Final = 1 << 63
_AXES: Final = "xyz"


def access_message(report: Report) -> str:
    """Returns a clause that says what an access did wrong."""
    place, limit = report.place, report.limit
    name = place.name or "an unnamed variable"
    if place.binding is not None:
        name += f" (set {place.binding[0]}, binding {place.binding[1]})"
    index = report.index - (1 << 64) if report.index & _SIGN else report.index
    match place.rule:
        case "byte":
            clause = f"byte {index} of {name}, of which {limit:,} bytes are bound, is accessed"
        case "descriptor":
            clause = f"descriptor {index} of {name}, an array of {limit}, is used"
        case "coordinate":
            value = index & 0xFFFFFFFF
            value -= (value >> 31) << 32
            clause = f"{_AXES[(index >> 32) % 3]} = {value} of image {name}, which is {limit} there, is accessed"
        case "level" | "sample":
            clause = f"{place.rule} {index} of image {name}, which has {limit}, is accessed"
        case "null":
            clause = f"a null device address{f' + {index:,}' if index else ''} is accessed as {name}"
        case "misaligned":
            clause = f"the device address {report.index:#x}, no multiple of {limit}, is accessed as {name}"
        case "wild":
            clause = (
                f"{limit} bytes at the device address {report.index:#x}, which no buffer has, are accessed as {name}"
            )
        case "read":
            clause = f"element {index} of {name} in workgroup memory is read before anything is written to it"
        case _:
            wrapped = f" ({index - (1 << 32)} as a signed integer)" if 1 << 31 <= index < 1 << 32 else ""
            clause = f"element {index}{wrapped} of {name}, which has {limit}, is accessed"
    return clause
