"""Making a pipeline: cold, from the cache of its device, or from the cache that an earlier device left on disk.

``create`` is the shader module and the pipeline; with ``dispatch`` the sample goes on through the first dispatch, where drivers do what they
put off. A driver may have caches of its own that nobody can empty from here (Mesa's are turned off by ``MESA_SHADER_CACHE_DISABLE=1``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...runtime.device import Device
from .clock import RawSample
from .kernel import kernel_code
from .workload import Surroundings

__all__ = ["PipelineWorkload"]


class PipelineWorkload:
    """One pipeline, made again for each sample; ``settings`` are those of kind ``pipeline`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], around: Surroundings) -> None:
        self._settings = settings
        self._around = around
        self._cache: str = settings["cache"]
        self.device: Device = around.pool.open(around.uri)
        self._clock = around.clock
        self._code, self._name = kernel_code(settings, around, self.device.profile.api_version[1])
        self.device.hal.create_executable(self._code).close()  # spirv-val, once
        if self._cache == "disk":
            # What a first program leaves for the next.
            self._once(self._open())

    def _open(self) -> Device:
        return self._around.pool.open_new(self._around.uri, persistent_cache=self._cache == "disk")

    def first(self) -> RawSample:
        """As any other: each of them makes all that there is."""
        return self.sample()

    def sample(self) -> RawSample:
        """Makes a pipeline; with ``dispatch`` also runs an empty grid of it."""
        if self._cache == "memory":
            return self._measure(self.device)
        return self._once(self._open())

    def _once(self, device: Device) -> RawSample:
        try:
            return self._measure(device)
        finally:
            device.close()

    def _measure(self, device: Device) -> RawSample:
        clock, hal = self._clock, device.hal
        before = self._around.count_preemptions()
        values = {int(name) if name.isdecimal() else name: v for name, v in self._settings["specialization"].items()}
        begin = clock()
        executable = hal.create_executable(self._code, validate=False)
        try:
            numbers = {
                c.constant_id: values[k]
                for c in executable.reflections[0].specialization_constants
                for k in (c.constant_id, c.name)
                if k in values
            }
            pipeline = executable.pipeline(self._settings["entry_point"], specialization=numbers)
            created = clock()
            raw = RawSample(begin, created=created)
            if self._settings["dispatch"]:
                buffers = [hal.create_buffer(256) for _ in range(pipeline.interface.binding_count)]
                push = bytes(pipeline.interface.push_constant_bytes)
                with hal.create_command_buffer(name=self._name) as commands:
                    # No workgroups: what is timed is the making, not the kernel's work.
                    commands.begin().dispatch(pipeline, buffers, (0, 1, 1), push)
                    commands.end()
                    called = clock()
                    hal.compute_queue.submit((commands,))
                    returned = clock()
                    hal.compute_queue.wait_idle(self._around.timeout)
                    awake = clock()
                for buffer in buffers:
                    buffer.close()
                raw = RawSample(begin, created=created, recorded=called, called=called, returned=returned, awake=awake)
        finally:
            executable.close()
        after = -1 if before < 0 else self._around.count_preemptions() - before
        return raw._replace(preemptions=after)

    def close(self) -> None:
        """Nothing is kept."""
