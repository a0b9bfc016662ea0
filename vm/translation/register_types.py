"""What kind of value each 32-bit slot holds, as instructions and copies change it.

A state is a dict from slot to kind: ``i``, ``I``, ``f``, ``F``; ``J`` and ``G`` for the upper half of an ``I`` or ``F``; ``?`` for
what is no whole value any more. A slot that is not in it was never written, and so is a zero of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .basic_block import Edge, Variable

__all__ = ["edge_is_whole", "edge_kinds", "merge_kinds", "read_kind", "write_kind"]

_WIDE: Final = {"I": "J", "F": "G"}  # kind of the high slot of a pair


def write_kind(state: dict[int, str], variable: Variable) -> None:
    """Notes that a variable was written; half of a pair that it overlaps is spoilt."""
    kind, number = variable
    if kind == "r":
        return
    if state.get(number) in ("J", "G"):
        state[number - 1] = "?"
    if kind in _WIDE:
        if state.get(number + 1) in _WIDE:
            state[number + 2] = "?"
        state[number + 1] = _WIDE[kind]
    elif state.get(number) in _WIDE:
        state[number + 1] = "?"
    state[number] = kind


def read_kind(state: Mapping[int, str], variable: Variable) -> bool:
    """Whether a register holds what it is read as. What was never written is zero, of any kind."""
    kind, number = variable
    if kind == "r":
        return True
    if state.get(number, kind) != kind:
        return False
    return kind not in _WIDE or (
        state.get(number + 1, _WIDE[kind]) == _WIDE[kind] and (number in state) == (number + 1 in state)
    )


def edge_kinds(state: Mapping[int, str], edge: Edge) -> dict[int, str]:
    """The kinds after an edge's copies."""
    after = dict(state)
    for target, source in edge.values.items():
        kind = state.get(source)
        if kind is None:
            after.pop(target, None)
        else:
            after[target] = kind
    return after


def edge_is_whole(state: Mapping[int, str], edge: Edge, live: int) -> bool:
    """Whether an edge's copies that are live behind it move whole values, into whole places."""
    values = edge.values
    for target, source in values.items():
        if not live >> target & 1:
            continue
        kind = state.get(source)
        if kind is None:
            return False  # zero, never written: what it is to be read as is not known here
        if kind in _WIDE:
            if values.get(target + 1) != source + 1 or target & 1:
                return False
        elif kind in ("J", "G"):
            if values.get(target - 1) != source - 1:
                return False
        elif kind == "?":
            return False
    return True


def merge_kinds(known: dict[int, str], other: Mapping[int, str], live: int) -> bool:
    """Merges what is live of ``other`` into ``known``; whether that changed something."""
    changed = False
    for slot, kind in other.items():
        if live >> slot & 1:
            before = known.get(slot)
            if before != kind and before != "?":
                known[slot] = kind if before is None else "?"
                changed = True
    return changed
