"""Measures a pass in this process and has the parent store it: the child's side of ``child_pass``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ...base.message_pipe import Message, MessagePipe
from ..definition.point import Point
from ..definition.study import Study
from ..definition.study_file import study_from_dict
from ..results.storage.records import PointStatus
from ..results.storage.rows import Value, point_from_row
from ..results.storage.sink import Sink
from ..sampling.passes import Pass
from ..sampling.turns import Prior
from ..workloads.workload import DevicePool
from .runner import measure_points


def _study(request: Message) -> Study:
    folder, *others = map(Path, request["folders"])
    study = study_from_dict(request["study"], folder)
    return study if study.against is None else replace(study, against=replace(study.against, folder=others[0]))


def measure_pass(pipe: MessagePipe, request: Message) -> None:
    """Measures points; see ``runner.measure_points``."""
    priors = {int(index): Prior(**prior) for index, prior in request["priors"].items()}
    points = tuple(point_from_row(row) for row in request["points"])
    part = Pass(request["repeat"], _study(request), points)
    with DevicePool(validation=request["validation"]) as pool:
        run = measure_points(part, pool, _PipeSink(pipe), priors, request["with_peaks"], _PipeProgress(pipe))
    pipe.send({"run": asdict(run)})


class _PipeSink(Sink):
    """A sink whose rows the parent stores; each write waits for that."""

    def __init__(self, pipe: MessagePipe) -> None:
        self._pipe = pipe

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        self._pipe.send({"write": [table, doing, list(rows)]})
        self._pipe.receive()


class _PipeProgress:
    def __init__(self, pipe: MessagePipe) -> None:
        self._pipe = pipe

    def advance(self, point: Point, fraction: float) -> None:
        self._pipe.send({"advance": [point.index, fraction]})

    def finished(self, point: Point, status: PointStatus, reason: str) -> None:
        self._pipe.send({"finished": [point.index, status, reason]})
