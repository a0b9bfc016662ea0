"""Dispatches of a kernel in command buffers.

By default Vulkan is timed: one native call between two readings of the clock (``PreparedSubmission``). ``calls =
"hal"`` times pumice's queue and semaphore, ``"kernel"`` a call of the kernel with device arrays.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Mapping, Sequence
from contextlib import closing
from time import monotonic_ns
from typing import Any, Final, cast

import numpy as np

from ...hal.clock import elapsed_ticks
from ...hal_vulkan import Buffer, CommandBuffer, TimelineSemaphore
from ...hal_vulkan.commands.performance_query import Counter, PerformanceQuery, counters_named, profiling_lock
from ...hal_vulkan.pipelines.pipeline import BoundSets
from ...hal_vulkan.submit.prepared_submission import PreparedSubmission
from ...runtime.kernels.kernel import Kernel, PreparedDispatch
from ...status import InvalidArgumentError, UnavailableError
from .clock import RawSample
from .kernel_bindings import KernelBindings
from .kernel_settings import (
    PlantedSleep,
    kernel_code,
    kernel_source,
    plan_options,
    push_values,
    specialization_values,
    view_as_declared,
)
from .timed_commands import CacheSweep, ThreadWait
from .workload import Load, Usage, Workload, WorkloadContext

_ADDRESS: Final = struct.Struct("<Q")
_WORD: Final = struct.Struct("<I")


class KernelWorkload(Workload):
    """One kernel in one setting; ``settings`` are those of kind ``kernel`` in ``target_settings``."""

    def __init__(
        self, settings: Mapping[str, Any], context: WorkloadContext, *, flush_bytes: int | None = None
    ) -> None:
        super().__init__(context, plan_options(settings))
        self._settings = settings
        self._addresses = settings["descriptors"] == "address"
        if self._addresses and not self.device.vulkan.device_addresses:
            raise UnavailableError(
                f'{self.device.name} has no device addresses (bufferDeviceAddress); use descriptors "sets" or "push"'
            )
        self._code, self._name = kernel_code(settings, context.folder, self.device.profile.version[1])
        self._queues = self.device.vulkan.queues[: settings["queues"]]
        if len(self._queues) < settings["queues"] or any(q.family != self._queues[0].family for q in self._queues):
            count = sum(q.family == self._queues[0].family for q in self.device.vulkan.queues)
            raise UnavailableError(
                f"{self.device.name} has {count} compute queue(s), {settings['queues']} were asked for"
            )
        bits = self.device.profile.queue_families[self._queues[0].family].timestamp_valid_bits
        self._timed = settings["timestamps"] != "none" and bits > 0
        self._batch: int = settings["batch"]
        self._dispatches: int = self._batch * settings["command_buffers"] * settings["in_flight"]
        self._barrier: str = "single" if self._batch == 1 and self._dispatches == 1 else settings["barrier"]
        self._sleep = PlantedSleep(settings)
        self._kernel: Kernel | None = None
        self._dispatch: PreparedDispatch | None = None
        self._rotation: list[tuple[tuple[Buffer, ...], bytes]] = []
        self._next_range = 0
        self._commands: list[CommandBuffer] = []
        self._submissions: list[PreparedSubmission] = []
        self._indirect: Buffer | None = None
        self._stage = ""
        self._number = 0
        self._done: list[TimelineSemaphore] = []
        self._thread: ThreadWait | None = None
        self._sweep: CacheSweep | None = None
        # Not part of a first call: spirv-val, which checks a module once, and the inputs.
        self.device.vulkan.create_executable(self._code).close()
        self._bindings = KernelBindings(self.device, settings, context, self._code, self._name)
        try:
            # One semaphore per queue, as values only increase and queues finish in any order.
            for _ in self._queues:
                self._done.append(self.device.vulkan.create_semaphore(0, "study"))
            if settings["wait"] == "thread":
                self._thread = ThreadWait()
            if settings["cache"] == "cold":
                self._sweep = CacheSweep(self.device, flush_bytes)
        except BaseException:
            self.close()
            raise

    # -- creation ------------------------------------------------------------------------------------

    def _make(self) -> None:
        settings = self._settings
        kernel = self._kernel = Kernel(
            self.device,
            self._code,
            name=self._name,
            entry_point=settings["entry_point"],
            specialization=specialization_values(settings, self._context.folder),
            subgroup_size=settings["subgroup_size"],
            source=functools.partial(kernel_source, settings, self._context),
        )
        groups = settings["groups"]
        groups = tuple(groups) if isinstance(groups, list) else groups
        if self._addresses:
            if groups is None:
                raise InvalidArgumentError(f"{self._name}: give groups, which cannot be inferred without bindings")
            arrays = self._bindings.buffers("addresses")
            bound = cast("list[Buffer]", [array.buffer for array in arrays])
            push = b"".join(_ADDRESS.pack(buffer.device_address) for buffer in bound)
            rest = b"".join(_WORD.pack(int(word)) for word in settings["push"] or ())
            # Bindings that the kernel also declares are passed by descriptor, too.
            places = [parameter.binding.binding for parameter in kernel.parameters]
            declared = [
                view_as_declared(arrays[index], parameter.dtype)
                for index, parameter in zip(places, kernel.parameters, strict=True)
            ]
            self._dispatch = kernel.prepare(*declared, groups=groups, push=push + rest)
            self._rotation = [
                (
                    tuple(buffers[index] for index in places),
                    b"".join(_ADDRESS.pack(buffer.device_address) for buffer in buffers) + rest,
                )
                for buffers in self._bindings.ranges
            ]
        else:
            self._bindings.declare(kernel.parameters)
            values = self._bindings.values
            if not values and groups is None:
                groups = 1
            self._dispatch = kernel.prepare(*values, groups=groups, push=push_values(settings["push"]))
            self._rotation = [(buffers, self._dispatch.push) for buffers in self._bindings.ranges]

    def _make_commands(self) -> None:
        settings, hal = self._settings, self.device.vulkan
        dispatch = self._dispatch
        assert dispatch is not None
        if settings["indirect"]:
            self._indirect = hal.create_buffer(12)
            hal.compute_queue.update(self._indirect, struct.pack("<3I", *dispatch.groups))
            hal.compute_queue.wait_idle()
        per = settings["command_buffers"]
        depth = settings["in_flight"]
        for index in range(depth):
            queue = self._queues[index % len(self._queues)]
            for position in range(per):
                # A span costs time: only the first and the last command buffer of a queue's work have a span.
                first = position == 0 and index < len(self._queues)
                last = position == per - 1 and index >= depth - len(self._queues)
                timing: Any = False
                if self._timed and (first or last or settings["timestamps"] == "each"):
                    timing = "span" if settings["timestamps"] == "span" else True
                self._commands.append(hal.create_command_buffer(timing=timing, name=self._name))
            self._submissions.append(PreparedSubmission(queue, self._commands[-per:]))

    def count(self, names: Sequence[str]) -> list[tuple[Counter, float]]:
        """Returns counters of the dispatches of one command buffer, after ``first``; it is submitted once for each
        pass.

        Raises:
            NotFoundError, UnimplementedError, UnavailableError: the counters cannot be read; see ``counters_named`` and
                ``profiling_lock``.
        """
        hal, queue = self.device.vulkan, self._queues[0]
        counters = counters_named(hal.driver, hal.index, hal.plan.compute_family, names)
        with (
            profiling_lock(hal),
            closing(PerformanceQuery(hal, counters)) as query,
            closing(hal.create_command_buffer(name=self._name)) as commands,
        ):
            self._record(commands, query)
            for index in range(query.passes):
                PreparedSubmission(queue, [commands], counter_pass=index).run(self._context.timeout)
            queue.retire()
            return query.read()

    def _record(self, commands: CommandBuffer, query: PerformanceQuery | None = None) -> None:
        dispatch, indirect = self._dispatch, self._indirect
        assert dispatch is not None
        pipeline, buffers, groups, push = dispatch
        rotation = self._rotation
        commands.begin()
        if query is not None:
            query.begin(commands)
        barrier = self._settings["barrier"] == "between"
        # Bound once, as programs do: binding for each dispatch would be part of a dispatch's marginal cost.
        with closing(pipeline.bind(buffers)) as bound:
            bindings: BoundSets | Sequence[Buffer] = bound
            for index in range(self._batch):
                if index and barrier:
                    commands.execution_barrier()
                if rotation:
                    self._next_range += 1
                    bindings, push = rotation[self._next_range % len(rotation)]
                if indirect is None:
                    commands.dispatch(pipeline, bindings, groups, push)
                else:
                    commands.dispatch_indirect(pipeline, bindings, indirect, 0, push)
        if query is not None:
            query.end(commands)
        commands.end()

    @property
    def load(self) -> Load:
        dispatch, settings = self._dispatch, self._settings
        assert dispatch is not None
        return Load(
            math.prod(dispatch.groups),
            math.prod(dispatch.pipeline.local_size),
            self._bindings.nbytes,
            settings["wait"],
            settings["look"],
            self._timed and settings["calls"] != "kernel",
        )

    # -- running -------------------------------------------------------------------------------------

    def first(self) -> RawSample:
        """Creates the pipeline, records, and runs once."""
        before = self._context.usage()
        begin = monotonic_ns()
        self._make()
        created = monotonic_ns()
        self._make_commands()
        for commands in self._commands:
            self._record(commands)
        recorded = monotonic_ns()
        return self._run(begin, before, created=created, recorded=recorded)

    def sample(self) -> RawSample:
        settings = self._settings
        if self._sweep is not None:
            self._sweep.run()
        before = self._context.usage()
        begin = monotonic_ns()
        updated = recorded = -1
        if settings["update"]:
            self._bindings.update()
            self._sleep.at_end_of("update")
            updated = monotonic_ns()
        if settings["record"] == "each":
            for commands in self._commands:
                self._record(commands)
            self._sleep.at_end_of("record")
            recorded = monotonic_ns()
        return self._run(begin, before, updated=updated, recorded=recorded)

    def _run(self, begin: int, before: Usage, *, created: int = -1, updated: int = -1, recorded: int = -1) -> RawSample:
        settings = self._settings
        runs = {"native": self._run_native, "hal": self._run_hal, "kernel": self._run_kernel}
        called, returned, awake = runs[settings["calls"]]()
        if self._sleep.segment == "wake":
            self._sleep.at_end_of("wake")
            awake = monotonic_ns()
        done = -1
        if settings["read"]:
            self._read()
            self._sleep.at_end_of("read")
            done = monotonic_ns()
        preemptions, cpu = self._context.usage_since(before)
        for queue in self._queues:
            queue.retire()
        if created < 0 and updated < 0 and recorded < 0:
            begin = called
        device_begin, device_end = self._ticks()
        return RawSample(
            begin,
            created,
            updated,
            recorded,
            called,
            returned,
            awake=awake,
            done=done,
            device_begin=device_begin,
            device_end=device_end,
            dispatches=self._dispatches,
            preemptions=preemptions,
            stage=self._stage,
            barrier=self._barrier,
            cpu=cpu,
        )

    def _run_native(self) -> tuple[int, int, int]:
        timeout = self._context.timeout
        if len(self._submissions) == 1 and self._settings["wait"] == "host":
            return self._submissions[0].run(timeout)
        told = [submission.submit() for submission in self._submissions]
        called, returned = told[0][1], told[-1][2]
        awake = returned
        # Waits for the last submission of each queue; the earlier ones are done then.
        last = slice(-len(self._queues), None)
        for submission, (number, _, _) in zip(self._submissions[last], told[last], strict=True):
            if self._thread is not None:
                awake = self._thread.wait(submission, number, timeout)
            elif self._settings["wait"] == "poll":
                awake = submission.poll(number, timeout)
            elif self._settings["wait"] == "look":
                awake = submission.look(number, self._settings["look"] / 1e6, timeout)
            else:
                awake = submission.wait(number, timeout)
        return called, returned, awake

    def _run_hal(self) -> tuple[int, int, int]:
        done = self._done
        per = self._settings["command_buffers"]
        called = monotonic_ns()
        for index, submission in enumerate(self._submissions):
            self._number += 1
            signals = ((done[index % len(done)], self._number),)
            submission.queue.submit(self._commands[index * per : (index + 1) * per], signals=signals)
        returned = monotonic_ns()
        for semaphore in done:
            semaphore.wait(semaphore.scheduled, self._context.timeout)
        return called, returned, monotonic_ns()

    def _run_kernel(self) -> tuple[int, int, int]:
        kernel, dispatch = self._kernel, self._dispatch
        assert kernel is not None and dispatch is not None
        values, groups, push = self._bindings.values, dispatch.groups, dispatch.push or None
        called = monotonic_ns()
        for _ in range(self._dispatches):
            kernel(*values, groups=groups, push=push)
        returned = monotonic_ns()
        self.device.wait(timeout=self._context.timeout)
        return called, returned, monotonic_ns()

    def _ticks(self) -> tuple[int, int]:
        """Returns the first begin and the last end on the device, in ticks; -1 without timestamps."""
        if not self._timed or self._settings["calls"] == "kernel":
            return -1, -1
        first = last = -1
        bits = self.device.profile.queue_families[self._queues[0].family].timestamp_valid_bits
        half = 1 << (bits - 1)
        for commands in self._commands:
            recorder = commands.timestamps
            if recorder is None:
                continue
            self._stage = recorder.stage
            ticks = recorder.read_ticks()
            # The earlier of two times is less than half a wrap before the other.
            if first < 0 or elapsed_ticks(ticks[0], first, bits) < half:
                first = ticks[0]
            if last < 0 or elapsed_ticks(last, ticks[-1], bits) < half:
                last = ticks[-1]
        return first, last

    def _read(self) -> None:
        assert self._kernel is not None
        parameters = self._kernel.parameters
        # It is unknown what a kernel does with an address.
        places = range(len(self._bindings.values))
        self._bindings.read(index for index in places if self._addresses or parameters[index].written)

    def results(self) -> tuple[np.ndarray, ...]:
        return self._bindings.results()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.close()
            self._thread = None
        for commands in self._commands:
            commands.close()
        self._commands, self._submissions = [], []
        if self._kernel is not None:
            self._kernel.close()
        if self._sweep is not None:
            self._sweep.close()
            self._sweep = None
        self._bindings.close()
        if self._indirect is not None:
            self._indirect.close()
        for semaphore in self._done:
            semaphore.close()
