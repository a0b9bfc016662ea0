"""A profile as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...base.notebook import html_table, place_text
from ...base.terminal import new_table, plain_text, printable
from .clock import ClockRelation
from .entry import HOST_SHARES, ProfiledCall, ProfiledExport, ProfiledNative

_WIDTH: Final = 160
_LISTED_NATIVES: Final = 12
_TEXTS: Final = {"workgroups", "source"}


class _Table(NamedTuple):
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def profile_table(
    exports: Sequence[ProfiledExport],
    calls: Sequence[ProfiledCall],
    natives: Sequence[ProfiledNative],
    clocks: Sequence[ClockRelation],
    notes: Sequence[str],
) -> str:
    """Formats device time by export, the calls with the host's shares, native functions, clocks and notes."""
    return "\n".join([*map(_text, _tables(exports, calls, natives)), *_notes(clocks, notes)])


def profile_html(
    exports: Sequence[ProfiledExport],
    calls: Sequence[ProfiledCall],
    natives: Sequence[ProfiledNative],
    clocks: Sequence[ClockRelation],
    notes: Sequence[str],
) -> str:
    """Returns the same figures as HTML, for notebooks."""
    *tables, last = _tables(exports, calls, natives)
    shown = [_html(table, ()) for table in tables]
    return "".join([*shown, _html(last, _notes(clocks, notes))])


def _html(data: _Table, notes: Sequence[str]) -> str:
    notes = [*filter(None, [data.note]), *notes]
    return html_table(data.columns, data.rows, title=data.title, notes=notes, texts=_TEXTS)


def _tables(
    exports: Sequence[ProfiledExport], calls: Sequence[ProfiledCall], natives: Sequence[ProfiledNative]
) -> list[_Table]:
    return [
        *([_exports(exports)] if exports else []),
        _calls(calls),
        *([_natives(natives)] if natives else []),
    ]


def _notes(clocks: Sequence[ClockRelation], notes: Sequence[str]) -> list[str]:
    parts = []
    for clock in clocks:
        how = "calibrated" if clock.calibrated else "bracketed by submissions, not calibrated"
        text = f"clock of {clock.device}: {how}, within {_time(clock.deviation_ns)} of the host's"
        if clock.drift_text:
            text += f", drift {clock.drift_text}"
        parts.append(text)
    return parts + [f"note: {note}" for note in notes]


def _exports(exports: Sequence[ProfiledExport]) -> _Table:
    columns = ("export", "count", "total", "median", "min", "max", "workgroups", "source")
    rows = []
    for export in exports:
        whole = export.timed == export.count
        rows.append(
            (
                export.name + (" (span)" if export.kind == "span" else ""),
                str(export.count) if whole else f"{export.count} ({export.timed} timed)",
                _time(export.total_ns) + ("" if whole else " est."),
                _time(export.median_ns) + (" *" if export.overlapping else ""),
                _time(export.min_ns),
                _time(export.max_ns),
                _workgroups(export.workgroups),
                place_text(export.location or ""),
            )
        )
    note = ""
    spans = [
        f"{export.name} {_time(export.span_ns)} in {export.overlapping}" for export in exports if export.overlapping
    ]
    if spans:
        note = (
            "* ran beside others with no barrier between; left out of median, min and max. Spans of those groups: "
            + ", ".join(spans)
        )
    return _Table("dispatches", columns, rows, note)


def _calls(calls: Sequence[ProfiledCall]) -> _Table:
    by_name: dict[str, list[ProfiledCall]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    rows = []
    for name, group in by_name.items():
        detailed = [call_ for call_ in group if call_.vm_ns is not None]
        failed = sum(bool(call_.error) for call_ in group)
        count = str(len(group)) + (f" ({failed} failed)" if failed else "")
        if len(detailed) < len(group):
            count += f" ({len(detailed)} in detail)"
        row = [name, count, _time(sum(call_.total_ns for call_ in group))]
        known = sum(call_.total_ns for call_ in detailed)
        for share in HOST_SHARES:
            spent = sum(getattr(call_, share) or 0 for call_ in detailed)
            row.append(f"{_time(spent)} ({spent / known:.0%})" if known else _time(spent))
        device = [call_.device_ns for call_ in group if call_.device_ns is not None]
        row.append(_time(sum(device)) + ("" if len(device) == len(group) else f" in {len(device)} timed"))
        rows.append(row)
    return _Table(
        "calls, and where the host's time went",
        ("function", "calls", "total", "arguments", "VM", "HAL", "other natives", "waits", "results", "device busy"),
        rows,
    )


def _natives(natives: Sequence[ProfiledNative]) -> _Table:
    rows = [
        (
            native.name,
            str(native.count),
            _time(native.total_ns),
            _time(native.max_ns),
            str(native.waits),
            _time(native.waited_ns),
        )
        for native in natives[:_LISTED_NATIVES]
    ]
    rest = natives[_LISTED_NATIVES:]
    note = f"and {len(rest)} more, {_time(sum(native.total_ns for native in rest))} together" if rest else ""
    return _Table("native functions", ("function", "calls", "total", "max", "waits", "waited"), rows, note)


def _text(data: _Table) -> str:
    from rich.text import Text

    table = new_table(data.columns, right={*data.columns[1:]} - _TEXTS, title=data.title)
    for row in data.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return "\n".join([*(line for line in plain_text(table, _WIDTH) if line), *filter(None, [data.note])])


def _workgroups(all_counts: Sequence[tuple[int, int, int] | None]) -> str:
    shown = ["indirect" if counts is None else "x".join(map(str, counts)) for counts in all_counts[:2]]
    return ", ".join(shown) + (f" and {len(all_counts) - 2} more" if len(all_counts) > 2 else "")


def _time(nanoseconds: float | None) -> str:
    """Returns a duration with three digits and its unit."""
    if nanoseconds is None:
        return "-"
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"
