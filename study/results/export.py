"""Exports results as CSV, JSON, Markdown or Parquet.

>>> export_results(results, "parquet", "points.parquet")    # pandas.read_parquet("points.parquet")
>>> export_results(results, "records", "points.json")       # pandas.read_json("points.json")
>>> export_results(results, "json", "results.json")         # pandas.json_normalize(json.load(file), "points")
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from typing import BinaryIO, Final

import pyarrow as pa
from pyarrow import csv, parquet
from tabulate import tabulate

from ...base.files import write_whole
from ...status import InvalidArgumentError
from .results import Results
from .tables import points_table, sample_batches, sample_schema

EXPORTS: Final = ("csv", "json", "markdown", "parquet", "records")
"""The kinds of exports."""

# The main columns; other formats have all.
_MARKDOWN_STATISTICS: Final = (
    *("status", "used", "median_ns", "median_low_ns", "median_high_ns", "q1_ns", "q3_ns", "minimum_ns", "mean_ns"),
    *("standard_deviation_ns", "relative_error", "p99_ns"),
)


def export_results(results: Results, kind: str, path: str | os.PathLike[str], *, raw: bool = False) -> None:
    """Writes results to a file, atomically.

    Args:
        results: of a study.
        kind: one of ``EXPORTS``. ``"markdown"`` has the main columns, the others have all. ``"json"`` is an object with
            the study, runs, devices and a list of points; ``"records"`` is only that list, of flat objects.
        path: of the file, which is replaced if it exists.
        raw: one row per sample, of all phases, instead of one per point.

    Raises:
        InvalidArgumentError: no such kind.
        NotFoundError, PermissionDeniedError, ResourceExhaustedError: as ``write_report``.
    """
    _check(kind)
    write_whole(path, lambda file: export_to(results, kind, file, raw=raw))


def export_to(results: Results, kind: str, file: BinaryIO, *, raw: bool = False) -> None:
    """Writes what ``export_results`` does to an open binary file, such as ``sys.stdout.buffer``."""
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


def _json(results: Results, file: BinaryIO, raw: bool, batches: Iterator[pa.RecordBatch]) -> None:
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
    """Escapes what would end a cell: bars and line breaks."""
    return " ".join(value.replace("|", "\\|").split()) if isinstance(value, str) else value
