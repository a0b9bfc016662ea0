"""Executables, compute pipelines, and the descriptor sets that bind buffers and images to them.

Read: resources, descriptors, reports, pipeline_context, specialization, pipeline_interface, subgroups,
pipeline_statistics, pipeline, prepared_shader, executable, builtins.
"""

from typing import TYPE_CHECKING

from ...base.lazy import lazy_exports

if TYPE_CHECKING:
    from .descriptors import SetPins
    from .executable import Executable
    from .pipeline import ComputePipeline, check_groups
    from .specialization import SpecializationValue

__all__ = ["ComputePipeline", "Executable", "SetPins", "SpecializationValue", "check_groups"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".descriptors": ("SetPins",),
            ".executable": ("Executable",),
            ".pipeline": ("ComputePipeline", "check_groups"),
            ".specialization": ("SpecializationValue",),
        },
    )
