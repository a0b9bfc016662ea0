"""A command buffer that runs repeatedly and is timed: on the device, or on the host if it has no timestamps."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from ...hal_vulkan import CommandBuffer
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.device import Device
from ...runtime.kernels.kernel import PreparedDispatch


class TimedCommands:
    """Commands, recorded once.

    Thread rule: one thread at a time.

    Args:
        device: where they run.
        name: of the command buffer.
        record: records them.
    """

    def __init__(self, device: Device, name: str, record: Callable[[CommandBuffer], object]) -> None:
        hal = device.hal
        self._on_device = hal.plan.timestamp_bits > 0
        self._commands = hal.create_command_buffer(timing="span" if self._on_device else False, name=name).begin()
        try:
            record(self._commands)
            submitted = (self._commands.end(),)
            self._submission = PreparedSubmission(hal.compute_queue, submitted, clock=time.monotonic_ns)
        except BaseException:
            self._commands.close()
            raise

    @classmethod
    def dispatch(cls, device: Device, name: str, dispatch: PreparedDispatch) -> TimedCommands:
        """One dispatch of a kernel."""
        return cls(device, name, lambda commands: commands.dispatch(*dispatch))

    def run(self) -> float:
        """Runs them and waits; the nanoseconds that they took."""
        number, called, _ = self._submission.submit()
        awake = self._submission.wait(number)
        return self._commands.timings()[0].duration_ns if self._on_device else float(awake - called)

    def close(self) -> None:
        """Releases the command buffer; idempotent."""
        self._commands.close()

    def __enter__(self) -> TimedCommands:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
