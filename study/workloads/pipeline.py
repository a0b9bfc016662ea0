"""Creating a pipeline: cold, from the device's cache, or from the cache that an earlier device left on disk.

``create`` is the shader module and the pipeline; with ``dispatch`` the sample includes the first dispatch, to which
drivers defer work. A driver may have caches that cannot be cleared from here (``MESA_SHADER_CACHE_DISABLE=1`` disables
Mesa's).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from time import monotonic_ns
from typing import Any

from ...runtime.device import Device
from .clock import RawSample
from .kernel_settings import kernel_code, specialization_values
from .workload import Workload, WorkloadContext


class PipelineWorkload(Workload):
    """A pipeline that each sample creates; ``settings`` are those of kind ``pipeline`` in ``target_settings``."""

    def __init__(self, settings: Mapping[str, Any], context: WorkloadContext) -> None:
        super().__init__(context)
        self._settings = settings
        self._cache: str = settings["cache"]
        self._code, self._name = kernel_code(settings, context.folder, self.device.profile.version[1])
        self.device.vulkan.create_executable(self._code).close()  # spirv-val runs once
        if self._cache == "disk":
            self.sample()  # fills the cache

    def sample(self) -> RawSample:
        """Creates a pipeline; with ``dispatch``, runs an empty grid of it, too."""
        if self._cache == "memory":
            return self._measure(self.device)
        with closing(self._context.pool.open_new(self._context.uri, persistent_cache=self._cache == "disk")) as device:
            return self._measure(device)

    def _measure(self, device: Device) -> RawSample:
        hal = device.vulkan
        before = self._context.usage()
        values = specialization_values(self._settings, self._context.folder)
        begin = monotonic_ns()
        with closing(hal.create_executable(self._code, validate=False)) as executable:
            numbers = {
                c.constant_id: values[k]
                for c in executable.reflections[0].specialization_constants
                for k in (c.constant_id, *c.names)
                if k in values
            }
            pipeline = executable.pipeline(self._settings["entry_point"], specialization=numbers)
            created = monotonic_ns()
            raw = RawSample(begin, created=created)
            if self._settings["dispatch"]:
                buffers = [hal.create_buffer(256) for _ in range(pipeline.interface.binding_count)]
                push = bytes(pipeline.interface.push_constant_bytes)
                with hal.create_command_buffer(name=self._name) as commands:
                    # No workgroups: the kernel's own work is not part of the time.
                    commands.begin().dispatch(pipeline, buffers, (0, 1, 1), push)
                    commands.end()
                    called = monotonic_ns()
                    hal.compute_queue.submit((commands,))
                    returned = monotonic_ns()
                    hal.compute_queue.wait_idle(self._context.timeout)
                    awake = monotonic_ns()
                for buffer in buffers:
                    buffer.close()
                raw = RawSample(begin, created=created, recorded=called, called=called, returned=returned, awake=awake)
        preemptions, cpu = self._context.usage_since(before)
        return raw._replace(preemptions=preemptions, cpu=cpu)

    def close(self) -> None:
        """Does nothing: each sample releases its objects."""
