"""Element-wise chains and moves by 128 bits: an invocation computes neighbouring elements and writes them together.

A reduction may be among them, such as that of the outer dimensions of a matrix: neighbours are reduced in one loop.

Neighbours also read neighbours, unless a transpose or a similar move comes between; these are loaded by 128 bits
(``spirv/binary/offsets.py``). The remainder at the end of the result is written word by word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import neighbours
from ...analysis.rows import rows_of
from ...analysis.weights import HEAVY, MOVES, name_of, words_of
from ...ir.operation import Value
from ...ir.sizes import Dim, Size, is_multiple, product
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel
from ...kernels.reductions import reduced_at
from ...kernels.region import KernelRegion, Shader, access_bits, group_count
from ...kernels.scalars.scalars import storage_bits
from ...kernels.strategy import Strategy, elements_cost, number_of

QUAD: Final = 128
"""Bits of a store."""

MIN_ELEMENTS: Final = 1 << 12
"""With fewer elements, a kernel takes almost no time, and a wide kernel takes longer to compile."""

MIN_INVOCATIONS: Final = 64
"""Fewer invocations do not keep a device busy."""

MAX_WORDS: Final = 1 << 14
"""The estimated most words of an invocation's code."""

MAX_PERIOD: Final = 8
"""The most rows that an invocation computes one after another."""

WORKGROUPS: Final = {"default": (64,), "cpu": (256,), "nvidia": (128,), "amd": (256,)}
"""Candidate invocations of a workgroup, by the family of devices."""


@dataclass(frozen=True, slots=True)
class Neighbours(Strategy):
    """The schedule in which each invocation computes neighbouring elements.

    Attributes:
        elements: the number of an invocation's elements.
        workgroup: the number of invocations in a workgroup.
        rows: the number of rows of neighbours that an invocation computes one after another, along a dimension with
            padding between its elements: then the rows of padding are known statically.
    """

    elements: int
    workgroup: int
    rows: int = 1

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, Neighbours]]:
        """Yields the number of elements in an access of the narrowest type, if the code is not long."""
        (first, *_) = region.results
        count = first.tensor.count
        sizes = [value.tensor.count for value in (*region.block.arguments, first)]
        if isinstance(count, Size) or max(number_of(size) for size in sizes) < MIN_ELEMENTS:
            return
        words = sum(words_of(operation) for operation in region.block.operations)
        inputs = [value for value in region.block.arguments if value.tensor.count == count]
        bits = min(storage_bits(scalar_of(value)) for value in (*region.results, *inputs))
        reduction = region.only({"reduce"})
        # Elements of innermost dimensions that neighbours reduce are not contiguous.
        is_apart = reduction is not None and rows_of(reduction) is not None
        interleaved = _interleaved(region)
        for workgroup in WORKGROUPS.get(region.target.family, WORKGROUPS["default"]):
            for elements in (access_bits(region.target) // bits, QUAD // bits):
                if words * elements <= MAX_WORDS and count >= MIN_INVOCATIONS * elements:
                    cost = elements_cost(region) / (4 * (1 if is_apart else elements))
                    yield cost, cls(elements, workgroup)
            if interleaved is not None and words * interleaved[1] * (QUAD // bits) <= MAX_WORDS:
                elements, rows = QUAD // bits, interleaved[1]
                yield elements_cost(region) / (4 * elements * rows), cls(elements, workgroup, rows)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the results have one static shape and at most one reduction loops."""
        results = region.results
        if region.is_update or len({shape_of(value) for value in results}) != 1 or not self.elements:
            return False
        count = results[0].tensor.count
        return (
            isinstance(count, int)
            and 1 <= self.workgroup <= region.target.max_workgroup_invocations
            and count >= self.elements
            and (count % self.elements == 0 or len({storage_bits(scalar_of(value)) for value in results}) == 1)
            and all(self.elements * storage_bits(scalar_of(value)) % QUAD == 0 for value in results)
            and _loops_together(region)
            and (self.rows == 1 or self._takes_rows(region))
        )

    def _takes_rows(self, region: KernelRegion) -> bool:
        """Returns whether whole rows of neighbours divide the dimension with padding between its elements."""
        interleaved, shape = _interleaved(region), shape_of(region.results[0])
        if interleaved is None or self.rows < 1 or region.only({"reduce"}) is not None:
            return False
        inner = product(shape[interleaved[0] + 1 :])
        return is_multiple(inner, self.elements) and is_multiple(shape[interleaved[0]], self.rows)

    def copies(self, region: KernelRegion) -> int:
        return self.elements * self.rows

    def emit(self, region: KernelRegion) -> Kernel:
        shader = Shader(region)
        shader.load_runs()
        builder, results = shader.builder, region.results
        shape, count = shape_of(results[0]), results[0].tensor.count
        assert isinstance(count, int)
        if self.rows > 1:
            return self._emit_rows(shader, shape)
        reduction = region.only({"reduce"})
        units, rest = divmod(count, self.elements)
        lanes = max(max(32 // storage_bits(scalar_of(value)), 1) for value in results)
        invocations = units + -(-rest // lanes)
        groups = group_count(-(-invocations // self.workgroup), region.target)
        invocation = shader.group(groups) * self.workgroup + builder.built_in("LocalInvocationId")[0]

        def write(base: Id, size: int, last: int | None = None) -> None:
            numbers = neighbours(base, size)
            if last is not None:
                numbers = [(element < last).select(element, builder.word(last)) for element in numbers]
            indices = [Index(builder, shape, linear=number) for number in numbers]
            if reduction is not None:
                for index, reduced in zip(indices, reduced_at(shader.frame, reduction, indices), strict=True):
                    shader.frame.keep(reduction.results[0], index, reduced)
            elements = [[(index, shader.frame.at(value, index)) for value in results] for index in indices]
            for number, _ in enumerate(results):
                shader.store(number, [element[number] for element in elements])

        def write_rest() -> None:
            write(invocation + (units * self.elements // lanes - units), lanes, count - 1)

        if invocations == math.prod(groups) * self.workgroup and not rest:
            write(invocation, self.elements)
        else:
            builder.when(invocation < units, lambda: write(invocation, self.elements))
        if rest:
            builder.when((invocation >= units) & (invocation < invocations), write_rest)
        return shader.finish((self.workgroup, 1, 1), groups)

    def _emit_rows(self, shader: Shader, shape: Sequence[Dim]) -> Kernel:
        builder, region = shader.builder, shader.region
        interleaved = _interleaved(region)
        assert interleaved is not None
        axis, lengths = interleaved[0], [number_of(length) for length in shape]
        outer, inner = lengths[:axis], lengths[axis + 1 :]
        units = [*outer, lengths[axis] // self.rows, math.prod(inner) // self.elements]

        def write(invocation: Id) -> None:
            *before, row, unit = split(builder, invocation, units)
            for offset in range(self.rows):
                position = row * self.rows + offset
                lanes = [split(builder, column, inner) for column in neighbours(unit, self.elements)]
                indices = [Index(builder, shape, [*before, position, *lane]) for lane in lanes]
                for number, value in enumerate(region.results):
                    shader.store(number, [(index, shader.frame.at(value, index)) for index in indices])

        return shader.over(math.prod(units), self.workgroup, write)


def _interleaved(region: KernelRegion) -> tuple[int, int] | None:
    """Returns a dimension other than the last with padding between its elements, and the period of the padding, or
    None.
    """
    shape = shape_of(region.results[0])
    periods: dict[tuple[int, Dim], int] = {}
    for operation in region.block.operations:
        if operation.name == "stablehlo.pad":
            for axis, interior in enumerate(operation.sizes("interior_padding")):
                if interior:
                    periods[axis, shape_of(operation.results[0])[axis]] = number_of(interior) + 1
    axes = {axis for axis, _ in periods}
    period = math.prod(periods.values())
    if len(axes) != 1 or len(shape) <= min(axes) + 1 or product(shape[min(axes) + 1 :]) == 1 or period > MAX_PERIOD:
        return None
    return min(axes), period


def _loops_together(region: KernelRegion) -> bool:
    """Returns whether the region has no loop, or one reduction whose results are read at the written indices."""
    operations = region.block.operations[:-1]
    heavy = [candidate for candidate in operations if name_of(candidate) in HEAVY]
    if not heavy:
        return True
    if (
        len(heavy) > 1
        or heavy[0].name != "stablehlo.reduce"
        or any(light.regions for light in operations if light not in heavy)
    ):
        return False
    shape = shape_of(region.results[0])
    here, elsewhere = set(region.results), set[Value]()
    for operation in reversed(operations):
        is_here = here.issuperset(operation.results) and operation not in heavy and name_of(operation) not in MOVES
        for value in operation.operands:
            (here if is_here and shape_of(value) == shape else elsewhere).add(value)
    return here.issuperset(heavy[0].results) and not elsewhere.intersection(heavy[0].results)
