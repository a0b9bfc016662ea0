"""The parent's side of a measuring child process.

Calling sequence: ``ChildProcess(name)`` → ``send``, ``receive``, … → ``close``.

The child ends once the pipe to it is closed, which happens whenever the parent ends. Ctrl-C reaches only the parent,
which then closes the pipe.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar, Final

from ..status import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    IncompatibleError,
    NotFoundError,
    PumiceError,
)
from .closeable import Closeable
from .message_pipe import PROTOCOL, Message, MessagePipe, error_from_message

_START_S: Final = 60.0
_END_S: Final = 5.0
# Reports the missing module if this version's child cannot be imported, as the interpreter may belong to another
# installation.
_BOOTSTRAP: Final = """
import json, sys
try:
    from pumice.study.runs.child import main
except ImportError as error:
    try:
        from importlib.metadata import version
        found = version("pumice")
    except Exception:
        found = None
    print(json.dumps({"missing": str(error), "module": error.name or "", "pumice": found}))
else:
    main()
"""


class ChildProcess(Closeable):
    """A started child process; ``environment`` is the child's ``environment_facts``.

    ``running`` has the ids of all open children.

    Args:
        name: the process's name in messages, such as ``"run 2"``.
        python: the path of the interpreter; None for this process's.
        variables: the additional environment variables.

    Raises:
        NotFoundError: there is no such interpreter, or it has no pumice.
        IncompatibleError: the version of its pumice is not supported.
        AbortedError: the process did not start.
    """

    running: ClassVar[set[int]] = set()

    def __init__(self, name: str, *, python: str | None = None, variables: Mapping[str, str] | None = None) -> None:
        self.name: Final = name
        self._python = python or sys.executable
        try:
            self._process = subprocess.Popen(
                [self._python, "-P", "-c", _BOOTSTRAP],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, **(variables or {})},
                # Not in the terminal's process group, which receives Ctrl-C.
                process_group=0 if os.name == "posix" else None,
            )
        except OSError as error:
            raise NotFoundError(
                f"{name}: expected a Python interpreter with pumice, got {self._python}: {error.strerror}"
            ) from error
        self.running.add(self.pid)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._pipe = MessagePipe(self._process.stdout, self._process.stdin)  # type: ignore[arg-type]  # unbuffered
        try:
            self.environment: Final[Mapping[str, object]] = self._greet()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def _greet(self) -> Mapping[str, object]:
        try:
            hello = self._pipe.receive(_START_S)
        except TimeoutError:
            self._process.kill()
            raise AbortedError(f"{self.name}: {self._python} did not start within {_START_S:g} s") from None
        except (EOFError, PumiceError) as error:
            raise AbortedError(
                f"{self.name}: {self._python} did not start as a Python interpreter with pumice{self._ending()}"
            ) from error
        if "missing" in hello:
            raise _unusable(self.name, self._python, hello)
        if hello.get("hello") != PROTOCOL:
            raise IncompatibleError(
                f"{self.name}: pumice {hello.get('pumice')} of {self._python} cannot measure for pumice {_version()}, "
                "which runs the study; install that version there"
            )
        return dict(hello["environment"])

    def send(self, message: Message) -> None:
        """Sends a message; AbortedError if the child has ended."""
        try:
            self._pipe.send(message)
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self, timeout: float | None = None) -> Message:
        """Returns the child's next message.

        Raises:
            PumiceError: the child's own error.
            AbortedError: the child has ended.
            DeadlineExceededError: the child sent nothing for ``timeout`` seconds, and was killed.
        """
        try:
            message = self._pipe.receive(timeout)
        except EOFError:
            raise self._ended() from None
        except TimeoutError:
            self._process.kill()
            raise DeadlineExceededError(
                f"the process of {self.name} did not answer within {timeout:g} s, and was killed"
            ) from None
        if "error" in message:
            raise error_from_message(message["error"])
        return message

    def _ended(self) -> AbortedError:
        return AbortedError(f"the process of {self.name} has ended{self._ending()}")

    def _ending(self) -> str:
        """Returns a description of the process's end, for a message."""
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return ""
        return f": signal {-status}" if status < 0 else f": exit status {status}"

    def close(self) -> None:
        """Ends the process and waits for its end; kills it if that takes more than five seconds. Idempotent."""
        try:
            self._pipe.close()
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self.running.discard(self.pid)


def _version() -> str:
    return importlib.metadata.version("pumice")


def _unusable(name: str, python: str, hello: Message) -> PumiceError:
    """Returns the error for an interpreter that cannot import this version's child."""
    version, module = hello["pumice"], str(hello["module"])
    if version is None and module == "pumice":
        return NotFoundError(
            f"{name}: {python} has no pumice; install it there: {python} -m pip install 'pumice[study]'"
        )
    if module.startswith("pumice"):
        return IncompatibleError(
            f"{name}: pumice {version} of {python} is too old to measure for another process; install pumice "
            f"{_version()} there, or newer"
        )
    return FailedPreconditionError(
        f"{name}: pumice {version} of {python} lacks what studies need ({hello['missing']}): "
        f"{python} -m pip install 'pumice[study]'"
    )
