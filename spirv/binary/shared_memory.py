"""Shared memory of a workgroup."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Builder
from .declarations import U32, Kind
from .expression import Id
from .grammar import Op, StorageClass
from .offsets import quotient


class SharedMemory:
    """An array of words in workgroup memory; loads read the current content.

    Args:
        builder: the shader's builder.
        words: the length, a multiple of ``width``.
        width: the number of words that are loaded and stored at once, 1 or 4.
    """

    def __init__(self, builder: Builder, words: int, width: int = 1) -> None:
        self.builder = builder
        self._width = width
        self._variable = builder.declarations.shared(Kind("u", 32, width), words // width)

    def load(self, index: Id, width: int = 1) -> list[Id]:
        """Loads one word, or a vector of the array's width, which then divides the index."""
        kind = Kind("u", 32, width)
        vector = self.builder.written(Op.Load, kind, self.place(index, width))
        if width == 1:
            return [vector]
        return [self.builder.emit(Op.CompositeExtract, U32, vector, component) for component in range(width)]

    def store(self, index: Id, words: Sequence[Id]) -> None:
        """Stores one word, or a vector of the array's width, which then divides the index."""
        kind = Kind("u", 32, len(words))
        value = words[0] if len(words) == 1 else self.builder.emit(Op.CompositeConstruct, kind, *words)
        self.builder.write(Op.Store, self.place(index, len(words)), value)

    def place(self, index: Id, width: int) -> Id:
        """Returns a pointer to one word or to a vector of the array's width, which then divides the index."""
        indices = [index]
        if self._width > 1:
            indices = [quotient(index, self._width), *([index % self._width] if width == 1 else [])]
        return self.builder.place(StorageClass.Workgroup, Kind("u", 32, width), self._variable, *indices)
