"""A side that is measured in processes of its own, which wait during the other side's turn.

A process measures on request, and answers with its measurements. Between requests it waits, without using a processor.

Two processes of one program differ for their whole lives: by where their memory lies, and by which cores the threads of
the driver use. So each opening of a point has a new process, and the difference is drawn anew in each round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...base.child_process import ChildProcess
from ...base.closeable import Closeable
from ...base.message_pipe import error_from_message
from ..definition.point import Point
from ..definition.settings import Process
from ..definition.study import Study
from ..results.storage.rows import point_row
from ..results.storage.sink import Sink
from ..sampling.turns import Block

# A sample of more than a minute is an error of the child itself.
_LIMITS_S: Final[Mapping[str, float]] = {"start": 600.0, "take_block": 120.0}
_LIMIT_S: Final = 120.0


class SideProcess(Closeable):
    """A process of a side; ``name`` is for messages, such as ``"the old side"``.

    Raises:
        PumiceError: it cannot start; see ``ChildProcess``.
    """

    def __init__(self, name: str, process: Process, study: Study, validation: bool | None) -> None:
        self._name = name
        self._process = process
        self._child = ChildProcess(name, python=process.python or None, variables=process.variables)
        try:
            self._child.send({"task": "side", "sampling": asdict(study.sampling), "validation": validation})
        except BaseException:
            self.close()
            raise

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
        return str(self.call("describe", {"uri": uri}))

    def call(self, name: str, arguments: Mapping[str, object], sink: Sink | None = None) -> Any:
        """Calls a method of the child, stores what it measured, and returns its result.

        Raises:
            PumiceError: the child's own error.
            AbortedError: the process has ended.
            DeadlineExceededError: it did not answer, and was killed.
        """
        self._child.send({"call": name, "arguments": dict(arguments)})
        answer = self._child.receive(_LIMITS_S.get(name, _LIMIT_S))
        for table, doing, rows in answer["written"]:
            assert sink is not None
            sink.write(table, doing, rows)
        if "failed" in answer:
            raise error_from_message(answer["failed"])
        return answer["result"]

    def close(self) -> None:
        """Ends the process; idempotent."""
        self._child.close()


class ApartSide:
    """A point of a side in processes of its own; see ``Side``."""

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
        _, _, study, _ = self._arguments
        self._process = SideProcess(*self._arguments)
        folder = str(Path(study.folder_of(self._point)).absolute())
        how = {"kind": study.kind_of(self._point), "folder": folder, "block": block, "again": again}
        self._call("start", {"row": point_row(self._point), **how})

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        return Block(*self._call("take_block", {"block": block, "samples": samples, "most_ns": most_ns}))

    def read_reference(self) -> None:
        self._call("read_reference")

    def release(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    close = release

    def _call(self, name: str, arguments: Mapping[str, object] = MappingProxyType({})) -> Any:
        assert self._process is not None
        return self._process.call(name, arguments, self._sink)
