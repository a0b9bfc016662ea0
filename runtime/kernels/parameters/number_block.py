"""Blocks of plain numbers and vectors, packed without NumPy: ten times as fast as ``block.py``."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from ....hal_vulkan import BlockMember
from ....spirv.reflection.block_dtype import member_names
from .block import EXACT

_FORMATS: Final = {
    ("float", 16): "e",
    ("float", 32): "f",
    ("float", 64): "d",
    ("int", 8): "b",
    ("int", 16): "h",
    ("int", 32): "i",
    ("int", 64): "q",
    ("uint", 8): "B",
    ("uint", 16): "H",
    ("uint", 32): "I",
    ("uint", 64): "Q",
}


class _Writer(NamedTuple):
    """Writes one member: ``pack_into(data, offset, *numbers)``, which raises for numbers out of range."""

    kind: type
    components: int
    pack_into: Callable[..., None]
    offset: int


class NumberBlock:
    """The members of a block, if all are numbers or vectors of numbers, but no pointers."""

    def __init__(self, members: Sequence[BlockMember], size: int) -> None:
        self._size = size
        self._writers: dict[str, _Writer] = {}
        for name, member in member_names(members).items():
            scalar = member.scalar
            letter = None if scalar is None or scalar.encoding else _FORMATS.get((scalar.kind, scalar.bits))
            if letter is None or member.pointee or member.array_shape or member.columns > 1:
                self._writers.clear()
                return
            kind = float if letter in "efd" else int
            pack_into = struct.Struct(f"={member.components}{letter}").pack_into
            self._writers[name] = _Writer(kind, member.components, pack_into, member.offset)

    def write(self, data: bytearray, name: str, value: object) -> bool:
        """Writes one number into the bytes of a block; returns whether it did: ``pack_members`` takes other values."""
        writer = self._writers.get(name)
        if writer is None or type(value) is not writer.kind or writer.components > 1:
            return False
        try:
            writer.pack_into(data, writer.offset, value)
        except (struct.error, OverflowError):
            return False
        return True

    def pack(self, values: Mapping[str, object]) -> bytearray | None:
        """Returns the bytes of the block, or ``None`` where ``pack_members`` has to convert or to refuse a value."""
        writers = self._writers
        if not writers or len(values) != len(writers):
            return None
        data = bytearray(self._size)
        try:
            for name, value in values.items():
                kind, components, pack_into, offset = writers[name]
                if type(value) is not kind:
                    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iuf":
                        value = value.tolist()
                    numbers = value if components > 1 else (value,)
                    if not isinstance(numbers, (list, tuple)) or len(numbers) != components:
                        return None
                    for number in numbers:
                        if type(number) is kind:
                            continue
                        # An integer past 2^53 would be rounded twice.
                        if kind is int or type(number) is not int or not -EXACT <= number <= EXACT:
                            return None
                    pack_into(data, offset, *numbers)
                elif components == 1:
                    pack_into(data, offset, value)
                else:
                    return None
        except (KeyError, struct.error, OverflowError):
            return None
        return data
