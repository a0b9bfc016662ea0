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
    from ..spirv.instrument.printed import PrintedLine
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
    from .commands.command_buffer import CommandBuffer
    from .commands.timestamps import DispatchTiming
    from .device import Device
    from .images.format_features import ImageUsage
    from .images.image import Image
    from .images.image_view import CombinedImageSampler, ImageView
    from .images.sampler import Sampler
    from .images.texel_buffer import TexelBuffer
    from .instance.driver import Driver, shared_driver
    from .instance.plan import DevicePlan, PlanOptions
    from .instance.profile import DeviceLimits, DeviceProfile, DeviceType
    from .memory.buffer import Buffer
    from .pipelines.descriptors import SetPins
    from .pipelines.executable import Executable
    from .pipelines.pipeline import ComputePipeline, check_groups
    from .pipelines.specialization import SpecializationValue
    from .submit.queue import Queue
    from .sync.semaphore import TimelineSemaphore
    from .vulkan.live_objects import live_objects

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
    "PrintedLine",
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
            "..spirv.instrument.printed": ("PrintedLine",),
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
            ".commands.command_buffer": ("CommandBuffer",),
            ".commands.timestamps": ("DispatchTiming",),
            ".pipelines.descriptors": ("SetPins",),
            ".pipelines.executable": ("Executable",),
            ".pipelines.pipeline": (
                "ComputePipeline",
                "check_groups",
            ),
            ".pipelines.specialization": ("SpecializationValue",),
            ".device": ("Device",),
            ".images.format_features": ("ImageUsage",),
            ".images.image": ("Image",),
            ".images.image_view": (
                "CombinedImageSampler",
                "ImageView",
            ),
            ".images.sampler": ("Sampler",),
            ".images.texel_buffer": ("TexelBuffer",),
            ".instance.driver": (
                "Driver",
                "shared_driver",
            ),
            ".instance.plan": (
                "DevicePlan",
                "PlanOptions",
            ),
            ".instance.profile": (
                "DeviceLimits",
                "DeviceProfile",
                "DeviceType",
            ),
            ".memory.buffer": ("Buffer",),
            ".submit.queue": ("Queue",),
            ".sync.semaphore": ("TimelineSemaphore",),
            ".vulkan.live_objects": ("live_objects",),
            "..spirv.sources.glsl": ("compile_glsl",),
        },
    )
