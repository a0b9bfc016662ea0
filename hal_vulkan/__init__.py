"""Vulkan compute and nothing else: devices, memory, executables, command buffers, semaphores, queues, timestamps.

Read: vulkan, instance, memory, images, sync, pipelines, commands, submit, programs, device, presentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports

if TYPE_CHECKING:
    from ..formats.element_type import ElementType, EncodingType
    from ..hal.buffer_view import BufferView
    from ..hal.clock import ClockCalibration
    from ..hal.command_buffer import BindingSlot, CommandBufferState
    from ..hal.fence import Fence, wait_all, wait_any
    from ..hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags
    from ..hal.semaphore import Timepoint
    from ..spirv.reflection.reflect import reflect
    from ..spirv.reflection.reflection_types import (
        Binding,
        BlockMember,
        ElementLayout,
        EntryPoint,
        ImageType,
        PushConstantBlock,
        ShaderModuleReflection,
    )
    from ..spirv.sources.glsl import compile_glsl
    from .commands import CommandBuffer, DispatchTiming
    from .device import Device
    from .images import CombinedImageSampler, Image, ImageUsage, ImageView, Sampler, TexelBuffer
    from .instance import DeviceLimits, DevicePlan, DeviceProfile, DeviceType, Driver, PlanOptions, shared_driver
    from .memory import Buffer
    from .pipelines import ComputePipeline, Executable, SetPins, SpecializationValue, check_groups
    from .submit import Queue
    from .sync import TimelineSemaphore
    from .vulkan import live_objects

__all__ = [
    "Binding",
    "BindingSlot",
    "BlockMember",
    "Buffer",
    "BufferUsage",
    "BufferView",
    "ClockCalibration",
    "CombinedImageSampler",
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
    "Image",
    "ImageType",
    "ImageUsage",
    "ImageView",
    "MemoryAccess",
    "MemoryTypeFlags",
    "PlanOptions",
    "PushConstantBlock",
    "Queue",
    "Sampler",
    "SetPins",
    "ShaderModuleReflection",
    "SpecializationValue",
    "TexelBuffer",
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "..formats.element_type": ("ElementType", "EncodingType"),
            "..hal.buffer_view": ("BufferView",),
            "..hal.clock": ("ClockCalibration",),
            "..hal.command_buffer": ("BindingSlot", "CommandBufferState"),
            "..hal.fence": ("Fence", "wait_all", "wait_any"),
            "..hal.memory": ("BufferUsage", "MemoryAccess", "MemoryTypeFlags"),
            "..hal.semaphore": ("Timepoint",),
            "..spirv.reflection.reflect": ("reflect",),
            "..spirv.reflection.reflection_types": (
                "Binding",
                "BlockMember",
                "ElementLayout",
                "EntryPoint",
                "ImageType",
                "PushConstantBlock",
                "ShaderModuleReflection",
            ),
            ".commands": ("CommandBuffer", "DispatchTiming"),
            ".pipelines": ("ComputePipeline", "Executable", "SetPins", "SpecializationValue", "check_groups"),
            ".device": ("Device",),
            ".images": ("CombinedImageSampler", "Image", "ImageUsage", "ImageView", "Sampler", "TexelBuffer"),
            ".instance": (
                "DeviceLimits",
                "DevicePlan",
                "DeviceProfile",
                "DeviceType",
                "Driver",
                "PlanOptions",
                "shared_driver",
            ),
            ".memory": ("Buffer",),
            ".submit": ("Queue",),
            ".sync": ("TimelineSemaphore",),
            ".vulkan": ("live_objects",),
            "..spirv.sources.glsl": ("compile_glsl",),
        },
    )
