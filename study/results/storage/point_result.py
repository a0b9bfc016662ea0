"""The result of one point: its status and its samples as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ....status import InvalidArgumentError
from ...definition.point import Point
from ...definition.sample import Sample
from .database import values_as_written
from .records import DISTURBED, PointStatus, SampleFlag, kept, overall_status
from .rows import DURATIONS, SAMPLE_COLUMNS, Value, sample_from_row

SAMPLE_FIELDS: Final = ("number", "run", "repeat", "block", "phase", "flags", *SAMPLE_COLUMNS)
"""The columns of ``samples``, and the repeat of its run, in the rows that a point result is made of."""

_INTEGERS: Final = ("number", "run", "repeat", "block", "flags", "started_ns", "dispatches")
_TEXTS: Final = ("phase", "stage", "barrier")

Row = Sequence[Value]
Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class PointResult:
    """One point of a study with its measurements; created by ``Results``, reads samples on demand.

    Arrays of the same phase and ``keep`` have the same length and order, that of sampling.

    Attributes:
        point: the point.
        status: the latest status, combined over the point's repeats; see ``overall_status``.
        reason: the reason for the status, or empty.
        repeats: the status and the reason in each repeat that was begun, in order.
        baseline: the result of the empty kernel in this point's setting, or None.
        against: the result of the other side's point that was measured in turns with this point, or None.
    """

    def __init__(
        self, point: Point, repeats: Sequence[tuple[PointStatus, str]], read: Callable[[int], Sequence[Row]]
    ) -> None:
        self.point: Final = point
        self.repeats: Final = tuple(repeats)
        status, reason = overall_status(repeats)
        self.status: Final = status
        self.reason: Final = reason
        self.baseline: PointResult | None = None
        self.against: PointResult | None = None
        self._read = read
        self._rows: Sequence[Row] | None = None
        self._columns: dict[str, npt.NDArray[np.generic]] = {}

    @property
    def error(self) -> str:
        """The text of the error that ended the point, or empty."""
        return self.reason if self.status is PointStatus.FAILED else ""

    def values(self, name: str = "headline", phase: str = "sample", *, keep: SampleFlag | None = None) -> Array:
        """Returns one duration of every sample, in nanoseconds of all dispatches of the sample together.

        Args:
            name: a segment, ``"total"``, ``"device"``, ``"overlap"``, ``"deviation"``, ``"cpu"``, or ``"headline"`` for
                the point's measure.
            phase: ``"sample"``, ``"warmup"`` or ``"first"``.
            keep: the flags of disturbed samples to include: ``None`` for all, ``SampleFlag(0)`` for undisturbed samples
                only, ``SampleFlag.PREEMPTED`` also for those that were only preempted.

        Returns:
            The values in nanoseconds; NaN if the segment does not apply to a sample or is not known.

        Raises:
            InvalidArgumentError: there is no such duration.
        """
        field = self.point.measure if name == "headline" else name
        if field not in DURATIONS:
            raise InvalidArgumentError(f"a sample has headline, {', '.join(DURATIONS)}; got {name!r}")
        return self._column(f"{field}_ns")[self.mask(phase, keep=keep)].astype(np.float64)

    def per_dispatch(self, name: str = "headline", phase: str = "sample", *, keep: SampleFlag | None = None) -> Array:
        """Returns ``values`` divided by the dispatches of each sample, in nanoseconds.

        If dispatches of a sample may overlap (``overlapping``) this is their marginal cost, not their duration.
        """
        return self.values(name, phase, keep=keep) / self.integers("dispatches", phase, keep=keep)

    def integers(self, name: str, phase: str = "sample", *, keep: SampleFlag | None = None) -> Integers:
        """Returns an integer of every sample: ``"number"``, ``"run"``, ``"repeat"``, ``"block"``, ``"flags"``,
        ``"started_ns"`` or ``"dispatches"``.

        Block numbers are those stored: each run may have its own block 0. ``blocks`` distinguishes them.
        """
        if name not in _INTEGERS:
            raise InvalidArgumentError(f"integers of a sample are {', '.join(_INTEGERS)}; got {name!r}")
        return self._column(name)[self.mask(phase, keep=keep)].astype(np.int64)

    def mask(self, phase: str = "sample", *, keep: SampleFlag | None = None) -> npt.NDArray[np.bool_]:
        """Selects the rows of a phase, of all rows of the point, whose flags ``keep`` allows."""
        chosen: npt.NDArray[np.bool_] = self._column("phase") == phase
        if keep is not None:
            chosen &= (self._column("flags").astype(np.int64) & ~int(keep)) == 0
        return chosen

    def blocks_of(self, phase: str = "sample", *, keep: SampleFlag | None = None) -> Integers:
        """Returns the block of each sample, numbered from 0 over all runs."""
        runs, blocks = (self.integers(name, phase, keep=keep) for name in ("run", "block"))
        _, numbers = np.unique(np.stack([runs, blocks]), axis=1, return_inverse=True)
        return np.asarray(numbers, dtype=np.int64).reshape(-1)

    def rounds_of(self, phase: str = "sample", *, keep: SampleFlag | None = None) -> Integers:
        """Returns the round of each sample, numbered from 1 over all runs: each opening of the point begins a round."""
        return np.cumsum(self._column("phase") == "first")[self.mask(phase, keep=keep)].astype(np.int64)

    @property
    def blocks(self) -> Integers:
        """The block of each measured sample: ``blocks_of()``."""
        return self.blocks_of()

    @property
    def runs(self) -> Integers:
        """The run of each measured sample."""
        return self.integers("run")

    @property
    def repeat(self) -> Integers:
        """The repeat of the study of each measured sample, from 1."""
        return self.integers("repeat")

    @property
    def flags(self) -> Integers:
        """The ``SampleFlag`` bits of each measured sample."""
        return self.integers("flags")

    @property
    def count(self) -> int:
        """The number of measured samples, including disturbed ones."""
        return int(np.count_nonzero(self.mask()))

    @property
    def keep(self) -> SampleFlag | None:
        """The ``keep`` argument for statistics: undisturbed samples, or all; see ``kept``."""
        undisturbed = kept((self.flags & int(DISTURBED)) != 0)
        return None if bool(np.all(undisturbed)) else ~DISTURBED

    @property
    def overlapping(self) -> bool:
        """Whether dispatches of a sample may have overlapped, so that a dispatch has no separate duration."""
        return bool(np.any(self._column("barrier")[self.mask()] == "none"))

    @property
    def first(self) -> tuple[Sample, ...]:
        """The first sample of the point in each process that ran it."""
        return self.samples("first")

    def samples(self, phase: str = "sample", *, keep: SampleFlag | None = None) -> tuple[Sample, ...]:
        start = len(SAMPLE_FIELDS) - len(SAMPLE_COLUMNS)
        rows = self._all_rows()
        places = np.flatnonzero(self.mask(phase, keep=keep)).tolist()
        with values_as_written(f"point {self.point.index} of the results"):
            return tuple(sample_from_row(rows[index][start:]) for index in places)

    def read_rows(self) -> Sequence[Row]:
        """Reads all stored rows in order, without caching them; their columns are ``SAMPLE_FIELDS``."""
        return self._read(self.point.index) if self._rows is None else self._rows

    def medians(self, *, keep: SampleFlag | None = None) -> Mapping[str, float]:
        """Returns the median of each duration that samples have, in nanoseconds."""
        medians = {}
        for name in DURATIONS:
            values = self.values(name, keep=keep)
            known = values[~np.isnan(values)]
            if known.size:
                medians[name] = float(np.median(known))
        return medians

    def _all_rows(self) -> Sequence[Row]:
        self._rows = self.read_rows()
        return self._rows

    def _column(self, name: str) -> npt.NDArray[np.generic]:
        column = self._columns.get(name)
        if column is None:
            index = SAMPLE_FIELDS.index(name)
            kind = np.int64 if name in _INTEGERS else np.str_ if name in _TEXTS else np.float64
            rows = self._all_rows()
            with values_as_written(f"point {self.point.index} of the results"):
                # NumPy converts None to NaN for floats.
                column = self._columns[name] = np.array([row[index] for row in rows], dtype=kind)
        return column

    def __repr__(self) -> str:
        return f"<PointResult {self.point.index} {self.point.label}, {self.status}>"
