"""Executables for Vulkan: a kernel in SPIR-V, in the container that the HAL loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from ...formats.vke1 import (
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    DescriptorType,
    ExecutableDef,
    ExportDebugInfo,
    FileLocation,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
)
from ...formats.vke1_writer import build_executable
from ...spirv.binary.grammar import ENUMERATIONS, ExecutionMode, Op
from ...spirv.binary.subgroups import uses_subgroups
from ...spirv.binary.words import read_binary
from ...spirv.checks.requirement_tables import CAPABILITIES
from ...spirv.checks.requirements import requirements
from ..dialects.rules.requirements import OperationError
from ..dialects.syntax.spirv_module import spirv_code, spirv_module
from ..ir.attributes import Attribute, DenseArray, IntegerAttr, attribute_text
from ..ir.copying import copy_operations
from ..ir.operation import Block, Location, Operation, Region, Value, block_of
from ..ir.printer import source_line
from ..ir.sizes import Size
from ..ir.source import SourceText
from ..ir.types import I64
from ..kernels.kernel import Binding, Kernel, Limit, Variant, Workload
from ..kernels.region import KernelRegion
from ..kernels.scalars.target import Target
from ..kernels.strategy import Strategy
from ..kernels.subgroup_access import PUSHED_NUMBERS
from ..strategies.choice import compile_region, strategy_of
from ..strategies.rows.rows import Rows

TARGET = "SPIRV"
"""The target's name in executables."""

FORMAT = "vulkan-spirv-fb"
"""The container's name for modules and drivers."""

PUSHED_FORMAT = "vulkan-spirv-fb-pushed-addresses"
"""The container of a kernel that takes the addresses of its bindings as push constants."""

STRATEGY = "iree.executable.strategy"
"""The attribute of an executable's function that fixes its strategy."""

_COMPUTE_STAGE = 0x20


def vulkan_kernel(function: Operation, target: Target, strategy: Strategy | None = None) -> Kernel:
    """Compiles an executable's function with a strategy: the argument, the function's attribute, or the fastest.

    Raises:
        CompileError: the generator or the target does not support an operation or a type, or the strategy does not
            apply.
    """
    if strategy is None and STRATEGY in function.attributes:
        strategy = strategy_of(function.attributes[STRATEGY])
    kernel = compile_region(kernel_region(function, target), strategy)
    return replace(kernel, subgroup_size=target.subgroup_size) if uses_subgroups(kernel.code) else kernel


def kernel_region(function: Operation, target: Target) -> KernelRegion:
    """Returns the region that an executable's function computes."""
    in_place = function.integers("iree.executable.in_place")
    is_update = "iree.executable.updates" in function.attributes
    return KernelRegion(_region_of(function), str(function.attributes["sym_name"]), target, in_place, is_update)


def longer_strategy(function: Operation, target: Target) -> Strategy | None:
    """Returns a strategy for calls beyond the loop limit of an executable's kernel; None if it has no limit."""
    return None if STRATEGY in function.attributes else Rows.of_long(kernel_region(function, target))


def vulkan_variant(kernel: Kernel, location: Location, features: Sequence[str] = ()) -> Operation:
    """Wraps a kernel as the executable of this target in a program, for devices with some features."""
    bindings = [
        {
            "size": IntegerAttr(binding.size, I64),
            **({"read": None} if binding.is_read else {}),
            **({"write": None} if binding.is_written else {}),
        }
        for binding in kernel.bindings
    ]
    attributes: dict[str, Attribute] = {
        "target": TARGET,
        "bindings": tuple(bindings),
        **({"addresses": None} if kernel.pushes_addresses else {}),
        **_workload_attributes(kernel),
        **({"features": tuple(features)} if features else {}),
        **({"longer": kernel.longer} if kernel.longer else {}),
        **({"subgroup_size": IntegerAttr(kernel.subgroup_size, I64)} if kernel.subgroup_size else {}),
    }
    region = Region([block_of([spirv_module(kernel.code, location)])])
    return Operation("iree.executable", (), (), attributes, [region], location=location)


def kernel_of(variant: Operation) -> Kernel:
    """Returns the kernel that ``vulkan_variant`` wrapped.

    Raises:
        OperationError: the executable does not have the form of a kernel.
    """
    operations = [operation for region in variant.regions for block in region.blocks for operation in block.operations]
    if [operation.name for operation in operations] != ["spv.module"]:
        raise OperationError("one spv.module in it")
    code = spirv_code(operations[0])
    entry_points, sizes = [], []
    binary = read_binary(code)
    for opcode, start, end in binary:
        if opcode == Op.EntryPoint:
            entry_points.append(binary.string(start + 3, end)[0])
        elif opcode == Op.ExecutionMode and binary.words[start + 2] == ExecutionMode.LocalSize:
            sizes.append(binary.words[start + 3 : end])
    if len(entry_points) != 1 or len(sizes) != 1:
        raise OperationError("a shader with one entry point and its LocalSize")
    count: tuple[int, int, int] | Workload
    if "elements" in variant.attributes:
        elements, per_group = variant.sizes("elements"), variant.integer("elements_per_workgroup")
        if len(elements) != 1 or not isinstance(elements[0], Size) or not 0 < per_group < 1 << 32:
            raise OperationError("elements that depend on the call, and how many of them a workgroup computes")
        count = Workload(elements[0], per_group)
    else:
        count = _three(variant.integers("workgroup_count"))
    symbols = variant.attributes.get("symbols", ())
    subgroup_size = variant.integer("subgroup_size")
    if not 0 <= subgroup_size <= 1 << 15 or subgroup_size & (subgroup_size - 1):
        raise OperationError(f"a subgroup size that is a power of two, got {subgroup_size}")
    return Kernel(
        code,
        entry_points[0],
        _three(sizes[0]),
        count,
        _bindings(variant),
        tuple(symbol for symbol in symbols if isinstance(symbol, str)) if isinstance(symbols, tuple) else (),
        _limits(variant),
        "addresses" in variant.attributes,
        None if (longer := variant.attributes.get("longer")) is None else str(longer),
        subgroup_size,
    )


def _limits(variant: Operation) -> tuple[Limit, ...]:
    limits = []
    listed = variant.attributes.get("limits", ())
    for entry in listed if isinstance(listed, tuple) else (listed,):
        size, most, noun = entry if isinstance(entry, tuple) and len(entry) == 3 else (None, None, None)
        sizes = size.values if isinstance(size, DenseArray) else ()
        if len(sizes) != 1 or not isinstance(sizes[0], Size) or not _is_length(most):
            raise OperationError(f'limits such as [array<i64: (d0)>, 60000 : i64, "…"], got {attribute_text(entry)}')
        limits.append(Limit(sizes[0], most.value, str(noun)))
    return tuple(limits)


def _workload_attributes(kernel: Kernel) -> dict[str, Attribute]:
    """Returns the attributes that a dispatch needs in addition to the shader."""
    count = kernel.workgroup_count
    if isinstance(count, tuple):
        attributes: dict[str, Attribute] = {"workgroup_count": DenseArray(I64, count)}
    else:
        attributes = {
            "elements": DenseArray(I64, (count.elements,)),
            "elements_per_workgroup": IntegerAttr(count.per_group, I64),
        }
    if kernel.symbols:
        attributes["symbols"] = kernel.symbols
    if kernel.limits:
        attributes["limits"] = tuple(
            (DenseArray(I64, (limit.size,)), IntegerAttr(limit.most, I64), limit.noun) for limit in kernel.limits
        )
    return attributes


def _is_length(value: object) -> TypeGuard[IntegerAttr]:
    return isinstance(value, IntegerAttr) and 0 <= value.value < 1 << 56


def _three(numbers: Sequence[int]) -> tuple[int, int, int]:
    if len(numbers) != 3 or any(not 0 <= number < 1 << 32 for number in numbers):
        raise OperationError(f"three numbers of workgroups or invocations, got {list(numbers)}")
    x, y, z = numbers
    return x, y, z


def _bindings(variant: Operation) -> tuple[Binding, ...]:
    bindings = []
    listed = variant.attributes.get("bindings")
    for entry in listed if isinstance(listed, tuple) else ():
        size = entry.get("size") if isinstance(entry, Mapping) else None
        if not isinstance(entry, Mapping) or not _is_length(size) or size.value % 4:
            raise OperationError(
                f"bindings such as {{size = 16 : i64, read}} of whole words, got {attribute_text(entry)}"
            )
        bindings.append(Binding(size.value, "read" in entry, "write" in entry))
    return tuple(bindings)


def vulkan_executable(variant: Operation, source: SourceText) -> Variant:
    """Builds the data that the device loads for an executable: one pipeline, storage buffers in set 0, inputs first.

    Args:
        variant: the executable.
        source: the program's text, for the line in profiles.

    Raises:
        OperationError: the executable does not have the form of a kernel.
    """
    kernel = kernel_of(variant)
    bindings = tuple(
        DescriptorBindingDef(number, DescriptorType.STORAGE_BUFFER, 1, _COMPUTE_STAGE)
        for number in range(len(kernel.bindings))
    )
    pushed = 4 * len(kernel.symbols)
    if kernel.pushes_addresses:
        pushed += 4 * PUSHED_NUMBERS + 8 * len(bindings)
    ranges = (PushConstantRange(_COMPUTE_STAGE, 0, pushed),) if pushed else ()
    data = build_executable(
        ExecutableDef(
            (
                PipelineDef(
                    0,
                    kernel.entry_point,
                    0,
                    kernel.subgroup_size,
                    debug_info=_debug_info(kernel.entry_point, variant, source),
                ),
            ),
            (DescriptorSetLayoutDef(bindings),),
            (PipelineLayoutDef((0,), push_constant_ranges=ranges),),
            (memoryview(kernel.code),),
        )
    )
    features = variant.attributes.get("features", ())
    if not isinstance(features, tuple) or not all(isinstance(feature, str) for feature in features):
        raise OperationError(f'features such as ["shaderInt64"], got {attribute_text(features)}')
    format = PUSHED_FORMAT if kernel.pushes_addresses else FORMAT
    return Variant(TARGET, format, data, kernel, tuple(map(str, features)), tuple(_needs(kernel.code)))


def _needs(code: bytes) -> Iterator[str]:
    """Yields the device features that a shader's capabilities need."""
    binary = read_binary(code)
    for opcode, start, _ in binary:
        if opcode == Op.Capability:
            name = ENUMERATIONS["Capability"].name(binary.words[start + 1])
            alternatives = requirements(CAPABILITIES).get(name, ())
            if alternatives and alternatives[0].feature:
                yield alternatives[0].feature


def _debug_info(name: str, variant: Operation, source: SourceText) -> ExportDebugInfo | None:
    line = source_line(source, variant.location)
    return None if line is None else ExportDebugInfo(name, FileLocation(line[0], line[1]))


def _region_of(function: Operation) -> Block:
    """Returns the operations between loads and stores as a block over tensors."""
    operations = function.regions[0].block.operations
    loads = [operation.result for operation in operations if operation.name == "iree.load_input"]
    region = Block([value.type for value in loads])
    values: dict[Value, Value] = dict(zip(loads, region.arguments, strict=True))
    copy_operations([operation for operation in operations if not operation.name.startswith("iree.")], region, values)
    stored = [values[operation.operands[0]] for operation in operations if operation.name == "iree.store_output"]
    region.append(Operation("iree.return", stored, location=function.location))
    return region
