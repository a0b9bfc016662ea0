"""Damaged and forged copies of module files: what mutant_runner.py runs.

``mutate(bases, seed, index)`` gives the same bytes for the same arguments in any process, so a mutant is named by two
numbers.

Damage is of two sorts. To the *bytes* of a file: it is cut short, bits are flipped, numbers replaced by those at the
edges of their range, parts of other modules pasted in, 16-bit words of bytecode swapped. Where in the file, is chosen
by part first (tables, bytecode, shaders, …), or the largest part would get all. And to its *meaning*: a module is
read, something in it is exchanged for what does not fit, and it is written again, so that it gets past the container
and the verifier is alone.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from module_alterations import ALTERATIONS

from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.module_def import ModuleDef
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.writer import write_module

__all__ = ["Base", "Mutant", "load_base", "mutate", "plain_base"]

_VKE1: Final = b"VKE1"
_SPIRV: Final = struct.pack("<I", 0x07230203)
_SMALLEST_WORD: Final = 1 << 16


@dataclass(frozen=True)
class Base:
    """An undamaged module.

    Attributes:
        name: for reports.
        data: the file.
        parts: byte ranges by kind: file, tables, bytecode, executables, spirv, constants.
        definition: as read; ``None`` for a file of another kind, which is damaged with a ``part`` only.
    """

    name: str
    data: bytes
    parts: Mapping[str, tuple[tuple[int, int], ...]]
    definition: ModuleDef | None


@dataclass(frozen=True)
class Mutant:
    """A damaged module.

    Attributes:
        index: its number.
        base: name of the module it was made from.
        what: the damage, for people.
        data: the file.
    """

    index: int
    base: str
    what: str
    data: bytes


def load_base(name: str, data: bytes) -> Base:
    """Reads a module and finds its parts."""
    archive = ModuleArchive.from_bytes(data, name)
    definition = read_module(archive)
    start = np.frombuffer(data, np.uint8).ctypes.data

    def span(view: memoryview) -> tuple[int, int]:
        offset = np.frombuffer(view, np.uint8).ctypes.data - start
        return offset, offset + view.nbytes

    parts: dict[str, list[tuple[int, int]]] = {"file": [(0, len(data))]}
    flatbuffer = span(archive.flatbuffer)
    held = [span(definition.bytecode)] if definition.bytecode.nbytes else []
    parts["bytecode"] = list(held)
    for segment in definition.rodata:
        if not segment.nbytes:
            continue
        place = span(segment)
        held.append(place)
        blob = bytes(segment)
        if _VKE1 not in blob[:8]:
            parts.setdefault("constants", []).append(place)
            continue
        at = blob.find(_SPIRV)
        split = place[0] + at if at >= 0 else place[1]
        parts.setdefault("executables", []).append((place[0], split))
        if at >= 0:
            # Other tables may follow a shader; they are damaged as "file".
            parts.setdefault("spirv", []).append((split, place[1]))
    # What is left of the FlatBuffer between bytecode and embedded constants.
    position = flatbuffer[0] - 4
    tables = parts.setdefault("tables", [])
    for begin, end in sorted(place for place in held if flatbuffer[0] <= place[0] < flatbuffer[1]):
        if begin > position:
            tables.append((position, begin))
        position = max(position, end)
    if flatbuffer[1] > position:
        tables.append((position, flatbuffer[1]))
    return Base(name, data, {kind: tuple(spans) for kind, spans in parts.items() if spans}, definition)


def plain_base(name: str, data: bytes, part: str = "file") -> Base:
    """A file of any kind, of one part."""
    return Base(name, data, {part: ((0, len(data)),)}, None)


def mutate(bases: Sequence[Base], seed: int, index: int, part: str = "") -> Mutant:
    """The mutant of this number; its base goes round. With ``part``, only bytes of that kind are damaged."""
    rng = random.Random(f"{seed}/{index}")
    if part:
        bases = [base for base in bases if part in base.parts]
        if not bases:
            raise ValueError(f"none of the modules has {part}")
    base = bases[index % len(bases)]
    if not part and rng.random() < _MEANING_SHARE:
        alter = rng.choice(ALTERATIONS)
        module = base.definition
        assert module is not None
        for _ in range(rng.choice((1, 1, 1, 2))):
            other = rng.choice(bases).definition
            assert other is not None
            module = alter(rng, module, other)
        try:
            return Mutant(
                index, base.name, alter.__name__.strip("_"), write_module(module, polyglot=rng.random() < 0.2)
            )
        except (ValueError, OverflowError, struct.error):
            pass  # the writer will not write what does not fit its field: damage bytes
    kinds = [part] if part else [kind for kind in base.parts for _ in range(_WEIGHTS[kind])]
    data = bytearray(base.data)
    notes = []
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        kind = rng.choice(kinds)
        damage = (
            _shader_operands if kind == "spirv" and rng.random() < 0.6 else rng.choices(_DAMAGES, _DAMAGE_WEIGHTS)[0]
        )
        start, end = rng.choice(base.parts[kind])
        start, end = min(start, len(data)), min(end, len(data))
        if end - start < 4:
            start, end = 0, len(data)
        if end - start < 4:
            break
        notes.append(f"{damage.__name__.strip('_')} {kind}")
        damage(rng, data, start, end, bases)
    return Mutant(index, base.name, ", ".join(notes), bytes(data))


# -- damage to bytes ---------------------------------------------------------------------------------


def _truncate(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    del data[rng.randrange(start, end) :]


def _flip(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        data[rng.randrange(start, end)] ^= 1 << rng.randrange(8)


def _replace(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(start, end)
    if rng.random() < 0.8:
        at -= at % width
    bits = 8 * width
    edges = (0, 1, 2, 3, 4, (1 << bits) - 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 2, len(data))
    value = rng.choice((*edges, rng.getrandbits(bits)))
    written = (value & ((1 << bits) - 1)).to_bytes(width, "little")[: len(data) - at]
    data[at : at + len(written)] = written


def _forge_length(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    """Changes a word that could be a length, count or offset."""
    for _ in range(32):
        at = rng.randrange(start, end) & ~3
        if at + 4 > len(data):
            continue
        (value,) = struct.unpack_from("<I", data, at)
        if 0 < value < max(len(data), _SMALLEST_WORD):
            near = (value + 1, value - 1, 2 * value, value + 4, value - 4, value << 8)
            new = rng.choice((*near, 0x7FFFFFFF, 0xFFFFFFFF, len(data) - at))
            struct.pack_into("<I", data, at, new & 0xFFFFFFFF)
            return


def _splice(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    other = rng.choice(bases)
    first, last = rng.choice(other.parts[rng.choice(list(other.parts))])
    length = min(rng.choice((2, 4, 8, 16, 64, 256, 4096)), last - first)
    source = rng.randrange(first, last - length + 1)
    target = rng.randrange(start, end)
    if rng.random() < 0.8:
        source, target = source & ~3, target & ~3
    piece = other.data[source : source + length]
    if rng.random() < 0.7:
        piece = piece[: len(data) - target]
        data[target : target + len(piece)] = piece
    else:
        data[target:target] = piece


def _move_words(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    """Swaps or duplicates 16-bit words that are near each other: of one function, mostly."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        first = rng.randrange(start, end - 1) & ~rng.choice((0, 1))
        second = min(max(first + 2 * rng.randrange(-64, 65) + rng.choice((0, 0, 1)), start), end - 2)
        one, two = bytes(data[first : first + 2]), bytes(data[second : second + 2])
        if len(one) == len(two) == 2:
            data[second : second + 2] = one
            if rng.random() < 0.5:
                data[first : first + 2] = two


def _copy_within(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    length = min(rng.choice((1, 4, 16, 64, 256)), end - start)
    source, target = rng.randrange(start, end - length + 1), rng.randrange(start, end - length + 1)
    data[target : target + length] = data[source : source + length]


def _delete(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    at = rng.randrange(start, end)
    del data[at : at + rng.choice((1, 2, 4, 8, 64))]


def _fill(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    at = rng.randrange(start, end)
    length = min(rng.choice((4, 16, 64)), end - at)
    data[at : at + length] = bytes((rng.choice((0, 0xFF, 0x79, rng.randrange(256))),)) * length


def _shader_operands(rng: random.Random, data: bytearray, start: int, end: int, bases: Sequence[Base]) -> None:
    """Operands of shader instructions: as another of its kind has them, or numbers at the edges.

    Most of a shader is ids, and a random one is refused: only constants, decorations and types keep it valid.
    """
    words = struct.unpack_from(f"<{(end - start) // 4}I", data, start)
    instructions: list[tuple[int, int, int]] = []
    at = _SPIRV_HEADER_WORDS
    while at < len(words) and words[at] >> 16 and at + (words[at] >> 16) <= len(words):
        instructions.append((at, words[at] & 0xFFFF, words[at] >> 16))
        at += words[at] >> 16
    if not instructions:
        return
    likely = [one for one in instructions if one[1] in _SPIRV_DECLARATIONS]
    for _ in range(rng.choice((1, 1, 2, 3))):
        position, opcode, length = rng.choice(likely if likely and rng.random() < 0.6 else instructions)
        if length < 2:
            continue
        operand = rng.randrange(1, length)
        if rng.random() < 0.5:
            operand = length - 1  # literals come last
        models = [one for one in instructions if one[1] == opcode and one[2] > operand]
        value = words[rng.choice(models)[0] + operand]
        if rng.random() < 0.5:
            value = rng.choice((*_SPIRV_NUMBERS, value + 1, value * 2, rng.getrandbits(32)))
        struct.pack_into("<I", data, start + 4 * (position + operand), value & 0xFFFFFFFF)


_SPIRV_HEADER_WORDS: Final = 5
_SPIRV_NUMBERS: Final = (0, 1, 2, 3, 4, 7, 16, 64, 1024, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
# OpExecutionMode, OpType…, OpConstant…, OpVariable, OpDecorate, OpMemberDecorate
_SPIRV_DECLARATIONS: Final = frozenset({16, *range(19, 34), *range(41, 53), 59, 71, 72})
_Damage = Callable[[random.Random, bytearray, int, int, Sequence[Base]], None]
_DAMAGES: Final[tuple[_Damage, ...]] = (
    _truncate, _flip, _replace, _forge_length, _splice, _move_words, _copy_within, _delete, _fill,
)  # fmt: skip
_DAMAGE_WEIGHTS: Final = (3, 8, 8, 4, 4, 8, 3, 1, 1)
# Most damage to bytecode is refused by the verifier; what it lets through is what has to run safely.
_WEIGHTS: Final = {"file": 2, "tables": 4, "bytecode": 9, "executables": 2, "spirv": 3, "constants": 1}
_MEANING_SHARE: Final = 0.5
