"""The main function of a child process that measures for its parent; ``child_calls`` is the parent's side.

The child introduces itself, and answers calls until its parent has ended. The parent stores the measurements while the
child waits, so that storing disturbs no sample.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ...base.closeable import Closeable
from ...base.message_pipe import PROTOCOL, Message, MessagePipe, error_as_message
from ...status import PumiceError
from ..definition.point import Point
from ..definition.study import make_sampling
from ..definition.study_file import study_from_dict
from ..machine.environment import environment_facts
from ..results.storage.records import PointStatus
from ..results.storage.rows import Value, point_from_row
from ..results.storage.sink import Sink
from ..sampling.passes import Pass
from ..sampling.point_run import PointRun
from ..workloads.workload import DevicePool, WorkloadContext


def main() -> None:
    """Serves the parent at the other end of stdin and stdout."""
    with (
        contextlib.suppress(EOFError, BrokenPipeError),  # the parent has ended
        MessagePipe.to_parent() as pipe,
        _Host(pipe) as host,
    ):
        facts = environment_facts()
        pipe.send({"hello": PROTOCOL, "pumice": facts["pumice"], "environment": facts})
        while True:
            pipe.send(host.answer(pipe.receive()))


class _Host(Closeable):
    """The methods that the parent calls. Arguments and results are JSON values."""

    def __init__(self, pipe: MessagePipe) -> None:
        self._pipe = pipe
        self._pool: DevicePool | None = None
        self._run: PointRun | None = None

    def answer(self, question: Message) -> Message:
        name, arguments = question["call"], question["arguments"]
        try:
            of = self if hasattr(self, name) else self._run
            return {"result": getattr(of, name)(**arguments)}
        except (EOFError, BrokenPipeError):
            raise
        except Exception as error:
            if not isinstance(error, PumiceError):
                traceback.print_exc()
            return {"error": error_as_message(error)}

    def measure(
        self,
        repeat: int,
        study: Mapping[str, object],
        folders: Sequence[str],
        points: Sequence[Sequence[Value]],
        priors: Mapping[str, Mapping[str, object]],
        with_peaks: Sequence[str],
        validation: bool | None,
    ) -> Mapping[str, object]:
        """Measures a pass; see ``runner.measure_points``."""
        # A side needs no statistics, which take seconds to load.
        from ..sampling.turns import Prior
        from .runner import measure_points

        folder, *others = map(Path, folders)
        described = study_from_dict(study, folder)
        if described.against is not None:
            described = replace(described, against=replace(described.against, folder=others[0]))
        part = Pass(repeat, described, tuple(map(point_from_row, points)))
        known = {int(index): Prior(**prior) for index, prior in priors.items()}  # type: ignore[arg-type]
        pool = self._opened(validation)
        return asdict(measure_points(part, pool, _PipeSink(self._pipe), known, with_peaks, _PipeProgress(self._pipe)))

    def describe(self, uri: str, validation: bool | None) -> str:
        """Names a device and its driver."""
        profile = self._opened(validation).open(uri).profile
        return f"{profile.name} ({profile.driver_name} {profile.driver_info})"

    def start(
        self,
        row: Sequence[Value],
        kind: str,
        folder: str,
        sampling: Mapping[str, object],
        validation: bool | None,
        block: int,
        again: bool,
    ) -> None:
        """Opens a point of a side, whose other methods can be called from then on; once."""
        point, settings = point_from_row(row), make_sampling(sampling)
        context = WorkloadContext(self._opened(validation), point.device, Path(folder), settings.seed)
        self._run = PointRun(kind, point, context, settings, _PipeSink(self._pipe))
        self._run.start(block, again=again)

    def _opened(self, validation: bool | None) -> DevicePool:
        self._pool = self._pool or DevicePool(validation=validation)
        return self._pool

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
        if self._pool is not None:
            self._pool.close()


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
