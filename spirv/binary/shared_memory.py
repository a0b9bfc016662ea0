"""Memory that the invocations of a workgroup share."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Builder
from .declarations import U32, Kind
from .expression import Id
from .grammar import Op, StorageClass
from .offsets import quotient


class SharedMemory:
    """An array of words of a workgroup; loads are of what is there at the time.

    Args:
        builder: of the shader.
        words: how many, a multiple of ``width``.
        width: words that can be loaded and stored at once, 1 or 4.
    """

    def __init__(self, builder: Builder, words: int, width: int = 1) -> None:
        self.builder = builder
        self._width = width
        self._variable = builder.declarations.shared(Kind("u", 32, width), words // width)

    def load(self, index: Id, width: int = 1) -> list[Id]:
        """Neighbouring words: one or the array's width, of which the index is a multiple."""
        kind = Kind("u", 32, width)
        found = self.builder.written(Op.Load, kind, self.place(index, width))
        if width == 1:
            return [found]
        return [self.builder.emit(Op.CompositeExtract, U32, found, each) for each in range(width)]

    def store(self, index: Id, words: Sequence[Id]) -> None:
        """Writes neighbouring words: one or the array's width, of which the index is a multiple."""
        kind = Kind("u", 32, len(words))
        value = words[0] if len(words) == 1 else self.builder.emit(Op.CompositeConstruct, kind, *words)
        self.builder.write(Op.Store, self.place(index, len(words)), value)

    def place(self, index: Id, width: int) -> Id:
        """A pointer to neighbouring words: one or the array's width, of which the index is a multiple."""
        indices = [index]
        if self._width > 1:
            indices = [quotient(index, self._width), *([index % self._width] if width == 1 else [])]
        return self.builder.place(StorageClass.Workgroup, Kind("u", 32, width), self._variable, *indices)
