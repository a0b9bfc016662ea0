"""Runs numbered cases in worker processes, and lays what ends, stops or swells one to a case.

Calling sequence: ``run_cases(opener, folder, count)``; it starts workers, each with every n-th case, and starts another
in the place of one that ended. A worker tells of each case when it is done, so the first that it has not told of is the
one to blame. This file is also the workers' program.
"""

from __future__ import annotations

import collections
import faulthandler
import importlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

__all__ = ["HANG_S", "MEMORY", "WRONG", "Cases", "Outcome", "Tally", "open_cases", "run_cases"]

WRONG: Final = ("bug", "crash", "hang", "memory")
"""Outcomes that must not be."""

HANG_S: Final = 10.0
_START_S: Final = 60.0  # a busy machine takes seconds to start a worker
"""Seconds without a word of a worker. What a case may take by its own right is far less."""

MEMORY: Final = 6 << 30
"""Bytes resident. Some of what a program may ask for is 4 GiB at once."""

_ADDRESS_SPACE: Final = 64 << 30
_CHUNK: Final = 2000
_PLANTED: Final = "PUMICE_TEST_CASES"


@dataclass(frozen=True)
class Outcome:
    """How a case went.

    Attributes:
        stage: how far it came.
        result: ``ran``, a status code's name, or ``bug``.
        detail: of a bug, its traceback; of an INTERNAL error, its message.
        busy: whether a shader still occupies the device.
    """

    stage: str
    result: str
    detail: str = ""
    busy: bool = False


class Cases(Protocol):
    """What a worker runs."""

    def run(self, seed: int, index: int) -> Outcome:
        """Runs one case, the same for the same numbers; never raises but for an interrupt."""

    def close(self) -> None:
        """Gives back what it holds."""


def open_cases(opener: str, folder: Path) -> Cases:
    """Calls ``module:callable`` with a folder, and returns the cases."""
    module, _, function = opener.partition(":")
    cases: Cases = getattr(importlib.import_module(module), function)(folder)
    return cases


def _limit_memory(size: int) -> None:
    """Bounds what this process may reserve, as on a machine of that memory; what it touches is for others to watch."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _work(opener: str, paths: str, folder: str, memory: int, seed: int, first: int, last: int, step: int) -> None:
    """A worker process: one line of JSON on standard output for each case."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    _limit_memory(memory)
    sys.path[:0] = json.loads(paths)
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a driver prints is no answer
    cases = open_cases(opener, Path(folder or tempfile.mkdtemp(prefix="cases-")))
    print("null", file=output, flush=True)  # ready
    planted = dict(entry.split("=") for entry in filter(None, os.environ.get(_PLANTED, "").split(",")))
    for index in range(first, last, step):
        _misbehave(planted.get(str(index), ""))
        outcome = cases.run(seed, index)
        print(json.dumps([index, outcome.stage, outcome.result, outcome.detail]), file=output, flush=True)
        if outcome.busy or outcome.stage == "device":
            # Closing the device would wait for the shader.
            os._exit(0)
    cases.close()


def _misbehave(how: str) -> None:
    """Misbehaves as a bug would, for the test of this program."""
    if how == "abort":
        os.abort()
    elif how == "hang":
        time.sleep(3600)
    elif how == "raise":
        raise RuntimeError("planted")


@dataclass
class Tally:
    """What came out.

    Attributes:
        outcomes: counts by (stage, result).
        wrong: (index, result, detail) of what must not be.
        seconds: of all workers together, on the clock.
        peak: most bytes of memory that a worker was seen to hold.
        results: by case.
        details: by case, of those that have one.
    """

    outcomes: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    wrong: list[tuple[int, str, str]] = field(default_factory=list)
    seconds: float = 0.0
    peak: int = 0
    results: dict[int, str] = field(default_factory=dict)
    details: dict[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Cases that were run."""
        return sum(self.outcomes.values())


class _Worker:
    """A worker process and the rest of its share."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], share: range) -> None:
        self.command, self.folder, self.environment = command, folder, environment
        self.step = share.step
        self.last = share.stop
        self.next = share.start
        self.chunk_end = share.start
        self.process: subprocess.Popen[bytes] | None = None
        self.errors: Path | None = None
        self.buffer = b""
        self.heard = 0.0
        self.killed = ""
        self.is_ready = False

    @property
    def is_done(self) -> bool:
        """Whether its share is run."""
        return self.next >= self.last

    def start(self) -> None:
        """Starts the process at the next case."""
        self.errors = self.folder / f"errors-{self.next}"
        self.chunk_end = min(self.next + _CHUNK * self.step, self.last)
        numbers = [str(number) for number in (self.next, self.chunk_end, self.step)]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                ["nice", *self.command, *numbers],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.environment,
            )
        self.heard = time.monotonic()
        self.killed = ""
        self.buffer = b""
        self.is_ready = False

    def kill(self, why: str) -> None:
        """Ends the process; the case it was at is the one to blame."""
        assert self.process is not None
        self.killed = why
        if why == "hang":
            self.process.send_signal(signal.SIGUSR1)  # tracebacks of all threads to its standard error
            time.sleep(0.5)
        self.process.kill()

    def said(self) -> str:
        """The end of its standard error."""
        assert self.errors is not None
        return self.errors.read_bytes()[-6000:].decode("utf-8", "replace")


def run_cases(
    opener: str,
    count: int,
    *,
    folder: Path | None = None,
    seed: int = 1,
    processes: int = 2,
    environment: Mapping[str, str] | None = None,
    hang_s: float = HANG_S,
    memory: int = MEMORY,
) -> Tally:
    """Runs cases 0 … ``count - 1``.

    Args:
        opener: ``module:function`` that a worker calls with the folder for its `Cases`.
        count: how many cases.
        folder: what the opener is given; ``None``: an empty one for each worker.
        seed: makes other cases.
        processes: workers at a time.
        environment: beside that of this process.
        hang_s: seconds without a word after which a worker hangs.
        memory: bytes that a worker may hold; it is refused more.

    Raises:
        RuntimeError: a worker did not come as far as its first case.
    """
    tally = Tally()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cases-") as name:
        own = Path(name)
        paths = json.dumps(list(dict.fromkeys([str(Path(__file__).parents[1]), *sys.path])))
        command = [sys.executable, __file__, opener, paths, str(folder or ""), str(memory), str(seed)]
        variables = {
            **os.environ,
            "TMPDIR": name,
            "MESA_SHADER_CACHE_DIR": str(own / "mesa"),
            "PUMICE_CACHE_DIR": str(own / "cache"),
            **(environment or {}),
        }
        workers = [
            _Worker(command, own, variables, range(first, count, processes)) for first in range(min(processes, count))
        ]
        try:
            _attend(workers, tally, hang_s, memory)
        finally:
            for worker in workers:
                if worker.process is not None:
                    worker.process.kill()
                    worker.process.wait()
    tally.seconds = time.monotonic() - began
    return tally


def _attend(workers: Sequence[_Worker], tally: Tally, hang_s: float, memory: int) -> None:
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            worker.start()
            assert worker.process is not None and worker.process.stdout is not None
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        while selector.get_map():
            for key, _ in selector.select(0.1):
                worker = key.data
                data = os.read(key.fd, 1 << 16)
                if data:
                    _hear(worker, data, tally)
                    continue
                selector.unregister(key.fileobj)
                _ended(worker, tally)
                if not worker.is_done:
                    worker.start()
                    assert worker.process is not None and worker.process.stdout is not None
                    selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
            now = time.monotonic()
            for key in list(selector.get_map().values()):
                _watch(key.data, tally, now, hang_s, memory)


def _hear(worker: _Worker, data: bytes, tally: Tally) -> None:
    worker.heard = time.monotonic()
    *lines, worker.buffer = (worker.buffer + data).split(b"\n")
    for line in lines:
        told = json.loads(line)
        worker.is_ready = True
        if told is None:
            continue
        index, stage, result, detail = told
        worker.next = index + worker.step
        tally.outcomes[stage, result] += 1
        tally.results[index] = result
        if detail:
            tally.details[index] = detail
        if result in WRONG:
            tally.wrong.append((index, result, detail))


def _watch(worker: _Worker, tally: Tally, now: float, hang_s: float, memory: int) -> None:
    process = worker.process
    if process is None or worker.killed:
        return
    try:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        pages = 0
    resident = pages * resource.getpagesize()
    tally.peak = max(tally.peak, resident)
    if resident > memory:
        worker.kill("memory")
    elif now - worker.heard > (hang_s if worker.is_ready else max(hang_s, _START_S)):
        worker.kill("hang")


def _ended(worker: _Worker, tally: Tally) -> None:
    process = worker.process
    assert process is not None and process.stdout is not None and worker.errors is not None
    status = process.wait()
    process.stdout.close()
    if not worker.is_ready:
        raise RuntimeError(f"a worker ended before its first case:\n{worker.said()}")
    if status != 0 or worker.killed:
        kind = worker.killed or ("crash" if status < 0 else "bug")
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        if worker.next < worker.chunk_end:
            tally.wrong.append((worker.next, kind, f"{name}\n{worker.said()}"))
            tally.outcomes["run", kind] += 1
            tally.results[worker.next] = kind
            worker.next += worker.step
        else:
            tally.wrong.append((worker.next - worker.step, kind, f"{name} after the last case\n{worker.said()}"))
    worker.process = None


if __name__ == "__main__":
    _work(*sys.argv[1:4], *(int(text) for text in sys.argv[4:9]))
