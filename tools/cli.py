"""The command line: ``pumice bench``, ``build``, ``cache``, ``check``, ``ci``, ``compile``, ``run``, ``view``…

This file has the group of commands, and is the only place that turns errors into messages and exit statuses:

=====  ==================================================================================================
0      done
1      the run failed, its results could not be printed or stored, or an expectation did not hold
2      wrong usage: an option, the text of a value, or a value that does not fit what the kernel or function declares
3      ``bench`` and ``study``: measured, but a point is noisier than allowed, or a comparison UNCLEAR; ``run``: an
       Amber script needs what pumice does not run; ``check``: the time did not suffice for every area
4      ``study compare``, ``study ab``, ``--against``: a point is SLOWER
77     ``run``: every Amber script was skipped
130    interrupted (Ctrl-C)
141    the reader of the output is gone
=====  ==================================================================================================

Results go to stdout, everything else to stderr. ``PUMICE_DEBUG=1`` adds tracebacks.

Each command is imported when it is used; none imports NumPy or Vulkan before it runs.
"""

from __future__ import annotations

import atexit
import contextlib
import difflib
import gc
import importlib
import os
import shlex
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from ..base.switches import switch, warn_of_misspelt
from ..base.terminal import printable
from ..status import PumiceError, shorten
from .errors import ExpectationError, describe, usage
from .streams import discard_if_broken, note, open_closed_streams, put, writing_results

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NAME: Final = "pumice"
_DEBUG: Final = "PUMICE_DEBUG"
_COMPLETING: Final = "_PUMICE_COMPLETE"  # shells set it; see `completion`
_FAILED: Final = 1
_WRONG_USAGE: Final = 2
_INTERRUPTED: Final = 130  # 128 + SIGINT, as in shells
# Most messages are short; these limits bound messages that repeat arguments or damaged input.
_MAX_USAGE_MESSAGE: Final = 1000
_MAX_MESSAGE: Final = 4000
_COLLECTION_THRESHOLD: Final = 200_000


# The module of each command, and its line in --help, which is printed without importing it.
_COMMANDS: Final = {
    "bench": (".bench.command", "bench", "Time a kernel or a function of a compiled program."),
    "build": (".compile.build", "build", "Compile kernels' sources to SPIR-V."),
    "cache": (".inspect.cache", "cache", "Show what is kept on disk."),
    "check": (".check.command", "check", "Find out whether pumice works on a device."),
    "ci": (".ci.command", "ci", "Set up tests in CI; find out what is wrong with Vulkan."),
    "codegen": (".codegen.command", "codegen", "Write a program as code that needs no virtual machine."),
    "compile": (".compile.command", "compile_", "Compile a tensor program."),
    "demo": (".run.demo", "demo", "Try pumice on this machine."),
    "devices": (".inspect.devices", "devices", "List the Vulkan devices."),
    "dump": (".inspect.dump", "dump", "Show what a compiled program holds."),
    "info": (".inspect.info", "info", "Show what a kernel declares."),
    "run": (".run.command", "run", "Run a kernel, a compiled program or Amber scripts."),
    "run-checks": (".run.checks", "run_checks", "Run the check functions of modules."),
    "study": (".study.command", "study", "Run, report and compare timing studies."),
    "vendor-driver": (".setup.vendor_driver", "vendor_driver", "Build a wheel of this machine's software driver."),
    "view": (".view.command", "view", "Show the picture of a shader or a program, live."),
}
# Each line can be typed: the files come with pumice.
_FIRST_STEPS: Final = """\
{usage}

Go to the files that come with pumice:
  cd {folder}

Run a kernel, or a compiled program:
  pumice run shaders/mul.spv -b 0=4xf32=1,2,3,4 -b 1=4xf32=2,3,4,5 -b 2=4xf32
  pumice run examples/digits/digits.vmfb --input=@examples/digits/three.npy

Time a dispatch (pip install 'pumice[study]'):
  pumice bench shaders/mul.spv

See a shader, live (pip install 'pumice[view]'):
  pumice view examples/view/waves.frag

`pumice demo` tries pumice on this machine, and `pumice --help` lists all commands."""


class _Program(click.Group):
    """The group; its ``main`` implements the policy on errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        home, name, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(home, __package__), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if close := difflib.get_close_matches(args[0], _COMMANDS):
                ctx.fail(f"{error.message} Did you mean {' or '.join(close)}?")
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name, help=text) for name, (_, _, text) in _COMMANDS.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)  # click.Group's imports every command
        return [*(item for item in names if item.value.startswith(incomplete)), *options]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: object
    ) -> click.Context:
        with writing_results():  # the output of --help and --version
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with writing_results():
            result: object = super().invoke(ctx)
        return result

    def main(  # type: ignore[override]  # click's own has an overload for embedding, which this program has no use for
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: object
    ) -> NoReturn:
        """Runs the program and exits; see the module for the exit statuses."""
        owns_process = args is None  # embedders, such as tests, pass arguments
        if owns_process:
            _start_quickly()
        open_closed_streams()
        try:
            status = self._run(args, prog_name)
        finally:
            discard_if_broken(sys.stderr)  # unflushed output, such as that of ``logging``, would change the status
        if owns_process:
            _end_quickly(status)
        sys.exit(status)

    def _run(self, args: Sequence[str] | None, prog_name: str | None) -> int:
        """Runs the program, reports failures, and returns the exit status."""
        if os.environ.get(_COMPLETING):
            return self._complete()
        try:
            switch(_DEBUG)
            warn_of_misspelt()
            # Without standalone mode click returns the status of --help and ctx.exit(), and raises everything else.
            status: object = super().main(args, prog_name or _NAME, standalone_mode=False)
        except click.exceptions.Abort as error:
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            _say_traceback()
            return _INTERRUPTED
        except click.ClickException as error:
            _say(shorten(error.format_message(), _MAX_USAGE_MESSAGE))
            if isinstance(error, click.UsageError):
                command = error.ctx.command_path if error.ctx else "pumice"
                note(f"see `{command} --help`")
            _say_traceback()
            return _WRONG_USAGE if isinstance(error, click.UsageError) else _FAILED
        except Exception as error:
            _say(_message(error))
            _say_traceback()
            return _FAILED
        return status if isinstance(status, int) else 0

    def _complete(self) -> int:
        """Prints the completions that a shell requests. Errors are silent, as stderr is the line being typed."""
        from .completion import complete

        try:
            return complete(self, _NAME, os.environ[_COMPLETING])
        except Exception:
            _say_traceback()
            return _FAILED


def _install_completion(ctx: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is None or ctx.resilient_parsing:
        return
    from .completion import install

    with usage("--install-completion"):
        put(install(ctx.command, _NAME, shell or None))
    ctx.exit()


def _complete_shells(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from .completion import SHELLS

    return [shell for shell in SHELLS if shell.startswith(incomplete)]


@click.group(_NAME, cls=_Program, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pumice", message="pumice %(version)s")
@click.option(
    "--install-completion",
    is_flag=False,
    flag_value="",
    expose_value=False,
    callback=_install_completion,
    shell_complete=_complete_shells,
    metavar="[SHELL]",
    help="Have bash, zsh or fish complete commands, options and files; without SHELL that of $SHELL.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run compute kernels and compiled programs on Vulkan devices, and time them.

    Exit status: 0 done, 1 the run failed or an expectation did not hold, 2 wrong usage; 3, 4 and 77 are of bench,
    study, check and Amber scripts. PUMICE_DEBUG=1 shows tracebacks.
    """
    if ctx.invoked_subcommand is None:
        note(_FIRST_STEPS.format(usage=ctx.get_usage(), folder=shlex.quote(str(Path(__file__).parents[1]))))
        ctx.exit(_WRONG_USAGE)


def _start_quickly() -> None:
    """Skips work that only helps long runs.

    Imports make many objects and hardly any garbage, so garbage collections become rare. NumPy's BLAS would start a
    thread for each core when it is loaded, which no command uses.
    """
    gc.set_threshold(_COLLECTION_THRESHOLD)
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _end_quickly(status: int) -> None:
    """Ends the process without the interpreter's last collections, which take a twentieth of a short run.

    All resources that need closing are closed by now. Returns if work is left to do.
    """
    gc.freeze()
    if any(not thread.daemon and thread is not threading.main_thread() for thread in threading.enumerate()):
        return
    driver = sys.modules.get(f"{__package__.rpartition('.')[0]}.hal_vulkan.instance.driver")
    if driver is not None:
        driver.close_drivers()  # this writes the driver's shader cache
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # the interpreter reports it
        return
    os._exit(status)


def _message(error: Exception) -> str:
    if isinstance(error, PumiceError):
        return shorten(describe(error), _MAX_MESSAGE)
    if isinstance(error, ExpectationError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{shorten(str(error.filename))}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    return (
        f"internal error, please report it: {type(error).__name__}: {shorten(str(error))} (PUMICE_DEBUG=1 shows where)"
    )


def _say(message: str) -> None:
    note(f"error: {printable(message, keep=chr(10))}")


def _say_traceback() -> None:
    with contextlib.suppress(PumiceError):  # a wrong value was already reported
        if switch(_DEBUG):
            note(traceback.format_exc().rstrip())
