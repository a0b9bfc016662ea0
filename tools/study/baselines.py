"""Named baselines: complete results with the measured programs, ``DIR/NAME/results.sqlite``."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path
from typing import Final

import click

from ...base.files import writing_errors
from ...base.terminal import printable
from ...status import shown
from ..errors import usage_error
from ..options import OptionDecorator
from ..streams import note
from .judgement import Judgement, Outcome

_FAILED: Final = 1
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

baselines_option: OptionDecorator = click.option(
    "--baselines",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".pumice", "baselines"),
    show_default=True,
    metavar="DIR",
    help="Where named baselines are.",
)
save_option: OptionDecorator = click.option(
    "--save",
    metavar="NAME",
    callback=lambda ctx, parameter, value: None if value is None else _checked(value),
    help="Keep the results as a baseline, unless a point failed or is slower.",
)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise usage_error(f"--save: expected a name of letters, digits and ._- such as main, got {shown(name)}")
    if Path(name).is_file() or (Path(name) / "results.sqlite").is_file():
        raise usage_error(f"--save {name}: --against {name} would mean the file of that name; take another name")
    return name


def baseline_names(baselines: Path) -> list[str]:
    """Returns the names of the baselines in a folder."""
    return sorted(path.parent.name for path in baselines.glob("*/results.sqlite"))


def find_baseline(baselines: Path, name: str) -> Path | None:
    """Returns the folder of a baseline; None if there is none."""
    path = baselines / name
    return path if _NAME.fullmatch(name) and (path / "results.sqlite").is_file() else None


def check_baselines(baselines: Path) -> None:
    """Creates the folder, and fails early if it is not writable: before minutes of measuring."""
    with writing_errors(baselines):
        baselines.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=baselines).close()


def save_measured(
    results: Path, baselines: Path, name: str, status: int, judged: Judgement | None, *, kept: bool = True
) -> None:
    """Saves results unless the exit status reports a failed point, or the gate found a slower point, even if it does
    not fail on that. ``kept`` says that the user named their folder.
    """
    from ...study.results.results import Results
    from ...study.results.storage.records import PointStatus

    slower = judged is not None and judged.count(Outcome.SLOWER) > 0
    if status == _FAILED or slower:
        note(f"not saved as {name}: {'a point failed' if status == _FAILED else 'a point is slower'}")
        return
    note(printable(f"saved as {name}: {save_baseline(results, baselines, name)}"))
    with Results.open(results) as saved:
        points = [point.point for point in saved.points if point.status is PointStatus.NOISY]
    noisy = ", ".join(point.label for point in points if not point.is_against)
    if noisy:
        how = "the same command with --continue --more-time S" if kept else "--set time_limit=S"
        again = f"its times tell little, though --against {name} measures its programs again"
        note(printable(f"{name} is too noisy at {noisy}: {again}. To measure longer: {how}"))


def save_baseline(results: Path, baselines: Path, name: str) -> Path:
    """Copies the results in a folder to a baseline and returns the baseline's folder.

    An existing baseline is replaced when the copy is on disk. Errors are those of ``files.write_whole``, and
    FailedPreconditionError if a run is writing to it.
    """
    from ...study.results.storage.database import Reader, database_errors, results_path
    from ...study.results.storage.results_file import LOCK_FILE, WriterLock

    folder = baselines / name
    target = results_path(folder)
    part = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    with writing_errors(target):
        folder.mkdir(parents=True, exist_ok=True)
        reader = Reader(results_path(results))
        try:
            with database_errors(part, "saving a baseline"):
                reader.connection.execute("VACUUM INTO ?", (str(part),))
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            with contextlib.ExitStack() as stack:
                if (folder / LOCK_FILE).is_file():  # a run has measured into it
                    stack.enter_context(contextlib.closing(WriterLock(folder, str)))
                # The log of a killed run belongs to the replaced file; with the new file it would be damage.
                for ending in ("-wal", "-shm", "-journal"):
                    target.with_name(target.name + ending).unlink(missing_ok=True)
                part.replace(target)
        finally:
            reader.close()
            part.unlink(missing_ok=True)
    return folder
