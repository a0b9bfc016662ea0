"""Statistics of a compiled pipeline from its driver: registers, spills, memory, code size.

Drivers choose names and units, which are kept unchanged. Source: VK_KHR_pipeline_executable_properties.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..instance.logical_device import LogicalDevice, PipelineStatistic
from ..vulkan.functions import CData, chain, new, text
from ..vulkan.results import listed

CAPTURE_STATISTICS: Final = 0x40  # VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
_WAVES: Final = ("VK_AMD_shader_core_properties", "VkPhysicalDeviceShaderCorePropertiesAMD", "wavefrontsPerSimd")
_WARPS: Final = ("VK_NV_shader_sm_builtins", "VkPhysicalDeviceShaderSMBuiltinsPropertiesNV", "shaderWarpsPerSM")
_WARP: Final = 32
_REGISTERS: Final = 65_536
_REGISTER_UNIT: Final = 256
_SCHEDULERS: Final = 4
_FORMATS: Final = ("b32", "i64", "u64", "f64")  # VkPipelineExecutableStatisticFormatKHR


def read_statistics(device: LogicalDevice, pipeline: CData, name: str) -> list[PipelineStatistic]:
    """Returns the statistics of each executable of a pipeline that was created with ``CAPTURE_STATISTICS``."""
    collected = []
    get, info = device.fn.vkGetPipelineExecutablePropertiesKHR, new("VkPipelineInfoKHR", pipeline=pipeline)
    executables = listed(get, "VkPipelineExecutablePropertiesKHR", "executables of a pipeline", device.handle, info)
    for index, executable in enumerate(executables):
        get = device.fn.vkGetPipelineExecutableStatisticsKHR
        info = new("VkPipelineExecutableInfoKHR", pipeline=pipeline, executableIndex=index)
        for statistic in listed(get, "VkPipelineExecutableStatisticKHR", "statistics", device.handle, info):
            kind = _FORMATS[int(statistic.format)]
            value = getattr(statistic.value, kind)
            collected.append(
                PipelineStatistic(
                    name,
                    text(executable.name),
                    text(statistic.name),
                    bool(value) if kind == "b32" else value,
                    text(statistic.description),
                )
            )
    return collected


def occupancy(device: LogicalDevice, statistics: Iterable[PipelineStatistic]) -> tuple[float, str] | None:
    """Returns the largest share of a core's resident subgroups that an executable reaches, and its derivation.

    ``None`` if the driver reports too little. ``statistics`` are those of one executable.

    Sources: VK_AMD_shader_core_properties (``wavefrontsPerSimd``); VK_NV_shader_sm_builtins (``shaderWarpsPerSM``), and
    the CUDA programming guide's table of technical specifications: 65,536 registers a multiprocessor, in units of 256.
    """
    known = {statistic.name: statistic.value for statistic in statistics}
    if (waves := known.get("Subgroups per SIMD")) and (most := _property(device, *_WAVES)):
        return min(1.0, waves / most), f"{waves:g} of {most} subgroups a SIMD"
    if (registers := known.get("Register Count")) and (most := _property(device, *_WARPS)):
        a_warp = -(-int(registers) * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        warps = min(most, _REGISTERS // a_warp // _SCHEDULERS * _SCHEDULERS)
        return warps / most, f"registers allow {warps} of {most} warps a multiprocessor; workgroups may allow fewer"
    return None


def _property(device: LogicalDevice, extension: str, struct_name: str, field: str) -> int:
    """Returns a property of an extension; 0 if the device lacks it."""
    if extension not in device.profile.extensions:
        return 0
    struct = new(struct_name)
    head = chain(new("VkPhysicalDeviceProperties2"), struct)
    device.driver.functions.vkGetPhysicalDeviceProperties2(device.physical_device, head)
    return int(getattr(struct, field))
