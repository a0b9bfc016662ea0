"""Constants of a module."""

from __future__ import annotations

from ..passes.sequencing.steps import Buffer


class Rodata:
    """Constants of a module: texts and blobs, each once, and a pool of tensors that is uploaded as one buffer."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self._ordinals: dict[bytes, int] = {}
        self.pool = bytearray()
        self._offsets: dict[Buffer, int] = {}
        self._contents: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        """The ordinal of a blob."""
        if data not in self._ordinals:
            self._ordinals[data] = len(self.blobs)
            self.blobs.append(data)
        return self._ordinals[data]

    def text(self, value: str) -> int:
        """The ordinal of a text."""
        return self.add(value.encode())

    def add_constant(self, buffer: Buffer, data: bytes) -> None:
        """Packs a tensor into the pool; equal ones share a place."""
        if data not in self._contents:
            self.pool += bytes(-len(self.pool) % 256)
            self._contents[data] = len(self.pool)
            self.pool += data
        self._offsets[buffer] = self._contents[data]

    def constant_offset(self, buffer: Buffer) -> int:
        """Where a tensor lies in the pool."""
        return self._offsets[buffer]
