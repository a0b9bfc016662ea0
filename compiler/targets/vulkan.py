"""Executables for Vulkan: a kernel in SPIR-V, in the container that the HAL loads."""

from __future__ import annotations

from ...formats.vke1 import (
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    DescriptorType,
    ExecutableDef,
    PipelineDef,
    PipelineLayoutDef,
)
from ...formats.vke1_writer import build_executable
from ..codegen.kernel import Kernel, compile_region
from ..codegen.target import Target
from ..ir.copying import copy_operations
from ..ir.operation import Block, Operation, Value

FORMAT = "vulkan-spirv-fb"
"""How modules and drivers name the container."""

_COMPUTE_STAGE = 0x20


def vulkan_kernel(function: Operation, target: Target) -> Kernel:
    """The kernel of an executable's function.

    Raises:
        CompileError: an operation or a type that no code is generated for, or that the target lacks.
    """
    return compile_region(_region_of(function), str(function.attributes["sym_name"]), target)


def vulkan_executable(kernel: Kernel) -> bytes:
    """A kernel as an executable of one pipeline: storage buffers in set 0, inputs first."""
    bindings = tuple(
        DescriptorBindingDef(number, DescriptorType.STORAGE_BUFFER, 1, _COMPUTE_STAGE)
        for number in range(len(kernel.bindings))
    )
    return build_executable(
        ExecutableDef(
            (PipelineDef(0, kernel.entry_point, 0),),
            (DescriptorSetLayoutDef(bindings),),
            (PipelineLayoutDef((0,)),),
            (memoryview(kernel.code),),
        )
    )


def _region_of(function: Operation) -> Block:
    """The body between loads and stores, over tensors."""
    operations = function.regions[0].block.operations
    loads = [operation.result for operation in operations if operation.name == "iree.load_input"]
    region = Block([value.type for value in loads])
    values: dict[Value, Value] = dict(zip(loads, region.arguments, strict=True))
    copy_operations([each for each in operations if not each.name.startswith("iree.")], region, values)
    stored = [values[each.operands[0]] for each in operations if each.name == "iree.store_output"]
    region.append(Operation("iree.return", stored, location=function.location))
    return region
