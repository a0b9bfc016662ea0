"""Results as Arrow tables, one row a point or one row a sample.

All times are nanoseconds, as the names of their columns say; what was not measured is null. Axes and derived figures
have columns of their names, prefixed with ``axis.`` or ``figure.`` if another column has the name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from .flags import SampleFlag
from .point_result import SAMPLE_FIELDS, PointResult
from .records import DeviceRecord
from .results import Results
from .rows import DURATIONS

if TYPE_CHECKING:
    import pyarrow as pa

_POINT_COLUMNS: Final = ("point", "key", "target", "device", "device_name", "driver")
_INT64: Final = 1 << 63

Value = str | int | float | bool | None
Keep = SampleFlag | Literal["kept"] | None
"""Which samples are in statistics: ``"kept"`` for those of ``PointResult.keep``, or as in ``PointResult.values``."""


def points_table(results: Results, *, keep: Keep = "kept") -> pa.Table:
    """One row a point, baselines too.

    Args:
        results: of the study.
        keep: which samples are in the statistics: ``"kept"`` for those of ``PointResult.keep``, or as in
            ``PointResult.values``.

    Returns:
        The point (``point``, ``key``, ``target``, ``device``, ``device_name``, ``driver``), its axes, how it was
        measured (``measure``, ``baseline``, ``is_baseline``, ``status``, ``reason``, ``runs``, ``samples``,
        ``preempted``, ``throttled``, ``clock_unsure``, ``dispatches``), statistics of the headline (``count``,
        ``missing``, ``median_ns``, ``median_low_ns``, ``median_high_ns``, …), medians of the segments
        (``execute_median_ns``, …), derived figures, and ``settings`` as JSON.
    """
    import pyarrow as pa

    axes = _axis_columns(results)
    devices = {record.device: record for record in results.devices}
    rows = []
    for result in results.points:
        row = _who(result, devices)
        row.update((column, result.point.axes.get(axis)) for axis, column in axes.items())
        row.update(_sampled(result))
        chosen = _chosen(result, keep)
        row.update(_statistics(results, result, chosen))
        row.update((f"{name}_median_ns", value) for name, value in result.medians(keep=chosen).items())
        row["settings"] = json.dumps(dict(result.point.settings), ensure_ascii=False)
        rows.append(row)
    _add_figures(results, rows, keep)
    names = _in_order(rows)
    columns = {name: [_null_for_nan(row.get(name)) for row in rows] for name in names}
    return pa.table({name: _array(values) for name, values in columns.items()}).replace_schema_metadata(
        _metadata(results)
    )


def _chosen(result: PointResult, keep: Keep) -> SampleFlag | None:
    return keep if keep is None or isinstance(keep, SampleFlag) else result.keep


def _who(result: PointResult, devices: Mapping[str, DeviceRecord]) -> dict[str, Value]:
    point = result.point
    record = devices.get(point.device)
    name, driver = (record.name, record.driver) if record else (None, None)
    values = (point.index, point.key, point.target, point.device, name, driver)
    return dict(zip(_POINT_COLUMNS, values, strict=True))


def _sampled(result: PointResult) -> dict[str, Value]:
    flags = result.flags
    dispatches = result.integers("dispatches")
    return {
        "measure": result.point.measure,
        "baseline": result.point.baseline,
        "is_baseline": result.point.is_baseline,
        "status": str(result.status),
        "reason": result.reason,
        "runs": int(np.unique(result.runs).size),
        "samples": int(flags.size),
        **{str(flag.name).lower(): int(np.count_nonzero(flags & flag)) for flag in SampleFlag},
        "dispatches": int(np.median(dispatches)) if dispatches.size else None,
        "overlapping": result.overlapping,
    }


def _statistics(results: Results, result: PointResult, keep: SampleFlag | None) -> dict[str, Value]:
    from ..statistics.summary import QUANTILES, summarize

    names = (
        *("count", "missing", "median_ns", "median_low_ns", "median_high_ns", "q1_ns", "q3_ns", "iqr_ns", "minimum_ns"),
        *("maximum_ns", "mean_ns", "mean_low_ns", "mean_high_ns", "standard_deviation_ns", "relative_error"),
        *(f"{name}_ns" for name in QUANTILES),
        *("outliers", "severe_outliers", "confidence", "per_dispatch_median_ns", "first_ns"),
    )
    row: dict[str, Value] = dict.fromkeys(names)
    first = result.values(phase="first")
    if not np.all(np.isnan(first)):
        row["first_ns"] = float(np.nanmedian(first))
    values = result.values(keep=keep)
    known = ~np.isnan(values)
    row.update(count=int(np.count_nonzero(known)), missing=int(np.count_nonzero(~known)))
    if not row["count"]:
        return row
    confidence, seed = _sampling(results)
    summary = summarize(values, confidence=confidence, blocks=result.blocks_of(keep=keep), seed=seed)
    row.update(
        median_ns=summary.median,
        median_low_ns=summary.median_interval.low,
        median_high_ns=summary.median_interval.high,
        q1_ns=summary.q1,
        q3_ns=summary.q3,
        iqr_ns=summary.iqr,
        minimum_ns=summary.minimum,
        maximum_ns=summary.maximum,
        mean_ns=summary.mean,
        mean_low_ns=summary.mean_interval.low,
        mean_high_ns=summary.mean_interval.high,
        standard_deviation_ns=summary.standard_deviation,
        relative_error=summary.relative_error,
        outliers=summary.outliers.outliers,
        severe_outliers=summary.outliers.low_severe + summary.outliers.high_severe,
        confidence=summary.confidence,
        per_dispatch_median_ns=float(np.nanmedian(result.per_dispatch(keep=keep))),
    )
    row.update((f"{name}_ns", value) for name, value in summary.quantiles.items())
    return row


def _sampling(results: Results) -> tuple[float, int]:
    """The confidence and the seed of the study."""
    sampling = results.study.get("sampling")
    known = sampling if isinstance(sampling, Mapping) else {}
    confidence, seed = known.get("confidence", 0.95), known.get("seed", 0)
    return float(confidence), int(seed)


def _add_figures(results: Results, rows: Sequence[dict[str, Value]], keep: Keep) -> None:
    """Adds figures known before measuring and those of medians, after all other columns but the settings."""
    taken = set(_in_order(rows))
    for row, result in zip(rows, results.points, strict=True):
        settings = row.pop("settings")
        figures = {**result.point.derived, **results.figures(result, keep=_chosen(result, keep))}
        row.update((f"figure.{name}" if name in taken else name, value) for name, value in figures.items())
        row["settings"] = settings


def sample_schema(results: Results) -> pa.Schema:
    """The columns of ``sample_batches``: the point, its axes, and the columns of the table ``samples``."""
    import pyarrow as pa

    fields = [("point", pa.int64()), ("target", pa.string()), ("device", pa.string())]
    for axis, column in _axis_columns(results).items():
        values = [result.point.axes.get(axis) for result in results.points]
        fields.append((column, _array(values).type))
    for name in SAMPLE_FIELDS:
        fields.append((name, _sample_type(name)))
    return pa.schema(fields, metadata=_metadata(results))


def sample_batches(results: Results) -> Iterator[pa.RecordBatch]:
    """One row a sample of every phase, point by point and in the order of sampling, as ``sample_schema`` says.

    Points without samples have no batch. Only one point is in memory at a time.
    """
    import pyarrow as pa

    schema = sample_schema(results)
    axes = _axis_columns(results)
    start = len(schema) - len(SAMPLE_FIELDS)
    for result in results.points:
        rows = result.read_rows()
        if not rows:
            continue
        point = result.point
        fixed = (point.index, point.target, point.device, *(point.axes.get(axis) for axis in axes))
        arrays = [
            pa.array([_as_type(value, field.type)] * len(rows), type=field.type)
            for value, field in zip(fixed, schema, strict=False)
        ]
        for place, column in enumerate(zip(*rows, strict=True)):
            arrays.append(pa.array(column, type=schema.field(start + place).type))
        yield pa.record_batch(arrays, schema=schema)


def _sample_type(name: str) -> pa.DataType:
    import pyarrow as pa

    if name in ("phase", "stage", "barrier"):
        return pa.string()
    return pa.float64() if name.removesuffix("_ns") in DURATIONS else pa.int64()


def _axis_columns(results: Results) -> dict[str, str]:
    """The column of each axis, in the order in which points have them."""
    axes = dict.fromkeys(axis for result in results.points for axis in result.point.axes)
    taken = {*_POINT_COLUMNS, *SAMPLE_FIELDS, *_FIXED}
    return {axis: f"axis.{axis}" if axis in taken or axis.endswith("_ns") else axis for axis in axes}


_FIXED: Final = (
    *("measure", "baseline", "is_baseline", "status", "reason", "runs", "samples", "preempted", "throttled"),
    *("clock_unsure", "dispatches", "overlapping", "count", "missing", "relative_error", "outliers"),
    *("severe_outliers", "confidence", "settings"),
)


def _in_order(rows: Sequence[Mapping[str, Value]]) -> list[str]:
    """The names of all columns, those of the fullest row first."""
    names = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row if name != "settings")
    return [*names, "settings"]


def _array(values: Sequence[Value]) -> pa.Array:
    """A column of axis values or figures; of texts if they have no common type."""
    import pyarrow as pa

    kind = _common_type(values)
    return pa.array([_as_type(value, kind) for value in values], type=kind)


def _common_type(values: Sequence[Value]) -> pa.DataType:
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int} and all(value is None or -_INT64 <= int(value) < _INT64 for value in values):
        return pa.int64()
    if kinds and kinds <= {int, float}:
        return pa.float64()
    return pa.string() if kinds else pa.float64()


def _as_type(value: Value, kind: pa.DataType) -> Value:
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value)
    return float(value) if pa.types.is_floating(kind) else value


def _null_for_nan(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value


def _metadata(results: Results) -> dict[str, str]:
    return {"pumice.study": json.dumps(dict(results.study), ensure_ascii=False), "pumice.created": results.created}
