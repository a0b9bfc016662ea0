"""Exports results as CSV, JSON, Markdown or Parquet."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Final

from ...files import write_whole
from ...status import InvalidArgumentError
from .results import Results
from .tables import Keep, points_table, sample_batches, sample_schema

# The main columns; other formats have all.
_MARKDOWN_STATISTICS: Final = (
    *("status", "count", "median_ns", "median_low_ns", "median_high_ns", "q1_ns", "q3_ns", "minimum_ns", "mean_ns"),
    *("standard_deviation_ns", "relative_error", "p99_ns"),
)


def export_results(
    results: Results,
    kind: str,
    path: str | os.PathLike[str],
    *,
    raw: bool = False,
    keep: Keep = "kept",
) -> None:
    """Writes results to a file, atomically.

    Args:
        results: of a study.
        kind: one of ``EXPORTS``. ``"markdown"`` has the main columns, the others have all.
        path: of the file, which is replaced if it exists.
        raw: one row a sample, of all phases, instead of one a point.
        keep: which samples are in the statistics of points: ``"kept"`` for those of ``PointResult.keep``, or as in
            ``PointResult.values``; raw rows are of all samples.

    Raises:
        InvalidArgumentError: no such kind.
        NotFoundError, PermissionDeniedError, ResourceExhaustedError: no such folder, not writable, or the disk is full.
    """
    _writer(kind)
    write_whole(path, lambda file: export_to(results, kind, file, raw=raw, keep=keep))


def export_to(results: Results, kind: str, file: BinaryIO, *, raw: bool = False, keep: Keep = "kept") -> None:
    """``export_results`` to an open binary file, such as ``sys.stdout.buffer``."""
    _writer(kind)(results, file, raw, keep)


def _csv(results: Results, file: BinaryIO, raw: bool, keep: Keep) -> None:
    from pyarrow import csv

    if not raw:
        csv.write_csv(points_table(results, keep=keep), file)
        return
    with csv.CSVWriter(file, sample_schema(results)) as writer:
        for batch in sample_batches(results):
            writer.write_batch(batch)


def _parquet(results: Results, file: BinaryIO, raw: bool, keep: Keep) -> None:
    from pyarrow import parquet

    if not raw:
        parquet.write_table(points_table(results, keep=keep), file)
        return
    with parquet.ParquetWriter(file, sample_schema(results)) as writer:
        for batch in sample_batches(results):
            writer.write_batch(batch)


def _json(results: Results, file: BinaryIO, raw: bool, keep: Keep) -> None:
    """An object with the study, its runs, devices, peaks and notes, and a list of points or samples."""
    head: dict[str, object] = {
        "study": dict(results.study),
        "created": results.created,
        "runs": [dataclasses.asdict(run) for run in results.runs],
        "devices": [dataclasses.asdict(device) for device in results.devices],
        "peaks": [dataclasses.asdict(peak) for peak in results.peaks],
        "notes": [dataclasses.asdict(note) for note in results.notes],
    }
    text = json.dumps(head, ensure_ascii=False, indent=1)
    file.write(text.removesuffix("\n}").encode())
    file.write(b',\n "samples": [' if raw else b',\n "points": [')
    separator = b"\n  "
    for row in _json_rows(results, raw, keep):
        file.write(separator + json.dumps(row, ensure_ascii=False, allow_nan=False).encode())
        separator = b",\n  "
    file.write(b"\n ]\n}\n")


def _json_rows(results: Results, raw: bool, keep: Keep) -> Iterator[Mapping[str, object]]:
    if raw:
        for batch in sample_batches(results):
            yield from batch.to_pylist()
    else:
        for row in points_table(results, keep=keep).to_pylist():
            row["settings"] = json.loads(row["settings"])
            yield row


def _markdown(results: Results, file: BinaryIO, raw: bool, keep: Keep) -> None:
    import pyarrow as pa
    from tabulate import tabulate

    if raw:
        table = pa.Table.from_batches(list(sample_batches(results)), sample_schema(results))
    else:
        table = points_table(results, keep=keep)
        if not table.num_rows:
            return
        names = table.column_names
        axes = names[names.index("driver") + 1 : names.index("measure")]
        figures = [name for name in names[names.index("first_ns") + 1 : -1] if not name.endswith("_median_ns")]
        shown = ("target", "device", *axes, *_MARKDOWN_STATISTICS, *figures)
        table = table.select([name for name in shown if table.column(name).null_count < max(table.num_rows, 1)])
    rows = [[_cell(value) for value in row.values()] for row in table.to_pylist()]
    text = tabulate(rows, headers=table.column_names, tablefmt="github", floatfmt=".6g", disable_numparse=False)
    file.write((text + "\n").encode())


def _cell(value: object) -> object:
    """A text for a cell, which a bar or a line break would end."""
    return " ".join(value.replace("|", "\\|").split()) if isinstance(value, str) else value


_WRITERS: Final[Mapping[str, Callable[[Results, BinaryIO, bool, Keep], None]]] = {
    "csv": _csv,
    "json": _json,
    "markdown": _markdown,
    "parquet": _parquet,
}

EXPORTS: Final = tuple(_WRITERS)
"""The kinds of exports."""


def _writer(kind: str) -> Callable[[Results, BinaryIO, bool, Keep], None]:
    if kind not in _WRITERS:
        raise InvalidArgumentError(f"results are exported as {', '.join(EXPORTS)}; got {kind!r}")
    return _WRITERS[kind]
