"""The index of an element: a linear (row-major) index, one part per dimension, or both."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...spirv.binary.expression import Id
from ..ir.sizes import Dim
from .scalars.lengths import KernelBuilder


class Index:
    """An index into a tensor.

    The missing form is computed at each request, as the uses may be in blocks that do not dominate each other. The
    builder caches the ids in scope.

    Args:
        builder: the kernel's builder.
        shape: the tensor's shape.
        parts: the index's parts, one for each dimension.
        linear: the row-major index.
    """

    __slots__ = ("_key", "_linear", "_parts", "builder", "shape")

    def __init__(
        self, builder: KernelBuilder, shape: Sequence[Dim], parts: Sequence[Id] | None = None, linear: Id | None = None
    ) -> None:
        self.builder: KernelBuilder = builder
        self.shape: tuple[Dim, ...] = tuple(shape)
        self._parts = builder_parts = None if parts is None else tuple(parts)
        self._linear = linear if builder_parts != () else builder.word(0)
        self._key: Hashable = None

    @property
    def key(self) -> Hashable:
        """A key that is equal for indices known to be equal."""
        if self._key is None:
            self._key = tuple([part.key for part in self.parts]) if self._linear is None else self._linear.key
        return self._key

    @property
    def parts(self) -> tuple[Id, ...]:
        """One part per dimension."""
        if self._parts is not None:
            return self._parts
        assert self._linear is not None
        rest, parts = self._linear, []
        remaining = [length for length in self.shape if length != 1]
        for length in reversed(self.shape):
            if length == 1:
                parts.append(self.builder.word(0))
                continue
            remaining.pop()
            parts.append(rest % self.builder.word(length) if remaining else rest)
            rest = rest // self.builder.word(length) if remaining else rest
        return tuple(reversed(parts))

    @property
    def linear(self) -> Id:
        """The row-major index."""
        if self._linear is not None:
            return self._linear
        key = self.shape, self.key
        linear: Id | None = self.builder.known(key)
        if linear is None:
            linear = self.builder.word(0)
            for part, length in zip(self.parts, self.shape, strict=True):
                if length != 1:
                    linear = linear * self.builder.word(length) + part
            self.builder.keep(key, linear)
        return linear

    def reshaped(self, shape: Sequence[Dim]) -> Index:
        """Returns the index with the same linear index in another shape."""
        shape = tuple(shape)
        if shape == self.shape:
            return self
        if self._parts is not None and _kept(shape) == _kept(self.shape):
            parts = iter([part for part, length in zip(self._parts, self.shape, strict=True) if length != 1])
            parts_there = [self.builder.word(0) if length == 1 else next(parts) for length in shape]
            return Index(self.builder, shape, parts_there, self._linear)
        return Index(self.builder, shape, linear=self.linear)


def _kept(shape: Sequence[Dim]) -> list[Dim]:
    return [length for length in shape if length != 1]


def split(builder: KernelBuilder, number: Id, lengths: Sequence[Dim]) -> tuple[Id, ...]:
    """Splits a linear index into one part per dimension."""
    return Index(builder, lengths, linear=number).parts
