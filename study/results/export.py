"""Results as Arrow tables, and exports of them as CSV, JSON, Markdown or Parquet.

A table has a row per point or per sample. All times are nanoseconds, as the column names say; values that were not
measured are null. Axes and derived figures have columns of their names, prefixed with ``axis.`` or ``figure.`` if
another column has the name.

>>> export_results(results, "parquet", "points.parquet")    # pandas.read_parquet("points.parquet")
>>> export_results(results, "records", "points.json")       # pandas.read_json("points.json")
>>> export_results(results, "json", "results.json")         # pandas.json_normalize(json.load(file), "points")
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from tabulate import tabulate

from ...base.files import write_whole
from ...status import InvalidArgumentError
from .analysis import PointAnalysis, StudyAnalysis
from .storage.point_result import SAMPLE_FIELDS
from .storage.records import SampleFlag
from .storage.rows import DURATIONS
from .storage.stored_results import StoredResults

_POINT_COLUMNS: Final = ("point", "key", "target", "device", "device_name", "driver")
_INT64: Final = 1 << 63

_SAMPLE_COLUMNS: Final = {"flags": "sample_flags"}
"""Columns with other names than in the results' tables, as no column may have the name of an attribute of pandas' data
frames.
"""

Value = str | int | float | bool | None


def points_table(results: StoredResults) -> pa.Table:
    """Returns a table with one row per point, baselines included: the point, its axes, how it was measured
    (``_sampled``), statistics of the headline (``_statistics``), medians of the segments, derived figures, and
    ``settings`` as JSON.
    """
    axes = _axis_columns(results)
    devices = {record.device: record for record in results.devices}
    points = StudyAnalysis(results).points
    rows = []
    for analysis in points:
        point, device = analysis.point, devices.get(analysis.point.device)
        name, driver = (device.name, device.driver) if device else (None, None)
        identity = (point.index, point.key, point.target, point.device, name, driver)
        row: dict[str, Value] = dict(zip(_POINT_COLUMNS, identity, strict=True))
        row.update((column, point.axes.get(axis)) for axis, column in axes.items())
        row.update(_sampled(analysis))
        row.update(_statistics(analysis))
        row.update((f"{name}_median_ns", value) for name, value in analysis.medians.items())
        row.update(_roofline(analysis))
        rows.append(row)
    taken = {*_in_order(rows), "settings"}
    for row, analysis in zip(rows, points, strict=True):
        row.update((f"figure.{name}" if name in taken else name, value) for name, value in analysis.figures.items())
        row["settings"] = json.dumps(dict(analysis.point.settings), ensure_ascii=False)
    columns = {name: [_null_for_nan(row.get(name)) for row in rows] for name in _in_order(rows)}
    table = pa.table({name: _array(values) for name, values in columns.items()})
    return table.replace_schema_metadata(_metadata(results))


def _sampled(analysis: PointAnalysis) -> dict[str, Value]:
    return {
        "measure": analysis.point.measure,
        "baseline": analysis.point.baseline,
        "is_baseline": analysis.point.is_baseline,
        "against": analysis.point.against,
        "is_against": analysis.point.is_against,
        "status": str(analysis.status),
        "reason": analysis.result.reason,
        "runs": int(np.unique(analysis.result.runs).size),
        "samples": analysis.total,
        **{str(flag.name).lower(): analysis.flagged(flag) for flag in SampleFlag},
        "dispatches": analysis.dispatches if analysis.total else None,
        "overlapping": analysis.result.overlapping,
    }


def _statistics(analysis: PointAnalysis) -> dict[str, Value]:
    from ..statistics.summary import QUANTILES

    values, summary = analysis.values(), analysis.summary()
    known = int(np.count_nonzero(~np.isnan(values)))
    row: dict[str, Value] = {"used": known, "missing": values.size - known}
    row |= {name: None if summary is None else attrgetter(path)(summary) for name, path in _OF_SUMMARY.items()}
    row |= {f"{name}_ns": None if summary is None else summary.quantiles.get(name) for name in QUANTILES}
    counts = None if summary is None else summary.outliers
    return row | {
        "outliers": None if counts is None else counts.outliers,
        "severe_outliers": None if counts is None else counts.low_severe + counts.high_severe,
        "confidence": None if summary is None else summary.confidence,
        "per_dispatch_median_ns": float(np.nanmedian(analysis.result.per_dispatch(keep=analysis.keep)))
        if known
        else None,
        "first_ns": analysis.first_call,
    }


def _roofline(analysis: PointAnalysis) -> dict[str, Value]:
    """Returns the columns of the roofline, empty without known peaks, bytes and flops: ``limited_by`` is memory or
    compute, ``ridge_ratio`` the arithmetic intensity divided by the ridge's.
    """
    roof = analysis.roof
    return {} if roof is None else {"limited_by": roof.limit, "ridge_ratio": roof.distance, "roof_share": roof.share}


def sample_schema(results: StoredResults) -> pa.Schema:
    """Returns the columns of ``sample_batches``: the point, its axes, and the columns of the table ``samples``
    (``flags`` as ``sample_flags``).
    """
    fields = [("point", pa.int64()), ("target", pa.string()), ("device", pa.string())]
    for axis, column in _axis_columns(results).items():
        fields.append((column, _common_type([result.point.axes.get(axis) for result in results.points])))
    fields += [(_SAMPLE_COLUMNS.get(name, name), _sample_type(name)) for name in SAMPLE_FIELDS]
    return pa.schema(fields, metadata=_metadata(results))


def sample_batches(results: StoredResults) -> Iterator[pa.RecordBatch]:
    """Yields a batch for each point with samples: a row per sample, of all phases; see ``sample_schema``."""
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
        for index, column in enumerate(zip(*rows, strict=True), start):
            arrays.append(pa.array(column, type=schema.field(index).type))
        yield pa.record_batch(arrays, schema=schema)


def _sample_type(name: str) -> pa.DataType:
    if name in ("phase", "stage", "barrier"):
        return pa.string()
    return pa.float64() if name.removesuffix("_ns") in DURATIONS else pa.int64()


def _axis_columns(results: StoredResults) -> dict[str, str]:
    """Returns the column name of each axis, in the order of the points' axes."""
    axes = dict.fromkeys(axis for result in results.points for axis in result.point.axes)
    taken = {*_POINT_COLUMNS, *SAMPLE_FIELDS, *_SAMPLE_COLUMNS.values(), *_FIXED}
    return {axis: f"axis.{axis}" if axis in taken or axis.endswith("_ns") else axis for axis in axes}


# The figures of a summary by their columns.
_OF_SUMMARY: Final = {
    "median_ns": "median",
    "median_low_ns": "median_interval.low",
    "median_high_ns": "median_interval.high",
    "q1_ns": "q1",
    "q3_ns": "q3",
    "iqr_ns": "iqr",
    "minimum_ns": "minimum",
    "maximum_ns": "maximum",
    "mean_ns": "mean",
    "mean_low_ns": "mean_interval.low",
    "mean_high_ns": "mean_interval.high",
    "standard_deviation_ns": "standard_deviation",
    "relative_error": "relative_error",
}
_FIXED: Final = (
    *("measure", "baseline", "is_baseline", "against", "is_against", "status", "reason", "runs", "samples"),
    *("preempted", "throttled", "clock_unsure", "starved", "dispatches", "overlapping", "used", "missing"),
    *("relative_error", "outliers", "severe_outliers", "confidence", "settings"),
    *("limited_by", "ridge_ratio", "roof_share"),
)


def _in_order(rows: Sequence[Mapping[str, Value]]) -> list[str]:
    """Returns the names of all columns, those of the fullest row first."""
    names = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row if name != "settings")
    return [*names, "settings"]


def _array(values: Sequence[Value]) -> pa.Array:
    """Returns a column of axis values or figures; values without a common type become texts."""
    kind = _common_type(values)
    return pa.array([_as_type(value, kind) for value in values], type=kind)


def _common_type(values: Sequence[Value]) -> pa.DataType:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int} and all(value is None or -_INT64 <= int(value) < _INT64 for value in values):
        return pa.int64()
    if kinds and kinds <= {int, float}:
        return pa.float64()
    return pa.string() if kinds else pa.float64()


def _as_type(value: Value, kind: pa.DataType) -> Value:
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value)
    return float(value) if pa.types.is_floating(kind) else value


def _null_for_nan(value: Value) -> Value:
    return None if isinstance(value, float) and math.isnan(value) else value


def _metadata(results: StoredResults) -> dict[str, str]:
    return {"pumice.study": json.dumps(dict(results.study), ensure_ascii=False), "pumice.created": results.created}


EXPORTS: Final = ("csv", "json", "markdown", "parquet", "records")
"""The kinds of exports."""

# The main columns; other formats have all.
_MARKDOWN_STATISTICS: Final = (
    *("status", "used", "median_ns", "median_low_ns", "median_high_ns", "q1_ns", "q3_ns", "minimum_ns", "mean_ns"),
    *("standard_deviation_ns", "relative_error", "p99_ns"),
)


def export_results(results: StoredResults, kind: str, path: str | os.PathLike[str], *, raw: bool = False) -> None:
    """Writes results to a file, atomically.

    Args:
        results: the results of a study.
        kind: the format, one of ``EXPORTS``. ``"markdown"`` has the main columns, the others have all. ``"json"`` is an
            object with the study, runs, devices and a list of points; ``"records"`` is only that list, of flat objects.
        path: the path of the file, which is replaced if it exists.
        raw: whether to write one row per sample, of all phases, instead of one row per point.

    Raises:
        InvalidArgumentError: there is no such kind.
        NotFoundError, PermissionDeniedError, ResourceExhaustedError: the file cannot be written; see ``write_report``.
    """
    _check(kind)
    write_whole(path, lambda file: export_to(results, kind, file, raw=raw))


def export_to(results: StoredResults, kind: str, file: BinaryIO, *, raw: bool = False) -> None:
    """Writes the export of ``export_results`` to an open binary file, such as ``sys.stdout.buffer``."""
    _check(kind)
    if raw:
        schema, batches = sample_schema(results), sample_batches(results)
    else:
        table = points_table(results)
        schema, batches = table.schema, iter(table.to_batches())
    if kind == "json":
        _json(results, file, raw, batches)
    elif kind == "records":
        _write_rows(file, batches, b"[\n ", b"\n]\n")
    elif kind == "markdown":
        _markdown(file, raw, schema, batches)
    else:
        with csv.CSVWriter(file, schema) if kind == "csv" else parquet.ParquetWriter(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


def _check(kind: str) -> None:
    if kind not in EXPORTS:
        raise InvalidArgumentError(f"results are exported as {', '.join(EXPORTS)}; got {kind!r}")


def _json(results: StoredResults, file: BinaryIO, raw: bool, batches: Iterator[pa.RecordBatch]) -> None:
    head: dict[str, object] = {"study": dict(results.study), "created": results.created}
    for name in ("runs", "devices", "peaks", "notes", "observations"):
        head[name] = [dataclasses.asdict(record) for record in getattr(results, name)]
    text = json.dumps(head, ensure_ascii=False, indent=1)
    file.write(text.removesuffix("\n}").encode())
    file.write(b',\n "samples": ' if raw else b',\n "points": ')
    _write_rows(file, batches, b"[\n  ", b"\n ]", parse_settings=not raw)
    file.write(b"\n}\n")


def _write_rows(
    file: BinaryIO, batches: Iterator[pa.RecordBatch], begin: bytes, end: bytes, *, parse_settings: bool = False
) -> None:
    """Writes a JSON list of flat objects, one batch at a time."""
    separator = begin
    for batch in batches:
        for row in batch.to_pylist():
            if parse_settings:
                row["settings"] = json.loads(row["settings"])
            file.write(separator + json.dumps(row, ensure_ascii=False, allow_nan=False).encode())
            separator = begin.replace(b"[", b",")
    file.write(begin + end if separator == begin else end)


def _markdown(file: BinaryIO, raw: bool, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    table = pa.Table.from_batches(list(batches), schema)
    if not raw:
        if not table.num_rows:
            return
        names = table.column_names
        axes = names[names.index("driver") + 1 : names.index("measure")]
        figures = [name for name in names[names.index("first_ns") + 1 : -1] if not name.endswith("_median_ns")]
        shown = ("target", "device", *axes, *_MARKDOWN_STATISTICS, *figures)
        table = table.select([name for name in shown if table.column(name).null_count < table.num_rows])
    rows = [[_cell(value) for value in row.values()] for row in table.to_pylist()]
    text = tabulate(rows, headers=table.column_names, tablefmt="github", floatfmt=".6g", disable_numparse=False)
    file.write((text + "\n").encode())


def _cell(value: object) -> object:
    """Escapes characters that would end a cell: bars and line breaks."""
    return " ".join(value.replace("|", "\\|").split()) if isinstance(value, str) else value
