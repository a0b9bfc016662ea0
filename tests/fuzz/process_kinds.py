"""The program as a process: output paths of every kind, input that is cut, signals at random moments.

A run that fails leaves what was there before; one that succeeds leaves all of its output.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
from command_kinds import DIGITS, MUL, ROOT
from judging import SeededCases, judged_status, small_study
from support.case_pool import Outcome

PROGRAM: Final = "from pumice.tools.cli import main; main(prog_name='pumice')"
COUNT: Final = 4096
LIMIT_S: Final = 100  # less than the worker may be silent, so that the case itself says what hangs
OLD: Final = b"what was there before"
RUN: Final = ("run", MUL, "-b", f"0={COUNT}xf32=3", "-b", f"1={COUNT}xf32=2", "-b", f"2={COUNT}xf32")


def _program(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PUMICE_DEVICE": "vulkan"},
        **options,  # type: ignore[call-overload]
    )


def _ended(process: subprocess.Popen[bytes], data: bytes | None = None) -> tuple[int, str]:
    try:
        _, errors = process.communicate(data, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
        return -99, errors.decode("utf-8", "replace")
    return process.returncode, errors.decode("utf-8", "replace")


class ProcessCases(SeededCases[random.Random]):
    """Cases that start the program; each makes its folder anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def input(self, seed: int, index: int) -> random.Random:
        return random.Random(f"{seed}/{index}")

    def describe(self, seed: int, index: int) -> str:
        return f"{type(self).__name__} {seed}/{index}"

    def _fresh(self, index: int) -> Path:
        folder = self.folder / f"{type(self).__name__}-{index}"
        folder.mkdir()
        return folder


class OutputCases(ProcessCases):
    """Where results go: files, folders, pipes, full disks, links, names that no file system takes."""

    KINDS: Final = (
        "new", "old", "folder", "missing", "full", "fifo", "long", "link", "loop", "readonly", "null", "odd",
        "empty",
    )  # fmt: skip

    def run(self, seed: int, index: int) -> Outcome:
        rng = self.input(seed, index)
        folder = self._fresh(index)
        kind = rng.choice(self.KINDS)
        ending = rng.choice((".npy", ".bin", ""))
        path = folder / f"out{ending}"
        reader = None
        if kind == "old":
            path.write_bytes(OLD)
        elif kind == "folder":
            path.mkdir()
        elif kind == "missing":
            path = folder / "no" / "such" / path.name
        elif kind == "full":
            path = Path("/dev/full")
        elif kind == "null":
            path = Path("/dev/null")
        elif kind == "fifo":
            os.mkfifo(path)
            reader = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL)
        elif kind == "long":
            path = folder / ("x" * 300 + ending)
        elif kind == "link":
            (folder / "target").write_bytes(OLD)
            path.symlink_to(folder / "target")
        elif kind == "loop":
            path.symlink_to(path)
        elif kind == "readonly":
            folder.chmod(0o500)
        elif kind == "odd":
            path = folder / f"\x1b[2J\n{ending}"
        shown = "" if kind == "empty" else str(path)
        what = rng.choice(("run", "run", "csv", "json", "html", "profile", "xml"))
        command = {
            "run": [*RUN, "-o", f"2=@{shown}"],
            "profile": [
                "run",
                DIGITS,
                "--function=classify",
                f"--input=@{ROOT}/examples/digits/three.npy",
                f"--profile-json={shown}",
            ],
            "csv": ["study", "export", str(self.results()), "--csv", shown],
            "json": ["study", "export", str(self.results()), "--json", shown, "--raw"],
            "html": ["study", "report", str(self.results()), "--html", "--out", shown],
            "xml": ["run-checks", DIGITS, "--junit-xml", shown],
        }[what]
        status, errors = _ended(_program(*command))
        if reader is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                reader.wait(2)
            reader.kill()
            reader.wait()
        folder.chmod(0o700)
        outcome = judged_status(status, errors, (0, 1, 2))
        if outcome.result == "bug":
            return Outcome(kind, "bug", f"{command}: {outcome.detail}")
        said = self._half_written(folder, path, kind, what, ending, status)
        return (
            Outcome(kind, "bug", f"{command}: {said}; status {status}: {errors[-500:]}")
            if said
            else Outcome(kind, outcome.result)
        )

    def results(self) -> Path:
        """Results to export, made once."""
        folder = self.folder / "results"
        if not folder.exists():
            _ended(_program(*small_study(folder, "1")))
        return folder

    def _half_written(self, folder: Path, path: Path, kind: str, what: str, ending: str, status: int) -> str:
        names = {one.name for one in folder.iterdir()} - {path.name, "target"}
        if names:
            return f"left {names}"
        if kind not in ("new", "old", "link"):
            return ""
        if status == 0 and what == "run":
            data = np.load(path) if ending == ".npy" else np.frombuffer(path.read_bytes(), np.float32)
            return "" if data.shape == (COUNT,) and (data == 6).all() else "a wrong file, though it succeeded"
        if status != 0 and what != "xml":
            if kind == "new" and path.exists():
                return "a file, though it failed"
            if kind != "new" and path.read_bytes() != OLD:
                return "the old file is changed, though it failed"
        return ""


class StandardInputCases(ProcessCases):
    """Programs and arrays on standard input: cut, damaged, endless, closed."""

    def run(self, seed: int, index: int) -> Outcome:
        rng = self.input(seed, index)
        data = bytearray(Path(DIGITS).read_bytes())
        kind = rng.choice(("cut", "cut", "flip", "none", "text", "whole", "slow"))
        if kind in ("cut", "slow"):
            del data[rng.randrange(len(data)) :]
        elif kind == "flip":
            for _ in range(8):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == "none":
            data.clear()
        elif kind == "text":
            data = bytearray(b"module @x {}\n" * rng.randrange(1, 1000))
        image = f"--input=@{ROOT}/examples/digits/three.npy"
        command = rng.choice(
            (
                ["run", "-", "--function=classify", image],
                ["dump", "-"],
                ["dump", "-", "--json"],
                ["run", "--module=-", "--module=-", image],
            )
        )
        process = _program(*command, stdin=subprocess.PIPE)
        if kind == "slow":
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(data[: len(data) // 2])
                process.stdin.flush()
                time.sleep(rng.uniform(0, 0.6))
            data = data[len(data) // 2 :]
        status, errors = _ended(process, bytes(data))
        outcome = judged_status(status, errors, (0, 1, 2))
        return Outcome(kind, outcome.result, f"{command}: {outcome.detail}" if outcome.result == "bug" else "")


class SignalCases(ProcessCases):
    """Ctrl-C, SIGTERM and a reader that goes away, at a random moment of a run that writes a file."""

    def run(self, seed: int, index: int) -> Outcome:
        rng = self.input(seed, index)
        folder = self._fresh(index)
        path = folder / "out.npy"
        kind = rng.choice(("SIGINT", "SIGINT", "SIGINT", "SIGTERM", "SIGKILL", "reader"))
        what = rng.choice(("run", "run", "study", "dump"))
        command = {
            "run": [*RUN, "-o", f"2=@{path}"],
            "study": small_study(folder / "r", time_limit=0.1),
            "dump": ["dump", DIGITS, "--json"],
        }[what]
        process = _program(*command)
        time.sleep(rng.uniform(0.0, 1.2))
        if kind == "reader":
            assert process.stdout is not None
            process.stdout.close()
            process.stdout = None
        else:
            process.send_signal(getattr(signal, kind))
        status, errors = _ended(process)
        # Before the program's own code runs, Ctrl-C is the interpreter's to answer, with a traceback.
        early = (
            kind == "SIGINT"
            and "KeyboardInterrupt" in errors
            and 'cli.py", line' in errors
            and ", in main" not in errors
        )
        right = {0, 1, 3, 130, 141, -signal.SIGINT, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGPIPE}
        outcome = Outcome(kind, "ran") if early else judged_status(status, errors or "-", right)
        if outcome.result == "bug":
            return Outcome(kind, "bug", f"{command}: {outcome.detail}")
        if path.exists():
            data = np.load(path)
            if data.shape != (COUNT,) or not (data == 6).all():
                return Outcome(kind, "bug", f"{command}: {path} is not whole")
        if kind != "SIGKILL" and {one.name for one in folder.iterdir()} - {"out.npy", "r"}:
            return Outcome(kind, "bug", f"{command}: left {sorted(one.name for one in folder.iterdir())}")
        return Outcome(kind, "ran" if status == 0 else "ended")
