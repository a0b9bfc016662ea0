"""Runs mutants in worker processes, and lays what ends, stops or swells one to a mutant.

Calling sequence: ``run_mutants(files, count)``; it starts workers, each with every n-th mutant, and starts another in the place of one that
ended. A worker tells of each mutant when it is done, so the first that it has not told of is the one to blame. This file is
also the workers' program.
"""

from __future__ import annotations

import collections
import faulthandler
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mutations import Base, load_base, mutate

__all__ = ["HANG_S", "MEMORY", "WRONG", "Tally", "limit_address_space", "run_mutants"]

WRONG: Final = ("bug", "crash", "hang", "memory")
"""Outcomes that must not be."""

HANG_S = 10.0
"""Seconds without a word of a worker. What a mutant may take by its own right is far less."""

MEMORY: Final = 6 << 30
"""Bytes resident. Some of what a program may ask for is 4 GiB at once."""

_ADDRESS_SPACE: Final = 64 << 30
_CHUNK: Final = 2000
_PLANTED: Final = "PUMICE_TEST_MUTANTS"


def limit_address_space() -> None:
    """Bounds what this process may reserve; what it touches is for others to watch."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _work(folder: Path, part: str, seed: int, first: int, last: int, step: int) -> None:
    """A worker process: one line of JSON on standard output for each mutant."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    limit_address_space()
    from mutant_runner import Runner

    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a driver prints is no answer
    bases = _read_bases(folder)
    runner = Runner()
    print("null", file=output, flush=True)  # ready
    planted = dict(entry.split("=") for entry in filter(None, os.environ.get(_PLANTED, "").split(",")))
    for index in range(first, last, step):
        _misbehave(planted.get(str(index), ""))
        outcome = runner.run(mutate(bases, seed, index, part))
        print(json.dumps([index, outcome.stage, outcome.result, outcome.detail, outcome.busy]), file=output, flush=True)
        if outcome.busy or outcome.stage == "device":
            # Closing the device would wait for the shader.
            os._exit(0)
    runner.close()


def _misbehave(how: str) -> None:
    """What a bug would do, for the test of this program."""
    if how == "abort":
        os.abort()
    elif how == "hang":
        time.sleep(3600)
    elif how == "raise":
        raise RuntimeError("planted")


def _read_bases(folder: Path) -> list[Base]:
    names = json.loads((folder / "names.json").read_text())
    return [load_base(name, (folder / f"{number}.vmfb").read_bytes()) for number, name in enumerate(names)]


@dataclass
class Tally:
    """What came out.

    Attributes:
        outcomes: counts by (stage, result).
        wrong: (index, result, detail) of what must not be.
        internal: (index, message) of errors with the code INTERNAL.
        busy: mutants whose shader never ended.
        replaced: workers started anew.
        seconds: of all workers together, on the clock.
        peak: most bytes of memory that a worker was seen to hold.
        results: by mutant.
    """

    outcomes: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    wrong: list[tuple[int, str, str]] = field(default_factory=list)
    internal: list[tuple[int, str]] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)
    replaced: int = 0
    seconds: float = 0.0
    peak: int = 0
    results: dict[int, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Mutants that were run."""
        return sum(self.outcomes.values())


class _Worker:
    """A worker process and the rest of its share."""

    def __init__(
        self, folder: Path, part: str, seed: int, first: int, last: int, step: int, *, validation: bool
    ) -> None:
        self.folder, self.part, self.seed, self.last, self.step = folder, part, seed, last, step
        self.validation = validation
        self.next = first
        self.chunk_end = first
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
        """Starts the process at the next mutant."""
        self.errors = self.folder / f"errors-{self.part}-{self.next}"
        self.chunk_end = min(self.next + _CHUNK * self.step, self.last)
        environment = {
            **os.environ,
            "MESA_SHADER_CACHE_DIR": str(self.folder / "mesa"),
            "PUMICE_CACHE_DIR": str(self.folder / "cache"),
        }
        if not self.validation:
            environment["PUMICE_VALIDATION"] = "0"
        command = [sys.executable, __file__, str(self.folder), self.part]
        command += [str(number) for number in (self.seed, self.next, self.chunk_end, self.step)]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                ["nice", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment
            )
        self.heard = time.monotonic()
        self.killed = ""
        self.buffer = b""
        self.is_ready = False

    def kill(self, why: str) -> None:
        """Ends the process; the mutant it was at is the one to blame."""
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


def run_mutants(
    files: Sequence[tuple[str, bytes]],
    count: int,
    *,
    seed: int = 1,
    processes: int = 2,
    part: str = "",
    validation: bool = False,
    progress: Callable[[Tally], None] | None = None,
) -> Tally:
    """Runs mutants 0 … ``count - 1`` of the modules.

    Args:
        files: names and contents of undamaged modules.
        count: how many mutants.
        seed: makes other mutants of the same modules.
        processes: workers at a time.
        part: damage bytes of this kind only, see mutations.py; empty for all kinds, and a module's meaning.
        validation: with validation layers, whose errors are bugs then. (The layers crash on some shaders by themselves.)
        progress: called about once a second.

    Raises:
        RuntimeError: a worker did not come as far as its first mutant.
    """
    tally = Tally()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        (folder / "names.json").write_text(json.dumps([name for name, _ in files]))
        for number, (_, data) in enumerate(files):
            (folder / f"{number}.vmfb").write_bytes(data)
        workers = [
            _Worker(folder, part, seed, first, count, processes, validation=validation)
            for first in range(min(processes, count))
        ]
        try:
            _attend(workers, tally, began, progress)
        finally:
            for worker in workers:
                if worker.process is not None:
                    worker.process.kill()
                    worker.process.wait()
    tally.seconds = time.monotonic() - began
    return tally


def _attend(workers: Sequence[_Worker], tally: Tally, began: float, progress: Callable[[Tally], None] | None) -> None:
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            worker.start()
            assert worker.process is not None and worker.process.stdout is not None
            selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
        shown = began
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
                _watch(key.data, tally, now)
            if progress is not None and now - shown > 1:
                shown = now
                tally.seconds = now - began
                progress(tally)


def _hear(worker: _Worker, data: bytes, tally: Tally) -> None:
    worker.heard = time.monotonic()
    *lines, worker.buffer = (worker.buffer + data).split(b"\n")
    for line in lines:
        told = json.loads(line)
        worker.is_ready = True
        if told is None:
            continue
        index, stage, result, detail, busy = told
        worker.next = index + worker.step
        tally.outcomes[stage, result] += 1
        tally.results[index] = result
        if result in WRONG:
            tally.wrong.append((index, result, detail))
        elif result == "INTERNAL" and " failed with " in detail:  # and not a program's own ``vm.fail``
            tally.internal.append((index, detail))
        if busy:
            tally.busy.append(index)


def _watch(worker: _Worker, tally: Tally, now: float) -> None:
    process = worker.process
    if process is None or worker.killed:
        return
    try:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        pages = 0
    resident = pages * resource.getpagesize()
    tally.peak = max(tally.peak, resident)
    if resident > MEMORY:
        worker.kill("memory")
    elif now - worker.heard > HANG_S:
        worker.kill("hang")


def _ended(worker: _Worker, tally: Tally) -> None:
    process = worker.process
    assert process is not None and process.stdout is not None and worker.errors is not None
    status = process.wait()
    process.stdout.close()
    if not worker.is_ready:
        raise RuntimeError(f"a worker ended before its first mutant:\n{worker.said()}")
    if status != 0 or worker.killed:
        kind = worker.killed or ("crash" if status < 0 else "bug")
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        if worker.next < worker.chunk_end:
            tally.wrong.append((worker.next, kind, f"{name}\n{worker.said()}"))
            tally.outcomes["run", kind] += 1
            tally.results[worker.next] = kind
            worker.next += worker.step
        else:
            tally.wrong.append((worker.next - worker.step, kind, f"{name} after the last mutant\n{worker.said()}"))
        tally.replaced += 1
    elif worker.next < worker.chunk_end:
        tally.replaced += 1
    worker.process = None


if __name__ == "__main__":
    _work(Path(sys.argv[1]), sys.argv[2], *(int(text) for text in sys.argv[3:7]))
