"""Blocks of two points that were measured in turns, as pairs."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...statistics.samples import table_of_blocks
from ..storage.point_result import PointResult
from ..storage.records import SampleFlag

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class PairedBlocks(NamedTuple):
    """The samples of both points, pairs by samples, NaN where a block has fewer; the run of each pair, and its round.
    Pairs are of one round if neither point was reopened between them.
    """

    old: Array
    new: Array
    runs: Integers
    rounds: Integers


class _Blocks(NamedTuple):
    """The kept samples of a point by block, and each block's number, run, round, and begin."""

    table: Array
    numbers: Integers
    runs: Integers
    rounds: Integers
    started: Integers


def pairs_in_turns(old: PointResult, new: PointResult, measure: str, keep: SampleFlag | None) -> PairedBlocks:
    """Pairs the blocks of the two points of a pair: those of the same run and number."""
    sides = [_blocks(side, measure, keep) for side in (old, new)]
    old_keys, new_keys = ((side.runs << 32) + side.numbers for side in sides)
    _, first, second = np.intersect1d(old_keys, new_keys, assume_unique=True, return_indices=True)
    return _paired(sides, first, second)


def pairs_of_neighbours(
    old: PointResult, new: PointResult, measure: str, keep: SampleFlag | None, apart: Collection[int] = ()
) -> PairedBlocks:
    """Pairs the blocks of two points of a study that took turns: neighbours in time, one of each point. The order of
    turns is random, and the rule treats both points alike. Runs in ``apart`` measured the points on two hosts, and
    have no common time.
    """
    sides = [_blocks(side, measure, keep) for side in (old, new)]
    side = np.repeat([0, 1], [len(side.runs) for side in sides])
    row = np.concatenate([np.arange(len(side.runs)) for side in sides])
    runs, started = (np.concatenate([getattr(side, name) for side in sides]) for name in ("runs", "started"))
    pairs: list[tuple[int, int]] = []
    waiting = -1
    for index in np.lexsort([started, runs]).tolist():
        if runs[index] in apart:
            continue
        if waiting >= 0 and side[waiting] != side[index] and runs[waiting] == runs[index]:
            first, second = (waiting, index) if side[index] else (index, waiting)
            pairs.append((row[first], row[second]))
            waiting = -1
        else:
            waiting = index
    chosen = np.array(pairs, np.int64).reshape(-1, 2)
    return _paired(sides, chosen[:, 0], chosen[:, 1])


def _blocks(result: PointResult, measure: str, keep: SampleFlag | None) -> _Blocks:
    labels = result.blocks_of(keep=keep)
    begins = np.unique(labels, return_index=True)[1]
    runs, numbers, started = (result.integers(name, keep=keep)[begins] for name in ("run", "block", "started_ns"))
    table = table_of_blocks(result.values(measure, keep=keep), labels)
    return _Blocks(table, numbers, runs, result.rounds_of(keep=keep)[begins], started)


def _paired(sides: list[_Blocks], first: Integers, second: Integers) -> PairedBlocks:
    old, new = sides
    # The sides of a pair are opened together; a point of an ordinary study is opened on its own.
    openings = np.stack([old.rounds[first], new.rounds[second]])
    rounds = np.unique(openings, axis=1, return_inverse=True)[1]
    return PairedBlocks(old.table[first], new.table[second], old.runs[first], rounds.reshape(-1).astype(np.int64))
