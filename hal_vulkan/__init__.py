"""Vulkan compute and nothing else: devices, memory, executables, command buffers, semaphores, queues, timestamps."""

from .buffer import Buffer
from .buffer_view import BufferView
from .command_buffer import BindingSlot, CommandBuffer, CommandBufferState
from .descriptors import SetPins
from .device import Device
from .device_plan import DevicePlan, PlanOptions
from .device_profile import DeviceLimits, DeviceProfile, DeviceType
from .driver import Driver, shared_driver
from .element_type import ElementType, EncodingType
from .executable import Executable
from .fence import Fence
from .glsl import compile_glsl
from .live_objects import live_objects
from .memory_type import BufferUsage, MemoryAccess, MemoryTypeFlags
from .pipeline import ComputePipeline, SpecializationValue, check_groups
from .queue import Queue
from .semaphore import TimelineSemaphore, Timepoint, wait_all, wait_any
from .spirv import reflect
from .spirv_types import Binding, BlockMember, ElementLayout, EntryPoint, PushConstantBlock, ShaderModuleReflection
from .timestamps import ClockCalibration, DispatchTiming

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
