"""Formatting of numbers: one unit per chart or table, four significant digits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from ....base.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TimeUnit:
    """A unit of time: its symbol, and the nanoseconds of one."""

    name: str
    ns: float

    def text(self, ns: float | None, digits: int = 4) -> str:
        """Formats nanoseconds in this unit, without its symbol; a dash for unknown."""
        return "—" if ns is None else number_text(ns / self.ns, digits)


_UNITS: Final = (TimeUnit("ns", 1.0), TimeUnit("µs", 1e3), TimeUnit("ms", 1e6), TimeUnit("s", 1e9))


def time_unit(values: Iterable[float | None]) -> TimeUnit:
    """Returns the unit in which the largest of the nanoseconds is at least 1."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(known, default=0.0)
    return next((unit for unit in reversed(_UNITS) if largest >= unit.ns), _UNITS[0])


def time_text(ns: float | None, digits: int = 4) -> str:
    if ns is None or not math.isfinite(ns):
        return "—"
    unit = time_unit([ns])
    return f"{unit.text(ns, digits)} {unit.name}"


def plain_text(value: float | None) -> str:
    """Formats a number that was chosen and not measured, such as a limit or a tick: without trailing zeros."""
    text = number_text(value)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def number_text(value: float | None, digits: int = 4) -> str:
    """Formats a number with ``digits`` significant digits, without an exponent where that is readable."""
    if value is None or not math.isfinite(value):
        return "—"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size >= 9 or size < -5:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - size)}f}"


def bound_text(ns: float) -> str:
    """Formats a bound in nanoseconds with three digits; at least 1 ns, the resolution of host times."""
    ns = max(ns, 1.0)
    unit = time_unit([ns])
    return f"{plain_text(float(f'{ns / unit.ns:.3g}'))} {unit.name}"


def percent_text(fraction: float | None, digits: int = 2) -> str:
    if fraction is None or not math.isfinite(fraction):
        return "—"
    return f"{number_text(100 * fraction, digits)} %"


def count_text(value: object) -> str:
    """Formats an axis value for a tick: ``65536`` as ``64 Ki``, ``2000000`` as ``2 M``; others unchanged."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    for power, prefix in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if isinstance(value, int) and value >= 1 << power and value % (1 << power) == 0:
            return f"{value >> power} {prefix}"
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 10 or (abs(value) >= size and value % size == 0):
            return f"{value / size:.4g} {prefix}"
    return f"{value:.6g}"
