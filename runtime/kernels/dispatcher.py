"""The dispatcher: plans and submits the bound calls of one kernel.

A call is *resident* if its arguments are device arrays that can be bound in place. Other calls are moved: host
arguments are copied to the device, and results back, in one submission with the kernel. A call whose arguments are all
on the device is *repeatable*: with the same arguments again it is submitted without checks.

Thread rule: any thread. The recorder reuses its oldest commands for other arrays, so the lock is held from the time a
call gets its commands until they are submitted. A repeated call keeps the generation of its commands instead, which the
queue compares under the lock that a new recording also takes.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from ...base.closeable import Closeable
from ...hal_vulkan import CommandBuffer, ComputePipeline, DispatchTiming, Executable
from ...status import InvalidArgumentError
from ..arrays.array import DeviceArray
from ..arrays.array_device import ArrayDevice
from ..arrays.recorder import Recorder, open_recorders, recorder_of, refuse_recording
from ..arrays.spec import ArraySpec
from ..arrays.staging import StagingPool
from ..arrays.transfer import Transfer
from ..arrays.uses import note_uses
from ..arrays.verdict import NO_VERDICTS
from ..images.bound import HostImage
from ..images.image import DeviceImage
from .bound_call import NO_SOURCES, Binder, BoundCall, Sources
from .descriptors import KernelDescriptors
from .parameters.arguments import listed, prepare_arguments, targets_of
from .parameters.parameter import BufferParameter, KernelArgument, KernelResult, Parameter, Prepared, ResultArray
from .push_memory import PushMemory
from .recorded_call import RecordedCall
from .recorder import DispatchRecorder

OF_HOST: Final = (np.ndarray, ArraySpec, HostImage)
"""Arguments that are not on the device."""

_Resident: TypeAlias = DeviceArray | DeviceImage
_RESIDENT: Final = (DeviceArray, DeviceImage)
_MAX_REPEATS: Final = 1024


class _Repeat(NamedTuple):
    """A repeatable call that was checked and recorded, for the next call with the same arrays.

    It keeps no arrays alive. It is valid while the device's ``close_epoch`` is ``epoch``, which means that nothing was
    closed, and the commands' ``generation`` is this one, which means that they were not recorded for other arrays.
    """

    commands: CommandBuffer
    generation: int
    epoch: int


class Dispatcher(Closeable):
    """The calls of one kernel, once their arguments are bound.

    Calling sequence: ``repeat``, and ``run`` if ``repeat`` does not know the arrays, or ``time``; ``close``.

    Attributes:
        recorder: the kernel's command buffers.
        descriptors: the kernel's descriptors.
        pipeline: the kernel's pipeline.
    """

    def __init__(
        self,
        device: ArrayDevice,
        executable: Executable,
        pipeline: ComputePipeline,
        parameters: Sequence[Parameter],
        binder: Binder,
        kernel: str,
        memory: PushMemory,
    ) -> None:
        """Takes over ``executable``, which ``close`` closes; ``kernel`` is the kernel's name, for messages."""
        self._device = device
        self._executable = executable
        self._parameters = parameters
        self._binder = binder
        self._memory = memory
        self._kernel = kernel
        self._hal = device.vulkan
        self._queue = device.vulkan.compute_queue
        self.pipeline: ComputePipeline = pipeline
        self._report = pipeline.report
        self._alignment = pipeline.offset_alignment
        self._device_types = frozenset(kind for parameter in parameters for kind in parameter.device_types)
        self._written = tuple(parameter.index for parameter in parameters if parameter.written)
        self._results_of: Callable[[Sequence[_Resident]], KernelResult] = _picker(self._written)
        self._is_repeatable = bool(self._written) and not pipeline.interface.push_constant_bytes and not self._report
        self._has_images = any(type(parameter) is not BufferParameter for parameter in parameters)
        self.descriptors: KernelDescriptors = KernelDescriptors(device, pipeline, parameters, kernel)
        self.recorder: DispatchRecorder = DispatchRecorder(device, pipeline, parameters, kernel)
        self._staging = StagingPool(device)
        self._repeats: dict[tuple[object, ...], _Repeat] = {}  # by the arrays' tokens
        self._lock = threading.Lock()

    def repeat(self, arrays: Sequence[_Resident]) -> KernelResult:
        """Submits a call with the arguments of an earlier one, without new checks or commands
        (benchmarks/submit_wait.py).

        Arguments of other types are not an error.

        Returns:
            The results, or ``None`` if nothing was submitted and the call must be bound.
        """
        repeats = self._repeats
        if not repeats or open_recorders or not arrays or type(arrays[0]) not in _RESIDENT:
            return None
        try:
            if len(arrays) == 3:
                first, second, third = arrays  # unrolled: a comprehension takes three times as long
                repeat = repeats.get((first.token, second.token, third.token))
            else:
                repeat = repeats.get(tuple([array.token for array in arrays]))
        except AttributeError:
            return None
        if repeat is None:
            return None
        hal, device = self._hal, self._device
        if hal.dropped:
            hal.close_dropped()
        payload = self._queue.resubmit(repeat.commands, repeat.generation, None, (), repeat.epoch)
        if not payload:
            return None
        if device.verdicts:
            device.verdicts.hold(payload, NO_VERDICTS, *self._sources(self._parameters, arrays, ()))
        note_uses(device.mark_lock, arrays, self._written, payload)
        return self._results_of(arrays)

    def run(self, call: BoundCall) -> KernelResult:
        """Runs a call; ``Kernel.__call__`` documents results and errors."""
        hal = self._hal
        if open_recorders:
            active = recorder_of(self._device)
            if active is not None:
                return self._record(call, active)
        if hal.abandoned:
            hal.check_usable()
        if hal.dropped:
            hal.close_dropped()
        call.epoch = hal.close_epoch
        ranges = self.recorder.resident_ranges(call.arrays)
        if ranges is None:
            return self._run_moved(call)
        arrays: Sequence[DeviceArray] = call.arrays  # type: ignore[assignment]  # as ``resident_ranges`` has checked
        call.bound, call.parameters, call.ranges = arrays, self._parameters, ranges
        if self._device.verdicts:
            call.sources = self._sources(self._parameters, arrays, call.pointed)
        payload = self._submit(call)
        note_uses(self._device.mark_lock, arrays, self._written, payload)
        return self._results_of(arrays)

    def time(self, call: BoundCall) -> tuple[KernelResult, DispatchTiming]:
        """Runs a call, waits for it, and measures its dispatch with the device's clock.

        Raises:
            InvalidArgumentError: all arrays are empty.
        """
        refuse_recording(self._device, f"{self._kernel}.time()", "call it here, and time() the recording")
        timings: list[DispatchTiming] = []
        result = self._run_moved(call, timings)
        if not timings:
            raise InvalidArgumentError(f"{self._kernel}: there is nothing to time: all arrays are empty")
        return result, timings[0]

    def _record(self, call: BoundCall, recorder: Recorder) -> KernelResult:
        """Adds a call to a recording; returns its results, which each run writes."""
        self._hal.check_usable()
        if any(isinstance(array, np.ndarray) for array in listed(call.out)):
            raise InvalidArgumentError(
                f"{self._kernel}: out= is a NumPy array, which a recorded call cannot write: give out= an array on the "
                "device, device.empty(shape, dtype), and read that after run()"
            )
        targets_of(call.out, self._kernel)
        is_empty = call.arrays and not any(getattr(value, "nbytes", 1) for value in call.arrays)
        if is_empty and type(call.groups) is not tuple:
            return self._run_moved(call)  # all arrays are empty: nothing to run
        step = self.recorded(call)
        recorder.add(step)
        return step.result

    def recorded(self, call: BoundCall) -> RecordedCall:
        """Returns a call as a step of a recording; the arguments of the host are copied to the device now."""
        descriptors, kernel = self.descriptors, self._kernel
        parameters, arrays = descriptors.take_apart(call.arrays)
        values, fit = prepare_arguments(parameters, arrays, kernel)
        if not fit:
            descriptors.check(parameters, values)
        transfer = Transfer(self._device, self._staging, self._alignment, to_host=False, recorded=True)
        call.bound, call.parameters = descriptors.place(transfer, parameters, values, arrays, ())
        self.recorder.check_bound(call.bound)
        resolved = [
            placed if isinstance(value, OF_HOST) else value
            for placed, value in zip(transfer.arguments, values, strict=True)
        ]
        return RecordedCall(
            self.recorded,
            self.pipeline,
            call,
            transfer,
            parameters,
            descriptors.put_together(parameters, resolved),
            frozenset(
                p.index
                for p, value in zip(parameters, values, strict=True)
                if type(value) is np.ndarray and not p.written
            ),
            self.recorder.counts(call.bound, call.groups, call.parameters),
            results_of(parameters, transfer.results),
            self._binder,
            self._memory,
            self._lock,
        )

    def _run_moved(self, call: BoundCall, timings: list[DispatchTiming] | None = None) -> KernelResult:
        """Moves arguments to the device, runs, and brings results back; adds to ``timings`` unless it is ``None``."""
        descriptors, device = self.descriptors, self._device
        parameters, arrays = self._parameters, call.arrays
        if descriptors.array_sizes:
            parameters, arrays = descriptors.take_apart(arrays)
        values, fit = prepare_arguments(parameters, arrays, self._kernel)
        if not fit:
            if type(call.groups) is not tuple and values and not any(value.nbytes for value in values):
                return empty_results(parameters, values)
            descriptors.check(parameters, values)
        if device.verdicts:
            call.sources = self._sources(parameters, values, call.pointed)
        to_host = self._device_types.isdisjoint(map(type, values))
        with Transfer(device, self._staging, self._alignment, to_host=to_host) as transfer:
            outs = () if call.out is None else targets_of(call.out, self._kernel)
            call.bound, call.parameters = descriptors.place(transfer, parameters, values, arrays, outs)
            call.transfer = transfer
            if timings is None:
                payload = self._submit(call)
            else:
                with self.recorder.timed(call) as commands:
                    payload = self._submit(call, commands)
                    device.reach(payload)
                    timings.extend(commands.timings())
            transfer.finish()
            if timings is not None or (payload in device.verdicts and transfer.reaches_host):
                device.finish(payload)
        return results_of(parameters, transfer.results)

    def _submit(self, call: BoundCall, commands: CommandBuffer | None = None) -> int:
        """Submits a planned call, with the passed or with recorded commands; returns the payload.

        The result inherits the verdicts on the shader and on the work whose results it uses.
        """
        recorder, report = self.recorder, self._report
        with self._lock:
            verdict = None if report is None else report.next_verdict()
            payload = 0
            transfer = call.transfer
            if commands is None and verdict is None and not call.pointed and not (transfer and transfer.copies):
                recordings = recorder.count
                known = recorder.recorded(call, call.epoch)
                if known is not None:
                    payload = self._queue.resubmit(known, known.generation, None, (), call.epoch)
                if payload and transfer is not None:
                    transfer.note(payload)
                if payload and self._is_repeatable and call.groups is None and recorder.count == recordings:
                    assert known is not None
                    if transfer is None or (self._has_images and transfer.is_empty):
                        self._note_repeat(call.arrays, known, call.epoch)
            if not payload:
                payload = self._submit_pending(call, commands)
            if verdict is not None:
                verdict.payload = payload
        if verdict is not None or call.sources is not NO_SOURCES:
            own = NO_VERDICTS if verdict is None else verdict.alone
            self._device.verdicts.hold(payload, own, *call.sources)
        for array in call.pointed:  # the code decides which of the memory it writes
            array.mark(payload, written=True)
        return payload

    def _submit_pending(self, call: BoundCall, commands: CommandBuffer | None) -> int:
        """Records a call's commands if it has none, and submits them; returns the payload.

        Arrays that other threads close meanwhile are rejected, or kept until the work is done.
        """
        hal, serial = self._hal, 0
        try:
            with hal.lock:
                serial = hal.begin_pending()
            for array in call.pointed:
                array._check_open()
            if commands is None:
                commands = self.recorder.recorded(call, None)
                assert commands is not None
            return self._queue.submit((commands,)) if call.transfer is None else call.transfer.run(commands)
        finally:
            hal.end_pending(serial)

    def _note_repeat(self, arrays: Sequence[KernelArgument], commands: CommandBuffer, epoch: int) -> None:
        tokens = tuple([array.token for array in arrays if isinstance(array, _RESIDENT)])
        if len(tokens) < len(arrays):
            return
        if len(self._repeats) >= _MAX_REPEATS:
            self._repeats.clear()
        self._repeats[tokens] = _Repeat(commands, commands.generation, epoch)

    def _sources(
        self, parameters: Sequence[Parameter], values: Sequence[Prepared], pointed: Sequence[DeviceArray]
    ) -> Sources:
        """Returns the payloads of the work that wrote the values that a call reads, and the values that it only
        overwrites.
        """
        read = [array.ready for array in pointed]
        overwritten: list[int] = []
        for parameter, value in zip(parameters, values, strict=True):
            (read if parameter.binding.readable else overwritten).append(getattr(value, "ready", 0))
        return read, overwritten

    def close(self) -> None:
        """Unloads the kernel once work in flight is done; idempotent."""
        with self._lock:
            self._executable.close()
            self._memory.close()
            self.recorder.close()
            self._repeats.clear()
        self._staging.close()

    def __del__(self) -> None:
        # For convenience only, once neither the kernel nor a recording of its calls is in use. The garbage collector
        # may run under any lock, so the device's next call closes it.
        if hasattr(self, "_staging") and not self.pipeline.is_closed:
            self._device.hal.dropped.append(self)


def _picker(written: Sequence[int]) -> Callable[[Sequence[_Resident]], KernelResult]:
    """Returns a function that picks a call's results from its arrays."""
    return operator.itemgetter(*written) if written else lambda arrays: None


def empty_results(parameters: Sequence[Parameter], values: Sequence[Prepared]) -> KernelResult:
    """Returns the results of a call with only empty arguments, which runs nothing."""
    arrays = [np.empty(value.shape, value.dtype) if isinstance(value, OF_HOST) else value for value in values]
    return results_of(parameters, arrays)


def results_of(parameters: Sequence[Parameter], results: Sequence[object]) -> KernelResult:
    """Returns the results of a call, from the value that each parameter returned."""
    written: list[ResultArray] = []
    for parameter, result in zip(parameters, results, strict=True):
        if parameter.written and result is not None:
            written.append(result)  # type: ignore[arg-type]  # what a written parameter returns is one
    return written[0] if len(written) == 1 else tuple(written) or None
