"""Runs the check functions of compiled modules, like a test framework.

A check function is an export without arguments; names that begin with ``__`` or contain ``$`` are internal to the
compiler. Each runs in its own context, as in iree-check-module (``tools/iree-check-module-main.cc``, 3.13), so globals
are as the module's initializers leave them. The device is opened once; a module is loaded, verified and translated
once, and its pipelines are made once.
"""

from __future__ import annotations

import fnmatch
import os
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from ....hal.device import Device
from ....status import PumiceError
from ....vm.execution.bytecode_module import BytecodeModule
from ....vm.execution.context import Context
from ....vm.execution.linker import Module
from ..hal.module import hal_module
from .module import CheckRecorder, check_module
from .report import CheckReport, CheckResult, FileReport, Outcome

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds that a function may take."""


def run_checks(
    *paths: str | os.PathLike[str],
    device: Device,
    filters: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    modules: Sequence[Module] = (),
    on_result: Callable[[str, CheckResult], None] = lambda path, result: None,
    open_module: Callable[[str], BytecodeModule] = BytecodeModule.open,
) -> CheckReport:
    """Runs every check function of module files. Faults of files and functions are in the report.

    Args:
        paths: the paths of ``.vmfb`` files.
        device: the device that runs them; it stays open.
        filters: the glob patterns for names of functions, with or without the module's before it. A function runs if a
            pattern matches; without patterns all run.
        timeout: the seconds for each function, waits included, and the same for the initializers before it.
        modules: the imports of the files besides ``hal`` and ``check``, in linking order.
        on_result: a function that is called with a file's path and each result as soon as it is known.
        open_module: a function that opens a file; its error is in the report.
    """
    start = time.perf_counter()
    runner = _Runner(device, filters, timeout, modules, on_result, open_module)
    files = tuple(runner.run_file(os.fspath(path)) for path in paths)
    return CheckReport(files, device.name, time.perf_counter() - start, runner.deselected)


class _Runner:
    """The state that the checks of all files share."""

    def __init__(
        self,
        device: Device,
        filters: Sequence[str],
        timeout: float,
        modules: Sequence[Module],
        on_result: Callable[[str, CheckResult], None],
        open_module: Callable[[str], BytecodeModule],
    ) -> None:
        self.open_module = open_module
        self.filters = filters
        self.timeout = timeout
        self.recorder = CheckRecorder()
        self.on_result = on_result
        self.modules = (hal_module([device]), check_module(self.recorder), *modules)
        self.deselected = 0
        # The previous function's context: pipelines live as long as a context has them, and take long to make.
        self._previous: Context | None = None

    def run_file(self, path: str) -> FileReport:
        """Runs one file's functions; errors become results."""
        start = time.perf_counter()
        try:
            program = self.open_module(path)
        except Exception as error:
            duration = time.perf_counter() - start
            result = CheckResult(
                "(load)", Outcome.ERROR, duration, error=_describe(error), error_type=type(error).__name__
            )
            self.on_result(path, result)
            return FileReport(path, "", (result,), duration)
        results = []
        try:
            for name in self._selected(program):
                result = self._run_function(program, name)
                results.append(result)
                self.on_result(path, result)
        finally:
            self._keep(None)
            program.close()
        return FileReport(path, program.name, tuple(results), time.perf_counter() - start)

    def _selected(self, program: BytecodeModule) -> list[str]:
        """Returns the functions to run, without internal and filtered ones."""
        names = [name for name in program.exports if not name.startswith("__") and "$" not in name]
        if not self.filters:
            return names
        matching = {
            name
            for pattern in self.filters
            for name in names
            if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(f"{program.name}.{name}", pattern)
        }
        selected = [name for name in names if name in matching]
        self.deselected += len(names) - len(selected)
        return selected

    def _run_function(self, program: BytecodeModule, name: str) -> CheckResult:
        convention = program.signatures[program.exports[name]]
        if convention.arguments:
            reason = f"takes arguments (calling convention {convention.text}): only functions without any are checks"
            return CheckResult(name, Outcome.SKIPPED, error=reason)
        start = time.perf_counter()
        error = error_type = None
        try:
            context = Context(self.modules)
            try:
                context.add(program, timeout=self.timeout)
            except BaseException:
                context.close()
                raise
            self._keep(context)
            context.invoke(context.lookup(f"{program.name}.{name}"), (), timeout=self.timeout)
        except Exception as raised:
            error, error_type = _describe(raised), type(raised).__name__
        duration = time.perf_counter() - start
        log = self.recorder.take()
        outcome = Outcome.FAILED if log.failure_count else Outcome.PASSED
        if error is not None:
            outcome = Outcome.ERROR
        return CheckResult(
            name, outcome, duration, log.expectation_count, log.failure_count, log.failures, error, error_type
        )

    def _keep(self, context: Context | None) -> None:
        """Keeps a context open until the next one."""
        if self._previous is not None:
            self._previous.close()
        self._previous = context


def _describe(error: Exception) -> str:
    """Returns an error's text with its location and callers, and the traceback if it is not a PumiceError."""
    notes: list[str] = getattr(error, "__notes__", [])
    if isinstance(error, PumiceError):
        return "\n".join((str(error), *notes))
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_exception(error)).rstrip()
