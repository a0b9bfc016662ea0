"""The chunks of a study on a cluster: divided, queued by device, and retried when a worker was lost."""

from __future__ import annotations

import itertools
import math
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..definition.point import Point, paired
from ..sampling.turns import Prior
from .worker import Chunk

MAX_ATTEMPTS: Final = 3
"""The number of workers that may be lost while measuring a point before the point counts as the cause."""


class ChunkQueue:
    """The waiting chunks of one repeat, by device.

    Points are distributed at random, so that chunks are alike. With ``apart`` each chunk is measured in a process of
    its own.
    """

    def __init__(self, seed: int, *, repeat: int = 1, apart: bool = False) -> None:
        self._repeat = repeat
        self._apart = apart
        self._random = random.Random(seed + repeat - 1)
        self._waiting: dict[str, deque[Chunk]] = {}
        self._numbers = itertools.count()

    def add_points(
        self, device: str, points: Sequence[Point], priors: Mapping[int, Prior], *, slots: int, most: int
    ) -> None:
        """Divides points of a device into ``slots`` chunks, or more, of at most ``most`` points each.

        The two points of a pair are in the same chunk.
        """
        shuffled = paired(points)
        self._random.shuffle(shuffled)
        count = min(len(shuffled), max(slots, math.ceil(len(points) / most)))
        for index in range(count):
            mine = tuple(itertools.chain.from_iterable(shuffled[index::count]))
            own = {point.index: priors[point.index] for point in mine if point.index in priors}
            self._waiting.setdefault(device, deque()).append(
                Chunk(next(self._numbers), device, mine, own, repeat=self._repeat, apart=self._apart)
            )

    def add_peaks(self, device: str) -> None:
        """Adds the chunk that measures a device's peaks, before all others."""
        self._waiting.setdefault(device, deque()).appendleft(Chunk(next(self._numbers), device, peaks=True))

    def take(self, device: str) -> Chunk:
        """Takes the next chunk of a device that has a chunk."""
        chunk = self._waiting[device].popleft()
        if not self._waiting[device]:
            del self._waiting[device]
        return chunk

    def put_back(self, chunk: Chunk) -> None:
        """Puts a chunk that was not started back at the front of its device's queue."""
        self._waiting.setdefault(chunk.device, deque()).appendleft(chunk)

    def retry(self, chunk: Chunk) -> bool:
        """Makes a chunk the next of its device again; returns false if it has no attempts left.

        After two lost workers it is divided into its points and pairs, so that a faulty point does not fail the others.
        """
        if chunk.attempt >= MAX_ATTEMPTS:
            return False
        again = replace(chunk, attempt=chunk.attempt + 1)
        parts = [again]
        if again.attempt == MAX_ATTEMPTS and len(chunk.points) > 1:
            parts = [replace(again, number=next(self._numbers), points=pair) for pair in paired(chunk.points)]
        self._waiting.setdefault(chunk.device, deque()).extendleft(reversed(parts))
        return True

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices with waiting chunks, sorted by the number of chunks, largest first."""
        return tuple(sorted(self._waiting, key=lambda device: -len(self._waiting[device])))

    def drain(self, device: str) -> Iterator[Chunk]:
        """Takes all chunks of a device."""
        while device in self._waiting:
            yield self.take(device)

    def __bool__(self) -> bool:
        return bool(self._waiting)
