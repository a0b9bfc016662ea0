"""``pumice compile --tune``: tunes a program on a device, and shows the progress."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ...base.closeable import Closeable
from ...base.terminal import console_environment, printable
from ..device_targets import device_profile
from ..errors import needs_study_extra, usage_error
from ..streams import note

if TYPE_CHECKING:
    from ...compiler.abi.calling_convention import CallingConvention
    from ...compiler.kernels.scalars.target import Target
    from ...compiler.origin import Origin
    from ...tuning.database import Finding


def tuned(
    data: bytes,
    name: str,
    origin: Origin,
    convention: CallingConvention | None,
    device: str | None,
    tuning: Path | None,
    seconds: float | None,
) -> Target:
    """Tunes a program on a device; returns the target with the result. Arguments are those of the command line.

    Raises: as ``tune_program``, and UsageError for a device that does not exist.
    """
    if device is not None and device.endswith(".json"):
        raise usage_error(f"--tune: expected a device at hand to measure on, got the profile {device}")
    profile = device_profile(device)
    if profile is None:
        raise usage_error("--tune: expected a Vulkan device, got the reference device")
    with needs_study_extra():
        from ...tuning.tuner import DEFAULT_SECONDS, tune_program
    from ...hal_vulkan import shared_driver

    uri = f"vulkan://{shared_driver().profiles.index(profile)}"
    limit = DEFAULT_SECONDS if seconds is None else seconds
    with _Shown() as shown:
        try:
            target, done = tune_program(
                data, name, origin, profile, uri, convention=convention, path=tuning, seconds=limit, progress=shown
            )
        except KeyboardInterrupt:
            note("interrupted; what was found so far is kept, and the same command goes on from there")
            raise
    for line in done.refused:
        note(f"left out: {printable(line)}")
    left = f", {done.left} not done after {limit:g} s: the same command goes on" if done.left else ""
    kinds = f"{done.regions} kind{'s' * (done.regions != 1)} of kernels"
    measured = f"{done.measured} measurement{'s' * (done.measured != 1)}"
    note(f"tuned {kinds} on {printable(profile.name)}, {measured}{left}")
    if not done.regions and not done.left:
        note("each kernel of this program can be computed in one way only, or its lengths depend on the call")
    return target


class _Shown(Closeable):
    """Progress on stderr: a bar on a terminal, else a line for each class of regions."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        if sys.stderr is not None and sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True, markup=False, _environ=console_environment()),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None)
            self._bar.start()

    def measuring(self, region: str, strategy: str, done: int, total: int) -> None:
        """Shows the class and strategy; see ``tuner.Progress``."""
        if self._bar is not None:
            text = f"{region.partition(' ')[0]}: {strategy}"
            self._bar.update(self._task, completed=done, total=total, description=printable(text)[:60])

    def finished(self, region: str, finding: Finding) -> None:
        """Shows the winner; see ``tuner.Progress``."""
        line = f"{region.partition(' ')[0]}: {finding.winner}, {finding.ratio:.2f} of the estimated best's time"
        if self._bar is not None:
            self._bar.console.print(printable(line), highlight=False)
        else:
            note(printable(line))

    def close(self) -> None:
        """Removes the bar; idempotent."""
        if self._bar is not None:
            self._bar.stop()
