"""stdout for results and stderr for notes, either of which may be closed, full, or without a reader.

Results that cannot be printed are an error. Notes (the device's name, times, error messages) are written if possible
and never prevent a result.

Imports nothing but click and the status codes, so that ``pumice --help`` stays fast.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Final, TextIO

import click

from ..status import UnavailableError

READER_GONE: Final = 141
"""The exit status when the reader of stdout is gone: 128 + SIGPIPE, as in shells."""


def put(text: str = "", *, end: str = "\n") -> None:
    """Writes results to stdout and flushes, so that failures occur here.

    Characters that its encoding lacks are escaped.
    """
    text += end
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error


def put_bytes(data: bytes) -> None:
    """Writes a result to stdout unchanged."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(error) from error


def note(text: str) -> None:
    """Writes a line to stderr, if possible."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True)
        return
    _discard(sys.stderr)


def open_closed_streams() -> None:
    """Replaces a stdout or stderr that was closed when the process started.

    Such a stdout fails on writes; such a stderr discards everything. Their descriptors are occupied, as otherwise a
    file opened later, such as a driver's, would get the number, and with it the output of libraries.
    """
    if sys.stdout is not None and sys.stderr is not None:
        return
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


@contextlib.contextmanager
def writing_results() -> Iterator[None]:
    """Distinguishes failed writes to stdout from other errors, whatever code wrote.

    Raises:
        click.exceptions.Exit: the reader of stdout is gone; the status is ``READER_GONE``.
        UnavailableError: stdout cannot be written; the message says why.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        raise click.exceptions.Exit(READER_GONE) from None
    except UnavailableError:
        discard_if_broken(sys.stdout)
        raise
    except OSError as error:
        if not _raised_by_click(error):
            raise
        discard_if_broken(sys.stdout)
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> UnavailableError:
    why = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return UnavailableError(
        f"the results cannot be printed on stdout: {why}; send stdout elsewhere, or name a file with --output"
    )


def _raised_by_click(error: OSError) -> bool:
    """Whether click was writing: it prints --help and --version itself, with errors that do not mention stdout."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__", "")).startswith("click.")


def discard_if_broken(stream: TextIO) -> None:
    """Discards the stream's buffer if it cannot be written, so that the interpreter does not fail at its end."""
    try:
        stream.flush()
    except OSError:
        _discard(stream)
    except ValueError:
        pass  # closed within the program, as in tests: the buffer is empty


def _discard(stream: TextIO) -> None:
    """Discards the buffer and all later output, so that the interpreter's last flush does not fail."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
