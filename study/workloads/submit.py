"""The cost of a submission by its number of command buffers, semaphores to wait for, and semaphores to signal.

Submissions go through pumice's queue, whose checks and bookkeeping are part of the time; kind ``kernel`` times the
native call alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from ...hal_vulkan import CommandBuffer, TimelineSemaphore
from .clock import RawSample
from .workload import Workload, WorkloadContext


class SubmitWorkload(Workload):
    """Submissions; ``settings`` are those of kind ``submit`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], context: WorkloadContext) -> None:
        super().__init__(context)
        hal = self.device.vulkan
        self._commands: list[CommandBuffer] = []
        self._depth: int = settings["in_flight"]
        self._signals: list[TimelineSemaphore] = []
        self._waits: list[TimelineSemaphore] = []
        self._number = 0
        try:
            self._signals = [hal.create_semaphore(0, f"signal {i}") for i in range(settings["signals"])]
            # Already signalled: the host's work is measured, not a wait.
            self._waits = [hal.create_semaphore(1, f"wait {i}") for i in range(settings["waits"])]
            pipeline = hal.command_context.builtins.empty()
            for index in range(settings["command_buffers"]):
                commands = hal.create_command_buffer(name=f"commands {index}").begin()
                self._commands.append(commands)
                for _ in range(settings["dispatches"]):
                    commands.dispatch(pipeline, (), (1, 1, 1))
                commands.end()
        except BaseException:
            self.close()
            raise

    def sample(self) -> RawSample:
        """Makes ``in_flight`` submissions, and waits for the last."""
        queue, commands = self.device.vulkan.compute_queue, self._commands
        waits = [(semaphore, 1) for semaphore in self._waits]
        signals = [[(s, self._number + i + 1) for s in self._signals] for i in range(self._depth)]
        self._number += self._depth
        before = self._context.usage()
        called = monotonic_ns()
        for points in signals:
            queue.submit(commands, waits=waits, signals=points)
        returned = monotonic_ns()
        self._signals[0].wait(self._number, self._context.timeout)
        awake = monotonic_ns()
        preemptions, cpu = self._context.usage_since(before)
        return RawSample(
            called,
            called=called,
            returned=returned,
            awake=awake,
            dispatches=self._depth,
            preemptions=preemptions,
            cpu=cpu,
        )

    def close(self) -> None:
        for commands in self._commands:
            commands.close()
        for semaphore in (*self._signals, *self._waits):
            semaphore.close()
