"""A SPIR-V binary as words: its checked header and its instructions in order.

Layout of the binary: SPIR-V specification 1.6, section 2.3 ("Physical Layout of a SPIR-V Module").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import IncompatibleError, InvalidArgumentError
from .grammar import LAYOUTS, operand_kinds

Instruction = tuple[int, int, int]
"""Opcode, index of its first word, index past its last word."""

HEADER_WORDS: Final = 5
#: Index of the header's id bound.
BOUND: Final = 3

_MAGIC: Final = 0x07230203
_MAGIC_SWAPPED: Final = 0x03022307
# SPIR-V 2.17, Universal Limits: ids stay at or below 4,194,303, so the bound is at most one more.
_MAX_BOUND: Final = 0x400000
_MINIMUM: Final = {opcode: layout.minimum for opcode, layout in LAYOUTS.items()}


@dataclass(frozen=True, slots=True)
class Binary:
    """A SPIR-V binary with a valid header.

    Attributes:
        words: the whole binary, including the header.
        version: the SPIR-V version, ``(major, minor)``.
        generator: the header's generator word.
        bound: the upper bound of all ids, exclusive.
    """

    words: tuple[int, ...]
    version: tuple[int, int]
    generator: int
    bound: int

    def __iter__(self) -> Iterator[Instruction]:
        """Yields the instructions in order.

        Raises:
            InvalidArgumentError: an instruction extends past the end, or is shorter than its operands.
        """
        words = self.words
        start, total = HEADER_WORDS, len(words)
        minimum = _MINIMUM
        while start < total:
            opcode, count = words[start] & 0xFFFF, words[start] >> 16
            end = start + count
            if count < minimum.get(opcode, 1) or end > total:
                raise self._damaged(opcode, start, end)
            yield opcode, start, end
            start = end

    def _damaged(self, opcode: int, start: int, end: int) -> InvalidArgumentError:
        layout = LAYOUTS.get(opcode)
        subject = f"{f'Op{layout.name}' if layout else 'the SPIR-V instruction'} (opcode {opcode}) at word {start}"
        if start < end <= len(self.words):
            return InvalidArgumentError(
                f"{subject} has {end - start} words, expected at least {_MINIMUM[opcode]}; the module is damaged"
            )
        return InvalidArgumentError(
            f"{subject} has a word count of {end - start}, {len(self.words) - start} words are left; "
            "the module is truncated or damaged"
        )

    def string(self, start: int, end: int, errors: str = "strict") -> tuple[str, int]:
        """Returns the literal string between two word indices of an instruction, and the index after the string."""
        raw = struct.pack(f"<{end - start}I", *self.words[start:end])
        terminator = raw.find(b"\0")
        if terminator < 0:
            raise InvalidArgumentError(f"the SPIR-V string at word {start} is not terminated; the module is damaged")
        try:
            return raw[:terminator].decode("utf-8", errors), start + terminator // 4 + 1
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"the SPIR-V string at word {start} is not UTF-8: {error.reason}") from None

    def used_ids(self, start: int, end: int) -> list[int]:
        """Returns the ids that an instruction uses, without its result and result type.

        Any word of an instruction that is not in the grammar may be an id.
        """
        if self.words[start] & 0xFFFF not in LAYOUTS:
            return list(self.words[start + 1 : end])
        return [
            self.words[index]
            for index, kind in operand_kinds(self.words, start, end)
            if kind in ("IdRef", "IdScope", "IdMemorySemantics")
        ]


def read_binary(code: bytes) -> Binary:
    """Parses the header of a binary.

    Raises:
        InvalidArgumentError: the code is not a little-endian SPIR-V binary.
        IncompatibleError: the SPIR-V version is not 1.0 to 1.6.
    """
    size = len(code)
    if size < 4 * HEADER_WORDS or size % 4:
        raise InvalidArgumentError(
            f"SPIR-V code is a multiple of 4 bytes and at least 20 (its header), got {size} bytes; "
            "pass the whole binary module, not text or a part"
        )
    words = struct.unpack(f"<{size // 4}I", code)
    magic, version, generator, bound, schema = words[:HEADER_WORDS]
    if magic == _MAGIC_SWAPPED:
        raise InvalidArgumentError(
            "the SPIR-V code has the wrong endianness (big-endian words); swap the bytes of every 32-bit word "
            "before passing it"
        )
    if magic != _MAGIC:
        raise InvalidArgumentError(
            f"SPIR-V code starts with the magic number 0x{_MAGIC:08x}, got 0x{magic:08x}; "
            "pass a binary module as glslangValidator -V or spirv-as writes it"
        )
    major, minor = version >> 16 & 0xFF, version >> 8 & 0xFF
    if version & 0xFF0000FF or schema:
        raise InvalidArgumentError(
            f"the SPIR-V header's version word 0x{version:08x} or schema {schema} has reserved bits set; "
            "the module is damaged"
        )
    if major != 1 or minor > 6:
        raise IncompatibleError(f"SPIR-V 1.0 to 1.6 can be read, got {major}.{minor}; target an older version")
    if not 0 < bound <= _MAX_BOUND:
        raise InvalidArgumentError(
            f"the SPIR-V header's id bound is 1 to {_MAX_BOUND}, got {bound}; compact the ids "
            "(spirv-opt --compact-ids) or rebuild the module"
        )
    return Binary(words, (major, minor), generator, bound)


def encode(opcode: int, *operands: int) -> tuple[int, ...]:
    """Encodes one instruction as words."""
    return (len(operands) + 1) << 16 | opcode, *operands


def string_words(text: str) -> tuple[int, ...]:
    """Encodes a literal string as words."""
    data = text.encode()
    size = len(data) // 4 + 1
    return struct.unpack(f"<{size}I", data.ljust(4 * size, b"\0"))


def pack(words: Sequence[int]) -> bytes:
    """Packs words into a binary."""
    return struct.pack(f"<{len(words)}I", *words)
