"""Exports of the ``hal`` module that record command buffers, and about the executables that these run."""

from __future__ import annotations

from typing import Final

from ....hal.program import BindingReference, Executable, ProgramCommandBuffer
from ....hal.programs.checks import Ref, pattern_of, require
from ....hal.programs.device_context import DeviceTable
from ....hal.programs.file import HalFile
from ....vm.native.module import export
from .reference import memory_of, text_of

_ONE_SHOT: Final = 0x1


class CommandExports(DeviceTable):
    """``hal.command_buffer.*`` and ``hal.executable.*``."""

    @export("command_buffer.create", "0riiIi_r")
    def command_buffer_create(
        self, device: Ref, modes: int, categories: int, affinity: int, binding_capacity: int
    ) -> ProgramCommandBuffer:
        """Returns a command buffer in the recording state."""
        context = self.device_context(device)
        commands = context.device.program_commands(
            one_shot=bool(modes & _ONE_SHOT),
            binding_capacity=binding_capacity,
            peers=context.peers,
            timed=context.timed,
        )
        commands.begin()
        return commands

    @export("command_buffer.finalize", "0r_v")
    def command_buffer_finalize(self, commands: Ref) -> None:
        """Ends recording."""
        require(commands, ProgramCommandBuffer, "command_buffer").end()

    @export("command_buffer.begin_debug_group", "0rr_v")
    def command_buffer_begin_debug_group(self, commands: Ref, label: Ref) -> None:
        """Opens a label for tools."""
        require(commands, ProgramCommandBuffer, "command_buffer").begin_label(text_of(label, "label"))

    @export("command_buffer.end_debug_group", "0r_v")
    def command_buffer_end_debug_group(self, commands: Ref) -> None:
        """Closes the last label."""
        require(commands, ProgramCommandBuffer, "command_buffer").end_label()

    @export("command_buffer.execution_barrier", "0riiI_v", "0riii_v")
    def command_buffer_execution_barrier(self, commands: Ref, source: int, target: int, flags: int) -> None:
        """Makes later commands wait for, and see, all earlier commands."""
        require(commands, ProgramCommandBuffer, "command_buffer").execution_barrier()

    @export("command_buffer.advise_buffer", "0rrIIIi_v")
    def command_buffer_advise_buffer(
        self, commands: Ref, buffer: Ref, flags: int, first: int, second: int, slot: int
    ) -> None:
        """Does nothing: Vulkan has no such advice."""
        require(commands, ProgramCommandBuffer, "command_buffer").check_recording()

    @export("command_buffer.fill_buffer", "0rrIIiIiI_v", "0rrIIiii_v")
    def command_buffer_fill_buffer(
        self, commands: Ref, target: Ref, offset: int, size: int, slot: int, pattern: int, width: int, flags: int = 0
    ) -> None:
        """Fills a range with the low bytes of a pattern."""
        recording = require(commands, ProgramCommandBuffer, "command_buffer")
        recording.fill(recording.reference(slot, target, offset, size), pattern_of(pattern, width))

    @export("command_buffer.update_buffer", "0rrIrIIiI_v", "0rrIrIIi_v")
    def command_buffer_update_buffer(
        self, commands: Ref, source: Ref, start: int, target: Ref, offset: int, size: int, slot: int, flags: int = 0
    ) -> None:
        """Writes host bytes, captured immediately."""
        recording = require(commands, ProgramCommandBuffer, "command_buffer")
        data = HalFile(memory_of(source, "source")).range(start, size, "update_buffer")
        recording.update(recording.reference(slot, target, offset, size), data.tobytes())

    @export("command_buffer.copy_buffer", "0riirIrIII_v", "0riirIrII_v")
    def command_buffer_copy_buffer(
        self,
        commands: Ref,
        source_slot: int,
        target_slot: int,
        source: Ref,
        source_offset: int,
        target: Ref,
        target_offset: int,
        size: int,
        flags: int = 0,
    ) -> None:
        """Copies a range."""
        recording = require(commands, ProgramCommandBuffer, "command_buffer")
        recording.copy(
            recording.reference(source_slot, source, source_offset, size, written=False),
            recording.reference(target_slot, target, target_offset, size),
            None if size == -1 else size,
        )

    @export("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v", "0rriiiiICiDCiirIID_v")
    def command_buffer_dispatch(
        self,
        commands: Ref,
        executable: Ref,
        function: int,
        x: int,
        y: int,
        z: int,
        flags: int,
        constants: tuple[int, ...],
        bindings: tuple[BindingReference, ...],
    ) -> None:
        """Runs a function over x * y * z workgroups: unsigned counts; with a 0 nothing runs."""
        recording = require(commands, ProgramCommandBuffer, "command_buffer")
        executed = require(executable, Executable, "executable")
        if x < 0 or y < 0 or z < 0:
            x, y, z = x & 0xFFFFFFFF, y & 0xFFFFFFFF, z & 0xFFFFFFFF
        recording.dispatch_function(executed, function, (x, y, z), flags, constants, bindings)

    @export("command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v", "0rriirIICiDCiirIID_v")
    def command_buffer_dispatch_indirect(
        self,
        commands: Ref,
        executable: Ref,
        function: int,
        workgroups_slot: int,
        workgroups: Ref,
        workgroups_offset: int,
        flags: int,
        constants: tuple[int, ...],
        bindings: tuple[BindingReference, ...],
    ) -> None:
        """Runs a function over workgroup counts in a buffer, three uint32."""
        recording = require(commands, ProgramCommandBuffer, "command_buffer")
        executed = require(executable, Executable, "executable")
        counts = recording.reference(workgroups_slot, workgroups, workgroups_offset, 12, written=False)
        recording.dispatch_function_indirect(executed, function, counts, flags, constants, bindings)

    @export("executable.create", "0rIrrr_r", "0rrrr_r")
    def executable_create(self, device: Ref, *arguments: Ref) -> Executable:
        """Returns an executable from its format, blob and constants. Version 5 has no preceding affinity."""
        executable_format, data, constants = arguments[-3:]
        return self.device_context(device).device.program_executable(
            text_of(executable_format, "executable format"),
            memory_of(data, "executable data"),
            b"" if constants is None else memory_of(constants, "constants").tobytes(),
        )

    @export("executable.lookup.function", "0rr_I")
    def executable_lookup_function(self, executable: Ref, name: Ref) -> int:
        """Returns the function id of a name, for ``command_buffer.dispatch``."""
        return require(executable, Executable, "executable").lookup(text_of(name, "function name"))
