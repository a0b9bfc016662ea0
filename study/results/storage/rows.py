"""Points and samples as rows of a results file, both ways.

SQLite has no NaN: NULL stands for it, and for the -1 of unknown values. Its integers are signed, device counters are
not: ticks from 2^63 on are stored as the negative number of the same bits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final

from ....status import InvalidArgumentError
from ...definition.point import Point
from ...definition.sample import SEGMENTS, Sample

DURATIONS: Final = ("total", *SEGMENTS, "device", "overlap", "deviation", "cpu")
"""The fields of a sample that are nanoseconds; the column of each has ``_ns`` behind its name."""

SAMPLE_COLUMNS: Final = (
    "started_ns",
    *(f"{name}_ns" for name in DURATIONS),
    *("device_begin", "device_end", "dispatches", "preemptions", "stage", "barrier"),
)
"""The columns of ``samples`` that come from a ``Sample``, in the order of ``sample_row``."""

POINT_COLUMNS: Final = (
    *("point", "key", "target", "device", "axes", "settings", "derived", "measure"),
    *("baseline", "is_baseline", "against", "is_against"),
)
"""The columns of ``points``, in the order of ``point_row``."""

Value = str | int | float | bytes | None

_durations_of = attrgetter(*DURATIONS)
_ABSENT: Final = "nothing"
_WRAP: Final = 1 << 64
_SIGN: Final = 1 << 63


def number_or_null(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def signed_ticks(ticks: int) -> int:
    """Reinterprets a 64-bit counter as a signed integer."""
    return int(ticks) - _WRAP if ticks >= _SIGN else int(ticks)


def unsigned_ticks(ticks: int) -> int:
    """Undoes ``signed_ticks``."""
    return ticks + _WRAP if ticks < 0 else ticks


def sample_row(sample: Sample) -> tuple[Value, ...]:
    """Returns the values of ``SAMPLE_COLUMNS``."""
    return (
        int(sample.started),
        *[None if math.isnan(value) else float(value) for value in _durations_of(sample)],
        None if sample.device_begin == -1 else signed_ticks(sample.device_begin),
        None if sample.device_end == -1 else signed_ticks(sample.device_end),
        int(sample.dispatches),
        None if sample.preemptions == -1 else int(sample.preemptions),
        sample.stage,
        sample.barrier,
    )


def sample_from_row(row: Sequence[Value]) -> Sample:
    """Restores the sample from a row of ``SAMPLE_COLUMNS``."""
    values: dict[str, Value] = dict(zip(("started", *DURATIONS), row, strict=False))
    begin, end, dispatches, preemptions, stage, barrier = row[len(DURATIONS) + 1 :]
    return Sample(
        # By name, as the fields of a sample are.
        **{name: math.nan if value is None else value for name, value in values.items()},  # type: ignore[arg-type]
        device_begin=-1 if begin is None else unsigned_ticks(int(begin)),
        device_end=-1 if end is None else unsigned_ticks(int(end)),
        dispatches=int(dispatches or 0),
        preemptions=-1 if preemptions is None else int(preemptions),
        stage=str(stage),
        barrier=str(barrier),
    )


def point_row(point: Point) -> tuple[Value, ...]:
    """Returns the values of ``POINT_COLUMNS``; InvalidArgumentError if axes or settings are not JSON values."""
    where = f"point {point.index}"
    # A figure may be NaN, such as a division by zero.
    derived = {name: value if math.isfinite(value) else None for name, value in point.derived.items()}
    return (
        point.index,
        point.key,
        point.target,
        point.device,
        to_json(point.axes, f"{where}: axes"),
        to_json(point.settings, f"{where}: settings"),
        to_json(derived, f"{where}: derived"),
        point.measure,
        point.baseline,
        int(point.is_baseline),
        point.against,
        int(point.is_against),
    )


def point_from_row(row: Sequence[Value]) -> Point:
    """Restores the point from a row of ``POINT_COLUMNS``; a derived figure that was not finite is NaN."""
    index, _, target, device, axes, settings, derived, measure, baseline, is_baseline, against, is_against = row
    figures: Mapping[str, float | None] = json.loads(str(derived))
    return Point(
        index=int(index or 0),
        target=str(target),
        device=str(device),
        axes=dict(json.loads(str(axes))),
        settings=dict(json.loads(str(settings))),
        derived={name: math.nan if value is None else float(value) for name, value in figures.items()},
        measure=str(measure),
        baseline=None if baseline is None else int(baseline),
        is_baseline=bool(is_baseline),
        against=None if against is None else int(against),
        is_against=bool(is_against),
    )


def to_json(value: object, name: str) -> str:
    """Serializes a value; InvalidArgumentError, which uses ``name``, for values that JSON lacks, such as NaN."""
    try:
        return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} must be JSON values to be kept in results: {error}") from error


def _plain(value: object) -> object:
    """Converts mappings and sequences of all kinds to the dicts and lists that ``json`` takes."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def differences(kept: object, new: object, where: str = "") -> list[str]:
    """Describes each difference of two JSON values: ``"sampling.seed: 0 is kept, 1 came"``."""
    if isinstance(kept, dict) and isinstance(new, dict):
        names = [*kept, *(name for name in new if name not in kept)]
        pairs = [
            (f"{where}.{name}" if where else name, kept.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names
        ]
    elif isinstance(kept, list) and isinstance(new, list):
        length = max(len(kept), len(new))
        padded = [[*item, *[_ABSENT] * (length - len(item))] for item in (kept, new)]
        pairs = [(f"{where}[{index}]", *both) for index, both in enumerate(zip(*padded, strict=True))]
    else:
        return (
            [] if type(kept) is type(new) and kept == new else [f"{where}: {_short(kept)} is kept, {_short(new)} came"]
        )
    return [text for index, item, other in pairs for text in differences(item, other, index)]


def _short(value: object) -> str:
    if value is _ABSENT:
        return _ABSENT
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
