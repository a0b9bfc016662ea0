"""Messages between a process and its child: JSON values, one per line, over the child's stdin and stdout."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from .. import status
from ..status import InternalError, PumiceError
from .closeable import Closeable

Message = dict[str, Any]
"""JSON values by name."""

PROTOCOL: Final = 2
"""Version of the messages between a process and its children."""

_CHUNK: Final = 1 << 16


class MessagePipe(Closeable):
    """One end of the connection. One thread at a time; waiting blocks."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader = reader
        self._writer = writer
        self._received = bytearray()

    @classmethod
    def to_parent(cls) -> Self:
        """Opens the child's end. From then on other reads of stdin find it empty, and prints go to stderr."""
        sys.stdout.flush()
        reader, writer = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        return cls(reader, writer)

    def send(self, message: Message) -> None:
        """Sends a message. BrokenPipeError: the other process has ended."""
        data = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        while data:
            data = data[self._writer.write(data) :]

    def receive(self, timeout: float | None = None) -> Message:
        """Returns the next message.

        EOFError: the other process has ended. TimeoutError: no message came within ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (end := self._received.find(b"\n")) < 0:
            # Windows cannot wait for a pipe with a time limit.
            if deadline is not None and sys.platform != "win32":
                left = max(0.0, deadline - time.monotonic())
                if not select.select([self._reader], [], [], left)[0]:
                    raise TimeoutError
            data = self._reader.read(_CHUNK)
            if not data:
                raise EOFError
            self._received += data
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise InternalError(f"expected a message, a JSON object, from the other process; got {line[:80]!r}")
        return message

    def close(self) -> None:
        """Closes this end, which ends the other process if it waits for a message; idempotent."""
        self._writer.close()
        self._reader.close()


def error_as_message(error: Exception) -> Message:
    """Returns an error as JSON values; ``error_from_message`` restores it."""
    if not isinstance(error, PumiceError):
        error = InternalError(f"{type(error).__name__}: {error}")
    kind = next(base for base in type(error).__mro__ if base.__module__ == status.__name__)
    values = {name: getattr(error, name) for name in ("message", "location", "vk_result")}
    return {"kind": kind.__name__, "code": int(error.code), **values}


def error_from_message(message: Message) -> PumiceError:
    kind: type[PumiceError] = getattr(status, message["kind"], PumiceError)
    code = status.StatusCode(message["code"])
    return kind(message["message"], code=code, location=message["location"], vk_result=message["vk_result"])
