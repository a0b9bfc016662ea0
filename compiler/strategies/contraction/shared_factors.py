"""Copies of a contraction's factors from buffers to shared memory, part by part, in two buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import quotient
from ....spirv.binary.shared_memory import SharedMemory
from ...analysis.special_forms import depth_of
from ...ir.operation import Operation
from ...ir.sizes import Size
from ...ir.sizes import product as product_of
from ...ir.types import ScalarType
from ...kernels.contractions import MAX_IN_ORDER, Products, summed
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index, split
from ...kernels.region import Shader, append_bits
from ...kernels.scalars.conversions import convert
from ...kernels.scalars.scalars import Scalar, as_id, storage_bits
from .contraction_grid import ContractionGrid, Sides, TilePlace

_QUAD: Final = 4
"""Words that are written together, and the padding between rows of shared memory, which avoids bank conflicts."""


class SharedFactors:
    """The factors of one operand; each invocation of a workgroup loads a share of them for all.

    Args:
        shader: the shader of the region.
        products: the products of the contraction.
        grid: the grid of the result.
        position: the position of the invocation.
        shape: the number of products whose factors are in shared memory at a time, and the number of the workgroup's
            rows or columns.
        is_rows: whether the factors are those of rows.
        element: the factors' type in shared memory, or the type of words of factors that are multiplied together.
        is_kept: whether factors of successive products stay neighbours in shared memory if they are neighbours in the
            operand; otherwise the factors of neighbouring rows or columns are neighbours.
        invocation: the invocation's number in the workgroup, and the number of invocations.

    Attributes:
        operand: the operand's number, 0 or 1.
        memory: the shared memory.
        pitch: the number of words from a row of the memory to the next.
        is_along_depth: whether successive products are neighbours in the memory.
        size: the number of words in one buffer.
    """

    def __init__(
        self,
        shader: Shader,
        products: Products,
        grid: ContractionGrid,
        position: TilePlace,
        shape: tuple[int, int],
        is_rows: bool,
        element: ScalarType,
        is_kept: bool,
        invocation: tuple[Id, int],
    ) -> None:
        self.operand: int
        (self.operand,) = grid.operands[0 if is_rows else 1]
        self._products, self._frame, self._builder = products, shader.frame, shader.builder
        self._grid, self._place, self._is_rows = grid, position, is_rows
        self._pack = products.pack
        self._depth, self._side = shape[0] // self._pack, shape[1]
        self._element, self._invocation = element, invocation
        self._is_read_along_depth = self._are_neighbours()
        self.is_along_depth: bool = is_kept and self._is_read_along_depth
        rows, row = (self._side, self._depth) if self.is_along_depth else (self._depth, self._side)
        self.pitch: int = pitch_of(row, element)
        self.size: int = rows * self.pitch
        self.memory: SharedMemory = SharedMemory(shader.builder, 2 * self.size, _QUAD)

    def _are_neighbours(self) -> bool:
        """Returns whether factors of successive products are neighbours in the operand."""
        zero = self._builder.word(0)
        numbers = [[*[zero] * (len(self._products.depth) - 1), self._builder.word(number)] for number in range(2)]
        parts = [zero] * len(self._place.parts)
        first, second = (self._products.factor_index(self.operand, parts, number)[1] for number in numbers)
        shape = shape_of(self._products.operands[self.operand])
        differing = [axis for axis, (a, b) in enumerate(zip(first.parts, second.parts, strict=True)) if a is not b]
        return bool(differing) and all(length == 1 for length in shape[differing[-1] + 1 :])

    def load(self, first: Id, count: int | Id) -> list[tuple[Id, Id, list[Id]]]:
        """Loads this invocation's share of the factors of ``count`` products.

        Returns indices in both directions, and words.

        Factors beyond the count are zeros. A computed count may exceed the space.
        """
        number, invocations = self._invocation
        neighbours = 32 * _QUAD // storage_bits(self._element)
        along = (self._depth if self._is_read_along_depth else self._side) // neighbours
        shares = []
        for turn in range(self._depth * self._side // neighbours // invocations):
            group = number + turn * invocations
            product, across = (group % along) * neighbours, group // along
            if not self._is_read_along_depth:
                product, across = across, product
            shares.append((product, across, self._neighbours(first, count, product, across, neighbours)))
        return shares

    def _neighbours(self, first: Id, count: int | Id, number: Id, across: Id, neighbours: int) -> list[Id]:
        builder, products = self._builder, self._products
        operand = products.operands[self.operand]
        places: list[tuple[Id, Index]] = []
        for neighbour in range(neighbours):
            product = number + neighbour if self._is_read_along_depth else number
            offset = across if self._is_read_along_depth else across + neighbour
            row = self._place.row + offset if self._is_rows else builder.word(0)
            column = builder.word(0) if self._is_rows else self._place.column + offset
            parts = self._grid.index(builder, self._place.parts, row, column).parts
            for byte in range(self._pack):
                at = product * self._pack + byte
                inside = builder.boolean(True)
                if isinstance(count, Id) or count < self._depth * self._pack:
                    inside = at < count
                    at = inside.select(at, 0)
                here, index = products.factor_index(self.operand, parts, split(builder, first + at, products.depth))
                places.append((here & inside, index))
        self._frame.load_ahead(operand, [index for _, index in places])
        if self._pack > 1:
            runs = (places[at : at + self._pack] for at in range(0, len(places), self._pack))
            return [as_id(products.factors(self.operand, run)) for run in runs]
        words: list[Id] = []
        for lane, (there, index) in enumerate(places):
            scalars = self._frame.scalars
            factor = convert(scalars, self._frame.at(operand, index), scalar_of(operand), self._element)
            bits = [there.select(word, 0) for word in scalars.to_words(self._element, factor)]
            append_bits(words, bits, self._element, lane)
        return words

    def write(self, buffer: Id, loaded: Sequence[tuple[Id, Id, list[Id]]]) -> None:
        """Writes the loaded factors to one of the buffers."""
        for product, across, words in loaded:
            if self._is_read_along_depth and not self.is_along_depth:
                for neighbour, word in enumerate(words):
                    at = self.size * buffer + (product + neighbour) * self.pitch + across
                    self.memory.store(at, [word])
                continue
            row, inner = (across, product) if self.is_along_depth else (product, across)
            at = self.size * buffer + row * self.pitch + quotient(inner, 32 // storage_bits(self._element))
            self.memory.store(at, words)


def pitch_of(length: int, element: ScalarType) -> int:
    """Returns the words between rows of shared memory."""
    return -(-length * storage_bits(element) // (32 * _QUAD)) * _QUAD + _QUAD


def shared_bytes(shape: tuple[int, int], element: ScalarType) -> int:
    """Returns an upper bound of the bytes of the two buffers of factors."""
    depth, side = shape
    return 2 * 4 * max(depth * pitch_of(side, element), side * pitch_of(depth, element))


def is_shareable(
    grid: ContractionGrid, sides: Sides, depth: int, element: ScalarType, invocations: int, pack: int = 1
) -> bool:
    """Returns whether rows and columns have separate operands, whose quads of factors divide evenly among invocations.

    Runs of products that are summed in order consist of whole parts; only the very last part may be shorter.
    """
    neighbours = 32 * _QUAD // storage_bits(element)
    rows, columns = grid.operands
    return (
        len(rows) == len(columns) == 1
        and rows != columns
        and depth % (neighbours * pack) == 0
        and MAX_IN_ORDER % depth == 0
        and all(side % neighbours == 0 and side * depth % (neighbours * pack * invocations) == 0 for side in sides)
    )


def pipelined(
    shader: Shader,
    hero: Operation,
    factors: Sequence[SharedFactors],
    part: int,
    zeros: Sequence[Scalar],
    multiplied: Callable[[Id, int, Sequence[Scalar]], Sequence[Scalar]],
) -> Sequence[Scalar]:
    """Returns the sums of all products of a contraction.

    Args:
        shader: the shader of the region.
        hero: the contraction.
        factors: the factors of its operands.
        part: the number of products whose factors are in shared memory at a time.
        zeros: the initial sums.
        multiplied: a function that adds products to sums. Its arguments are a buffer's number, the number of products
            in it, and the sums.
    """
    builder = shader.builder
    depth = product_of(depth_of(hero))
    limit = builder.word(depth)
    last = (limit - 1) // part * part if isinstance(depth, Size) else builder.word((depth // part - 1) * part)

    def load(first: Id) -> list[list[tuple[Id, Id, list[Id]]]]:
        return [factor.load(first, limit - first if isinstance(depth, Size) else part) for factor in factors]

    def step(number: Sequence[Id], count: int, sums: Sequence[Scalar]) -> Sequence[Scalar]:
        (first,) = number
        buffer = quotient(first, part) % 2
        if count < part:
            for factor in factors:
                factor.write(buffer, factor.load(first, count))
            builder.barrier()
            return multiplied(buffer, count, sums)
        loaded = load((first < last).select(first + part, last))
        totals = multiplied(buffer, part, sums)
        for factor, words in zip(factors, loaded, strict=True):
            factor.write(buffer ^ 1, words)
        builder.barrier()
        return totals

    def all_parts() -> Sequence[Scalar]:
        if isinstance(depth, Size) or depth >= part:
            for factor, words in zip(factors, load(builder.word(0)), strict=True):
                factor.write(builder.word(0), words)
            builder.barrier()
        return summed(shader.frame, hero, [depth], zeros, step, part, is_padded=True)

    return shader.frame.conditional(limit.equals(0), lambda: zeros, all_parts)
