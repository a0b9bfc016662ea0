"""A profile as text, and as a dictionary that ``json`` can write."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Final

from ...terminal import new_table, plain_text, printable
from .figures import ProfileFigures

FORMAT_VERSION: Final = 1
_WIDTH: Final = 160
_LISTED_NATIVES: Final = 12


def profile_dict(profile: ProfileFigures) -> dict[str, object]:
    """All figures; times in nanoseconds of the host's monotonic clock."""
    return {
        "format_version": FORMAT_VERSION,
        "begin_ns": profile.begin_ns,
        "end_ns": profile.end_ns,
        "most_slowdown": profile.most_slowdown,
        "notes": list(profile.notes),
        "clocks": [clock.as_dict() for clock in profile.clocks],
        "exports": [dataclasses.asdict(one) for one in profile.exports],
        "calls": [dataclasses.asdict(one) for one in profile.calls],
        "natives": [dataclasses.asdict(one) for one in profile.natives],
        "waits": [dataclasses.asdict(one) for one in profile.waits],
        "dispatches": [dataclasses.asdict(one) for one in profile.dispatches],
    }


def profile_table(profile: ProfileFigures) -> str:
    """Device time by export; the calls with the host's shares; the native functions; the clocks and notes."""
    parts = []
    exports = profile.exports
    if exports:
        parts.append(
            _table(
                "dispatches",
                ("export", "count", "total", "median", "min", "max", "workgroups", "source"),
                (
                    (
                        one.name + (" (span)" if one.kind == "span" else ""),
                        str(one.count) + ("" if one.timed == one.count else f" ({one.timed} timed)"),
                        _time(one.total_ns) + ("" if one.timed == one.count else " est."),
                        _time(one.median_ns) if not one.overlapping else f"{_time(one.median_ns)} *",
                        _time(one.min_ns),
                        _time(one.max_ns),
                        _workgroups(one.workgroups),
                        one.location or "",
                    )
                    for one in exports
                ),
            )
        )
        overlapping = [one for one in exports if one.overlapping]
        if overlapping:
            parts.append(
                "* ran beside others with no barrier between; left out of median, min and max. Spans of those groups: "
                + ", ".join(f"{one.name} {_time(one.span_ns)} in {one.overlapping}" for one in overlapping)
            )
    parts.append(_calls(profile))
    natives = profile.natives
    if natives:
        parts.append(
            _table(
                "native functions",
                ("function", "calls", "total", "max", "waits", "waited"),
                (
                    (
                        one.name,
                        str(one.count),
                        _time(one.total_ns),
                        _time(one.max_ns),
                        str(one.waits),
                        _time(one.waited_ns),
                    )
                    for one in natives[:_LISTED_NATIVES]
                ),
            )
        )
        if len(natives) > _LISTED_NATIVES:
            rest = natives[_LISTED_NATIVES:]
            parts.append(f"and {len(rest)} more, {_time(sum(one.total_ns for one in rest))} together")
    for clock in profile.clocks:
        drift = (
            "" if clock.drift_ppm is None else f", drift {clock.drift_ppm:+.3g} ppm ± {clock.drift_uncertainty_ppm:.2g}"
        )
        how = "calibrated" if clock.calibrated else "bracketed by submissions, not calibrated"
        parts.append(f"clock of {clock.device}: {how}, within {_time(clock.deviation_ns)} of the host's{drift}")
    parts += [f"note: {one}" for one in profile.notes]
    return "\n".join(parts)


def _calls(profile: ProfileFigures) -> str:
    by_name: dict[str, list[int]] = {}
    for number, call in enumerate(profile.calls):
        by_name.setdefault(call.name, []).append(number)
    rows = []
    for name, numbers in by_name.items():
        calls = [profile.calls[number] for number in numbers]
        total = sum(one.total_ns for one in calls)
        detailed = [one for one in calls if one.vm_ns is not None]
        known = sum(one.total_ns for one in detailed)

        def share(nanoseconds: int, known: int = known) -> str:
            return f"{_time(nanoseconds)} ({nanoseconds / known:.0%})" if known else _time(nanoseconds)

        device = [one.device_ns for one in calls if one.device_ns is not None]
        failed = sum(bool(one.error) for one in calls)
        rows.append(
            (
                name,
                str(len(calls))
                + (f" ({failed} failed)" if failed else "")
                + (f" ({len(detailed)} in detail)" if len(detailed) < len(calls) else ""),
                _time(total),
                share(sum(one.arguments_ns for one in detailed)),
                share(sum(one.vm_ns or 0 for one in detailed)),
                share(sum(one.hal_ns or 0 for one in detailed)),
                share(sum(one.native_ns or 0 for one in detailed)),
                share(sum(one.waits_ns or 0 for one in detailed)),
                share(sum(one.results_ns for one in detailed)),
                _time(sum(device)) if len(device) == len(calls) else f"{_time(sum(device))} in {len(device)} timed",
            )
        )
    return _table(
        "calls, and where the host's time went",
        ("function", "calls", "total", "arguments", "VM", "HAL", "other natives", "waits", "results", "device busy"),
        rows,
    )


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    from rich.text import Text

    table = new_table(columns, right={*columns[1:]} - {"source", "workgroups"}, title=title)
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return "\n".join(line for line in plain_text(table, _WIDTH) if line)


def _workgroups(all_counts: Sequence[tuple[int, int, int] | None]) -> str:
    shown = ["indirect" if one is None else "x".join(map(str, one)) for one in all_counts[:2]]
    return ", ".join(shown) + (f" and {len(all_counts) - 2} more" if len(all_counts) > 2 else "")


def _time(nanoseconds: float | None) -> str:
    """A duration with three digits and its unit."""
    if nanoseconds is None:
        return "-"
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
