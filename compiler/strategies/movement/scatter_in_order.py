"""Scatters of long rows: an invocation writes an element of each update, one update after another.

This needs neither atomic instructions nor an order-independent body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ...analysis.special_forms import IN_ORDER, ScatterAxes
from ...ir.operation import Operation
from ...ir.sizes import number_of, product
from ...kernels.elements import scalar_of
from ...kernels.index import split
from ...kernels.kernel import Kernel
from ...kernels.region import KernelRegion, Shader
from ...kernels.scalars.scalars import Scalar, storage_bits
from ...kernels.scatters import target_of
from ...kernels.strategy import Strategy

WORKGROUPS: Final = {"cpu": 8, "default": 64}
"""Invocations of a workgroup, by the family of devices."""


@dataclass(frozen=True, slots=True)
class ScatterInOrder(Strategy):
    """The schedule in which each invocation writes one element of every update.

    Attributes:
        workgroup: the number of invocations in a workgroup.
    """

    workgroup: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, ScatterInOrder]]:
        """Yields the only candidate for an ordered scatter of long rows."""
        if _hero(region) is not None:
            yield 0.0, cls(WORKGROUPS.get(region.target.family, WORKGROUPS["default"]))

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is an ordered scatter of long rows, in the memory of its operand."""
        return _hero(region) is not None and 1 <= self.workgroup <= region.target.max_workgroup_invocations

    def emit(self, region: KernelRegion) -> Kernel:
        hero = _hero(region)
        assert hero is not None
        shader, axes = Shader(region), ScatterAxes(hero)
        builder, frame = shader.builder, shader.frame
        value, _, updates = hero.operands
        type, body = scalar_of(value), hero.regions[0].block
        words = storage_bits(type) // 32
        tried = [axis for axis in axes.scatter if axis not in axes.batches.values()]
        others = [axis for axis in range(len(axes.shape)) if axis not in tried]
        count = number_of(product(axes.shape[axis] for axis in others))

        def write(invocation: Id) -> None:
            fixed = dict(zip(others, split(builder, invocation, [axes.shape[axis] for axis in others]), strict=True))

            def step(number: Id, nothing: Sequence[Scalar]) -> Sequence[Scalar]:
                parts = {**fixed, **dict(zip(tried, split(builder, number, lengths), strict=True))}
                index = frame.index(axes.shape, [parts[axis] for axis in range(len(axes.shape))])
                target, inside = target_of(frame, hero, index)

                def update() -> None:
                    first = target.linear * words
                    old = [builder.load_again(shader.outputs[0], first + word) for word in range(words)]
                    arguments = [shader.scalars.from_words(type, old), frame.at(updates, index)]
                    for position, word in enumerate(shader.scalars.to_words(type, frame.call(body, arguments)[0])):
                        builder.store(shader.outputs[0], first + position, word)

                builder.when(inside, update)
                return nothing

            lengths = [axes.shape[axis] for axis in tried]
            frame.fold(hero, product(lengths), [], step)

        return shader.over(count, self.workgroup, write)


def _hero(region: KernelRegion) -> Operation | None:
    hero = region.only(("scatter",))
    is_alone = hero is not None and region.results == [hero.results[0]]
    return hero if region.is_update and hero is not None and is_alone and hero.flag(IN_ORDER) else None
