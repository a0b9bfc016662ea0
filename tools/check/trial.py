"""A trial of a device: its cases in a child process, each within a time limit, and all within a budget.

The parent never loads a driver. A child that ends during a case has crashed; a child that does not answer in time has
hung, and is killed. Both are ordinary outcomes, and the next case gets a new child.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...base.closeable import Closeable
from ...base.lazy_dataclass import dataclass
from ...status import UnavailableError
from .case import CaseResult, Ending

_OPENING: Final = 60.0
_ENDING: Final = 5.0
_TAIL: Final = 2000  # characters of a child's last output
_PROGRAM: Final = "import sys; from pumice.tools.check.child import main; main(*sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of a trial.

    Attributes:
        device: URI, name and profile.
        outcomes: the outcomes by the case's name, in the order of the cases.
        seconds: the wall time in seconds.
        is_interrupted: whether Ctrl-C ended it.
    """

    device: dict[str, Any]
    outcomes: dict[str, CaseResult]
    seconds: float
    is_interrupted: bool = False


def try_device(
    uri: str | None,
    cases: Sequence[str],
    catalogue: str,
    *,
    seconds: float,
    case_seconds: float,
    began: Callable[[str], None] = lambda name: None,
    ended: Callable[[str, CaseResult], None] = lambda name, outcome: None,
) -> Trial:
    """Runs the cases on a device, one after another.

    Args:
        uri: the device's URI; None for the best.
        cases: the names of cases of the catalogue.
        catalogue: the module with the cases.
        seconds: the budget. Cases beyond it are ``NOT_RUN``.
        case_seconds: the limit of a case.
        began, ended: the receivers of progress.

    Raises:
        UnavailableError: the device cannot be opened; the message says why.
    """
    begin = time.monotonic()
    outcomes: dict[str, CaseResult] = {}
    reason = ""  # why no more cases are run
    children = _Children(uri or "", catalogue)
    try:
        children.open()
        for name in cases:
            left = begin + seconds - time.monotonic()
            reason = reason or ("the time was up" if left <= 0 else "")
            if reason:
                outcomes[name] = CaseResult(Ending.NOT_RUN, message=reason)
                continue
            began(name)
            try:
                outcomes[name] = children.run(name, min(case_seconds, left), is_last=left < case_seconds)
            except KeyboardInterrupt:
                reason = "it was interrupted"
                outcomes[name] = CaseResult(Ending.NOT_RUN, message=reason)
            ended(name, outcomes[name])
    finally:
        children.close()
    return Trial(children.device, outcomes, time.monotonic() - begin, is_interrupted=reason == "it was interrupted")


class _Children(Closeable):
    """Successive child processes: a new child replaces one that crashed, hung or lost its device.

    Attributes:
        device: the first child's description of the device.
    """

    def __init__(self, uri: str, catalogue: str) -> None:
        self._arguments = (uri, catalogue)
        self._child: _Child | None = None
        self.device: dict[str, Any] = {}

    def open(self) -> _Child:
        """Returns a child ready for cases; UnavailableError if it cannot open the device."""
        if self._child is None:
            child = _Child(*self._arguments)
            try:
                described = child.open()
            except BaseException:
                child.close()
                raise
            self.device = self.device or described
            self._child = child
        return self._child

    def run(self, name: str, seconds: float, *, is_last: bool) -> CaseResult:
        """Runs a case; ``is_last`` says that its limit is the end of the budget."""
        try:
            child = self.open()
        except UnavailableError as error:  # an earlier case keeps the device from being opened again
            return CaseResult(Ending.FAILED, message=error.message)
        outcome = child.run(name, seconds, is_last=is_last)
        if child.is_used_up:
            self.close()
        return outcome

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


class _Child(Closeable):
    """A process that opens a device and runs cases.

    Calling sequence: ``open`` → ``run``, until ``is_used_up`` → ``close``.

    Attributes:
        is_used_up: whether it takes no more cases.
    """

    def __init__(self, uri: str, catalogue: str) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, uri, catalogue],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._begin = 0
        self.is_used_up = False

    def open(self) -> dict[str, Any]:
        """Waits for the device; returns its URI, name and profile.

        Raises:
            UnavailableError: it cannot be opened, or its driver crashes or hangs meanwhile.
        """
        try:
            answer = self._answer(_OPENING)
        except TimeoutError:
            raise UnavailableError(self._with_tail(f"the device was not open after {_OPENING:.0f} s")) from None
        if answer is None:
            raise UnavailableError(self._with_tail(f"opening the device: {self._how_it_ended()}"))
        if "error" in answer:
            raise UnavailableError(str(answer["error"]))
        device: dict[str, Any] = answer["device"]
        return device

    def run(self, name: str, seconds: float, *, is_last: bool) -> CaseResult:
        """Runs a case; ``is_last`` says that its limit is the end of the budget."""
        begin = time.monotonic()
        self._begin = os.fstat(self._said.fileno()).st_size
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(name.encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answer(seconds)
        except OSError as error:
            self.is_used_up = True
            if isinstance(error, TimeoutError):
                self._process.kill()
                message = "the time was up while it ran" if is_last else f"it was not done after {seconds:.0f} s"
                ending = Ending.NOT_RUN if is_last else Ending.HUNG
                return CaseResult(ending, time.monotonic() - begin, self._with_tail(message))
            answer = None
        if answer is None:
            self.is_used_up = True
            return CaseResult(Ending.CRASHED, time.monotonic() - begin, self._with_tail(self._how_it_ended()))
        self.is_used_up = bool(answer["lost"])
        return CaseResult(Ending(answer["ending"]), answer["seconds"], answer["message"], answer["figures"])

    def close(self) -> None:
        """Ends the process, if need be by force; idempotent."""
        self.is_used_up = True
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        for _ in range(2):
            try:
                self._process.wait(_ENDING)
                break
            except subprocess.TimeoutExpired:
                self._process.kill()
        else:
            return  # a driver keeps it in the kernel, where it cannot be ended
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._said.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        """Returns the next answer, or None if the process ended without one.

        Raises:
            TimeoutError: there is no answer yet.
        """
        try:
            line = self._answers.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return answer

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            return "its process closed its output"
        if status < 0:
            return f"its process was ended by {signal.Signals(-status).name}"
        return f"its process ended with status {status}"

    def _with_tail(self, message: str) -> str:
        """Returns the message with the process's last output about the case."""
        self._said.seek(max(self._begin, os.fstat(self._said.fileno()).st_size - _TAIL))
        said = self._said.read().decode(errors="replace").strip()
        return f"{message}\n{said}" if said else message
