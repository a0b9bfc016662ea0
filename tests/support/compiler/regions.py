"""Regions of StableHLO as kernels: compiled, validated, run on a device, and by their definitions in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pumice
from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.attributes import type_shape
from pumice.compiler.ir.operation import Block, Operation
from pumice.compiler.ir.types import ShapedType
from pumice.compiler.kernels.kernel import Kernel
from pumice.compiler.kernels.region import KernelRegion
from pumice.compiler.kernels.scalars.device_target import target_of
from pumice.compiler.kernels.scalars.scalars import storage_bits
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import Program
from pumice.compiler.strategies.choice import compile_region
from pumice.hal_reference.operations import evaluate
from pumice.hal_vulkan.pipelines.pipeline_interface import check_capabilities
from pumice.spirv.binary.grammar import ENUMERATIONS, BuiltIn, Decoration, ExecutionMode, Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks.validation import ensure_valid
from pumice.spirv.reflection.module import Module
from pumice.spirv.reflection.reflect import reflect
from pumice.status import UnimplementedError

Array = npt.NDArray[Any]

_DOTS = ("DotProduct", "DotProductInput4x8BitPacked")
_CAPABILITIES = {
    Op.GroupNonUniformShuffle: ("GroupNonUniformShuffle",),
    Op.GroupNonUniformShuffleXor: ("GroupNonUniformShuffle",),
    Op.TypeCooperativeMatrixKHR: ("CooperativeMatrixKHR",),
    Op.SDot: _DOTS,
    Op.UDot: _DOTS,
    Op.ConvertUToPtr: ("PhysicalStorageBufferAddresses",),
}
_SUBGROUP_INPUTS = [[Decoration.BuiltIn, name] for name in (BuiltIn.SubgroupId, BuiltIn.SubgroupLocalInvocationId)]

EMULATED = Target()
NATIVE = Target(int64=True, float16=True)


def function_of(text: str) -> Operation:
    """Returns the only function of a program."""
    (function,) = parse(text)
    return function


def region_of(function: Operation | str, target: Target = EMULATED) -> KernelRegion:
    """Returns the body of a function, or of a program's only function, as the region of a kernel."""
    operation = function_of(function) if isinstance(function, str) else function
    return KernelRegion(operation.regions[0].block, "main", target)


def function(arguments: str, result: str, body: str) -> str:
    """Returns a function of one result, ``%r``."""
    return f"func.func @main({arguments}) -> tensor<{result}> {{\n{body}\nreturn %r : tensor<{result}>\n}}"


def contraction(left: str, right: str, result: str, numbers: str) -> str:
    """Returns a contraction and an operation on its result."""
    return f"""
        func.func @main(%a: tensor<{left}>, %b: tensor<{right}>, %c: tensor<{result}>) -> tensor<{result}> {{
          %0 = stablehlo.dot_general %a, %b, {numbers} : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>
          %1 = stablehlo.add %0, %c : tensor<{result}>
          return %1 : tensor<{result}>
        }}
    """


def arguments_of(function: Operation, has_fractions: bool = False) -> list[Array]:
    """Returns small random integers for the arguments of a function, or normal numbers for those of float types."""
    random = np.random.default_rng(0)
    types = [value.tensor for value in function.regions[0].block.arguments]
    return [
        random.standard_normal(type.shape).astype(type.scalar.dtype)
        if has_fractions and not type.scalar.is_integer
        else random.integers(-9, 9, type.shape).astype(type.scalar.dtype)
        for type in types
    ]


def dispatch_regions(text: str, target: Target = EMULATED) -> list[Operation]:
    """Returns the dispatch regions of a program."""
    program = compile_text(text, "program", target, "regions").program
    assert isinstance(program, Program)
    return [operation for operation in program.functions["main"].walk() if operation.name == "iree.dispatch_region"]


def to_words(array: Array, type: ShapedType) -> npt.NDArray[np.uint32]:
    """Returns an array as the words of a kernel's buffer."""
    bits = storage_bits(type.scalar)
    data = np.ascontiguousarray(array).reshape(-1)
    raw = data.view(np.uint8) if data.size else np.zeros(0, np.uint8)
    if bits < 8:
        lanes = 8 // bits
        raw = np.pad(raw & ((1 << bits) - 1), (0, -raw.size % lanes)).reshape(-1, lanes)
        raw = np.bitwise_or.reduce(raw << (np.arange(lanes, dtype=np.uint8) * bits).astype(np.uint8), axis=1)
    raw = np.pad(raw, (0, -raw.size % 4 if raw.size else 4))
    return raw.astype(np.uint8).view(np.uint32)


def from_words(words: npt.NDArray[np.uint32], type: ShapedType) -> Array:
    """Returns the array that the words of a kernel's buffer hold."""
    bits, dtype = storage_bits(type.scalar), type.scalar.dtype
    raw = np.ascontiguousarray(words).view(np.uint8)
    if bits < 8:
        lanes = 8 // bits
        raw = ((raw[:, None] >> (np.arange(lanes, dtype=np.uint8) * bits)) & ((1 << bits) - 1)).reshape(-1)
        if type.scalar.kind == "int":
            raw = np.where(raw >> (bits - 1), raw | (0xFF & ~((1 << bits) - 1)), raw).astype(np.uint8)
        raw = raw.astype(np.int8 if type.scalar.kind == "int" else np.uint8).astype(dtype).view(np.uint8)
    return raw[: type.count * dtype.itemsize].view(dtype).reshape(type_shape(type)).copy()


def require_runs(device: pumice.Device, kernel: Kernel, target: Target) -> None:
    """Skips the test where a kernel for a given target needs what the device lacks; one for the device itself runs."""
    own = target_of(device.profile)
    if target == own:
        return
    module = reflect(kernel.code)
    exchanges = any(name.startswith("GroupNonUniform") for name in module.capabilities)
    if exchanges and target.subgroup_size not in (1, own.subgroup_size):
        pytest.skip(f"{device.name} has subgroups of {own.subgroup_size}; the kernel is for {target.subgroup_size}")
    try:
        check_capabilities(device.vulkan, module)
    except UnimplementedError as error:
        pytest.skip(error.message)


def run_kernel(
    device: pumice.Device, kernel: Kernel, block: Block, arguments: Sequence[Array], target: Target
) -> list[Array]:
    """Runs a kernel for a target and returns its results."""
    ensure_valid(kernel.code, "vulkan1.1")
    require_runs(device, kernel, target)
    built_ins = input_built_ins(kernel.code)
    assert len(built_ins) == len(set(built_ins)), f"declared twice: {built_ins}"
    types = [value.tensor for value in block.terminator.operands]
    outputs = [pumice.empty(binding.size // 4, np.uint32) for binding in kernel.bindings if binding.is_written]
    words = [to_words(array, value.tensor) for array, value in zip(arguments, block.arguments, strict=True)]
    assert [4 * array.size for array in words] == [b.size for b in kernel.bindings[: len(words)]]
    # The device's own interface knows only the bindings that a shader uses.
    inputs = [array for array, binding in zip(words, kernel.bindings, strict=False) if binding.is_read]
    results: Iterator[Array] = iter(())
    if 0 not in kernel.workgroup_count:
        with device.load_kernel(kernel.code) as shader:
            actual = shader(*inputs, *outputs, groups=kernel.workgroup_count)
        results = map(np.asarray, actual if isinstance(actual, tuple) else (actual,))
    return [
        from_words(next(results) if binding.is_written else np.zeros(1, np.uint32), type)
        for binding, type in zip(kernel.bindings[len(words) :], types, strict=True)
    ]


def run_region(
    device: pumice.Device,
    function: Operation | str,
    arguments: Sequence[Array],
    target: Target = EMULATED,
    strategy: Strategy | None = None,
) -> list[Array]:
    """Compiles a function to one kernel, runs it and returns its results."""
    region = region_of(function, target)
    return run_kernel(device, compile_region(region, strategy), region.block, arguments, target)


def called(
    device: pumice.Device, text: str, *arguments: Array, target: Target | None = None, times: int = 1
) -> list[Array]:
    """Calls a program several times; checks that the results have the same bits and returns those of one call."""
    with pumice.Session(device) as session:
        session.load(compile_text(text, "program", target or target_of(device.profile)).module)
        calls = [session.call("module.main", *arguments) for _ in range(times)]
        results = [[value.numpy() for value in (call if isinstance(call, tuple) else (call,))] for call in calls]
    assert all(
        left.tobytes() == right.tobytes() for call in results for left, right in zip(call, results[0], strict=True)
    )
    return results[0]


def by_definition(function: Operation, arguments: Sequence[Array]) -> list[Array]:
    """Returns the results of a function by the definitions in NumPy."""
    name = str(function.attributes["sym_name"])
    return evaluate(ProgramWriter({name: function}).function(name), arguments)


def shader_declarations(code: bytes) -> tuple[set[str], set[str]]:
    """Returns the capabilities and the extensions that a shader declares."""
    module = Module(code)
    return {ENUMERATIONS["Capability"].name(number) for number in module.capabilities}, set(module.extensions)


def input_built_ins(code: bytes) -> list[str]:
    """Returns the built-ins of a shader's input variables; older spirv-val does not see one declared twice."""
    module = Module(code)
    decorations = [module.decoration(variable, Decoration.BuiltIn) for variable in module.variables]
    return [ENUMERATIONS["BuiltIn"].name(number) for number in decorations if number is not None]


def shader_needs(code: bytes) -> set[str]:
    """Returns the capabilities that a shader's types, subgroup instructions and modes need."""
    binary = read_binary(code)
    needs = {"Shader"}
    for opcode, start, _ in binary:
        if opcode in (Op.TypeInt, Op.TypeFloat) and binary.words[start + 2] != 32:
            needs.add(f"{'Int' if opcode == Op.TypeInt else 'Float'}{binary.words[start + 2]}")
        if opcode in _CAPABILITIES:
            needs.update(_CAPABILITIES[opcode])
        if opcode == Op.Decorate and list(binary.words[start + 2 : start + 4]) in _SUBGROUP_INPUTS:
            needs.add("GroupNonUniform")
        if opcode == Op.ExecutionMode and binary.words[start + 2] != ExecutionMode.LocalSize:
            needs.add(ENUMERATIONS["ExecutionMode"].name(binary.words[start + 2]))
    return needs
