"""The strategy that takes every region: an invocation writes whole words, whatever its elements depend on.

For results of one shape, an invocation writes the neighbouring elements of a word of the narrowest type. Words beyond a
result's last element are zeros or repeat it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ....spirv.binary.expression import Id
from ...analysis.special_forms import IN_ORDER
from ...ir.operation import Operation, Value
from ...ir.sizes import Dim, Size, is_multiple, product, upper_bound
from ...ir.types import ScalarType
from ...kernels import movement, scatters
from ...kernels.elements import Frame, scalar_of, shape_of
from ...kernels.index import Index
from ...kernels.kernel import Kernel, Workload, word_count
from ...kernels.region import KernelRegion, Shader, append_bits, group_count
from ...kernels.scalars.lengths import KernelBuilder
from ...kernels.scalars.scalars import storage_bits
from ...kernels.scalars.target import Target, compile_error
from ...kernels.strategy import Strategy, elements_cost


@dataclass(frozen=True, slots=True)
class Elements(Strategy):
    """The schedule in which each invocation computes one element, or the elements of a word."""

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, Elements]]:
        yield elements_cost(region), cls()

    def takes(self, region: KernelRegion) -> bool:
        return True

    def copies(self, region: KernelRegion) -> int:
        """Returns 0: the code size is checked while code is written, as no other strategy takes all regions."""
        return 0

    def emit(self, region: KernelRegion) -> Kernel:
        """Emits the kernel of a region.

        Raises:
            CompileError: the generator or the target does not support an operation or a type.
            NeedsSplitError: the region is too large for one kernel.
        """
        shader, target, is_update = Shader(region), region.target, region.is_update
        builder, results = shader.builder, region.results
        groups: dict[tuple[Dim, ...], list[int]] = {}
        for number, value in enumerate(results):
            if value.tensor.count:
                groups.setdefault(shape_of(_slice_of(value) if is_update else value), []).append(number)
        lanes = {shape: _lanes(results, numbers) for shape, numbers in groups.items()}
        count = _workgroup_count(lanes, target)
        invocation = shader.group(count) * target.workgroup_size + builder.built_in("LocalInvocationId")[0]
        for shape, numbers in groups.items():
            elements = product(shape)
            chosen = [results[number] for number in numbers], [shader.outputs[number] for number in numbers]
            write = partial(_update if is_update else _write, shader.frame, invocation, shape, *chosen)
            if isinstance(elements, Size):
                builder.when(invocation < _rounded_up(builder.word(elements), lanes[shape]), write)
                continue
            limit = -(-elements // lanes[shape])
            if isinstance(count, tuple) and limit == math.prod(count) * target.workgroup_size:
                write()
            else:
                builder.when(invocation < limit, write)
        return shader.finish((target.workgroup_size, 1, 1), count)


def _lanes(results: Sequence[Value], numbers: Sequence[int]) -> int:
    return max(max(32 // storage_bits(scalar_of(results[number])), 1) for number in numbers)


def _workgroup_count(lanes: Mapping[tuple[Dim, ...], int], target: Target) -> tuple[int, int, int] | Workload:
    """Returns the workgroups for results of these shapes, each with the number of elements per invocation."""
    units = [-(-elements // count) for shape, count in lanes.items() if isinstance(elements := product(shape), int)]
    if len(units) < len(lanes):
        elements = functools.reduce(upper_bound, map(product, lanes))
        assert isinstance(elements, Size)
        return Workload(elements, min(lanes.values()) * target.workgroup_size)
    groups = -(-max(units, default=0) // target.workgroup_size)
    return group_count(groups, target)


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
        for value, type, bits in zip(values, types, words, strict=True):
            append_bits(bits, frame.scalars.to_words(type, frame.at(value, index)), type, lane)
    for type, buffer, bits in zip(types, buffers, words, strict=True):
        for position, word in enumerate(bits):
            address = invocation * len(bits) + position
            if is_multiple(count, lanes) or position < max(storage_bits(type) // 32, 1):
                builder.store(buffer, address, word)
            else:
                limit = _words(builder, type, count)
                builder.when(address < limit, partial(builder.store, buffer, address, word))


def _slice_of(value: Value) -> Value:
    """Returns the values that a slice update, or a scatter, writes."""
    assert isinstance(value.owner, Operation)
    return value.owner.operands[2 if value.owner.name == "stablehlo.scatter" else 1]


def _update(
    frame: Frame, invocation: Id, shape: tuple[Dim, ...], values: Sequence[Value], buffers: Sequence[int]
) -> None:
    """Writes an invocation's element of an update to the result that holds the rest; elements are whole words."""
    (value,), (buffer,) = values, buffers
    update, type = _slice_of(value), scalar_of(value)
    assert isinstance(value.owner, Operation)
    index = Index(frame.builder, shape, linear=invocation)
    if value.owner.flag(IN_ORDER):
        raise compile_error(value.owner, "only the strategy scatter_in_order applies updates one after another")
    if value.owner.name == "stablehlo.scatter":
        scatters.write_update(frame, value.owner, index, buffer)
        return
    target = movement.target_of_update(frame, value.owner, index).linear
    words = frame.scalars.to_words(type, frame.at(update, index))
    for position, word in enumerate(words):
        frame.builder.store(buffer, target * len(words) + position, word)


def _words(builder: KernelBuilder, type: ScalarType, count: Dim) -> Id:
    bits = storage_bits(type)
    if isinstance(count, int):
        return builder.word(word_count(type, count))
    return builder.word(count * (bits // 32)) if bits >= 32 else _rounded_up(builder.word(count), 32 // bits)


def _rounded_up(number: Id, divisor: int) -> Id:
    """Divides a number and rounds up."""
    return (number + (divisor - 1)) // divisor
