"""Submitting: what a call costs by the number of command buffers, of semaphores waited for, and of semaphores signalled.

It goes through pumice's own queue, whose checks and books are part of the time; ``kernel`` has the bare native call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...hal_vulkan import CommandBuffer, TimelineSemaphore
from ...runtime.device import Device
from .clock import RawSample
from .workload import Surroundings

__all__ = ["SubmitWorkload"]


class SubmitWorkload:
    """Submissions; ``settings`` are those of kind ``submit`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], around: Surroundings) -> None:
        self.device: Device = around.pool.open(around.uri)
        self._around = around
        self._clock = around.clock
        hal = self.device.hal
        self._commands: list[CommandBuffer] = []
        self._depth: int = settings["in_flight"]
        self._signals: list[TimelineSemaphore] = []
        self._waits: list[TimelineSemaphore] = []
        self._number = 0
        try:
            self._signals = [hal.create_semaphore(0, f"signal {i}") for i in range(settings["signals"])]
            # Reached before anybody waits: the host's share, not a wait, is the question.
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

    def first(self) -> RawSample:
        """As any other."""
        return self.sample()

    def sample(self) -> RawSample:
        """``in_flight`` submissions, and a wait for the last."""
        clock, queue, commands = self._clock, self.device.hal.compute_queue, self._commands
        waits = [(semaphore, 1) for semaphore in self._waits]
        signals = [[(s, self._number + i + 1) for s in self._signals] for i in range(self._depth)]
        self._number += self._depth
        before = self._around.count_preemptions()
        called = clock()
        for points in signals:
            queue.submit(commands, waits=waits, signals=points)
        returned = clock()
        self._signals[0].wait(self._number, self._around.timeout)
        awake = clock()
        after = -1 if before < 0 else self._around.count_preemptions() - before
        return RawSample(
            called, called=called, returned=returned, awake=awake, dispatches=self._depth, preemptions=after
        )

    def close(self) -> None:
        """Gives everything back; idempotent."""
        for commands in self._commands:
            commands.close()
        for semaphore in (*self._signals, *self._waits):
            semaphore.close()
