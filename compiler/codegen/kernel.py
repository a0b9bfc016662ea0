"""Kernels: a region of tensor operations as one SPIR-V compute shader.

An invocation writes whole words: of the results of one shape, as many neighbouring elements as fill a word of the
narrowest type. Words past the end of a result's last element are zeros or repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ...spirv.builder import Builder, Id
from ..ir.operation import Block, Value
from ..ir.types import ScalarType, ShapedType
from . import contractions, elementwise, movement, reductions, scatters
from .elements import Definitions, Frame, Work, scalar_of, shape_of
from .index import Index
from .scalars import Scalars, float_kind, storage_bits
from .target import Target, compile_error

DEFINITIONS: Final = Definitions(
    movement.MAPS,
    elementwise.ELEMENT_WISE,
    {**movement.STRUCTURES, **contractions.STRUCTURES, **reductions.STRUCTURES, **scatters.STRUCTURES},
)


@dataclass(frozen=True, slots=True)
class Binding:
    """A storage buffer of a kernel, at its position in set 0.

    Attributes:
        size: bytes, a multiple of four; four for an empty tensor.
        is_read: whether the kernel reads it: not every input is needed.
        is_written: whether the kernel writes it: an empty result has nothing to write.
    """

    size: int
    is_read: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled region.

    Attributes:
        code: the SPIR-V module.
        entry_point: its name.
        workgroup_size: invocations of a workgroup.
        workgroup_count: workgroups to dispatch; one with a zero in it where there is nothing to compute.
        bindings: inputs in order, then results.
    """

    code: bytes
    entry_point: str
    workgroup_size: tuple[int, int, int]
    workgroup_count: tuple[int, int, int]
    bindings: tuple[Binding, ...]


def compile_region(block: Block, name: str, target: Target) -> Kernel:
    """The kernel of a block: its arguments are the input tensors, its last operation takes the result tensors.

    Raises:
        CompileError: an operation or a type that no code is generated for, or that the target lacks.
        NeedsSplitError: the region is too much for one kernel.
    """
    builder = Builder()
    scalars = Scalars(builder, target)
    results = list(block.terminator.operands)
    _check(block, target)
    inputs = [builder.buffer(number, f"input{number}", False) for number in range(len(block.arguments))]
    outputs = [builder.buffer(len(inputs) + number, f"result{number}", True) for number in range(len(results))]
    frame = Frame(Work(DEFINITIONS, scalars), block, None, inputs)
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, value in enumerate(results):
        if value.tensor.count:
            groups.setdefault(shape_of(value), []).append(number)
    units = {shape: -(-math.prod(shape) // _lanes(results, numbers)) for shape, numbers in groups.items()}
    total = max(units.values(), default=0)
    count = _workgroup_count(total, target)
    invocation = _invocation(builder, count, target)
    for shape, numbers in groups.items():
        limit = units[shape]

        chosen = [results[number] for number in numbers], [outputs[number] for number in numbers]
        write = partial(_write, frame, invocation, shape, *chosen)
        if limit == math.prod(count) * target.workgroup_size:
            write()
        else:
            builder.when(invocation < limit, write)
    return Kernel(
        builder.finish(name, (target.workgroup_size, 1, 1)),
        name,
        (target.workgroup_size, 1, 1),
        count,
        tuple(
            [
                Binding(buffer_size(value.tensor), buffer in builder.loaded, False)
                for value, buffer in zip(block.arguments, inputs, strict=True)
            ]
            + [Binding(buffer_size(value.tensor), False, value.tensor.count > 0) for value in results]
        ),
    )


def buffer_size(type: ShapedType) -> int:
    """Bytes of a tensor's buffer."""
    return max(1, _word_count(type.scalar, type.count)) * 4


def _check(block: Block, target: Target) -> None:
    for operation in (inner for outer in block.operations for inner in outer.walk()):
        for value in (*operation.operands, *operation.results):
            shaped = value.type
            if not isinstance(shaped, ShapedType) or not shaped.is_static or not isinstance(shaped.element, ScalarType):
                raise compile_error(operation, f"expected tensors of known shape and scalar elements, got {shaped}")
            type = shaped.element
            if type.part.kind == "float" and float_kind(type).bits == 64 and not target.float64:
                raise compile_error(
                    operation,
                    f"{value.type} needs a device with shaderFloat64; compute in f32, or choose another device",
                )
            if type.kind == "none" or type.bits not in (1, 2, 4, 6, 8, 16, 32, 64, 128):
                raise compile_error(operation, f"elements of {type} are not supported")
            if shaped.count * max(storage_bits(type) // 32, 1) >= 1 << 32:
                raise compile_error(operation, f"{value.type} has 2**32 elements or words or more; split it")


def _lanes(results: Sequence[Value], numbers: Sequence[int]) -> int:
    return max(max(32 // storage_bits(scalar_of(results[number])), 1) for number in numbers)


def _workgroup_count(units: int, target: Target) -> tuple[int, int, int]:
    groups = -(-units // target.workgroup_size)
    rows = -(-groups // target.max_groups)
    layers = -(-rows // target.max_groups)
    rows = -(-rows // layers) if layers else 0
    return (-(-groups // (rows * layers)), rows, layers) if groups else (0, 1, 1)


def _invocation(builder: Builder, count: tuple[int, int, int], target: Target) -> Id:
    x, y, z = builder.built_in("WorkgroupId")
    group = x
    if count[1] > 1:
        group = group + y * count[0]
    if count[2] > 1:
        group = group + z * (count[0] * count[1])
    return group * target.workgroup_size + builder.built_in("LocalInvocationId")[0]


def _write(
    frame: Frame, invocation: Id, shape: tuple[int, ...], values: Sequence[Value], buffers: Sequence[int]
) -> None:
    """Writes an invocation's elements of the results of one shape."""
    builder = frame.builder
    count = math.prod(shape)
    types = [scalar_of(value) for value in values]
    lanes = max(max(32 // storage_bits(type), 1) for type in types)
    words: list[list[Id]] = [[] for _ in values]
    for lane in range(lanes):
        number = invocation * lanes + lane
        if lane and count % lanes:
            number = (number < count).select(number, count - 1)
        index = Index(builder, shape, linear=number)
        for value, type, found in zip(values, types, words, strict=True):
            _append(found, frame.scalars.to_words(type, frame.at(value, index)), type, lane)
    for type, buffer, found in zip(types, buffers, words, strict=True):
        for position, word in enumerate(found):
            place = invocation * len(found) + position
            if count % lanes == 0 or position < max(storage_bits(type) // 32, 1):
                builder.store(buffer, place, word)
            else:
                builder.when(place < _word_count(type, count), partial(builder.store, buffer, place, word))


def _word_count(type: ScalarType, count: int) -> int:
    """Words of so many elements."""
    return -(-count * storage_bits(type) // 32)


def _append(words: list[Id], bits: list[Id], type: ScalarType, lane: int) -> None:
    """Adds an element's bits to the words of an invocation."""
    size = storage_bits(type)
    offset = lane * size % 32
    if size < 32 and offset:
        words[-1] = words[-1] | (bits[0] << offset)
    else:
        words.extend(bits)
