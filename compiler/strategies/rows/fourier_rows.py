"""Fourier transforms of short rows: an invocation computes all elements of one.

Operations that follow may move elements and compute with them, one by one: index maps of transposes and reshapes are
used backwards, from operand to result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ....spirv.binary.expression import Id
from ...analysis.short_transforms import MAX_RADIX, follows_element_by_element
from ...ir.attributes import EnumAttr
from ...ir.operation import Operation
from ...ir.sizes import Size, product
from ...kernels.elements import Frame, scalar_of, shape_of
from ...kernels.fourier import transformed
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel, Workload
from ...kernels.region import KernelRegion, Shader, group_count
from ...kernels.scalars.complex_math import scale
from ...kernels.scalars.scalars import Scalar, as_complex, storage_bits
from ...kernels.strategy import Strategy

WORKGROUPS: Final = {"cpu": 64, "default": 64}
"""Invocations of a workgroup, by the family of devices."""


@dataclass(frozen=True, slots=True)
class FourierRows(Strategy):
    """A row for each invocation.

    Attributes:
        workgroup: invocations of a workgroup.
    """

    workgroup: int

    @classmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, FourierRows]]:
        """Yields the only candidate for `fft`."""
        if region.only(("fft",)) is not None:
            yield 0.0, cls(WORKGROUPS.get(region.target.family, WORKGROUPS["default"]))

    def takes(self, region: KernelRegion) -> bool:
        """Returns whether the region is a transform of short rows of complex numbers, and what follows element by
        element.
        """
        hero, results = region.only(("fft",)), region.results
        if hero is None or region.is_update or len(results) != 1 or storage_bits(scalar_of(results[0])) < 32:
            return False
        length = shape_of(hero.result)[-1]
        return (
            len(hero.integers("fft_length")) == 1
            and _kind(hero) in ("FFT", "IFFT")
            and not isinstance(length, Size)
            and 1 <= length <= MAX_RADIX
            and 1 <= self.workgroup <= region.target.max_workgroup_invocations
            and _following(region, hero) is not None
        )

    def emit(self, region: KernelRegion) -> Kernel:
        hero = region.only(("fft",))
        assert hero is not None
        following = _following(region, hero)
        assert following is not None
        shader = Shader(region)
        builder, frame, shape = shader.builder, shader.frame, shape_of(hero.result)
        rows, (value,) = product(shape[:-1]), hero.operands
        sign = 1 if _kind(hero) == "IFFT" else -1
        size = self.workgroup
        count = Workload(rows, size) if isinstance(rows, Size) else group_count(-(-rows // size), region.target)
        invocation = shader.group(count) * size + builder.built_in("LocalInvocationId")[0]

        def write() -> None:
            row = split(builder, invocation, shape[:-1])
            length = shape[-1]
            assert isinstance(length, int)
            places = [frame.index(shape, [*row, builder.word(at)]) for at in range(length)]
            transform = transformed([as_complex(frame.at(value, index)) for index in places], sign)
            for index, number in zip(places, transform, strict=True):
                scalar = scale(number, 1.0 / length) if sign > 0 else number
                shader.store(0, [_followed(frame, hero, following, index, scalar)])

        builder.when(invocation < builder.word(rows), write)
        return shader.finish((size, 1, 1), count)


def _kind(hero: Operation) -> str:
    kind = hero.attributes["fft_type"]
    return kind.case if isinstance(kind, EnumAttr) else ""


def _following(region: KernelRegion, hero: Operation) -> list[Operation] | None:
    """Returns the operations from a transform to the result; None if some do not map elements one to one."""
    operations, value, following = region.block.operations[:-1], hero.result, list[Operation]()
    while value is not region.results[0]:
        users = [operation for operation in operations if value in operation.operands]
        if len(users) != 1 or not follows_element_by_element(users[0], value):
            return None
        following.append(users[0])
        value = users[0].result
    return following


def _followed(
    frame: Frame, hero: Operation, following: list[Operation], index: Index, scalar: Scalar
) -> tuple[Index, Scalar]:
    """Returns the index and the value of an element after the following operations."""
    frame.keep(hero.result, index, [scalar])
    for operation in following:
        moved = _moved(operation, index)
        if operation.name in ("stablehlo.reshape", "stablehlo.transpose"):
            frame.keep(operation.result, moved, [scalar])
        else:
            scalar = frame.at(operation.result, moved)
        index = moved
    return index, scalar


def _moved(operation: Operation, index: Index) -> Index:
    """Returns the index in the result of an element of the operand."""
    shape, name = shape_of(operation.result), operation.name.removeprefix("stablehlo.")
    if name == "reshape":
        return index.reshaped(shape)
    if name == "transpose":
        parts: list[Id] = list(index.parts)
        return Index(index.builder, shape, [parts[axis] for axis in operation.integers("permutation")])
    return index
