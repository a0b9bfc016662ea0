"""Recorders: the calls that a ``with device.record()`` block collects in place of running it.

While a recorder is open, the calls that its thread makes on its device become steps: calls of kernels, copies between
arrays, fills. ``runtime/recordings`` makes commands of the steps.

A context variable finds the recorder, so that other tasks of an event loop are not recorded; the thread is compared
too, because threads may inherit the context.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...hal.buffer import Buffer
from ...hal.command_buffer import CommandBuffer
from ...status import FailedPreconditionError
from .uses import Uses

Marks: TypeAlias = Sequence[tuple[Uses, bool, bool]]
"""The memory that a step uses, whether it reads it, and whether it writes it."""


class HasMemory(Protocol):
    """An array on the device."""

    @property
    def uses(self) -> Uses: ...

    @property
    def buffer(self) -> Buffer: ...


class Step(Protocol):
    """One recorded call.

    Attributes:
        name: the name in messages.
        marks: the memory that it uses.
        labelled: its arguments, and what they are, for messages.
    """

    @property
    def name(self) -> str: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def labelled(self) -> Sequence[tuple[str, object]]: ...

    def record(self, commands: CommandBuffer) -> None:
        """Adds its commands; a barrier stands before and after them."""

    def replaced(self, old: object, new: Any) -> Step:
        """Returns the step with another argument in place of one, itself if it does not use that."""


@dataclass(frozen=True, slots=True)
class CopyStep:
    """A copy from one array to another of the same size."""

    source: HasMemory
    target: HasMemory
    name: str = "copy"

    @property
    def marks(self) -> Marks:
        return (self.source.uses, True, False), (self.target.uses, False, True)

    @property
    def labelled(self) -> Sequence[tuple[str, object]]:
        return ("the source of a copy", self.source), ("the target of a copy", self.target)

    def replaced(self, old: object, new: HasMemory) -> CopyStep:
        source, target = (new if array is old else array for array in (self.source, self.target))
        return self if source is self.source and target is self.target else CopyStep(source, target)

    def record(self, commands: CommandBuffer) -> None:
        commands.copy(self.source.buffer, self.target.buffer)


@dataclass(frozen=True, slots=True)
class ZeroStep:
    """A fill of an array with zeros."""

    target: HasMemory
    name: str = "zeros"

    @property
    def marks(self) -> Marks:
        return ((self.target.uses, False, True),)

    @property
    def labelled(self) -> Sequence[tuple[str, object]]:
        return (("an array of zeros", self.target),)

    def replaced(self, old: object, new: HasMemory) -> ZeroStep:
        return ZeroStep(new) if self.target is old else self

    def record(self, commands: CommandBuffer) -> None:
        commands.fill(self.target.buffer, b"\0")


class Recorder:
    """Collects the calls of one thread on one device.

    Calling sequence: ``begin`` → ``add`` … → ``end``.

    Attributes:
        device: the device whose calls are recorded.
        steps: the steps so far.
    """

    def __init__(self, device: object) -> None:
        self.device = device
        self.steps: list[Step] = []
        self._thread = threading.get_ident()
        self._written: set[int] = set()  # ids of the uses; the steps keep them alive

    def begin(self) -> None:
        """Starts recording in this thread; FailedPreconditionError if a recorder is open here already."""
        if recorder_of(self.device) is not None:
            raise FailedPreconditionError(
                "a recording of this device is being made already; make the inner one before, and run() it in this one"
            )
        _open.set((*_open.get(), self))
        open_recorders.add(self)

    def end(self) -> None:
        """Ends recording; idempotent."""
        others = tuple(recorder for recorder in _open.get() if recorder is not self)
        if self._thread:
            self._thread = 0  # tasks that were started inside still have it in their context
            _open.set(others)
            open_recorders.discard(self)

    def records(self, device: object) -> bool:
        """Whether it collects the calls that this thread makes on a device."""
        return self.device is device and self._thread == threading.get_ident()

    def add(self, step: Step) -> None:
        """Adds a step."""
        self.steps.append(step)
        self._written.update(id(uses) for uses, _, written in step.marks if written)

    def check_read(self, uses: Uses, subject: str) -> None:
        """Raises if a step writes memory that the host is about to read."""
        if id(uses) in self._written:
            raise FailedPreconditionError(
                f"{subject} is written by calls that are recorded here and have not run: read it after run()"
            )


_open: Final[ContextVar[tuple[Recorder, ...]]] = ContextVar("pumice recorders", default=())


open_recorders: Final[set[Recorder]] = set()
"""The open recorders of all threads: calls look for theirs only if there are any."""


def recorder_of(device: object) -> Recorder | None:
    """Returns the recorder that collects this thread's calls on a device, or ``None``."""
    if open_recorders:
        for recorder in _open.get():
            if recorder.records(device):
                return recorder
    return None


def refuse_recording(device: object, subject: str, advice: str) -> None:
    """Raises if this thread records calls on the device; ``subject`` cannot be recorded."""
    if recorder_of(device) is not None:
        raise FailedPreconditionError(f"{subject} cannot be recorded: {advice}")
