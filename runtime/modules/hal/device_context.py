"""What a context keeps for one device: a timeline, memory for next uses, and the way of work to the queue.

Each submission signals the next payload of the context's own timeline, so fences cost no semaphores, and payloads are
reached in the order of submission. Work whose waits nobody has scheduled yet would upset that order: it signals a semaphore
of its fence's own. Waits for the timeline itself are left out: command buffers of one queue follow each other with full
barriers between them (docs/design/hal.md).

Thread rule: may be used from any thread; submissions of one context to one device take turns.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....hal_vulkan import Buffer, CommandBuffer, Device, Fence, Queue
from ....hal_vulkan.instance.logical_device import LogicalDevice
from ....status import FailedPreconditionError, PumiceError
from .buffer import HalAllocator
from .command_buffer import HalCommandBuffer
from .fence import AnyFence, HalFence, Points, check_fence, fail, failure_of, points_of
from .mirror import Mirror, mirrored_table, submit_across
from .semaphore import HalSemaphore
from .timed_queue import TimedQueue

__all__ = ["DeviceContext"]


class DeviceContext:
    """One context's way to one device.

    Attributes:
        device: the device.
        queue: where all work goes.
        timed: the queue in between, while a profile is on.
        allocator: what ``!hal.allocator`` refers to.
        timeline: signalled by each submission.
        peers: the context's ways to all its devices, where there are several.
    """

    __slots__ = ("_lock", "allocator", "device", "peers", "queue", "timed", "timeline")

    def __init__(self, device: Device) -> None:
        device.check_usable()
        self.device = device
        self.queue: Queue | TimedQueue = device.compute_queue
        self.timed: TimedQueue | None = None
        self.timeline = HalSemaphore(device.semaphore_context, "context timeline")
        self.allocator = HalAllocator(device, self.timeline)
        self.peers: Mapping[LogicalDevice, DeviceContext] = {}
        self._lock = threading.Lock()

    # -- profiles ------------------------------------------------------------------------------------

    def begin_profile(self, most_slowdown: float | None) -> TimedQueue:
        """From here on work goes through a queue that times it; ``end_profile`` must follow.

        Args:
            most_slowdown: see ``TimedQueue``.

        Raises:
            UnimplementedError: the device writes no timestamps.
        """
        self.device.command_context.check_timestamps(self.device.compute_queue.family)
        self.queue = self.timed = TimedQueue(self.device.compute_queue, most_slowdown)
        return self.timed

    def end_profile(self, timeout: float) -> None:
        """Work goes straight to the queue again. Waits for what was timed to end, ``timeout`` seconds at most."""
        timed, self.timed = self.timed, None
        self.queue = self.device.compute_queue
        if timed is not None:
            timed.stop(timeout)

    # -- submission ----------------------------------------------------------------------------------

    def submit(
        self,
        command_buffers: Sequence[CommandBuffer],
        wait: AnyFence | None,
        target: AnyFence | None,
        bindings: Sequence[Any] | None = None,
    ) -> None:
        """Runs command buffers once ``wait`` is reached, then signals ``target``. Returns at once.

        Args:
            command_buffers: recorded and ended; run in order.
            wait: ``None`` is reached. One that has failed fails ``target``, and nothing runs.
            target: ``None`` is nobody's.
            bindings: (buffer, offset, length) for each slot.

        Raises:
            PumiceError: the work cannot be submitted; nothing is signalled then.
        """
        if target is not None and type(target) is not HalFence:
            check_fence(target)
        if self.peers and self._submit_across(command_buffers, wait, target, bindings):
            return
        self._submit(command_buffers, wait, target, bindings)

    def _submit(
        self,
        command_buffers: Sequence[CommandBuffer],
        wait: AnyFence | None,
        target: AnyFence | None,
        bindings: Sequence[Any] | None,
    ) -> None:
        timeline = self.timeline
        waits: Points = ()
        if self.device.dropped:
            self.device.close_dropped()
        if timeline.failure is not None:
            timeline = self._renew_timeline()
        if wait is not None and not (type(wait) is HalFence and wait.bound == () and wait.failure is None):
            failure = failure_of(check_fence(wait))
            if failure is not None:
                fail(target, failure)
                return
            waits, direct = self._waits(wait)
            if not direct:
                self._submit_after(command_buffers, wait, target, bindings)
                return
            if any(value > semaphore.scheduled for semaphore, value in waits):
                self._submit_held(command_buffers, waits, target, bindings)
                return
        if target is not None and (type(target) is not HalFence or target.bound is not None):
            self._submit_signalling(command_buffers, waits, target, bindings)
            return
        with self._lock:
            payload = timeline.scheduled + 1
            points = ((timeline, payload),)
            number = self.queue.submit(command_buffers, waits=waits, signals=points, bindings=bindings)
            allocator = self.allocator
            allocator.number = number
            allocator.payload = payload
        if target is not None and not target.bind(points):
            _forward(points, target)  # somebody asked for its timepoints meanwhile

    def _submit_across(
        self,
        command_buffers: Sequence[CommandBuffer],
        wait: AnyFence | None,
        target: AnyFence | None,
        bindings: Sequence[Any] | None,
    ) -> bool:
        """Submits work with buffers of other devices; ``False``, and nothing done, if it has none."""
        recorded = [
            one for commands in command_buffers if isinstance(commands, HalCommandBuffer) for one in commands.mirrors
        ]
        foreign = any(
            isinstance(entry[0], Buffer) and entry[0].device is not self.device and entry[0].device in self.peers
            for entry in bindings or ()
        )
        if not recorded and not foreign:
            return False
        if wait is not None:
            check_fence(wait)
        temporary: list[Mirror] = []
        table = bindings
        if foreign:
            assert bindings is not None
            commands = command_buffers[0]
            assert isinstance(commands, HalCommandBuffer)
            table, temporary = mirrored_table(
                self.device, bindings, [commands.uses(slot) for slot in range(len(bindings))]
            )
        submit_across(
            self,
            (*recorded, *temporary),
            temporary,
            wait,
            target,
            lambda done: self._submit(command_buffers, None, done, table),
        )
        return True

    def _waits(self, wait: AnyFence) -> tuple[Points, bool]:
        """What the queue has to wait for, and whether it can: semaphores of other devices it cannot."""
        waits = []
        for semaphore, value in points_of(wait):
            if semaphore is self.timeline or semaphore.reached >= value:
                continue
            if semaphore.device is not self.device:
                return (), False
            waits.append((semaphore, value))
        return tuple(waits), True

    def _submit_held(
        self,
        command_buffers: Sequence[CommandBuffer],
        waits: Points,
        target: AnyFence | None,
        bindings: Sequence[Any] | None,
    ) -> None:
        """The queue holds the submission back; the timeline must not depend on it."""
        own = () if target is None else self._own_points(target)
        if own is None:
            # Signals semaphores of another device: by way of one here.
            assert target is not None
            here = HalFence(self.device)
            own = here.points()
            _forward(own, target)
        self.queue.submit(command_buffers, waits=waits, signals=own, bindings=bindings)

    def _submit_signalling(
        self,
        command_buffers: Sequence[CommandBuffer],
        waits: Points,
        target: AnyFence,
        bindings: Sequence[Any] | None,
    ) -> None:
        """A target with semaphores of its own."""
        own = self._own_points(check_fence(target))
        if own is not None:
            self.queue.submit(command_buffers, waits=waits, signals=own, bindings=bindings)
            return
        here = HalFence(self.device)
        self.submit(command_buffers, None if not waits else Fence(waits), here, bindings)
        _forward(here.points(), target)

    def _own_points(self, target: AnyFence) -> Points | None:
        """The timepoints of a fence that work is to signal; ``None`` where they are of another device."""
        points = points_of(target)
        if not points:
            raise FailedPreconditionError("the signal fence was signalled before; make a fence for each operation")
        return points if all(semaphore.device is self.device for semaphore, _ in points) else None

    def _submit_after(
        self,
        command_buffers: Sequence[CommandBuffer],
        wait: AnyFence,
        target: AnyFence | None,
        bindings: Sequence[Any] | None,
    ) -> None:
        """Waits on the host for what the queue cannot wait for."""

        def run(error: PumiceError | None) -> None:
            if error is None:
                try:
                    self.submit(command_buffers, None, target, bindings)
                    return
                except PumiceError as raised:
                    error = raised
            fail(target, error)

        wait.notify(run)

    def _renew_timeline(self) -> HalSemaphore:
        """A timeline that failed by a race with its user's semaphores is replaced; a lost device raises."""
        self.device.check_usable()
        self.timeline = self.allocator.timeline = HalSemaphore(self.device.semaphore_context, "context timeline")
        self.allocator.number = 0
        return self.timeline

    def once(
        self, name: str, record: Callable[[HalCommandBuffer], None], wait: AnyFence | None, target: AnyFence | None
    ) -> None:
        """Submits commands recorded for this one time."""
        commands = HalCommandBuffer(self.device, one_shot=True, name=name, peers=self.peers)
        commands.begin()
        record(commands)
        commands.end()
        self.submit((commands,), wait, target)

    def close(self) -> None:
        """Frees what is kept for next uses. Fences and buffers that are still there go by themselves."""
        self.allocator.close()


def _forward(points: Points, target: AnyFence) -> None:
    """Signals or fails ``target`` on the host when the points are reached."""

    def run(error: PumiceError | None) -> None:
        if error is None:
            try:
                target.signal()
                return
            except PumiceError as raised:
                error = raised
        target.fail(error)

    Fence(points).notify(run)
