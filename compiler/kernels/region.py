"""A region to compile, and the shader written for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ...spirv.binary.expression import Id
from ...spirv.binary.offsets import quotient
from ..ir.operation import Block, Operation, Value
from ..ir.sizes import Dim, Size, is_at_least, upper_bound
from ..ir.types import ScalarType, ShapedType
from . import contractions, elementwise, movement, reductions, scatters
from .elements import Definitions, Frame, Work, scalar_of
from .index import Index
from .kernel import MAX_BYTES, MAX_WORDS, Binding, Kernel, Limit, Workload, buffer_size, symbols_in
from .scalars.lengths import KernelBuilder
from .scalars.scalars import Scalar, Scalars, float_kind, storage_bits
from .scalars.target import Target, compile_error

DEFINITIONS: Final = Definitions(
    movement.MAPS,
    elementwise.ELEMENT_WISE,
    {**movement.STRUCTURES, **contractions.STRUCTURES, **reductions.STRUCTURES, **scatters.STRUCTURES},
)


_LANE_BY_LANE: Final = frozenset({"cpu"})
"""Families that load in a loop over a subgroup's invocations, so that fewer loads are faster."""


@dataclass(frozen=True)
class KernelRegion:
    """A block to compile: its arguments are the input tensors, its last operation takes the result tensors.

    Attributes:
        block: the region.
        name: the name of the entry point.
        target: the device.
        in_place: the inputs whose buffer may also be the result's; an element is read only where it is written.
        is_update: whether the result's buffer already holds the first input, and the last operation writes only a slice
            of it.
    """

    block: Block
    name: str
    target: Target
    in_place: Sequence[int] = ()
    is_update: bool = False

    @property
    def results(self) -> list[Value]:
        """The values that the region computes."""
        values = list(self.block.terminator.operands)
        return values[:-1] if self.scratch is not None else values

    @property
    def scratch(self) -> Value | None:
        """The last input, if it is returned as the last result: the kernel may use it as scratch memory."""
        return self.block.scratch

    def only(self, names: Collection[str]) -> Operation | None:
        """Returns the operation with one of these names, without the dialect, if there is exactly one."""
        operations = [
            operation for operation in self.block.operations if operation.name.removeprefix("stablehlo.") in names
        ]
        return operations[0] if len(operations) == 1 else None

    @cached_property
    def words(self) -> Dim:
        """An upper bound of the words and elements of tensors with call-dependent lengths; 0 if there are none.

        Raises:
            CompileError: the generator or the target does not support a type.
        """
        return _check(self.block, self.target)


class Shader:
    """The shader of a region, while it is written.

    Args:
        region: the region to compute.
        builder: the builder to use instead of the general builder.

    Attributes:
        region: the region to compute.
        builder: the builder of its instructions.
        scalars: the emitter of scalar operations.
        frame: the values of the region.
        outputs: the buffers of the results.
        scratch: the buffer of the region's scratch memory, or -1.
    """

    def __init__(self, region: KernelRegion, builder: KernelBuilder | None = None) -> None:
        self.region = region
        self._words = region.words
        self._symbols = symbols_in(region.block)
        self.builder: KernelBuilder
        self.builder = builder = builder or KernelBuilder(self._symbols)
        self.scalars: Scalars = Scalars(builder, region.target)
        count = len(region.block.arguments)
        in_place = region.in_place
        self._inputs = [builder.buffer(number, f"input{number}", False, number in in_place) for number in range(count)]
        shared = bool(in_place)
        self.outputs: list[int] = [
            builder.buffer(count + number, f"result{number}", True, shared) for number in range(len(region.results))
        ]
        self.scratch: int = -1
        if region.scratch is not None:
            self.scratch = builder.buffer(count + len(region.results), "scratch", True, True)
        self.frame: Frame = Frame(Work(DEFINITIONS, self.scalars), region.block, None, self._inputs)

    def group(self, count: tuple[int, int, int] | Workload) -> Id:
        """Returns the number of this workgroup; its ``count`` is the number of workgroups."""
        x, y, z = self.builder.built_in("WorkgroupId")
        if isinstance(count, Workload):
            return x + y * self.builder.built_in("NumWorkgroups")[0]
        if count[1] > 1:
            x = x + y * count[0]
        return x + z * (count[0] * count[1]) if count[2] > 1 else x

    @cached_property
    def local(self) -> Id:
        """The number of this invocation in its workgroup, in one dimension; its first use must be outside branches."""
        return self.builder.built_in("LocalInvocationId")[0]

    def over(self, count: Dim, size: int, run: Callable[[Id], None]) -> Kernel:
        """Finishes a kernel that runs code for each number below ``count``, one invocation per number.

        Args:
            count: the number of active invocations.
            size: the number of invocations in a workgroup.
            run: a function that writes the code for an invocation's number.
        """
        groups = (
            Workload(count, size) if isinstance(count, Size) else group_count(-(-count // size), self.region.target)
        )
        invocation = self.group(groups) * size + self.local
        self._run_below(count, size, groups, invocation, run)
        return self.finish((size, 1, 1), groups)

    def over_groups(self, count: Dim, size: tuple[int, int, int], run: Callable[[Id], None]) -> Kernel:
        """Finishes a kernel that runs code for each number below ``count``, one workgroup per number."""
        groups = Workload(count, 1) if isinstance(count, Size) else group_count(count, self.region.target)
        self._run_below(count, 1, groups, self.group(groups), run)
        return self.finish(size, groups)

    def _run_below(
        self, count: Dim, size: int, groups: tuple[int, int, int] | Workload, number: Id, run: Callable[[Id], None]
    ) -> None:
        if isinstance(groups, tuple) and math.prod(groups) * size == count:
            run(number)
        else:
            self.builder.when(number < self.builder.word(count), lambda: run(number))

    def store(self, result: int, elements: Sequence[tuple[Index, Scalar]]) -> None:
        """Writes neighbouring elements of a result, which fill whole words."""
        type = scalar_of(self.region.results[result])
        words: list[Id] = []
        for lane, (_, scalar) in enumerate(elements):
            append_bits(words, self.scalars.to_words(type, scalar), type, lane)
        first, bits = elements[0][0].linear, storage_bits(type)
        first = first * (bits // 32) if bits >= 32 else quotient(first, 32 // bits)
        self.builder.store_words(self.outputs[result], first, words)

    def with_multiple(self, length: Size, number: int, write: Callable[[], None]) -> None:
        """Writes a branch for the case that the last length of tensors is a multiple of a number."""
        builder = self.builder
        before = set(builder.quads), set(builder.octets)
        builder.multiples = {length: number}
        for value, buffer in zip(self.region.block.arguments, self._inputs, strict=True):
            bits = number * storage_bits(scalar_of(value))
            if value.tensor.lengths[-1:] == (length,) and bits % 128 == 0:
                builder.quads.add(buffer)
            if value.tensor.lengths[-1:] == (length,) and bits % 256 == 0 and access_bits(self.region.target) == 256:
                builder.octets.add(buffer)
        write()
        builder.multiples = {}
        builder.quads, builder.octets = before

    def load_runs(self) -> None:
        """Lets the builder join loads of four or eight neighbours, in buffers whose size is a multiple of that."""
        values = self.region.block.arguments
        for value, buffer in zip(values, self._inputs, strict=True):
            size = buffer_size(value.tensor)
            if size and size % 16 == 0:
                self.builder.quads.add(buffer)
            if size and size % 32 == 0 and access_bits(self.region.target) == 256:
                self.builder.octets.add(buffer)

    def finish(self, workgroup_size: tuple[int, int, int], workgroup_count: tuple[int, int, int] | Workload) -> Kernel:
        """Finishes the shader and returns its kernel."""
        region, builder = self.region, self.builder
        limits = (
            (self.scalars.iterations, region.target.max_loop_iterations, "iterations of loops"),
            (self._words, MAX_WORDS, "elements or words of a tensor"),
        )
        inputs = [
            Binding(buffer_size(value.tensor), buffer in builder.loaded, False)
            for value, buffer in zip(region.block.arguments, self._inputs, strict=True)
        ]
        results = [Binding(buffer_size(value.tensor), False, value.tensor.count != 0) for value in region.results]
        if region.scratch is not None:
            results.append(Binding(buffer_size(region.scratch.tensor), True, True))
        return Kernel(
            builder.finish(region.name, workgroup_size),
            region.name,
            workgroup_size,
            workgroup_count,
            (*inputs, *results),
            self._symbols,
            tuple(Limit(size, most, noun) for size, most, noun in limits if isinstance(size, Size)),
            builder.pushes_addresses,
        )


def access_bits(target: Target) -> int:
    """Returns the number of bits that an invocation loads at once."""
    return 256 if target.family in _LANE_BY_LANE and target.int64 else 128


def group_count(groups: int, target: Target) -> tuple[int, int, int]:
    """Returns at least ``groups`` workgroups as three counts within the device's limits."""
    rows = -(-groups // target.max_groups)
    layers = -(-rows // target.max_groups)
    rows = -(-rows // layers) if layers else 0
    return (-(-groups // (rows * layers)), rows, layers) if groups else (0, 1, 1)


def append_bits(words: list[Id], bits: list[Id], type: ScalarType, lane: int) -> None:
    """Appends the bits of an invocation's element to its words."""
    size = storage_bits(type)
    offset = lane * size % 32
    if size < 32 and offset:
        words[-1] = words[-1] | (bits[0] << offset)
    else:
        words.extend(bits)


def _check(block: Block, target: Target) -> Dim:
    """Checks the types of all values; returns an upper bound of call-dependent words and elements."""
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
