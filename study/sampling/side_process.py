"""A side that is measured in a process of its own, which waits while the other side has its turn.

The process measures when it is asked to, and answers with what it measured. Between two questions it waits for the
next one, without using a processor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...closing import Closing
from ...status import AbortedError, DeadlineExceededError, DeviceLostError
from ..definition.point import Point
from ..definition.process import Process
from ..definition.study import Study
from ..results.rows import point_row
from ..results.sink import Sink
from .child_process import ChildProcess
from .message_pipe import error_from_message
from .side import Block

# A sample that takes longer than a minute is the child's own error.
_LIMITS_S: Final[Mapping[str, float]] = {"start": 600.0, "take_block": 120.0}
_LIMIT_S: Final = 120.0


class SideProcess(Closing):
    """The process of a side; ``name`` is for messages, such as ``"the old side"``. It starts at once, and again for the
    next opening of a point if it has ended.

    Raises:
        PumiceError: it cannot start; see ``ChildProcess``.
    """

    def __init__(self, name: str, process: Process, study: Study, validation: bool | None) -> None:
        self._name = name
        self._process = process
        self._study = study
        self._validation = validation
        # The number of the child, which points remember that are open in it, and how the last one ended.
        self.started = 0
        self.ending = ""
        self._child: ChildProcess | None = self._start()

    def _start(self) -> ChildProcess:
        child = ChildProcess(self._name, python=self._process.python or None, variables=self._process.variables)
        try:
            child.send({"task": "side", "sampling": asdict(self._study.sampling), "validation": self._validation})
        except BaseException:
            child.close()
            raise
        self.started += 1
        return child

    def describe(self, uri: str) -> str:
        """For readers of the results: what measures, and on what it finds by a device's URI."""
        assert self._child is not None
        facts = self._child.environment
        variables = "".join(f", {name}={value}" for name, value in self._process.variables.items())
        where = f" of {self._process.python}" if self._process.python else ""
        return (
            f"{self._name} is measured in a process of its own: pumice {facts['pumice']}{where}, {facts['python']}"
            f"{variables}; {uri} is {self.device(uri)} there"
        )

    def device(self, uri: str) -> str:
        """The name and the driver of what the process finds by a device's URI."""
        return str(self.call("describe", {"uri": uri}))

    def open(self, point: Point, sink: Sink) -> ApartSide:
        """A point of this side, which adds its measurements to the sink."""
        return ApartSide(self, point, sink)

    def start_point(self, point: Point, block: int, sink: Sink, *, again: bool) -> int:
        """Opens a point, in a new process if that has ended; returns the number of the process."""
        if self._child is None:
            self._child = self._start()
        study = self._study
        folder = str(Path(study.folder_of(point)).absolute())
        how = {"kind": study.kind_of(point), "folder": folder, "block": block, "again": again}
        self.call("start", {"row": point_row(point), **how}, sink=sink)
        return self.started

    def call(self, name: str, arguments: Mapping[str, object], sink: Sink | None = None) -> Any:
        """Calls a method of the child, stores what it measured, and returns its result.

        Raises:
            PumiceError: the child's own error.
            DeviceLostError: the process has ended, or was killed as it did not answer; what was open in it is lost.
        """
        child = self._child
        if child is None:
            raise DeviceLostError(self.ending)
        self._child = None  # unless it answers
        try:
            child.send({"call": name, "arguments": dict(arguments)})
            answer = child.receive(_LIMITS_S.get(name, _LIMIT_S))
        except (AbortedError, DeadlineExceededError) as error:
            child.close()
            self.ending = error.message
            raise DeviceLostError(error.message) from error
        except BaseException:
            child.close()
            raise
        self._child = child
        for table, doing, rows in answer["written"]:
            assert sink is not None
            sink.write(table, doing, rows)
        if "failed" in answer:
            raise error_from_message(answer["failed"])
        return answer["result"]

    @property
    def is_running(self) -> bool:
        return self._child is not None

    def close(self) -> None:
        """Ends the process; idempotent."""
        if self._child is not None:
            self._child.close()
            self._child = None


class ApartSide:
    """A point that is measured in another process; see ``Side``."""

    def __init__(self, process: SideProcess, point: Point, sink: Sink) -> None:
        self._process = process
        self._point = point
        self._sink = sink
        # The process that it is open in.
        self._opened_in = 0

    @property
    def point(self) -> Point:
        """What is measured."""
        return self._point

    def start(self, block: int, *, again: bool) -> None:
        """See ``Side``."""
        self._opened_in = self._process.start_point(self._point, block, self._sink, again=again)

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        """See ``Side``."""
        return Block(*self._call("take_block", {"block": block, "samples": samples, "most_ns": most_ns}))

    def read_reference(self) -> None:
        """See ``Side``."""
        self._call("read_reference")

    def release(self) -> None:
        """See ``Side``."""
        self._end("release")

    def close(self) -> None:
        """See ``Side``."""
        self._end("close")
        self._opened_in = 0

    def _end(self, name: str) -> None:
        # What was open in a process that has ended is closed.
        with contextlib.suppress(DeviceLostError):
            self._call(name)

    @property
    def _is_open(self) -> bool:
        return self._process.is_running and self._opened_in == self._process.started

    def _call(self, name: str, arguments: Mapping[str, object] = MappingProxyType({})) -> Any:
        if not self._is_open:
            raise DeviceLostError(self._process.ending)
        return self._process.call(name, {"point": self._point.index, **arguments}, self._sink)
