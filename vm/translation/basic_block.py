"""Basic blocks: the operands of their instructions, and the edges between them.

Registers are untyped. A *variable* is a register with its type at some position: ``("i", 3)``, ``("I", 4)`` (slots 4
and 5), ``("r", 0)``. Each variable becomes a Python local.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final, TypeAlias

from ...base.lazy_dataclass import dataclass
from ..bytecode.decoder import BranchOperands
from ..bytecode.isa import MOVE_BIT, REF_BIT, REF_MASK

Variable: TypeAlias = tuple[str, int]


class Edge:
    """A branch from one block to another."""

    __slots__ = ("operands", "refs", "target", "values")

    def __init__(self, target: int, operands: BranchOperands = ()) -> None:
        self.target: int = target  # index of the block
        self.operands: BranchOperands = (
            operands  # pairs of source and destination register, raw, copied one after another
        )
        # The same copies as one parallel copy: source by destination, for value slots and for references (``None``:
        # null).
        self.values: dict[int, int] = {}
        self.refs: dict[int, int | None] = {}
        for source, destination in operands:
            if source & REF_BIT:
                name, to = source & REF_MASK, destination & REF_MASK
                if name != to:
                    self.refs[to] = self.refs.get(name, name)
                    if source & MOVE_BIT:
                        self.refs[name] = None
            else:
                self.values[destination] = self.values.get(source, source)
        if operands:
            self.values = {to: source for to, source in self.values.items() if to != source}
            self.refs = {to: source for to, source in self.refs.items() if to != source}


@dataclass(slots=True, eq=False)
class Block:
    """The instructions between a marker and a terminator."""

    index: int  # in the order of the code
    start: int  # index of the marker
    end: int  # after the terminator
    edges: list[Edge] = field(default_factory=list)
    live_in: int = 0  # masks of registers
    live_out: int = 0


_WIDE: Final = {"I": "J", "F": "G"}  # type of the high slot of a pair


def write_types(state: dict[int, str], variables: Iterable[Variable]) -> None:
    """Records that variables were written; the other half of an overlapped pair becomes ``?``."""
    for kind, number in variables:
        if kind == "r":
            continue
        if state.get(number) in ("J", "G"):
            state[number - 1] = "?"
        if kind in _WIDE:
            if state.get(number + 1) in _WIDE:
                state[number + 2] = "?"
            state[number + 1] = _WIDE[kind]
        elif state.get(number) in _WIDE:
            state[number + 1] = "?"
        state[number] = kind


def has_types(state: Mapping[int, str], variables: Iterable[Variable]) -> bool:
    """Whether slots hold variables of these types. Slots that were never written are zero, of any type."""
    for kind, number in variables:
        if kind == "r":
            continue
        if state.get(number, kind) != kind:
            return False
        if kind in _WIDE and not (
            state.get(number + 1, _WIDE[kind]) == _WIDE[kind] and (number in state) == (number + 1 in state)
        ):
            return False
    return True


def edge_types(state: Mapping[int, str], edge: Edge) -> dict[int, str]:
    """Returns the types after an edge's copies."""
    after = dict(state)
    for target, source in edge.values.items():
        kind = state.get(source)
        if kind is None:
            after.pop(target, None)
        else:
            after[target] = kind
    return after


def edge_is_whole(state: Mapping[int, str], edge: Edge, live: int) -> bool:
    """Whether an edge's live copies move complete values into complete pairs."""
    values = edge.values
    for target, source in values.items():
        if not live >> target & 1:
            continue
        kind = state.get(source)
        if kind is None:
            return False  # never written: its type is unknown here
        if kind in _WIDE:
            if values.get(target + 1) != source + 1 or target & 1:
                return False
        elif kind in ("J", "G"):
            if values.get(target - 1) != source - 1:
                return False
        elif kind == "?":
            return False
    return True


def merge_types(known: dict[int, str], other: Mapping[int, str], live: int) -> bool:
    """Merges the live slots of ``other`` into ``known``; returns whether anything changed."""
    changed = False
    for slot, kind in other.items():
        if live >> slot & 1:
            before = known.get(slot)
            if before != kind and before != "?":
                known[slot] = kind if before is None else "?"
                changed = True
    return changed
