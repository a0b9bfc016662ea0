"""Queues, which accept submissions, and queues that time them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..base.lazy_dataclass import dataclass
from ..status import PumiceError
from .semaphore import Semaphore


class Submits(Protocol):
    """An object that accepts submissions: a queue, or a stand-in that times them."""

    # Each device accepts objects of its own classes, which no common type can express.

    def submit(
        self,
        command_buffers: Sequence[Any] = (),
        *,
        waits: Sequence[tuple[Any, int]] = (),
        signals: Sequence[tuple[Any, int]] = (),
        bindings: Sequence[Any] | None = None,
    ) -> int:
        """Hands work to the queue; returns at once. All arguments are of the queue's device.

        Args:
            command_buffers: the command buffers, recorded and ended; they run in order.
            waits: the (semaphore, payload) pairs to be reached first. Payloads that nobody has scheduled hold the
                submission back on the host; nothing else waits for it.
            signals: the pairs to signal when all commands are done; payloads only increase.
            bindings: the table that fills the slots of command buffers with ``binding_capacity``.

        Returns:
            The submission's number, which is the payload of the queue's ``stream`` when it is done; 0 for one that is
            held back.

        Raises:
            FailedPreconditionError: a command buffer is not ready, or a payload would not increase.
            ClosedError: a command buffer, a semaphore or a buffer was closed.
        """

    def resubmit(self, commands: Any, generation: int, bindings: Sequence[Any] | None = None) -> int:
        """Submits one command buffer that waits for nothing and signals only ``stream``, with fewer checks than
        ``submit``.

        Args:
            commands: the command buffer. Without ``bindings`` it was submitted here before.
            generation: the generation of the command buffer at that submission; ignored with ``bindings``.
            bindings: the bindings of the slots, as for ``submit``.

        Returns:
            The submission's number; 0, without any effect, if the caller must use ``submit``, which always works.
        """


class Queue(Submits, Protocol):
    """A queue.

    Attributes:
        stream: a semaphore that each submission signals with its number. It fails with the device, but not with
            faults that instrumented shaders report.
    """

    @property
    def stream(self) -> Semaphore: ...


@dataclass(slots=True)
class TimedSubmission:
    """One command buffer of one submission, while a profile runs.

    Attributes:
        submit_ns: the time of the submission, by the host's monotonic clock.
        dispatches, barriers: the name and workgroups of each dispatch, and whether a barrier precedes it; empty for a
            span.
        locations: the source locations by name, for each executable.
        ticks: the begin and end of each dispatch, or of the span, as native unsigned 64-bit integers; ``None`` until it
            has retired.
        is_span: whether it was timed as a whole.
        untimed: whether it was only counted, to limit the cost of the profile.
        is_submitted: whether it is on the device's queue instead of held back.
    """

    name: str
    thread: int
    submit_ns: int
    dispatches: Sequence[tuple[str, tuple[int, int, int] | None]] = ()
    barriers: Sequence[bool] = ()
    locations: tuple[Mapping[str, str], ...] = ()
    ticks: bytes | None = None
    is_span: bool = False
    failed: bool = False
    untimed: bool = False
    is_submitted: bool = False

    @property
    def is_unread(self) -> bool:
        """Whether its times are still unread."""
        return self.is_submitted and self.ticks is None and not self.failed and not self.untimed


class TimedQueue(Submits, Protocol):
    """A queue that times submissions while a profile runs.

    Attributes:
        submissions: the timed submissions, in order.
        took_ns: the calls' total time so far, set by the profile.
        on_reading: a function that is called about once a second, to relate the clocks.
        errors: the errors raised while times were read.
    """

    submissions: list[TimedSubmission]
    took_ns: int
    on_reading: Callable[[], None] | None
    errors: list[PumiceError]

    def take_submissions(self) -> list[TimedSubmission]:
        """Returns all submissions, in order."""

    def may_time(self) -> bool:
        """Whether timestamps have cost less than their share of the calls' time."""

    def stop(self, timeout: float) -> None:
        """Ends timing. Waits at most ``timeout`` seconds for timed work."""
