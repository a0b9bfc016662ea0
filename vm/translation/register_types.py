"""The register type of each 32-bit slot, as instructions and copies change it.

A state is a dict from slot to type: ``i`` (i32), ``I`` (i64), ``f`` (f32), ``F`` (f64); ``J`` and ``G`` for the upper
half of an ``I`` or ``F``; ``?`` for half of a value that was partly overwritten. A slot that is not in it was never
written, and so is a zero of any type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .basic_block import Edge, Variable

_WIDE: Final = {"I": "J", "F": "G"}  # type of the high slot of a pair


def write_type(state: dict[int, str], variable: Variable) -> None:
    """Notes that a variable was written; the other half of a pair that it overlaps becomes ``?``."""
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


def read_type(state: Mapping[int, str], variable: Variable) -> bool:
    """Whether a register is read as the type that it holds; one that was never written is a zero of any type."""
    kind, number = variable
    if kind == "r":
        return True
    if state.get(number, kind) != kind:
        return False
    return kind not in _WIDE or (
        state.get(number + 1, _WIDE[kind]) == _WIDE[kind] and (number in state) == (number + 1 in state)
    )


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
    """Whether an edge's live copies move whole values into whole pairs."""
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
