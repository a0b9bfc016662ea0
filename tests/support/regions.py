"""Regions of StableHLO as kernels: compiled, validated, run on a device, and by their definitions in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import pumice
from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.attributes import type_shape
from pumice.compiler.ir.operation import Block, Operation
from pumice.compiler.ir.types import ShapedType
from pumice.compiler.kernels.kernel import Kernel
from pumice.compiler.kernels.region import KernelRegion
from pumice.compiler.kernels.scalars.scalars import storage_bits
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.stages import Program
from pumice.compiler.strategies.choice import compile_region
from pumice.hal_reference.operations import evaluate
from pumice.spirv.binary.grammar import ENUMERATIONS, BuiltIn, Decoration, ExecutionMode, Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks.validation import ensure_valid
from pumice.spirv.reflection.module import Module

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
_SUBGROUP_INPUTS = [[Decoration.BuiltIn, each] for each in (BuiltIn.SubgroupId, BuiltIn.SubgroupLocalInvocationId)]

EMULATED = Target()
NATIVE = Target(int64=True, float16=True)


def function_of(text: str) -> Operation:
    """The only function of a program."""
    (function,) = parse(text)
    return function


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


def arguments_of(function: Operation) -> list[Array]:
    """Returns small random integers for the arguments of a function, in their types."""
    random = np.random.default_rng(0)
    types = [value.tensor for value in function.regions[0].block.arguments]
    return [random.integers(-9, 9, type.shape).astype(type.scalar.dtype) for type in types]


def dispatch_regions(text: str, target: Target = EMULATED) -> list[Operation]:
    """Returns the dispatch regions of a program."""
    program = compile_text(text, "program", target, "regions").program
    assert isinstance(program, Program)
    return [operation for operation in program.functions["main"].walk() if operation.name == "iree.dispatch_region"]


def to_words(array: Array, type: ShapedType) -> npt.NDArray[np.uint32]:
    """An array as a kernel's buffer holds it."""
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
    """The array that a kernel's buffer holds."""
    bits, dtype = storage_bits(type.scalar), type.scalar.dtype
    raw = np.ascontiguousarray(words).view(np.uint8)
    if bits < 8:
        lanes = 8 // bits
        raw = ((raw[:, None] >> (np.arange(lanes, dtype=np.uint8) * bits)) & ((1 << bits) - 1)).reshape(-1)
        if type.scalar.kind == "int":
            raw = np.where(raw >> (bits - 1), raw | (0xFF & ~((1 << bits) - 1)), raw).astype(np.uint8)
        raw = raw.astype(np.int8 if type.scalar.kind == "int" else np.uint8).astype(dtype).view(np.uint8)
    return raw[: type.count * dtype.itemsize].view(dtype).reshape(type_shape(type)).copy()


def run_kernel(device: pumice.Device, kernel: Kernel, block: Block, arguments: Sequence[Array]) -> list[Array]:
    """What a kernel gives for arrays."""
    ensure_valid(kernel.code, "vulkan1.1")
    types = [value.tensor for value in block.terminator.operands]
    outputs = [pumice.empty(binding.size // 4, np.uint32) for binding in kernel.bindings if binding.is_written]
    given = [to_words(array, value.tensor) for array, value in zip(arguments, block.arguments, strict=True)]
    assert [4 * array.size for array in given] == [b.size for b in kernel.bindings[: len(given)]]
    # The device's own interface knows only the bindings that a shader uses.
    inputs = [array for array, binding in zip(given, kernel.bindings, strict=False) if binding.is_read]
    found: list[Array] = []
    if 0 not in kernel.workgroup_count:
        shader = device.load_kernel(kernel.code)
        given_back = shader(*inputs, *outputs, groups=kernel.workgroup_count)
        shader.close()
        found = [np.asarray(words) for words in (given_back if isinstance(given_back, tuple) else (given_back,))]
    listed = iter(found)
    return [
        from_words(next(listed) if binding.is_written else np.zeros(1, np.uint32), type)
        for binding, type in zip(kernel.bindings[len(given) :], types, strict=True)
    ]


def run_region(
    device: pumice.Device, function: Operation, arguments: Sequence[Array], target: Target = EMULATED
) -> list[Array]:
    """What a function gives on a device."""
    block = function.regions[0].block
    return run_kernel(device, compile_region(KernelRegion(block, "main", target)), block, arguments)


def by_definition(function: Operation, arguments: Sequence[Array]) -> list[Array]:
    """What a function gives by the definitions in NumPy."""
    name = str(function.attributes["sym_name"])
    return evaluate(ProgramWriter({name: function}).function(name), arguments)


def shader_declarations(code: bytes) -> tuple[set[str], set[str]]:
    """The capabilities and the extensions that a shader declares."""
    module = Module(code)
    return {ENUMERATIONS["Capability"].name(number) for number in module.capabilities}, set(module.extensions)


def shader_needs(code: bytes) -> set[str]:
    """The capabilities that a shader's types, subgroup instructions and modes need."""
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
