"""Calls of a measuring child process. Its measurements are stored here; ``child`` is the child's side.

Sides of a study may be measured in separate processes, which wait during the other side's turn without using a
processor. Two processes of one program have different memory layouts, and their driver's threads run on different
cores, for as long as they live. So each opening of a point has a new process, so that the difference is random in each
round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ...base.child_process import ChildProcess
from ...base.closeable import Closeable
from ..definition.point import Point
from ..definition.settings import Process
from ..definition.study import Study
from ..definition.study_file import study_as_dict
from ..results.storage.records import PointStatus
from ..results.storage.rows import point_row
from ..results.storage.sink import Sink
from ..sampling.passes import Pass
from ..sampling.sampler import Progress, SampleRun
from ..sampling.turns import Block, Prior

# A sample of more than a minute is an error of the child itself.
_LIMITS_S: Final[Mapping[str, float]] = {"start": 600.0, "take_block": 120.0}
_LIMIT_S: Final = 120.0


def call(
    child: ChildProcess,
    name: str,
    arguments: Mapping[str, object],
    sink: Sink | None = None,
    progress: Progress | None = None,
    points: Mapping[int, Point] | None = None,
    timeout: float | None = None,
) -> Any:
    """Calls a method of the child, stores its measurements, and returns its result.

    Args:
        child: the child process.
        name, arguments: the method's name and its arguments.
        sink: the sink of the measurements.
        progress, points: the receiver of progress, and its points by index.
        timeout: the seconds within which the child must answer.

    Raises:
        PumiceError: the child's own error.
        AbortedError: the process has ended.
        DeadlineExceededError: the process did not answer, and was killed.
    """
    child.send({"call": name, "arguments": dict(arguments)})
    while True:
        match child.receive(timeout):
            case {"write": [table, doing, rows]}:
                assert sink is not None
                sink.write(table, doing, rows)
                child.send({})
            case {"advance": [index, fraction]} if progress is not None and points is not None:
                progress.advance(points[index], fraction)
            case {"finished": [index, status, reason]} if progress is not None and points is not None:
                progress.finished(points[index], PointStatus(status), reason)
            case {"result": result}:
                return result


def measure_in(
    child: ChildProcess,
    part: Pass,
    sink: Sink,
    progress: Progress | None,
    priors: Mapping[int, Prior],
    with_peaks: Collection[str],
    validation: bool | None,
) -> SampleRun:
    """Measures a pass in a new child, as ``runner.measure_points`` does in this process. Raises as ``call``."""
    study = part.study
    arguments = {
        "repeat": part.repeat,
        "study": study_as_dict(study),
        "folders": [str(side.folder.absolute()) for side in (study, study.against) if side is not None],
        "points": [point_row(point) for point in part.points],
        "priors": {index: _plain(prior) for index, prior in priors.items()},
        "with_peaks": list(with_peaks),
        "validation": validation,
    }
    run = call(child, "measure", arguments, sink, progress, {point.index: point for point in part.points})
    failed = {name: {int(index): why for index, why in run[name].items()} for name in ("failed", "skipped")}
    return SampleRun(**run | failed)


def _plain(prior: Prior) -> dict[str, object]:
    """Returns a prior, whose sequences may be arrays, as JSON values."""
    return {name: list(value) if not isinstance(value, int) else value for name, value in asdict(prior).items()}


class SideProcess(Closeable):
    """A process of a side; ``name`` is for messages, such as ``"the old side"``.

    Raises:
        PumiceError: the process cannot start; see ``ChildProcess``.
    """

    def __init__(self, name: str, process: Process, study: Study, validation: bool | None) -> None:
        self._name = name
        self._process = process
        self._study = study
        self._validation = validation
        self._child = ChildProcess(name, python=process.python or None, variables=process.variables)

    def describe(self, uri: str) -> str:
        """Describes, for readers of the results, the process and the device that a URI means there."""
        facts = self._child.environment
        variables = "".join(f", {name}={value}" for name, value in self._process.variables.items())
        where = f" of {self._process.python}" if self._process.python else ""
        return (
            f"{self._name} is measured in processes of its own: pumice {facts['pumice']}{where}, {facts['python']}"
            f"{variables}; {uri} is {self.device(uri)} there"
        )

    def device(self, uri: str) -> str:
        """Names the device, with its driver, that a URI means in the process."""
        return str(self.call("describe", {"uri": uri, "validation": self._validation}))

    def start(self, point: Point, block: int, again: bool, sink: Sink) -> None:
        """Opens a point; call it once."""
        study = self._study
        arguments = {
            "row": point_row(point),
            "kind": study.kind_of(point),
            "folder": str(Path(study.folder_of(point)).absolute()),
            "sampling": asdict(study.sampling),
            "validation": self._validation,
        }
        self.call("start", {**arguments, "block": block, "again": again}, sink)

    def call(self, name: str, arguments: Mapping[str, object], sink: Sink | None = None) -> Any:
        """Calls a method of the child; see there."""
        return call(self._child, name, arguments, sink, timeout=_LIMITS_S.get(name, _LIMIT_S))

    def close(self) -> None:
        """Ends the process; idempotent."""
        self._child.close()


class ApartSide:
    """A point of a side, measured in separate processes; see ``Side``."""

    is_apart = True

    def __init__(
        self, name: str, process: Process, study: Study, validation: bool | None, point: Point, sink: Sink
    ) -> None:
        self._arguments = name, process, study, validation
        self._point = point
        self._sink = sink
        self._process: SideProcess | None = None

    @property
    def point(self) -> Point:
        return self._point

    def start(self, block: int, *, again: bool) -> None:
        self.release()
        self._process = SideProcess(*self._arguments)
        self._process.start(self._point, block, again, self._sink)

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        return Block(*self._call("take_block", block=block, samples=samples, most_ns=most_ns))

    def read_reference(self) -> None:
        self._call("read_reference")

    def release(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    close = release

    def _call(self, name: str, **arguments: object) -> Any:
        assert self._process is not None
        return self._process.call(name, arguments, self._sink)
