"""Checks of the integer coordinates of accesses to images and texel buffers.

Writes to images are not checked. Outside the image they have no effect on any device (Vulkan specification, "Texel
Output Validation Operations"), and kernels whose grid is larger than the image rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ..binary.grammar import ENUMERATIONS, Op, parameters_of
from .checks import Checks
from .editor import Words, opcode_of
from .reports import Site
from .rewrite import Writer

# Word indices of the coordinate and of the operands that may follow; the image is the word before the coordinate.
TEXEL_ACCESSES: Final = {
    Op.ImageRead: (4, 5),
    Op.ImageFetch: (4, 5),
    Op.ImageSparseRead: (4, 5),
    Op.ImageSparseFetch: (4, 5),
    Op.ImageWrite: (2, 4),
    Op.ImageTexelPointer: (4, 6),
}
_STORAGE: Final = 2
_IMAGE_QUERY: Final = ENUMERATIONS["Capability"].ImageQuery
_LOD, _CONST_OFFSET, _OFFSET, _SAMPLE = 2, 8, 16, 64
# The number of components of a size query, by dimensionality.
_ONE_D, _TWO_D, _THREE_D, _CUBE, _RECT, _BUFFER = range(6)
_AXES: Final = {_ONE_D: 1, _TWO_D: 2, _THREE_D: 3, _CUBE: 2, _RECT: 2, _BUFFER: 1}


class ImageChecks:
    """The checks of one module's accesses to texels."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._editor = checks.editor

    def check(self, writer: Writer, instruction: Words, site: Callable[[str], Site]) -> list[int]:
        """Returns the conditions for an access to a texel; each notes its failure, with the axis in the index's high
        word.
        """
        editor, paths = self._editor, self._checks.paths
        coordinate_word, operands_word = TEXEL_ACCESSES[opcode_of(instruction)]
        image, coordinate = instruction[coordinate_word - 1], instruction[coordinate_word]
        image_type = paths.type_of(image)
        of = editor.defs.get(image_type, ())
        if of and opcode_of(of) == Op.TypePointer:  # OpImageTexelPointer
            image_type = of[3]
            of = editor.defs[image_type]
        if not of or opcode_of(of) != Op.TypeImage or of[3] not in _AXES:
            return []
        if opcode_of(instruction) == Op.ImageWrite and of[3] != _BUFFER:
            return []
        declared = editor.defs[paths.type_of(coordinate)]
        kind = editor.defs[declared[2]] if opcode_of(declared) == Op.TypeVector else declared
        if opcode_of(kind) != Op.TypeInt:
            return []
        if opcode_of(instruction) == Op.ImageTexelPointer:
            image = writer.op(Op.Load, image_type, image)
        operands = dict(_image_operands(instruction, operands_word))
        editor.capability(_IMAGE_QUERY)
        dim, is_arrayed, samples = of[3], bool(of[5]), bool(of[6])
        conditions: list[int] = []
        level = 0
        if of[7] != _STORAGE and not samples and dim in (_ONE_D, _TWO_D, _THREE_D, _CUBE):
            level = operands.get(_LOD, editor.constant_u32(0))
            if paths.literal(level) != 0:
                levels = writer.op(Op.ImageQueryLevels, editor.u32(), image)
                condition = self._checks.compare(writer, level, levels, site("level"))
                conditions.append(condition)
                kind_of_level = paths.type_of(level)
                level = writer.op(Op.Select, kind_of_level, condition, level, editor.null(kind_of_level))
        sizes = self._sizes(writer, image, _AXES[dim] + is_arrayed, level)
        if dim == _CUBE:
            # Coordinates count faces, six for each cube; sizes count cubes.
            sizes = [*sizes[:2], editor.constant_u32(6)] if not is_arrayed else sizes[:2]
        offset = operands.get(_OFFSET) or operands.get(_CONST_OFFSET)
        for axis, size in enumerate(sizes):
            value = self._component(writer, coordinate, axis)
            if offset and axis < _AXES[dim]:
                value = self._shifted(writer, value, offset, axis)
            conditions.append(self._checks.compare(writer, value, size, site("coordinate"), axis))
        if samples:
            sample = instruction[5] if opcode_of(instruction) == Op.ImageTexelPointer else operands.get(_SAMPLE)
            if sample:
                count = writer.op(Op.ImageQuerySamples, editor.u32(), image)
                conditions.append(self._checks.compare(writer, sample, count, site("sample")))
        return conditions

    def _sizes(self, writer: Writer, image: int, count: int, level: int) -> list[int]:
        editor = self._editor
        u32 = editor.u32()
        kind = editor.vector(count) if count > 1 else u32
        if level:
            size = writer.op(Op.ImageQuerySizeLod, kind, image, level)
        else:
            size = writer.op(Op.ImageQuerySize, kind, image)
        if count == 1:
            return [size]
        return [writer.op(Op.CompositeExtract, u32, size, axis) for axis in range(count)]

    def _component(self, writer: Writer, vector: int, axis: int) -> int:
        of = self._editor.defs[self._checks.paths.type_of(vector)]
        if opcode_of(of) != Op.TypeVector:
            return vector
        component = writer.op(Op.CompositeExtract, of[2], vector, axis)
        self._checks.paths.define(writer.out[-1])
        return component

    def _shifted(self, writer: Writer, value: int, offset: int, axis: int) -> int:
        kind = self._checks.paths.type_of(value)
        total = writer.op(Op.IAdd, kind, value, self._component(writer, offset, axis))
        self._checks.paths.define(writer.out[-1])
        return total


def _image_operands(instruction: Words, word: int) -> Iterator[tuple[int, int]]:
    """Yields the image operands of an instruction with a mask at that word: each bit with its first id."""
    if word >= len(instruction) or opcode_of(instruction) == Op.ImageTexelPointer:
        return
    mask, at = instruction[word], word + 1
    for bit in (1 << number for number in range(32)):
        if mask & bit:
            count = len(tuple(parameters_of("ImageOperands", bit)))
            if count and at < len(instruction):
                yield bit, instruction[at]
            at += count
