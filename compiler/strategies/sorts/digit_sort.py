"""A pass of a radix sort: an invocation moves each element of its chunk to the next position of its digit.

The next positions lie in shared memory, where each invocation has its own words, so no invocation waits, and elements
with the same digit stay in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import neighbours
from ....spirv.binary.shared_memory import SharedMemory
from ...analysis.special_forms import GIVEN, RUN, chunk_of
from ...ir.operation import Operation
from ...ir.sizes import number_of
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import Scalar, as_id, storage_bits
from ...kernels.strategy import Strategy

WORKGROUP: Final = 16
"""Invocations of a workgroup."""


@dataclass(frozen=True, slots=True)
class DigitSort(Strategy):
    """The schedule in which each invocation moves the elements of a chunk.

    Attributes:
        workgroup: the number of invocations in a workgroup.
    """

    workgroup: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, DigitSort]]:
        """Yields the only candidate for a pass."""
        if _hero(region) is not None:
            yield 0.0, cls(WORKGROUP)

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is a pass over whole words, and a workgroup has memory for its positions."""
        hero = _hero(region)
        if hero is None or not 1 <= self.workgroup <= region.target.max_workgroup_invocations:
            return False
        length, digits, starts = (shape_of(hero.operands[number]) for number in (0, -2, -1))
        words = all(storage_bits(scalar_of(result)) >= 32 for result in (*hero.results, *hero.operands[-2:]))
        is_row = len(length) == 1 and digits == length and len(starts) == 2 and hero.operands[-1].tensor.is_static
        if not is_row or not words or not hero.operands[0].tensor.is_static:
            return False
        places, chunks = (number_of(start) for start in starts)
        chunk = chunk_of(number_of(length[0]), chunks)
        return (
            4 * places * self.workgroup <= region.target.shared_memory
            and places + chunk // RUN <= region.target.max_loop_iterations
            and all(scalar_of(operand).is_integer and scalar_of(operand).bits == 32 for operand in hero.operands[-2:])
        )

    def copies(self, region: KernelRegion) -> int:
        """Returns the number of elements that are loaded at once."""
        return RUN

    def emit(self, region: KernelRegion) -> Kernel:
        hero = _hero(region)
        assert hero is not None
        shader = Shader(region)
        shader.load_runs()
        builder, frame = shader.builder, shader.frame
        *values, digits, starts = hero.operands
        (shape, (places, chunks)) = shape_of(digits), (number_of(size) for size in shape_of(starts))
        length = number_of(shape[0])
        chunk = chunk_of(length, chunks)
        memory = SharedMemory(builder, places * self.workgroup)
        local = shader.local

        def begin(invocation: Id, number: Id, _: Sequence[Scalar]) -> Sequence[Scalar]:
            start = as_id(frame.at(starts, frame.index(shape_of(starts), [number, invocation])))
            memory.store(number * self.workgroup + local, [start])
            return []

        def move(invocation: Id, number: Id, _: Sequence[Scalar]) -> Sequence[Scalar]:
            places = neighbours(invocation * (chunk // RUN) + number, RUN)
            inside = [position < length if chunk * chunks > length else builder.boolean(True) for position in places]
            if chunk * chunks > length:
                places = [
                    there.select(position, builder.word(length - 1))
                    for there, position in zip(inside, places, strict=True)
                ]
            indices = [Index(builder, shape, [position]) for position in places]
            loaded = [[frame.at(value, index) for value in (digits, *values)] for index in indices]
            for there, (digit, *scalars) in zip(inside, loaded, strict=True):
                builder.when(there, partial(take, as_id(digit), scalars))
            return []

        def take(digit: Id, scalars: Sequence[Scalar]) -> None:
            word = digit * self.workgroup + local
            (position,) = memory.load(word)
            memory.store(word, [position + 1])
            for number, scalar in enumerate(scalars):
                shader.store(number, [(Index(builder, shape, [position]), scalar)])

        def run(invocation: Id) -> None:
            frame.fold(hero, places, [], partial(begin, invocation))
            frame.fold(hero, chunk // RUN, [], partial(move, invocation), 1)

        return shader.over(chunks, self.workgroup, run)


def _hero(region: KernelRegion) -> Operation | None:
    hero = region.only(("sort",))
    is_pass = hero is not None and hero.integer(GIVEN, 0) == 2 and len(hero.operands) == len(hero.results) + 2
    return hero if is_pass and hero is not None and region.results == hero.results and not region.is_update else None
