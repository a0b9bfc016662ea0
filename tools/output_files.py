"""Results that are printed or stored in files; a failure of one result does not prevent the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from ..base.files import write_all, write_whole, writing_errors
from ..base.terminal import printable
from ..status import PumiceError, UnavailableError
from .errors import describe
from .streams import note, put


def store(path: Path, write: Callable[[BinaryIO], object], *, where: str, append: bool = False) -> None:
    """Writes a file, or appends to it. Errors are those of `write_whole`, with ``where``, the option with its name."""
    try:
        if append:
            with writing_errors(path), path.open("ab") as file:
                write(file)
        else:
            write_whole(path, write)
    except PumiceError as error:
        error.location = where
        raise


def store_all(files: Mapping[Path, bytes], *, where: str) -> None:
    """Writes several files, or none. Errors are those of `write_all`, with ``where``, the option with their names."""
    try:
        write_all(files)
    except PumiceError as error:
        error.location = where
        raise


class Outputs:
    """Prints and stores results.

    Calling sequence: ``put`` or ``storing`` each result → ``finish``, which raises the first failure.
    """

    def __init__(self) -> None:
        self._unprintable: BrokenPipeError | UnavailableError | None = None
        self._failures: list[PumiceError] = []

    @property
    def failed(self) -> bool:
        """Whether a result could not be stored."""
        return bool(self._failures)

    def put(self, text: str) -> None:
        """Prints a result, unless an earlier result could not be printed."""
        if self._unprintable is None:
            try:
                put(text)
            except (BrokenPipeError, UnavailableError) as error:
                self._unprintable = error

    @contextlib.contextmanager
    def storing(self) -> Iterator[None]:
        """Wraps the storing of a result; errors are kept for the end."""
        try:
            yield
        except PumiceError as error:
            self._failures.append(error)

    def finish(self) -> None:
        """Raises the first failure, if any, and notes the others."""
        first = self._unprintable or (self._failures.pop(0) if self._failures else None)
        for other in self._failures:
            note(f"error: {printable(describe(other))}")
        if first is not None:
            raise first
