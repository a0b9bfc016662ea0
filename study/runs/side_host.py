"""Measures a point of a side, block by block on request: the child's side of ``side_process``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from ...base.message_pipe import Message, MessagePipe, error_as_message
from ..definition.study import make_sampling
from ..results.storage.rows import Value, point_from_row
from ..results.storage.sink import SinkLog
from ..sampling.point_run import PointRun
from ..workloads.workload import DevicePool, WorkloadContext


def serve_side(pipe: MessagePipe, request: Message) -> None:
    """Answers until the parent ends, which raises EOFError."""
    with DevicePool(validation=request["validation"]) as pool, contextlib.closing(_SideHost(pool, request)) as host:
        while True:
            pipe.send(host.answer(pipe.receive()))


class _SideHost:
    """The open point of a side."""

    def __init__(self, pool: DevicePool, request: Message) -> None:
        self._pool = pool
        self._sampling = make_sampling(request["sampling"])
        self._log = SinkLog()
        self._run: PointRun | None = None

    def answer(self, question: Message) -> Message:
        """Does what is asked: the result or the error, and what was measured."""
        name, arguments = question["call"], question["arguments"]
        try:
            of = self if name in ("describe", "start") else self._run
            result = getattr(of, name)(**arguments)
            answer: Message = {"result": result}
        except Exception as error:
            answer = {"failed": error_as_message(error)}
        return {**answer, "written": self._log.take()}

    def describe(self, uri: str) -> str:
        """Names a device and its driver."""
        profile = self._pool.open(uri).profile
        return f"{profile.name} ({profile.driver_name} {profile.driver_info})"

    def start(self, row: Sequence[Value], kind: str, folder: str, block: int, again: bool) -> None:
        """Opens a point; once."""
        point = point_from_row(row)
        context = WorkloadContext(self._pool, point.device, Path(folder), self._sampling.seed)
        self._run = PointRun(kind, point, context, self._sampling, self._log)
        self._run.start(block, again=again)

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
