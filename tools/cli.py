"""The command line: ``pumice devices``, ``pumice info``, ``pumice run``.

This file is the group of commands and the one place that turns errors into messages and exit statuses:

=====  ==================================================================================================
0      done
1      the run failed, or an expectation did not hold
2      wrong usage: an option, the text of a value, or a value that does not fit what the kernel declares
130    interrupted (Ctrl-C)
141    whoever read the output stopped reading
=====  ==================================================================================================

Results go to stdout, everything else to stderr. ``PUMICE_DEBUG=1`` adds tracebacks.

Each command is a file of its own, imported when it is asked for; none imports NumPy or Vulkan before it runs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import click

from ..status import PumiceError
from .errors import ExpectationError, describe, printable

__all__ = ["main"]

_FAILED: Final = 1
_WRONG_USAGE: Final = 2
_INTERRUPTED: Final = 130  # 128 + SIGINT, as shells have it
_READER_GONE: Final = 141  # 128 + SIGPIPE


class _Program(click.Group):
    """The group; its ``main`` holds the policy on errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["devices", "info", "run"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        match cmd_name:
            case "devices":
                from .devices import devices

                return devices
            case "info":
                from .info import info

                return info
            case "run":
                from .run import run

                return run
        return None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        with _quiet_without_reader():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _quiet_without_reader():
            result: object = super().invoke(ctx)
            # A reader that is gone shows here at the latest, and not when the interpreter ends.
            sys.stdout.flush()
            return result

    def main(  # type: ignore[override]  # click's own has an overload for embedding, which this program has no use for
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: object
    ) -> NoReturn:
        """Runs the program and exits; see the module for the exit statuses."""
        try:
            # Without standalone mode click returns the status of --help and ctx.exit() and raises all else.
            status: object = super().main(args, prog_name or "pumice", standalone_mode=False)
        except click.exceptions.Abort as error:
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            _say_traceback()
            sys.exit(_INTERRUPTED)
        except click.ClickException as error:
            _say(error.format_message())
            if isinstance(error, click.UsageError):
                command = error.ctx.command_path if error.ctx else "pumice"
                click.echo(f"see `{command} --help`", err=True)
            _say_traceback()
            sys.exit(_WRONG_USAGE if isinstance(error, click.UsageError) else _FAILED)
        except Exception as error:
            _say(_message(error))
            _say_traceback()
            sys.exit(_FAILED)
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    "pumice", cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="pumice", message="pumice %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run compute kernels on Vulkan devices.

    Exit status: 0 done, 1 the run failed or an expectation did not hold, 2 wrong usage. PUMICE_DEBUG=1 shows
    tracebacks.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(_WRONG_USAGE)


def _message(error: Exception) -> str:
    if isinstance(error, PumiceError):
        return describe(error)
    if isinstance(error, ExpectationError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    return f"internal error, please report it: {type(error).__name__}: {error} (PUMICE_DEBUG=1 shows where)"


def _say(message: str) -> None:
    click.echo(f"error: {printable(message, keep=chr(10))}", err=True)


def _say_traceback() -> None:
    if os.environ.get("PUMICE_DEBUG", "0") not in ("", "0"):
        traceback.print_exc()


@contextlib.contextmanager
def _quiet_without_reader() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        # What is still buffered goes nowhere, so that the interpreter's last flush does not fail too.
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, sys.stdout.fileno())
            os.close(null)
        raise click.exceptions.Exit(_READER_GONE) from None
