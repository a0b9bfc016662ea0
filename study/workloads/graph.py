"""Runs of a recording (``Device.record``): many calls as one submission.

By default Vulkan is timed: one native call between two readings of the clock (``PreparedSubmission``). ``calls =
"run"`` times ``Recording.run`` and the wait for the device.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from time import monotonic_ns
from typing import Any

from ...hal_vulkan import CommandBuffer
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.recordings.recording import Recording, record_steps
from ...status import InvalidArgumentError, NotFoundError, UnknownError
from .clock import RawSample
from .workload import Load, Workload, WorkloadContext


class GraphWorkload(Workload):
    """Runs of one recording; ``settings`` are those of kind ``graph`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], context: WorkloadContext) -> None:
        super().__init__(context)
        self._settings = settings
        self._batch: int = settings["batch"]
        self._timed = self.device.vulkan.plan.timestamp_bits > 0
        self._recording: Recording | None = None
        self._commands: CommandBuffer | None = None

    def _make(self) -> Recording:
        """Has the file's function make the recording."""
        settings = self._settings
        path, name = self._context.folder / settings["source"], settings["function"]
        where = f"{settings['source']}: {name}"
        if not path.is_file():
            raise NotFoundError(f"{settings['source']}: there is no such file in {self._context.folder}")
        try:
            function = runpy.run_path(str(path)).get(name)
            made = function(self.device) if callable(function) else None
        except Exception as error:
            raise UnknownError(f"{where} raised {type(error).__name__}: {error}") from error
        if not isinstance(made, Recording) or made.device is not self.device:
            raise InvalidArgumentError(
                f"{where} is a function that takes the device and returns a recording of it (device.record()); "
                f"got {type(made).__name__}"
            )
        if settings["values"]:
            made.update({str(key): value for key, value in settings["values"].items()})
        return made

    @property
    def load(self) -> Load:
        return Load(timed=self._timed and self._settings["calls"] == "native")

    def first(self) -> RawSample:
        """Makes the recording, records its commands, and runs once."""
        begin = monotonic_ns()
        recording = self._recording = self._make()
        created = monotonic_ns()
        timed = self._timed and self._settings["calls"] == "native"
        hal = self.device.vulkan
        self._commands = hal.create_command_buffer(timing="span" if timed else False, name=recording.name)
        record_steps(self._commands, recording.steps * self._batch)
        self._submission = PreparedSubmission(hal.compute_queue, (self._commands,))
        recorded = monotonic_ns()
        return self._run()._replace(begin=begin, created=created, recorded=recorded)

    def sample(self) -> RawSample:
        return self._run()

    def _run(self) -> RawSample:
        recording, commands = self._recording, self._commands
        assert recording is not None and commands is not None
        before = self._context.usage()
        if self._settings["calls"] == "run":
            called = monotonic_ns()
            recording.run(times=self._batch)
            returned = monotonic_ns()
            self.device.wait(timeout=self._context.timeout)
            awake = monotonic_ns()
        else:
            called, returned, awake = self._submission.run(self._context.timeout)
        preemptions, cpu = self._context.usage_since(before)
        self.device.vulkan.compute_queue.retire()
        raw = RawSample(
            called,
            called=called,
            returned=returned,
            awake=awake,
            dispatches=max(1, len(recording.steps)) * self._batch,
            preemptions=preemptions,
            barrier="between",
            cpu=cpu,
        )
        if self._settings["calls"] == "native" and self._timed:
            timing = commands.timings()[0]
            raw = raw._replace(device_begin=timing.begin_ticks, device_end=timing.end_ticks, stage=timing.stage)
        return raw

    def close(self) -> None:
        if self._commands is not None:
            self._commands.close()
        if self._recording is not None:
            self._recording.close()
