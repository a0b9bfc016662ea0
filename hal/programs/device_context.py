"""Device contexts: a VM context's timeline, allocator and queue for one device. A device table has one per device.

The usual submission, a command buffer with a binding table and no waits, signals only the queue's stream, and its fence
is bound to that. Submissions that wait for other semaphores and may fail with them, and submissions whose shaders
report, signal the next payload of the timeline. Payloads are reached in the order of submission, and fences need no
semaphores. Work whose waits are not scheduled yet would break that order, so it signals a semaphore of its fence. Waits
for the timeline and the stream are left out, as command buffers of one queue run in order with full barriers between
them (docs/design/hal.md).

Thread rule: any thread; submissions of one context to one device are serialized.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...base.memory_budget import MemoryBudget
from ...status import FailedPreconditionError, InvalidArgumentError
from ..buffer import Buffer
from ..command_buffer import CommandBuffer
from ..device import Device
from ..fence import Fence
from ..logical_device import LogicalDevice
from ..mirror import Mirror
from ..program import ProgramAllocator, ProgramCommandBuffer
from ..queue import Submits, TimedQueue
from ..semaphore import Semaphore
from .checks import Ref
from .fence import (
    AnyFence,
    HalFence,
    OptionalFence,
    Points,
    check_fence,
    fail,
    failure_of,
    points_of,
    run_after,
    signal_after,
)
from .mirror import mirrored_table, submit_across

Table: TypeAlias = Sequence[Any] | None
"""(buffer, offset, length) for each binding slot."""


class DeviceContext:
    """A VM context's state for one device; ``memory`` is the budget for allocations of its programs.

    Attributes:
        queue: the queue that takes all work.
        timed: the queue that times submissions, while a profile runs.
        allocator: the program's ``!hal.allocator``.
        timeline: the semaphore of submissions that signal more than the queue's stream.
        peers: the device contexts of all the VM context's devices, if it has several.
    """

    def __init__(self, device: Device, memory: MemoryBudget | None = None) -> None:
        device.check_usable()
        self.device = device
        self.queue: Submits = device.compute_queue
        self.timed: TimedQueue | None = None
        self.timeline: Semaphore = device.program_semaphore("context timeline")
        self.allocator: ProgramAllocator = device.program_allocator(self.timeline)
        self.allocator.limit = memory
        self.peers: Mapping[LogicalDevice, DeviceContext] = {}
        self._lock = threading.Lock()

    # -- profiles ------------------------------------------------------------------------------------

    def begin_profile(self, most_slowdown: float | None) -> TimedQueue:
        """Times all work until ``end_profile``, which must follow; UnimplementedError without timestamps."""
        self.queue = self.timed = self.device.timed_queue(most_slowdown)
        return self.timed

    def end_profile(self, timeout: float) -> None:
        """Ends timing. Waits at most ``timeout`` seconds for timed work."""
        timed, self.timed = self.timed, None
        self.queue = self.device.compute_queue
        if timed is not None:
            timed.stop(timeout)

    # -- submission ----------------------------------------------------------------------------------

    def submit(
        self, command_buffers: Sequence[CommandBuffer], wait: OptionalFence, target: OptionalFence, table: Table = None
    ) -> None:
        """Runs command buffers once ``wait`` is reached, then signals ``target``. Returns immediately.

        A failed ``wait`` fails ``target``, and nothing runs. Nothing is signalled if it raises.
        """
        if target is not None and type(target) is not HalFence:
            check_fence(target)
        if self.peers and self._submit_across(command_buffers, wait, target, table):
            return
        self._submit(command_buffers, wait, target, table)

    def _submit(
        self, command_buffers: Sequence[CommandBuffer], wait: OptionalFence, target: OptionalFence, table: Table
    ) -> None:
        timeline = self.timeline
        waits: Points = ()
        device = self.device
        if device.dropped:
            device.close_dropped()
        if timeline.failure is not None:
            # It failed in a race with its user's semaphores.
            device.check_usable()
            timeline = self.timeline = self.allocator.timeline = device.program_semaphore("context timeline")
            self.allocator.last_signal = 0, 0
        if wait is not None and not (type(wait) is HalFence and wait.bound == () and wait.failure is None):
            failure = failure_of(check_fence(wait))
            if failure is not None:
                fail(target, failure)
                return
            waits, direct = self._waits(wait)
            if not direct:
                # The queue cannot wait for these, so submits after a wait on the host.
                run_after(wait, target, lambda: self.submit(command_buffers, None, target, table))
                return
            if any(value > semaphore.scheduled for semaphore, value in waits):
                self._submit_apart(command_buffers, waits, target, table)
                return
        if target is not None and (type(target) is not HalFence or target.bound is not None):
            self._submit_apart(command_buffers, waits, target, table)
            return
        if not waits and len(command_buffers) == 1 and (table is not None or command_buffers[0].is_kept):
            number = self.queue.resubmit(command_buffers[0], 0, table or ())
            if number:
                points: Points = ((device.compute_queue.stream, number),)
                if target is not None and not target.bind(points):
                    signal_after(Fence(points), target)  # the fence was materialised meanwhile
                return
        with self._lock:
            payload = timeline.scheduled + 1
            points = ((timeline, payload),)
            number = self.queue.submit(command_buffers, waits=waits, signals=points, bindings=table)
            self.allocator.last_signal = number, payload
        if target is not None and not target.bind(points):
            signal_after(Fence(points), target)  # it was materialised meanwhile

    def _submit_across(
        self, command_buffers: Sequence[CommandBuffer], wait: OptionalFence, target: OptionalFence, table: Table
    ) -> bool:
        """Submits work with buffers of other devices; ``False`` if it has none."""
        recorded: list[Mirror] = []
        for commands in command_buffers:
            if isinstance(commands, ProgramCommandBuffer):
                recorded += commands.mirrors.values()
        foreign = any(
            isinstance(entry[0], Buffer) and entry[0].device is not self.device and entry[0].device in self.peers
            for entry in table or ()
        )
        if not recorded and not foreign:
            return False
        if wait is not None:
            check_fence(wait)
        temporary: list[Mirror] = []
        if foreign:
            assert table is not None
            commands = command_buffers[0]
            assert isinstance(commands, ProgramCommandBuffer)
            table, temporary = mirrored_table(self.device, table, commands.uses)

        def submit() -> HalFence:
            done = HalFence(self.device)
            self._submit(command_buffers, None, done, table)
            return done

        peers = self.peers

        def once(buffer: Buffer, record: Callable[[CommandBuffer], None]) -> HalFence:
            return peers[buffer.device].run("mirror", record)

        submit_across((*recorded, *temporary), temporary, wait, target, once, submit)
        return True

    def _waits(self, wait: AnyFence) -> tuple[Points, bool]:
        """Returns the points that the queue must wait for, and whether it can: it cannot wait for other devices'
        semaphores.
        """
        waits = []
        stream = self.device.compute_queue.stream
        for semaphore, value in points_of(wait):
            if semaphore is self.timeline or semaphore is stream or semaphore.reached >= value:
                continue
            if semaphore.device is not self.device:
                return (), False
            waits.append((semaphore, value))
        return tuple(waits), True

    def _submit_apart(
        self, command_buffers: Sequence[CommandBuffer], waits: Points, target: OptionalFence, table: Table
    ) -> None:
        """Submits without the timeline: work that is held back, or that signals semaphores of its target."""
        here: HalFence | None = None
        points = () if target is None else points_of(target)
        if target is not None and not points:
            raise FailedPreconditionError("the signal fence was signalled before; make a fence for each operation")
        if any(semaphore.device is not self.device for semaphore, _ in points):
            # Semaphores of another device are signalled on the host.
            here = HalFence(self.device)
            points = here.points()
        self.queue.submit(command_buffers, waits=waits, signals=points, bindings=table)
        if here is not None:
            signal_after(here, target)

    def beside(self, buffer: Buffer) -> DeviceContext:
        """Returns the device context of a buffer's device; this context if the program lacks that device."""
        return self.peers.get(buffer.device, self)

    def once(
        self, name: str, record: Callable[[ProgramCommandBuffer], None], wait: OptionalFence, target: OptionalFence
    ) -> None:
        """Records and submits one-shot commands."""
        commands = self.device.program_commands(one_shot=True, name=name, peers=self.peers)
        commands.begin()
        record(commands)
        commands.end()
        self.submit((commands,), wait, target)

    def run(self, name: str, record: Callable[[ProgramCommandBuffer], None], wait: OptionalFence = None) -> HalFence:
        """Runs ``once`` with a new fence to signal."""
        done = HalFence(self.device)
        self.once(name, record, wait, done)
        return done


class TransferContexts(dict[LogicalDevice, DeviceContext]):
    """Device contexts for transfers, made at their first use. Their allocators keep no memory for reuse.

    Args:
        memory: the budget for their allocations; None means no limit.
    """

    def __init__(self, memory: MemoryBudget | None = None) -> None:
        super().__init__()
        self._memory = memory

    def __missing__(self, device: LogicalDevice) -> DeviceContext:
        assert isinstance(device, Device)
        context = self[device] = DeviceContext(device, self._memory)
        context.allocator.close()
        return context


class DeviceTable:
    """The devices of one VM context, in the program's numbering, and their device contexts.

    Attributes:
        contexts: the contexts by device.
    """

    def __init__(self, devices: Sequence[Device], memory: MemoryBudget | None = None) -> None:
        self._devices = tuple(devices)
        self.contexts: dict[LogicalDevice, DeviceContext] = {
            device: DeviceContext(device, memory) for device in devices
        }
        if len(self.contexts) > 1:
            for context in self.contexts.values():
                context.peers = self.contexts

    def device_context(self, device: Ref) -> DeviceContext:
        """Returns the device context of a device; InvalidArgumentError unless it belongs to this VM context."""
        try:
            return self.contexts[device]
        except (KeyError, TypeError):
            text = "null" if device is None else repr(device)
            raise InvalidArgumentError(
                f"expected a !hal.device of this context ({len(self._devices)} device(s)), got {text}"
            ) from None

    def close(self) -> None:
        """Frees kept memory; idempotent. Live objects stay usable."""
        for context in self.contexts.values():
            context.peers = {}
            context.allocator.close()

    def __del__(self) -> None:
        # May run at any point, under any lock, so it only appends to a list (docs/design/hal.md).
        for device, context in getattr(self, "contexts", {}).items():
            if not context.allocator.is_closed:
                device.dropped.append(context.allocator)
