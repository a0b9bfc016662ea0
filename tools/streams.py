"""stdout for results and stderr for notes, either of which may be closed, full, or without a reader.

Results that cannot be printed are an error. Notes (the device's name, times, and the text of errors) are said where
they can be, and never cost a result.

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

__all__ = ["READER_GONE", "finish_notes", "note", "open_closed_streams", "put", "writing_results"]

READER_GONE: Final = 141
"""The exit status where whoever read stdout stopped reading: 128 + SIGPIPE, as shells have it."""


def put(text: str = "", *, end: str = "\n") -> None:
    """Writes results to stdout and flushes, so that what goes wrong shows here and not when the interpreter ends.

    Characters that stdout's encoding lacks are escaped.

    Raises:
        BrokenPipeError: whoever read it stopped reading.
        UnavailableError: it cannot be written for another reason.
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


def note(text: str) -> None:
    """Writes a line to stderr, if that takes it."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(text, err=True)
        return
    _discard(sys.stderr)


def finish_notes() -> None:
    """Drops what others, such as ``logging``, left for a stderr that takes nothing: it would change the exit status."""
    _discard_if_broken(sys.stderr)


def open_closed_streams() -> None:
    """Gives a process that was started without stdout or stderr streams in their place.

    A stdout that was closed fails when it is written; a stderr that was closed takes everything. Their descriptors
    are occupied, lest a file that is opened later, such as a driver's, takes the number and gets what libraries print.
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
    """Within it, a stdout that cannot be written is told apart from other errors, whoever wrote to it.

    Raises:
        click.exceptions.Exit: with ``READER_GONE``.
        UnavailableError: stdout cannot be written; the message says why.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        raise click.exceptions.Exit(READER_GONE) from None
    except UnavailableError:
        _discard_if_broken(sys.stdout)
        raise
    except OSError as error:
        if not _raised_by_click(error):
            raise
        _discard_if_broken(sys.stdout)
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> UnavailableError:
    why = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return UnavailableError(
        f"the results cannot be printed on stdout: {why}; send stdout elsewhere, or store them with `pumice run --output`"
    )


def _raised_by_click(error: OSError) -> bool:
    """Whether click was writing: it prints --help and --version by itself, and the error does not say what it is of."""
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and str(frames[-1][0].f_globals.get("__name__", "")).startswith("click.")


def _discard_if_broken(stream: TextIO) -> None:
    """Sends what the stream still holds nowhere if it cannot be written."""
    try:
        stream.flush()
    except OSError:
        _discard(stream)
    except ValueError:
        pass  # closed within the program, as tests do: nothing is held


def _discard(stream: TextIO) -> None:
    """Sends what is still buffered, and all that follows, nowhere: the interpreter's last flush is not to fail too."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
