"""Command buffers that compiled modules record.

They keep their executables and buffers alive, close with their last reference, and take binding tables of ``(buffer,
offset, length)``. Recordings are kept by the memory ranges of a table, not by its buffers: a recording holds no buffer
of a table, and serves any owner of the same ranges.

Thread rule: record in one thread at a time; submit from any.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from ...hal.buffer import Buffer as AnyBuffer
from ...hal.command_buffer import BindingSlot, CommandBufferState
from ...hal.logical_device import LogicalDevice as AnyDevice
from ...hal.memory import MemoryTypeFlags
from ...hal.mirror import Mirror, Use
from ...hal.program import BindingReference, check_buffer, subspan
from ...hal.program import Executable as AnyExecutable
from ...hal.program import ProgramCommandBuffer as AnyProgramCommands
from ...status import InvalidArgumentError, OutOfRangeError, UnimplementedError
from ..commands.action_recorder import ActionRecorder, Groups
from ..commands.command_buffer import CommandBuffer
from ..commands.context import CommandContext
from ..commands.recorder import Bound
from ..commands.recording import Recording
from ..commands.replay import Replay
from ..commands.timestamps import TimestampRecorder
from ..instance.logical_device import LogicalDevice
from ..memory.buffer import Buffer
from ..pipelines.pipeline import BoundSets, ComputePipeline
from .dispatch_list import DispatchList
from .executable import ProgramExecutable
from .timed_recordings import TimedRecordings

_NULL_ENTRY: Final = bytes(32)
_RANGE: Final = struct.Struct("=QQ")
_HOST: Final = MemoryTypeFlags.HOST_LOCAL | MemoryTypeFlags.DEVICE_VISIBLE | MemoryTypeFlags.HOST_CACHED
_DISPATCH_ARGUMENTS_IN_BUFFERS: Final = 0x4 | 0x8 | 0x10


class ProgramCommandBuffer(CommandBuffer, AnyProgramCommands):
    """A command buffer of a program; see the base class.

    Args:
        timing, muted: whether it times its dispatches, and whether it only notes them.

    Attributes:
        timed: the recordings with timestamps of the running profile.
    """

    device: LogicalDevice

    MAX_RECORDINGS = 256  # eight calls in flight meet 120 combinations of a result and a transient

    def __init__(
        self,
        context: CommandContext,
        *,
        one_shot: bool = False,
        binding_capacity: int = 0,
        name: str = "commands",
        peers: Container[AnyDevice] = (),
        timing: bool = False,
        muted: bool = False,
    ) -> None:
        context.device.check_usable()
        super().__init__(context, one_shot=one_shot, binding_capacity=binding_capacity, timing=timing, name=name)
        self.peers = peers
        self.mirrors: dict[AnyBuffer, Mirror] = {}
        self.uses: dict[int, set[Use]] = {}
        self.used_slots: set[int] = set()
        self._executables: set[ProgramExecutable] = set()
        self.timed: TimedRecordings | None = None
        self._muted = muted
        self._prepared: Replay | None = None
        self._dispatches: DispatchList | None = None  # for one-shot commands with only dispatches so far

    # -- recording -----------------------------------------------------------------------------------

    def _open(self) -> None:
        if self.one_shot and not (self._timing or self.peers):
            self._dispatches = DispatchList()
            self.is_kept = True
        else:
            self._open_native()

    def _open_native(self) -> None:
        dispatches, self._dispatches = self._dispatches, None
        self.is_kept = False
        super()._open()
        if dispatches is not None:
            dispatches.record_in(self)
        if self._muted and self._recording is not None and self._recording.timestamps is not None:
            self._recording.timestamps.is_muted = True

    def new_mirror(self, foreign: AnyBuffer) -> Mirror:
        size = max(foreign.size, 1)
        return Mirror(Buffer.create(self.context.allocator, size, memory_type=_HOST), foreign, 0)

    def dispatch_function(
        self,
        executable: AnyExecutable,
        function: int,
        groups: Groups,
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> None:
        program = self._check_executable_of(executable)
        x, y, z = groups
        most = self._groups_max
        dispatches = self._dispatches
        if (
            dispatches is not None
            and self.state is CommandBufferState.RECORDING
            and not flags & _DISPATCH_ARGUMENTS_IN_BUFFERS
            and 0 < x <= most[0]
            and 0 < y <= most[1]
            and 0 < z <= most[2]
            and dispatches.dispatch(program.pipeline(function), groups, constants, bindings)
        ):
            self._executables.add(program)
            return
        resolved, push = self._dispatch_arguments(program, function, flags, constants, bindings)
        if not (x and y and z):
            self.check_recording()
        elif x <= most[0] and y <= most[1] and z <= most[2]:
            self.dispatch(program.pipeline(function), resolved, groups, push)
        else:
            for pipeline, part in program.parts(function, groups):
                self.dispatch(pipeline, resolved, part, push)

    def dispatch_function_indirect(
        self,
        executable: AnyExecutable,
        function: int,
        counts: AnyBuffer | BindingSlot,
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> None:
        program = self._check_executable_of(executable)
        resolved, push = self._dispatch_arguments(program, function, flags, constants, bindings)
        self.dispatch_indirect(program.pipeline(function), resolved, counts, 0, push)

    def _check_executable_of(self, executable: AnyExecutable) -> ProgramExecutable:
        if executable.device is not self.device or not isinstance(executable, ProgramExecutable):
            raise InvalidArgumentError(
                f"{self.name}: the executable was made for {executable.device.name}, the command buffer for "
                f"{self.device.name}"
            )
        return executable

    def _dispatch_arguments(
        self,
        executable: ProgramExecutable,
        function: int,
        flags: int,
        constants: Sequence[int],
        bindings: Sequence[BindingReference],
    ) -> tuple[list[AnyBuffer | BindingSlot], bytes]:
        if flags & _DISPATCH_ARGUMENTS_IN_BUFFERS:
            raise UnimplementedError(
                f"{self.name}: dispatch flags {flags:#x} ask for arguments that the Vulkan dispatch ABIs do not have"
            )
        pipeline = executable.pipeline(function)
        self._executables.add(executable)
        resolved: list[AnyBuffer | BindingSlot] = []
        writes = pipeline.writes if self.peers else ()
        for index, (_, slot, buffer, offset, size) in enumerate(bindings):
            if not size:
                # Vulkan cannot bind an empty range; no shader accesses it.
                resolved.append(executable.empty_buffer)
            else:
                written = index >= len(writes) or writes[index]
                resolved.append(self.reference(slot, buffer, offset, size, written=written))
        return resolved, struct.pack(f"<{len(constants)}i", *constants)

    def execution_barrier(self) -> None:
        if self._dispatches is not None and self.state is CommandBufferState.RECORDING:
            self._dispatches.barrier()
        else:
            super().execution_barrier()

    def dispatch(
        self, pipeline: ComputePipeline, bindings: BoundSets | Sequence[Bound], groups: Groups, push: bytes = b""
    ) -> None:
        if self._dispatches is not None:
            self.check_recording()
        super().dispatch(pipeline, bindings, groups, push)

    def check_recording(self) -> None:
        super().check_recording()
        if self._dispatches is not None:
            self._open_native()

    # -- submission ----------------------------------------------------------------------------------

    def prepare(self, bindings: Sequence[Any] | None) -> Recording:
        dispatches = self._dispatches
        if dispatches is None or bindings or self.state is not CommandBufferState.EXECUTABLE:
            return super().prepare(bindings)
        if self._checked_epoch != self.device.close_epoch:
            self._check_open(dispatches.named)
        recording = dispatches.recording(self.context, self.name, self.family)
        self._note_submitted()
        return recording

    def find_recording(self, bindings: Sequence[Any] | None) -> Recording | None:
        dispatches = self._dispatches
        if dispatches is None:
            return super().find_recording(bindings)
        if bindings or self.state is not CommandBufferState.EXECUTABLE:
            return None
        if self._checked_epoch != self.device.close_epoch:
            self._check_open(dispatches.named)
        recording = dispatches.find_recording(self.context, self.family)
        if recording is not None:
            self._note_submitted()
        return recording

    def unprepare(self, recording: Recording) -> None:
        if self._dispatches is None:
            super().unprepare(recording)
        elif self.state is CommandBufferState.SUBMITTED:
            self.state = CommandBufferState.EXECUTABLE

    def _recording_for(self, table: Sequence[Any], timed: TimedRecordings | None = None) -> Recording:
        key = self._key_of(table)
        if timed is not None:
            return timed.take(key) or self._record(table, timing=True)
        recordings = self._recordings
        assert recordings is not None
        return recordings.get(key) or recordings.keep(key, self._record_again(key, table))

    def _key_of(self, table: Sequence[Any]) -> bytes:
        device = self.device
        if self._checked_epoch != device.close_epoch:
            self._check_open(self._static)
        parts = []
        try:
            for buffer, offset, size in table:
                if buffer._closed or buffer.parent is not None or buffer.device is not device:
                    self._check_entry(buffer)
                if not offset and size == buffer.size:
                    parts.append(buffer.descriptor)
                else:
                    parts.append(_range_key(buffer, offset, size))
        except AttributeError:
            parts = [self._checked_key(entry) for entry in table]
        return b"".join(parts)

    def _checked_key(self, entry: object) -> bytes:
        if not isinstance(entry, tuple) or len(entry) != 3:
            raise InvalidArgumentError(f"{self.name}: a binding table has entries of (buffer, offset, length)")
        buffer, offset, size = entry
        if buffer is None:
            return _NULL_ENTRY
        self._check_entry(buffer)
        return _range_key(buffer, offset, size)

    def _check_entry(self, buffer: object) -> None:
        checked = check_buffer(buffer, f"the binding table of {self.name}")
        if checked.device is not self.device:
            raise InvalidArgumentError(
                f"{self.name} runs on {self.device.name}, but a buffer of its binding table is of another "
                "device; copy it through the host"
            )

    def _record_again(self, key: bytes, table: Sequence[Any]) -> Recording:
        """Records for a table: the first time command by command, with all checks, later by a ``Replay``."""
        if self._timing:
            return self._record(table)
        replay = self._prepared
        if replay is None:
            recording = self._record(table)
            if not self.one_shot:
                self._prepared = Replay(self._commands)
            return recording
        recorder = ActionRecorder(self.context, name=self.name, family=self.family)
        replayed = replay.recorded(recorder, key, lambda: _parts(table))
        if replayed is None:
            return self._record(table)
        replayed.resources = self._static
        return replayed

    def _record(self, table: Sequence[Any], *, timing: bool = False) -> Recording:
        resolved = _parts(table)
        for slot in self.used_slots:
            if slot >= len(resolved) or resolved[slot] is None:
                fault = "is null" if slot < len(resolved) else f"is beyond its {len(resolved)} entries"
                raise InvalidArgumentError(f"{self.name} uses slot {slot} of its binding table, which {fault}")
        muted = self._muted
        return self._replay(resolved, timing=timing, muted=muted)  # type: ignore[arg-type]  # null slots are not used

    # -- profiles ------------------------------------------------------------------------------------

    @property
    def locations(self) -> tuple[Mapping[str, str], ...]:
        """The source locations of functions by name, for each of its executables."""
        return tuple(executable.locations for executable in self._executables)

    def noted(self) -> tuple[TimestampRecorder | None, tuple[Mapping[str, str], ...]] | None:
        """Returns the known facts of its dispatches, for a submission without timestamps.

        Returns:
            The recorder that noted them, and source locations; ``(None, ())`` if it cannot be timed; ``None`` if it has
            to be timed: no recording notes its dispatches yet, or it was recorded with timestamps.
        """
        if self.binding_capacity:
            timed = self.timed
            return None if timed is None or timed.timestamps is None else (timed.timestamps, timed.locations)
        if self._timing is not True:
            return None, ()
        recording = self._recording
        if not self._muted or recording is None:
            return None
        self._timing = False  # its timestamps are not read
        return recording.timestamps, self.locations

    def prepare_timed(self, bindings: Sequence[Any] | None, timed: TimedRecordings) -> Recording:
        """Prepares with timestamps; the recording is for one submission. Called by ``TimedQueue``."""
        if not self.binding_capacity:
            recording = self.prepare(bindings)
            self._recording = None
            return recording
        if self.state is not CommandBufferState.EXECUTABLE:
            self.check_executable()
        recording = self._recording_for(bindings or (), timed)
        if self.one_shot:
            self._note_submitted()
        return recording

    def unprepare_timed(self, recording: Recording) -> bool:
        """Undoes ``prepare_timed`` after a failed submission; returns whether it owns the recording again."""
        if self.state is CommandBufferState.SUBMITTED:
            self.state: CommandBufferState = CommandBufferState.EXECUTABLE
        if self.binding_capacity or self.state is not CommandBufferState.EXECUTABLE:
            return False
        self._recording = recording
        return True

    def drop_timed(self) -> None:
        """Drops the recordings with timestamps, at the end of the profile."""
        timed, self.timed = self.timed, None
        if timed is not None:
            timed.drop()

    # -- end -----------------------------------------------------------------------------------------

    def _drop(self) -> None:
        self.drop_timed()
        self.used_slots = set()
        self._prepared = self._dispatches = None
        self.is_kept: bool = False
        for mirror in self.mirrors.values():
            mirror.close()
        self.mirrors = {}
        self.uses = {}
        super()._drop()

    def __del__(self) -> None:
        # May run at any point, under any lock, so it only appends to a list (docs/design/hal.md).
        if hasattr(self, "_muted") and (
            self._recording is not None
            or self._recordings
            or self.timed
            or self.mirrors
            or self.state is CommandBufferState.RECORDING
        ):
            self.device.dropped.append(self)


def _parts(table: Sequence[Any]) -> list[AnyBuffer | None]:
    return [None if buffer is None else subspan(buffer, offset, size) for buffer, offset, size in table]


def _range_key(buffer: Buffer, offset: int, size: int) -> bytes:
    """Returns the ``Buffer.descriptor`` of the range, without making a buffer."""
    if size == -1:
        size = buffer.size - offset
    if offset < 0 or size < 0 or offset + size > buffer.size:
        raise OutOfRangeError(
            f"binding table: bytes [{offset}, {offset + size}) do not lie within the buffer of {buffer.size} bytes"
        )
    descriptor = buffer.descriptor
    return descriptor[:8] + _RANGE.pack(buffer.offset + offset, size) + descriptor[24:]
