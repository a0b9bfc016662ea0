"""Runs the check functions of compiled modules, like a test framework.

A check function is an export without arguments; names that begin with ``__`` or contain ``$`` are the compiler's. Each
runs in its own context, as in iree-check-module (``tools/iree-check-module-main.cc``, 3.13), so globals are as the
module's initializers leave them. The device is opened once; a module is loaded, verified and translated once, and its
pipelines are made once.
"""

from __future__ import annotations

import fnmatch
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

from .... import hal_vulkan as hal
from ....status import InvalidArgumentError, PumiceError
from ....vm.execution.bytecode_module import BytecodeModule
from ....vm.execution.context import Context
from ....vm.execution.linker import Module
from ...device import Device, open_device
from ..hal.module import hal_module
from .log import CheckRecorder
from .module import check_module
from .report import CheckReport, CheckResult, FileReport, Outcome

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds that a function may take."""

StrPath: TypeAlias = str | os.PathLike[str]


def run_checks(
    paths: StrPath | Iterable[StrPath],
    *,
    device: Device | hal.Device | str | None = None,
    filters: Sequence[str] = (),
    timeout: float | None = DEFAULT_TIMEOUT,
    modules: Sequence[Module] = (),
    recorder: CheckRecorder | None = None,
    on_result: Callable[[str, CheckResult], None] | None = None,
) -> CheckReport:
    """Runs every check function of some module files.

    Args:
        paths: one file or several, ``.vmfb``.
        device: an open device, which stays open; or a URI as ``open_device`` takes it, to be opened and closed here.
        filters: glob patterns for names of functions, with or without the module's before it; a function runs if one
            matches, all run where none is given.
        timeout: seconds for each function, waits included, and as many for the initializers before it; ``None`` for
            ever.
        modules: what the files import besides ``hal`` and ``check``, in linking order.
        recorder: says how much of failures is kept; ``None`` takes the defaults.
        on_result: called with a file's path and a result as soon as that is known.

    Raises:
        InvalidArgumentError: no paths, or a timeout that is not a positive number.
        NotFoundError, UnavailableError: the device.

    Whatever is wrong with files and functions is in the report.
    """
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    if not names:
        raise InvalidArgumentError("expected a module file (.vmfb) or several, got none")
    if timeout is not None and not 0 < timeout < float("inf"):
        raise InvalidArgumentError(f"expected a timeout of more than 0 seconds, or None, got {timeout!r}")
    start = time.perf_counter()
    with _opened(device) as opened:
        runner = _Runner(opened, filters, timeout, modules, recorder or CheckRecorder(), on_result)
        files = tuple(runner.run_file(name) for name in names)
        device_name = opened.profile.name
    return CheckReport(files, device_name, time.perf_counter() - start, runner.deselected)


@contextmanager
def _opened(device: Device | hal.Device | str | None) -> Iterator[hal.Device]:
    if isinstance(device, hal.Device):
        yield device
    elif isinstance(device, Device):
        yield device.hal
    else:
        with open_device(device) as opened:
            yield opened.hal


class _Runner:
    """What all files have in common."""

    def __init__(
        self,
        device: hal.Device,
        filters: Sequence[str],
        timeout: float | None,
        modules: Sequence[Module],
        recorder: CheckRecorder,
        on_result: Callable[[str, CheckResult], None] | None,
    ) -> None:
        self.device = device
        self.filters = filters
        self.timeout = timeout
        self.recorder = recorder
        self.on_result = on_result
        self.modules = (hal_module([device]), check_module(recorder), *modules)
        self.deselected = 0
        # The context of the function before: pipelines live as long as one context has them, and take long to make.
        self._previous: Context | None = None

    def run_file(self, path: str) -> FileReport:
        """Runs one file's functions; errors become results."""
        start = time.perf_counter()
        try:
            program = BytecodeModule.open(path)
        except Exception as error:
            duration = time.perf_counter() - start
            result = CheckResult(
                "(load)", Outcome.ERROR, duration, error=_describe(error), error_type=type(error).__name__
            )
            self._report(path, result)
            return FileReport(path, "", (result,), duration)
        results = []
        try:
            for name in self._selected(program):
                result = self._run_function(program, name)
                results.append(result)
                self._report(path, result)
        finally:
            self._keep(None)
            program.close()
        return FileReport(path, program.name, tuple(results), time.perf_counter() - start)

    def _report(self, path: str, result: CheckResult) -> None:
        if self.on_result is not None:
            self.on_result(path, result)

    def _selected(self, program: BytecodeModule) -> list[str]:
        """The functions to run: neither the compiler's own nor filtered out."""
        names = [name for name in program.exports if not name.startswith("__") and "$" not in name]
        if not self.filters:
            return names
        selected = [
            name
            for name in names
            if any(
                fnmatch.fnmatchcase(name, one) or fnmatch.fnmatchcase(f"{program.name}.{name}", one)
                for one in self.filters
            )
        ]
        self.deselected += len(names) - len(selected)
        return selected

    def _run_function(self, program: BytecodeModule, name: str) -> CheckResult:
        convention = program.verified.functions[program.exports[name]].signature
        if convention.arguments:
            reason = f"takes arguments (calling convention {convention.text}): only functions without any are checks"
            return CheckResult(name, Outcome.SKIPPED, error=reason)
        start = time.perf_counter()
        error = error_type = None
        try:
            context = self._context(program)
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

    def _context(self, program: BytecodeModule) -> Context:
        """A context with the program linked and initialized, which stays open until the next one."""
        context = Context(self.modules)
        try:
            context.add(program, timeout=self.timeout)
        except BaseException:
            context.close()
            raise
        self._keep(context)
        return context

    def _keep(self, context: Context | None) -> None:
        if self._previous is not None:
            self._previous.close()
        self._previous = context


def _describe(error: Exception) -> str:
    """An error's text with its place and callers, and the traceback if it is not a PumiceError."""
    notes: list[str] = getattr(error, "__notes__", [])
    if isinstance(error, PumiceError):
        return "\n".join((str(error), *notes))
    return f"{type(error).__name__}: {error}\n" + "".join(traceback.format_exception(error)).rstrip()
