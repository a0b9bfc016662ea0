"""Vulkan compute and nothing else: devices, memory, executables, command buffers, semaphores, queues, timestamps."""

from ..formats.element_type import ElementType, EncodingType
from ..spirv.glsl import compile_glsl
from ..spirv.reflect import reflect
from ..spirv.reflection_types import (
    Binding,
    BlockMember,
    ElementLayout,
    EntryPoint,
    PushConstantBlock,
    ShaderModuleReflection,
)
from .commands.command_buffer import CommandBuffer
from .commands.descriptors import SetPins
from .commands.executable import Executable
from .commands.pipeline import ComputePipeline, check_groups
from .commands.recorder import CommandBufferState
from .commands.slots import BindingSlot
from .commands.specialization import SpecializationValue
from .commands.timestamps import DispatchTiming
from .device import Device
from .instance.driver import Driver, shared_driver
from .instance.plan import DevicePlan, PlanOptions
from .instance.profile import DeviceLimits, DeviceProfile, DeviceType
from .memory.buffer import Buffer
from .memory.buffer_view import BufferView
from .memory.memory_type import BufferUsage, MemoryAccess, MemoryTypeFlags
from .submit.calibration import ClockCalibration
from .submit.queue import Queue
from .sync.fence import Fence
from .sync.semaphore import TimelineSemaphore, Timepoint, wait_all, wait_any
from .vulkan.live_objects import live_objects

__all__ = [
    "Binding",
    "BindingSlot",
    "BlockMember",
    "Buffer",
    "BufferUsage",
    "BufferView",
    "ClockCalibration",
    "CommandBuffer",
    "CommandBufferState",
    "ComputePipeline",
    "Device",
    "DeviceLimits",
    "DevicePlan",
    "DeviceProfile",
    "DeviceType",
    "DispatchTiming",
    "Driver",
    "ElementLayout",
    "ElementType",
    "EncodingType",
    "EntryPoint",
    "Executable",
    "Fence",
    "MemoryAccess",
    "MemoryTypeFlags",
    "PlanOptions",
    "PushConstantBlock",
    "Queue",
    "SetPins",
    "ShaderModuleReflection",
    "SpecializationValue",
    "TimelineSemaphore",
    "Timepoint",
    "check_groups",
    "compile_glsl",
    "live_objects",
    "reflect",
    "shared_driver",
    "wait_all",
    "wait_any",
]
