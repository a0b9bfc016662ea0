"""A profile as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...terminal import new_table, plain_text, printable
from .clock import ClockRelation
from .entry import HOST_SHARES, ProfiledCall, ProfiledExport, ProfiledNative

_WIDTH: Final = 160
_LISTED_NATIVES: Final = 12


def profile_table(
    exports: Sequence[ProfiledExport],
    calls: Sequence[ProfiledCall],
    natives: Sequence[ProfiledNative],
    clocks: Sequence[ClockRelation],
    notes: Sequence[str],
) -> str:
    """Device time by export; the calls with the host's shares; the native functions; the clocks and notes."""
    parts = []
    if exports:
        parts.append(_exports(exports))
    parts.append(_calls(calls))
    if natives:
        parts.append(_natives(natives))
    for clock in clocks:
        how = "calibrated" if clock.calibrated else "bracketed by submissions, not calibrated"
        text = f"clock of {clock.device}: {how}, within {_time(clock.deviation_ns)} of the host's"
        if clock.drift_text:
            text += f", drift {clock.drift_text}"
        parts.append(text)
    parts += [f"note: {one}" for one in notes]
    return "\n".join(parts)


def _exports(exports: Sequence[ProfiledExport]) -> str:
    columns = ("export", "count", "total", "median", "min", "max", "workgroups", "source")
    rows = []
    for one in exports:
        whole = one.timed == one.count
        rows.append(
            (
                one.name + (" (span)" if one.kind == "span" else ""),
                str(one.count) if whole else f"{one.count} ({one.timed} timed)",
                _time(one.total_ns) + ("" if whole else " est."),
                _time(one.median_ns) + (" *" if one.overlapping else ""),
                _time(one.min_ns),
                _time(one.max_ns),
                _workgroups(one.workgroups),
                one.location or "",
            )
        )
    text = _table("dispatches", columns, rows)
    spans = [f"{one.name} {_time(one.span_ns)} in {one.overlapping}" for one in exports if one.overlapping]
    if spans:
        text += (
            "\n* ran beside others with no barrier between; left out of median, min and max. Spans of those groups: "
            + ", ".join(spans)
        )
    return text


def _calls(calls: Sequence[ProfiledCall]) -> str:
    by_name: dict[str, list[ProfiledCall]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    rows = []
    for name, ones in by_name.items():
        detailed = [one for one in ones if one.vm_ns is not None]
        failed = sum(bool(one.error) for one in ones)
        count = str(len(ones)) + (f" ({failed} failed)" if failed else "")
        if len(detailed) < len(ones):
            count += f" ({len(detailed)} in detail)"
        row = [name, count, _time(sum(one.total_ns for one in ones))]
        known = sum(one.total_ns for one in detailed)
        for share in HOST_SHARES:
            spent = sum(getattr(one, share) or 0 for one in detailed)
            row.append(f"{_time(spent)} ({spent / known:.0%})" if known else _time(spent))
        device = [one.device_ns for one in ones if one.device_ns is not None]
        row.append(_time(sum(device)) + ("" if len(device) == len(ones) else f" in {len(device)} timed"))
        rows.append(row)
    return _table(
        "calls, and where the host's time went",
        ("function", "calls", "total", "arguments", "VM", "HAL", "other natives", "waits", "results", "device busy"),
        rows,
    )


def _natives(natives: Sequence[ProfiledNative]) -> str:
    rows = [
        (one.name, str(one.count), _time(one.total_ns), _time(one.max_ns), str(one.waits), _time(one.waited_ns))
        for one in natives[:_LISTED_NATIVES]
    ]
    text = _table("native functions", ("function", "calls", "total", "max", "waits", "waited"), rows)
    rest = natives[_LISTED_NATIVES:]
    if rest:
        text += f"\nand {len(rest)} more, {_time(sum(one.total_ns for one in rest))} together"
    return text


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
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
