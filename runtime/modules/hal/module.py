"""The ``hal`` module: the functions that compiled programs call to use devices, with the calling conventions of
versions 5, 6 and 7.

``hal_module(devices)`` makes it. Its exports are methods, in a file for each noun: ``device_exports.py`` and so on.
They check their arguments and pass them on. If two versions differ only in a trailing flags word, one method serves
both.

Facts: ``compiler/src/iree/compiler/Dialect/HAL/hal.imports.mlir`` and
``runtime/src/iree/modules/hal/{exports.inl,module.c}``, IREE 3.1 to 3.13. Queue affinities are accepted and ignored: a
context uses one queue per device.

Offsets and sizes are signed 64-bit integers; negative ones are out of every range, except that a length of -1 means all
that follows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ....base.memory_budget import MemoryBudget
from ....hal.buffer import Buffer
from ....hal.buffer_view import BufferView
from ....hal.device import Device
from ....hal.fence import Fence
from ....hal.program import Executable, ProgramAllocator, ProgramCommandBuffer
from ....hal.programs.fence import HalFence
from ....hal.programs.file import HalFile
from ....hal.semaphore import Semaphore
from ....vm.native.module import NativeModule
from ....vm.types.ref_types import register_ref_type
from .buffer_exports import BufferExports
from .command_exports import CommandExports
from .device_exports import Channel, DeviceExports, Event
from .fence_exports import FenceExports
from .queue_exports import QueueExports


def hal_module(devices: Sequence[Device] = (), memory: MemoryBudget | None = None) -> NativeModule:
    """Returns the ``hal`` module over open devices, numbered in this order by ``devices.get``.

    Their owner closes the devices. Without devices, the module serves tools that only inspect programs. ``memory`` is
    the budget of the programs' device memory; None means no limit.
    """
    state = functools.partial(HalState, tuple(devices), memory)
    return NativeModule("hal", version=7, state=state, trusted=True, suspends=False)


class HalState(DeviceExports, BufferExports, CommandExports, QueueExports, FenceExports):
    """The state of one VM context, whose methods are the module's exports."""


register_ref_type("hal.allocator", ProgramAllocator)
register_ref_type("hal.buffer", Buffer)
register_ref_type("hal.buffer_view", BufferView)
register_ref_type("hal.channel", Channel)
register_ref_type("hal.command_buffer", ProgramCommandBuffer)
register_ref_type("hal.device", Device)
register_ref_type("hal.event", Event)
register_ref_type("hal.executable", Executable)
register_ref_type("hal.fence", HalFence, Fence)
register_ref_type("hal.file", HalFile)
register_ref_type("hal.semaphore", Semaphore)
