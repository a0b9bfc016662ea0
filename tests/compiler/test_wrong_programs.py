"""Wrong programs are refused with a place, the line, a caret and a remedy, in bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.compiler.wrong_programs import BOUNDED, MADE, Wrong, written

import pumice
from pumice.status import PumiceError

WRITTEN: Final = dict(written())
SECONDS: Final = 10.0
"""Processor seconds for one program; a million operations take four."""

PEAK: Final = 700 << 20
"""Resident bytes for all programs in one process: twice what a million operations take."""


class Ended(NamedTuple):
    """The end of a program: the error's message and place, processor seconds, largest resident memory so far."""

    said: str
    line: int
    column: int
    seconds: float
    peak: int


def compiled_in_one_process() -> Mapping[str, Ended]:
    """Compiles every program; returns how each ended."""
    command = [sys.executable, str(Path(__file__).parents[1] / "support" / "compiler" / "wrong_programs.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=170)
    found = {name: Ended(*rest) for name, *rest in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, f"after {len(found)} programs: {done.stderr}"
    return found


def misplaced(wrong: Wrong, found: Ended) -> bool:
    """Whether a program was not refused with its place, what is wrong, the line and a caret."""
    lines = found.said.split("\n")
    if len(lines) != 3 or (found.line, found.column) != (wrong.line, wrong.column):
        return True
    message, shown, caret = lines
    right = message.startswith(f"x.mlir:{wrong.line}:{wrong.column}: ") and wrong.says in message
    return not (right and shown.strip() in wrong.text.split("\n")[wrong.line - 1] and caret.strip() == "^")


@pytest.mark.slow
def test_wrong_programs_are_refused_with_a_place_in_bounded_time_and_memory() -> None:
    ended = compiled_in_one_process()
    assert {name: ended[name] for name, wrong in WRITTEN.items() if misplaced(wrong, ended[name])} == {}
    for name, (_, says) in MADE.items():
        found = ended[name]
        assert found.said.startswith("x.mlir:") and found.said.endswith("^") and says in found.said, name
        assert found.line >= 1 and found.column >= 1, name
    assert {name: ended[name].said for name in BOUNDED if ended[name].said} == {}
    assert len(ended) == len(WRITTEN) + len(MADE) + len(BOUNDED) and len(WRITTEN) + len(MADE) >= 200
    assert {name: each.seconds for name, each in ended.items() if each.seconds > SECONDS} == {}
    assert max(each.peak for each in ended.values()) < PEAK


@pytest.mark.parametrize("kind", ["missing", "folder", "unreadable", "folder that is a file"])
def test_a_file_that_cannot_be_read_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.mlir"
    if kind == "folder":
        path.mkdir()
    elif kind == "unreadable":
        path.symlink_to(path)
    elif kind == "folder that is a file":
        (tmp_path / "y").write_text("")
        path = tmp_path / "y" / "x.mlir"
    with pytest.raises(PumiceError, match=str(path)):
        pumice.compile(path)
