"""Pipelines, the descriptor sets that bind buffers to them, and the command buffers that dispatch them.

Imports: `vulkan`, `instance`, `memory`, `images`, `sync`, `hal`, `formats`, `spirv`, `shaders` and the ground files at
the root.

Read: `resources`, `descriptors`, `pipeline_context`; `specialization`, `pipeline_interface`, `subgroups`, `pipeline`,
`prepared_shader`, `shader_module`, `executable`, `builtins`; `reports`; `timestamps`, `recording`, `context`;
`recorder`, `image_recorder`, `action_recorder`, `recording_cache`, `replay`, `command_buffer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .command_buffer import CommandBuffer
    from .descriptors import SetPins
    from .executable import Executable
    from .pipeline import ComputePipeline, check_groups
    from .specialization import SpecializationValue
    from .timestamps import DispatchTiming

__all__ = [
    "CommandBuffer",
    "ComputePipeline",
    "DispatchTiming",
    "Executable",
    "SetPins",
    "SpecializationValue",
    "check_groups",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        ".command_buffer": ("CommandBuffer",),
        ".descriptors": ("SetPins",),
        ".executable": ("Executable",),
        ".pipeline": ("ComputePipeline", "check_groups"),
        ".specialization": ("SpecializationValue",),
        ".timestamps": ("DispatchTiming",),
    },
)
