"""The tuner: measures the strategies for the regions of a program, and keeps the fastest."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from ..base.lazy_dataclass import dataclass
from ..compiler.abi.calling_convention import CallingConvention
from ..compiler.ir.source import CompileError
from ..compiler.kernels.kernel import Kernel
from ..compiler.kernels.scalars.device_target import target_of
from ..compiler.kernels.scalars.target import Target
from ..compiler.origin import Origin
from ..status import DeviceLostError, PumiceError
from ..study.statistics.comparison import Verdict
from ..study.workloads.workload import DevicePool
from .database import Finding, NamedDevice, TuningDatabase
from .duel import Contestant, bindings_of, duel, same_results
from .regions import TunableRegion, tunable_regions

DEFAULT_SECONDS: Final = 60.0
"""The longest time that tuning takes, in seconds."""


class Progress(Protocol):
    """Receives the progress of tuning."""

    def measuring(self, region: str, strategy: str, done: int, total: int) -> None:
        """Reports that a strategy for a class of regions is about to be measured; ``done`` of ``total`` are."""
        ...

    def finished(self, region: str, finding: Finding) -> None:
        """Reports that all strategies for a class are measured."""
        ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """A summary of one run of tuning.

    Attributes:
        regions: the number of classes that have all their strategies measured, by this run or earlier.
        left: the number of classes that are unfinished, because time was up.
        measured: the number of strategies that this run measured.
        refused: the strategies that the device refuses, or whose results differ, with the reason.
    """

    regions: int
    left: int
    measured: int
    refused: tuple[str, ...]


def tune(
    regions: Sequence[TunableRegion],
    uri: str,
    database: TuningDatabase,
    *,
    seconds: float = DEFAULT_SECONDS,
    progress: Progress | None = None,
) -> Tuning:
    """Measures all strategies of each class of regions that the database does not have yet.

    The strategy with the lowest estimate holds the class. A challenger replaces it if it is faster by at least 2 % at a
    level of 95 % (``study.statistics``). Holder and challenger are measured in turn, each on arguments of its own, and
    their results are compared. Findings are stored after each strategy, so an interrupted run resumes where it stopped.

    Args:
        regions: the regions from ``tunable_regions``.
        uri: the device's URI.
        database: the database of the same device.
        seconds: the seconds after which no measurement begins.
        progress: the receiver of progress.

    Raises:
        PumiceError: the database cannot be written, which is tried before anything is measured.
        DeviceLostError: the device was lost; earlier findings are kept.
        KeyboardInterrupt: the user interrupted tuning; earlier findings are kept.
    """
    tuner = _Tuner(uri, database, time.monotonic() + seconds, progress)
    tuner.total = sum(len(tunable.candidates) - 1 for tunable in regions)
    left = 0
    with DevicePool() as pool:
        for region in regions:
            left += not tuner.region(region, pool)
    return Tuning(len(regions) - left, left, tuner.measured, tuple(tuner.refused))


def tune_program(
    data: bytes,
    file_name: str,
    origin: Origin,
    profile: NamedDevice,
    uri: str,
    *,
    convention: CallingConvention | None = None,
    path: Path | None = None,
    seconds: float = DEFAULT_SECONDS,
    progress: Progress | None = None,
) -> tuple[Target, Tuning]:
    """Tunes a program for a device; returns the target to compile it with.

    Args:
        data, file_name, origin, convention: the same as for ``compiler.pipeline.compile_data``.
        profile, uri: the device.
        path: the file of the database; None for the cache.
        seconds, progress: the same as for ``tune``.

    Raises: as ``compile_data``, ``TuningDatabase`` and ``tune``.
    """
    database = TuningDatabase.open(profile, path)
    regions = tunable_regions(data, file_name, target_of(profile), origin, convention)
    done = tune(regions, uri, database, seconds=seconds, progress=progress)
    return replace(target_of(profile), tuned=database.winners), done


class _Tuner:
    """One run of tuning."""

    def __init__(self, uri: str, database: TuningDatabase, deadline: float, progress: Progress | None) -> None:
        self._uri, self._database, self._deadline, self._progress = uri, database, deadline, progress
        self.total = self.measured = self._done = 0
        self.refused: list[str] = []

    def region(self, region: TunableRegion, pool: DevicePool) -> bool:
        """Measures the strategies for a region that were not tried; returns whether none is left."""
        texts = [strategy.text() for strategy in region.candidates]
        known = self._database.findings.get(region.name)
        tried = known.tried if known is not None else texts[:1]
        waiting = [text for text in texts if text not in tried]
        self._done += len(texts) - 1 - len(waiting)
        if not waiting or time.monotonic() >= self._deadline:
            return not waiting
        if not self.measured:
            self._database.store()  # a file that cannot be written is an error before anything is measured
        kernels = _kernels(region)
        if known is None or known.winner not in kernels:
            first = next(iter(kernels))
            known = Finding(first, (first,))
        # A strategy whose kernel is too large is not measured.
        known = Finding(known.winner, (*known.tried, *(text for text in waiting if text not in kernels)), known.ratio)
        waiting = [text for text in texts if text not in known.tried]
        with tempfile.TemporaryDirectory(prefix="pumice-tuning-") as folder:
            return not self._measure(region, kernels, known, waiting, pool, Path(folder))

    def _measure(
        self,
        region: TunableRegion,
        kernels: Mapping[str, Kernel],
        known: Finding,
        waiting: list[str],
        pool: DevicePool,
        folder: Path,
    ) -> list[str]:
        """Lets the other strategies challenge the holder; returns those for which time was up."""
        types = [value.tensor for value in region.region.results]
        bindings = bindings_of(region.region, kernels[known.winner], folder)
        holder = Contestant(kernels[known.winner], bindings, pool, self._uri, folder)
        try:
            while waiting and time.monotonic() < self._deadline:
                text = waiting.pop(0)
                if self._progress is not None:
                    self._progress.measuring(region.name, text, self._done, self.total)
                challenger = None
                try:
                    challenger = Contestant(kernels[text], bindings, pool, self._uri, folder)
                    if same_results(types, holder, challenger):
                        comparison = duel(holder, challenger, self._deadline)
                        if comparison is None:
                            return [text, *waiting]
                        if comparison.verdict is Verdict.FASTER:
                            holder, challenger = challenger, holder
                            known = Finding(text, known.tried, known.ratio * comparison.ratio)
                    else:
                        self.refused.append(f"{text}: not the results of {known.winner}; {region.name}")
                except DeviceLostError:
                    raise
                except PumiceError as error:
                    self.refused.append(f"{text}: {error}; {region.name}")
                finally:
                    if challenger is not None:
                        challenger.close()
                known = Finding(known.winner, (*known.tried, text), known.ratio)
                self._database.findings[region.name] = known
                self._database.store()
                self._done += 1
                self.measured += 1
        finally:
            holder.close()
        if not waiting and self._progress is not None:
            self._progress.finished(region.name, known)
        return waiting


def _kernels(region: TunableRegion) -> dict[str, Kernel]:
    """Returns the kernels of the strategies for a region, without kernels that are too large."""
    kernels = {}
    for strategy in region.candidates:
        with contextlib.suppress(CompileError):
            kernels[strategy.text()] = strategy.emit(region.region)
    return kernels
