"""A child process that measures what its parent asks for: the child's side; see ``child_process``.

It says what it is, takes one request, and answers until it is done or its parent has ended. What it measures goes to
the parent, which stores it while the child waits, so that storing disturbs no sample.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from ...status import PumiceError
from ..definition.point import Point
from ..definition.study import Study
from ..definition.study_file import study_from_dict
from ..results.records import PointStatus
from ..results.rows import Value, point_from_row
from ..results.sink import Sink
from ..workloads.workload import DevicePool
from .environment import environment_facts
from .message_pipe import PROTOCOL, Message, MessagePipe, error_as_message
from .passes import Pass
from .runner import measure_points
from .turns import Prior


def main() -> None:
    """Serves the parent at the other end of stdin and stdout."""
    with MessagePipe.to_parent() as pipe:
        try:
            facts = environment_facts()
            pipe.send({"hello": PROTOCOL, "pumice": facts["pumice"], "environment": facts})
            request = pipe.receive()
            try:
                pipe.send(_TASKS[request["task"]](pipe, request))
            except (EOFError, BrokenPipeError):
                raise
            except Exception as error:
                if not isinstance(error, PumiceError):
                    traceback.print_exc()
                pipe.send({"error": error_as_message(error)})
        except (EOFError, BrokenPipeError):
            pass  # the parent has ended


def _study(request: Message) -> Study:
    """The study of a request, with its folder and that of its other side."""
    folder, *others = map(Path, request["folders"])
    study = study_from_dict(request["study"], folder)
    return study if study.against is None else replace(study, against=replace(study.against, folder=others[0]))


def _measure(pipe: MessagePipe, request: Message) -> Message:
    """Measures points; see ``runner.measure_points``."""
    priors = {int(index): Prior(**prior) for index, prior in request["priors"].items()}
    points = tuple(point_from_row(row) for row in request["points"])
    one = Pass(request["repeat"], _study(request), points)
    with DevicePool(validation=request["validation"]) as pool:
        run = measure_points(one, pool, _PipeSink(pipe), priors, request["with_peaks"], _PipeProgress(pipe))
    return {"run": asdict(run)}


class _PipeSink(Sink):
    """Has the parent store what is measured, and waits until it has."""

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


_TASKS: Final[Mapping[str, Callable[[MessagePipe, Message], Message]]] = {"measure": _measure}
