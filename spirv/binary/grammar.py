"""SPIR-V's instructions and enumerants by name and number, and the kinds of their operands.

Names are those of the specification without the ``Op`` of instructions: ``Op.TypeVector``, ``Decoration.SpecId``.
The facts are in `grammar_tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from .grammar_tables import BIT_MASKS, ENUMERANTS, EXTENDED, INSTRUCTIONS, PAIRS, PARAMETERS


class Enumeration:
    """The enumerants of an enumeration as attributes: ``Decoration.Binding`` is 33; ``names`` maps numbers to names."""

    def __init__(self, kind: str, members: str) -> None:
        words = members.split()
        self._kind = kind
        self.names: dict[int, str] = dict(zip(map(int, words[1::2]), words[::2], strict=True))
        self.__dict__.update({name: value for value, name in self.names.items()})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> int: ...

    def numbers(self, names: str) -> frozenset[int]:
        """Returns the numbers of names that spaces separate."""
        return frozenset(getattr(self, name) for name in names.split())

    def name(self, number: int) -> str:
        """Returns the name of a number, ``"Decoration(<number>)"`` if it has none."""
        return self.names.get(number) or f"{self._kind}({number})"


class Layout(NamedTuple):
    """The form of an instruction.

    Attributes:
        name: the name, without ``Op``.
        group: the specification's class of instructions, such as ``"Arithmetic"``.
        operands: the kinds of the operands, in order. An optional one ends in ``?``; a repeated one ends in ``*``.
        minimum: the length of the shortest such instruction in words.
    """

    name: str
    group: str
    operands: tuple[str, ...]
    minimum: int


def _rows(table: str) -> Iterator[list[str]]:
    for line in table.replace("\n ", " ").strip().split("\n"):
        yield [field.strip() for field in line.split("|")]


def _layouts() -> dict[int, Layout]:
    layouts = {}
    for group, kinds, members in _rows(INSTRUCTIONS):
        operands = tuple(kinds.split())
        minimum = 1 + sum(kind[-1] not in "?*" for kind in operands)
        words = members.split()
        for name, opcode in zip(words[::2], words[1::2], strict=True):
            layouts[int(opcode)] = Layout(name, group, operands, minimum)
    return layouts


#: Every instruction by opcode.
LAYOUTS: Final = _layouts()
#: Every enumeration by the kind of its operands.
ENUMERATIONS: Final = {kind: Enumeration(kind, members) for kind, members in _rows(ENUMERANTS)}

Op: Final = Enumeration("Op", " ".join(f"{layout.name} {opcode}" for opcode, layout in LAYOUTS.items()))
BuiltIn: Final = ENUMERATIONS["BuiltIn"]
Decoration: Final = ENUMERATIONS["Decoration"]
Dim: Final = ENUMERATIONS["Dim"]
ExecutionMode: Final = ENUMERATIONS["ExecutionMode"]
ExecutionModel: Final = ENUMERATIONS["ExecutionModel"]
FPEncoding: Final = ENUMERATIONS["FPEncoding"]
GroupOperation: Final = ENUMERATIONS["GroupOperation"]
SourceLanguage: Final = ENUMERATIONS["SourceLanguage"]
StorageClass: Final = ENUMERATIONS["StorageClass"]

#: Kinds whose values are bit masks.
BIT_MASK_KINDS: Final = frozenset(BIT_MASKS.split())
#: Kinds that consist of two operands, and the kinds of these operands.
PAIR_KINDS: Final = {kind: tuple(words.split()) for kind, words in _rows(PAIRS)}
_PARAMETERS: Final = {
    (kind, getattr(ENUMERATIONS[kind], name)): tuple(operands.split())
    for kind, operands, names in _rows(PARAMETERS)
    for name in names.split()
}
_EXTENSIONS = {
    (kind, getattr(Op if kind == "Op" else ENUMERATIONS[kind], name)): frozenset(extensions.split())
    for kind, extensions, names in _rows(EXTENDED)
    for name in names.split()
}


def extensions_with(number: int) -> frozenset[str]:
    """Returns the extensions that add an opcode or an enumerant with this number."""
    return frozenset[str]().union(*(names for (_, value), names in _EXTENSIONS.items() if value == number))


def opcodes_of(*groups: str) -> Iterator[int]:
    """Yields the opcodes in classes of instructions."""
    return (opcode for opcode, layout in LAYOUTS.items() if layout.group in groups)


def parameters_of(kind: str, value: int) -> Iterator[str]:
    """Yields the kinds of the operands that follow a value of an enumeration or bit mask."""
    values = (1 << bit for bit in range(32) if value >> bit & 1) if kind in BIT_MASK_KINDS else (value,)
    for flag in values:
        yield from _PARAMETERS.get((kind, flag), ())


def operand_kinds(words: Sequence[int], start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yields the operands of an instruction as (index of the first word, kind).

    A literal whose width depends on a type counts as one word, unless it is the last operand. An instruction that is
    not in the grammar has no operands. ``words`` are the whole module, ``start`` and ``end`` delimit the instruction.
    """
    layout = LAYOUTS.get(words[start] & 0xFFFF)
    pending = list(reversed(layout.operands)) if layout else []
    at = start + 1
    while pending and at < end:
        kind = pending.pop()
        if kind[-1] == "*":
            pending.append(kind)
        kind = kind.rstrip("?*")
        if kind in PAIR_KINDS:
            pending.extend(reversed(PAIR_KINDS[kind]))
            continue
        yield at, kind
        value = words[at]
        at += 1
        if kind == "LiteralString":
            while at < end and words[at - 1] >> 24:
                at += 1
        elif kind == "LiteralSpecConstantOpInteger":
            folded = LAYOUTS.get(value)
            pending.extend(reversed(folded.operands[2:]) if folded else ())
        elif kind in ENUMERATIONS:
            pending.extend(reversed(tuple(parameters_of(kind, value))))
