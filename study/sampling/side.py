"""A side: one point as the sampler sees it, measured in this process or in another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..definition.point import Point


class Block(NamedTuple):
    """A block of samples: the headline of each, its ``SampleFlag`` bits, and how long all of them took."""

    values: Sequence[float]
    flags: Sequence[int]
    elapsed_ns: int


class Side(Protocol):
    """Measures one point. Calling sequence: ``start`` → ``take_block`` any number of times → ``close``; or ``release``
    and ``start`` again. ``start`` may follow ``close``, too. One thread at a time.
    """

    @property
    def point(self) -> Point:
        """The measured point."""

    @property
    def is_apart(self) -> bool:
        """Whether each opening is in a process of its own."""

    def start(self, block: int, *, again: bool) -> None:
        """Opens the workload afresh; the first call is block ``block`` of the sink, warm-up the next one. ``again``: it
        was open before, and warm-up is short.
        """

    def take_block(self, block: int, samples: int, *, most_ns: int) -> Block:
        """Takes samples, fewer if they take longer than ``most_ns``, and adds them to the sink."""

    def read_reference(self) -> None:
        """Reads the reference like the point's load, if it is due; called between turns."""

    def release(self) -> None:
        """Closes the workload, to be opened again; idempotent."""

    def close(self) -> None:
        """Releases everything; idempotent."""
