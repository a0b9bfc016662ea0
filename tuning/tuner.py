"""Measures what may compute the regions of a program, and keeps what is fastest."""

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
"""That tuning takes at most."""


class Progress(Protocol):
    """Is told how far tuning is."""

    def measuring(self, region: str, strategy: str, done: int, total: int) -> None:
        """A strategy is measured for a class of regions, after ``done`` of all ``total`` of them."""
        ...

    def finished(self, region: str, finding: Finding) -> None:
        """All strategies for a class were measured."""
        ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """What tuning did.

    Attributes:
        regions: classes that all strategies were measured for, earlier or now.
        left: classes that are not done, because time was up.
        measured: strategies that were measured now.
        refused: strategies that the device does not take, or that compute something else, with the reason.
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
    """Measures, for each class of regions, all strategies that it does not know of yet.

    The one that is estimated to be the fastest holds until another is known to be faster (``study.statistics``), at a
    level of 95 % and by 2 % at least. Each is measured on arguments of its own, in turn with the one that holds, and
    its results are held against those of the first. What was found is kept after each; so an interrupted run goes on
    where it stopped.

    Args:
        regions: of ``tunable_regions``.
        uri: of the device.
        database: of the same device.
        seconds: after which nothing more is begun.
        progress: told about it.

    Raises:
        PumiceError: as ``TuningDatabase.store``, before anything is measured.
        DeviceLostError: the device was lost; what was found before is kept.
        KeyboardInterrupt: by the user; what was found is kept.
    """
    tuner = _Tuner(uri, database, time.monotonic() + seconds, progress)
    tuner.total = sum(len(each.candidates) - 1 for each in regions)
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
    """Tunes a program for a device; gives the target to compile it with.

    Args:
        data, file_name, origin, convention: as for ``compiler.pipeline.compile_data``.
        profile, uri: the device.
        path: the file of the database, None for the cache.
        seconds, progress: as for ``tune``.

    Raises: as ``compile_data``, ``TuningDatabase`` and ``tune``.
    """
    database = TuningDatabase.open(profile, path)
    regions = tunable_regions(data, file_name, target_of(profile), origin, convention)
    done = tune(regions, uri, database, seconds=seconds, progress=progress)
    return replace(target_of(profile), tuned=database.winners), done


class _Tuner:
    """One run."""

    def __init__(self, uri: str, database: TuningDatabase, deadline: float, progress: Progress | None) -> None:
        self._uri, self._database, self._deadline, self._progress = uri, database, deadline, progress
        self.total = self.measured = self._done = 0
        self.refused: list[str] = []

    def region(self, region: TunableRegion, pool: DevicePool) -> bool:
        """Measures the strategies for a region that were not tried; returns whether none is left."""
        texts = [each.text() for each in region.candidates]
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
        # What is too much for one kernel needs no measurement.
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
        """Lets the others challenge the one that holds; returns those that time was up for."""
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
                        found = duel(holder, challenger, self._deadline)
                        if found is None:
                            return [text, *waiting]
                        if found.verdict is Verdict.FASTER:
                            holder, challenger = challenger, holder
                            known = Finding(text, known.tried, known.ratio * found.ratio)
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
    """The kernels of the strategies for a region, without those that are too much for one."""
    found = {}
    for each in region.candidates:
        with contextlib.suppress(CompileError):
            found[each.text()] = each.emit(region.region)
    return found
