"""Kernels: a region of tensor operations as one SPIR-V compute shader.

An invocation writes whole words: of the results of one shape, as many neighbouring elements as fill a word of the
narrowest type. Words past the end of a result's last element are zeros or repeat it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from ...spirv.builder import Id
from ..ir.attributes import sizes_in
from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, Size, is_at_least, is_multiple, product, symbols_of, upper_bound
from ..ir.types import ScalarType, ShapedType
from . import contractions, elementwise, movement, reductions, scatters
from .elements import Definitions, Frame, Work, scalar_of, shape_of
from .index import Index
from .lengths import KernelBuilder
from .scalars import Scalars, float_kind, storage_bits
from .target import Target, compile_error

DEFINITIONS: Final = Definitions(
    movement.MAPS,
    elementwise.ELEMENT_WISE,
    {**movement.STRUCTURES, **contractions.STRUCTURES, **reductions.STRUCTURES, **scatters.STRUCTURES},
)


MAX_WORDS: Final = (1 << 31) - 1
"""Words, and elements, of a tensor at most: indices are words, some of them signed."""

MAX_BYTES: Final = (1 << 32) - 1
"""Bytes of a tensor that is stored: no device binds more (``maxStorageBufferRange`` is 32 bits)."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A storage buffer of a kernel, at its position in set 0.

    Attributes:
        size: bytes, a multiple of four; four for an empty tensor, 0 where it depends on the call.
        is_read: whether the kernel reads it: not every input is needed.
        is_written: whether the kernel writes it: an empty result has nothing to write.
    """

    size: int
    is_read: bool
    is_written: bool


@dataclass(frozen=True, slots=True)
class Workload:
    """How many workgroups a kernel needs, where that depends on the call.

    Attributes:
        elements: to compute.
        per_group: elements that a workgroup computes.
    """

    elements: Size
    per_group: int


class Limit(NamedTuple):
    """A size that has to be at most a number in a call.

    Attributes:
        size: that depends on the call.
        most: what it is at most.
        what: what it counts.
    """

    size: Size
    most: int
    what: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled region.

    Attributes:
        code: the SPIR-V module.
        entry_point: its name.
        workgroup_size: invocations of a workgroup.
        workgroup_count: workgroups to dispatch; one with a zero in it where there is nothing to compute.
        bindings: inputs in order, then results.
        symbols: whose values are the push constants, 32 bits each.
        limits: what a call has to hold.
    """

    code: bytes
    entry_point: str
    workgroup_size: tuple[int, int, int]
    workgroup_count: tuple[int, int, int] | Workload
    bindings: tuple[Binding, ...]
    symbols: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()


def compile_region(
    block: Block, name: str, target: Target, in_place: Sequence[int] = (), is_update: bool = False
) -> Kernel:
    """The kernel of a block: its arguments are the input tensors, its last operation takes the result tensors.

    Args:
        block: the region.
        name: of the entry point.
        target: the device.
        in_place: inputs whose buffer may be that of the result; each is read only where the same element is written.
        is_update: whether the result's buffer holds the first input already, of which the last operation updates a
            slice; only the slice is written.

    Raises:
        CompileError: an operation or a type that no code is generated for, or that the target lacks.
        NeedsSplitError: the region is too much for one kernel.
    """
    words = _check(block, target)
    symbols = symbols_in(block)
    builder = KernelBuilder(symbols)
    scalars = Scalars(builder, target)
    results = list(block.terminator.operands)
    inputs = [builder.buffer(each, f"input{each}", False, each in in_place) for each in range(len(block.arguments))]
    shared = bool(in_place)
    outputs = [builder.buffer(len(inputs) + each, f"result{each}", True, shared) for each in range(len(results))]
    frame = Frame(Work(DEFINITIONS, scalars), block, None, inputs)
    groups: dict[tuple[Dim, ...], list[int]] = {}
    for number, value in enumerate(results):
        if value.tensor.count:
            groups.setdefault(shape_of(_slice_of(value) if is_update else value), []).append(number)
    lanes = {shape: _lanes(results, numbers) for shape, numbers in groups.items()}
    count = _workgroup_count(lanes, target)
    invocation = _invocation(builder, count, target)
    for shape, numbers in groups.items():
        elements = product(shape)
        chosen = [results[number] for number in numbers], [outputs[number] for number in numbers]
        write = partial(_update if is_update else _write, frame, invocation, shape, *chosen)
        if isinstance(elements, Size):
            builder.when(invocation < _rounded_up(builder.word(elements), lanes[shape]), write)
            continue
        limit = -(-elements // lanes[shape])
        if isinstance(count, tuple) and limit == math.prod(count) * target.workgroup_size:
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
            + [Binding(buffer_size(value.tensor), False, value.tensor.count != 0) for value in results]
        ),
        symbols,
        tuple(
            Limit(size, most, what)
            for size, most, what in (
                (scalars.iterations, target.max_loop_iterations, "iterations of loops"),
                (words, MAX_WORDS, "elements or words of a tensor"),
            )
            if isinstance(size, Size)
        ),
    )


def buffer_size(type: ShapedType) -> int:
    """Bytes of a tensor's buffer; 0 where they depend on the call."""
    return max(1, _word_count(type.scalar, type.count)) * 4 if isinstance(type.count, int) else 0


def symbols_in(block: Block) -> tuple[str, ...]:
    """Symbols that any type or attribute of a block depends on, in the order in which a dispatch gives their values."""
    sizes: set[Dim] = set()
    for operation in (inner for outer in block.operations for inner in outer.walk()):
        for attribute in operation.attributes.values():
            sizes.update(sizes_in(attribute))
        for value in (*operation.operands, *operation.results):
            sizes.update(value.tensor.lengths)
    return tuple(sorted(symbols_of(sizes)))


def _check(block: Block, target: Target) -> Dim:
    """Holds the types of all values; gives an upper bound of words and elements of those that depend on the call."""
    most: Dim = 0
    for operation in (inner for outer in block.operations for inner in outer.walk()):
        for value in (*operation.operands, *operation.results):
            shaped = value.type
            if not isinstance(shaped, ShapedType) or None in shaped.shape or not isinstance(shaped.element, ScalarType):
                raise compile_error(operation, f"expected tensors of known shape and scalar elements, got {shaped}")
            type = shaped.element
            if type.part.kind == "float" and float_kind(type).bits == 64 and not target.float64:
                raise compile_error(
                    operation,
                    f"{value.type} needs a device with shaderFloat64; compute in f32, or choose another device",
                )
            if type.kind == "none" or type.bits not in (1, 2, 4, 6, 8, 16, 32, 64, 128):
                raise compile_error(operation, f"elements of {type} are not supported")
            words = shaped.count * max(storage_bits(type) // 32, 1)
            if is_at_least(words, MAX_WORDS + 1):
                raise compile_error(operation, f"{value.type} has 2**31 elements or words or more; compute it in parts")
            if isinstance(words, Size):
                most = upper_bound(most, words)
    for value in (*block.arguments, *block.terminator.operands):
        if buffer_size(value.tensor) > MAX_BYTES:
            message = f"{value.type} takes 2**32 bytes or more, which no device binds; compute it in parts"
            raise compile_error(block.operations[0], message)
    return most


def _lanes(results: Sequence[Value], numbers: Sequence[int]) -> int:
    return max(max(32 // storage_bits(scalar_of(results[number])), 1) for number in numbers)


def _workgroup_count(lanes: Mapping[tuple[Dim, ...], int], target: Target) -> tuple[int, int, int] | Workload:
    """Workgroups for results of these shapes, of which an invocation writes so many elements."""
    units = [-(-elements // each) for shape, each in lanes.items() if isinstance(elements := product(shape), int)]
    if len(units) < len(lanes):
        elements = functools.reduce(upper_bound, map(product, lanes))
        assert isinstance(elements, Size)
        return Workload(elements, min(lanes.values()) * target.workgroup_size)
    groups = -(-max(units, default=0) // target.workgroup_size)
    rows = -(-groups // target.max_groups)
    layers = -(-rows // target.max_groups)
    rows = -(-rows // layers) if layers else 0
    return (-(-groups // (rows * layers)), rows, layers) if groups else (0, 1, 1)


def _invocation(builder: KernelBuilder, count: tuple[int, int, int] | Workload, target: Target) -> Id:
    x, y, z = builder.built_in("WorkgroupId")
    group = x
    if isinstance(count, Workload):
        group = x + y * builder.built_in("NumWorkgroups")[0]
        return group * target.workgroup_size + builder.built_in("LocalInvocationId")[0]
    if count[1] > 1:
        group = group + y * count[0]
    if count[2] > 1:
        group = group + z * (count[0] * count[1])
    return group * target.workgroup_size + builder.built_in("LocalInvocationId")[0]


def _write(
    frame: Frame, invocation: Id, shape: tuple[Dim, ...], values: Sequence[Value], buffers: Sequence[int]
) -> None:
    """Writes an invocation's elements of the results of one shape."""
    builder = frame.builder
    count = product(shape)
    types = [scalar_of(value) for value in values]
    lanes = max(max(32 // storage_bits(type), 1) for type in types)
    words: list[list[Id]] = [[] for _ in values]
    for lane in range(lanes):
        number = invocation * lanes + lane
        if lane and not is_multiple(count, lanes):
            number = (number < builder.word(count)).select(number, builder.word(count - 1))
        index = Index(builder, shape, linear=number)
        for value, type, found in zip(values, types, words, strict=True):
            _append(found, frame.scalars.to_words(type, frame.at(value, index)), type, lane)
    for type, buffer, found in zip(types, buffers, words, strict=True):
        for position, word in enumerate(found):
            place = invocation * len(found) + position
            if is_multiple(count, lanes) or position < max(storage_bits(type) // 32, 1):
                builder.store(buffer, place, word)
            else:
                limit = _words(builder, type, count)
                builder.when(place < limit, partial(builder.store, buffer, place, word))


def _slice_of(value: Value) -> Value:
    """What an update of a slice writes."""
    assert isinstance(value.owner, Operation)
    return value.owner.operands[1]


def _update(
    frame: Frame, invocation: Id, shape: tuple[Dim, ...], values: Sequence[Value], buffers: Sequence[int]
) -> None:
    """Writes an invocation's element of a slice of whole words into the result that holds the rest."""
    (value,), (buffer,) = values, buffers
    update, type = _slice_of(value), scalar_of(value)
    assert isinstance(value.owner, Operation)
    index = Index(frame.builder, shape, linear=invocation)
    place = movement.place_of_update(frame, value.owner, index).linear
    words = frame.scalars.to_words(type, frame.at(update, index))
    for position, word in enumerate(words):
        frame.builder.store(buffer, place * len(words) + position, word)


def _word_count(type: ScalarType, count: int) -> int:
    """Words of so many elements."""
    return -(-count * storage_bits(type) // 32)


def _words(builder: KernelBuilder, type: ScalarType, count: Dim) -> Id:
    bits = storage_bits(type)
    if isinstance(count, int):
        return builder.word(_word_count(type, count))
    return builder.word(count * (bits // 32)) if bits >= 32 else _rounded_up(builder.word(count), 32 // bits)


def _rounded_up(number: Id, divisor: int) -> Id:
    """A number divided by another, rounded up."""
    return (number + (divisor - 1)) // divisor


def _append(words: list[Id], bits: list[Id], type: ScalarType, lane: int) -> None:
    """Adds an element's bits to the words of an invocation."""
    size = storage_bits(type)
    offset = lane * size % 32
    if size < 32 and offset:
        words[-1] = words[-1] | (bits[0] << offset)
    else:
        words.extend(bits)
