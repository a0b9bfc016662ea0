"""Copies the files of a study at the start of a run; the copies are measured and stored in its results.

A file that changes during the study does not change a measurement, although points are reopened.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...base.closeable import Closeable
from ...status import PumiceError
from ..definition.point import Point, paired
from ..definition.study import Study
from ..results.storage.records import PointStatus, status_of
from ..results.storage.rows import Value
from ..results.storage.sink import Sink, SinkLog
from ..results.storage.store import Store
from ..sampling.sampler import Progress, SampleRun
from ..sampling.turns import failure_of
from ..workloads.study_files import StudyFiles, unpack_files


class TakenFiles(Closeable):
    """The files of a study's points, in a temporary folder.

    Attributes:
        study: the study with file names relative to the copies, as in the points that ``take_points`` returns.
        files: the study's files.
    """

    def __init__(self, study: Study) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pumice-study-", ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        other = None if study.against is None else replace(study.against, folder=folder)
        self.study: Study = replace(study, folder=folder, against=other)
        self.files: StudyFiles = StudyFiles(study, sent=False)

    def unpack(self) -> None:
        """Writes the copies that were taken since the last time."""
        unpack_files(self.files.contents, Path(self._folder.name))
        self.files.contents.clear()

    def close(self) -> None:
        """Removes the copies; idempotent."""
        self._folder.cleanup()


class FileKeeper(Sink):
    """Forwards to a sink, and adds the files of a point before its first samples. So the files of a failed point can be
    repaired.
    """

    def __init__(self, sink: Sink, files: StudyFiles, points: Iterable[Point]) -> None:
        self._sink = sink
        logs: dict[str, SinkLog] = {}  # packed in advance, as compressing takes longer than a block
        self._waiting: dict[Value, list[SinkLog]] = {}
        for point in points:
            for file in files.used_by(point.index):
                if file.name not in logs:
                    logs[file.name] = SinkLog()
                    logs[file.name].add_file(file)
                self._waiting.setdefault(point.index, []).append(logs[file.name])

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        if table == "samples":
            for point in {row["point"] for row in rows}:
                for log in self._waiting.get(point, ()):
                    log.replay(self._sink)
                self._waiting.pop(point, None)
        self._sink.write(table, doing, rows)


def take_points(
    files: StudyFiles,
    points: Iterable[Point],
    minor: Callable[[Point], int],
    store: Store,
    progress: Progress | None,
) -> tuple[list[Point], SampleRun]:
    """Copies the files of points; returns these points, and the points that failed because of a file.

    ``minor`` returns the minor version of Vulkan 1 that sources are compiled for.

    Raises:
        FailedPreconditionError: the results have samples of another content of a file.
    """
    taken, run = [], SampleRun()
    for pair in paired(points):
        version = minor(pair[0])  # an error of the device is not the point's
        at = pair[0]
        try:
            complete = []
            for at in pair:
                complete.append(files.take(at, version))
        except PumiceError as error:
            status, text = status_of(error), failure_of(at, len(pair), error)
            for point in pair:
                (run.skipped if status is PointStatus.SKIPPED else run.failed)[point.index] = text
                store.set_status(point.index, status, text)
                if progress is not None:
                    progress.finished(point, status, text)
            continue
        taken += complete
        for point in pair:
            store.check_files(files.used_by(point.index))
    return taken, run


def check_finished(files: StudyFiles, points: Iterable[Point], minor: Callable[[Point], int], store: Store) -> None:
    """Raises FailedPreconditionError if a file of points that are measured already has changed since.

    Missing files are not an error.
    """
    for point in points:
        with contextlib.suppress(PumiceError):
            files.take(point, minor(point))
        store.check_files(files.used_by(point.index))
