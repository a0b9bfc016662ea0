"""Wrong programs are refused with a place, the line, a caret and what would help, in bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from support.wrong_programs import BOUNDED, MADE, written

import pumice
from pumice.status import PumiceError

WRITTEN: Final = dict(written())
SECONDS: Final = 10.0
"""Of the processor, for one program; a million operations take four."""

PEAK: Final = 700 << 20
"""Bytes resident, for all programs in one process; half of it is the million operations."""


class Ended(NamedTuple):
    """How a program ended: what the error says, its place, seconds of the processor, most bytes resident so far."""

    said: str
    line: int
    column: int
    seconds: float
    peak: int


@pytest.fixture(scope="module")
def ended() -> Mapping[str, Ended]:
    command = [sys.executable, str(Path(__file__).parents[1] / "support" / "wrong_programs.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=170)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {name: Ended(*rest) for name, *rest in lines}
    assert done.returncode == 0, f"after {len(found)} programs: {done.stderr}"
    return found


def test_there_are_many() -> None:
    assert len(WRITTEN) + len(MADE) >= 200


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_wrong_program_is_refused_at_its_place(name: str, ended: Mapping[str, Ended]) -> None:
    wrong, found = WRITTEN[name], ended[name]
    assert (found.line, found.column) == (wrong.line, wrong.column), found.said
    message, shown, caret = found.said.split("\n")
    assert message.startswith(f"x.mlir:{wrong.line}:{wrong.column}: ")
    assert wrong.says in message
    assert shown.strip() in wrong.text.splitlines()[wrong.line - 1] if shown.strip() else True
    assert caret.strip() == "^"


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_a_hostile_program_is_refused_with_a_place(name: str, ended: Mapping[str, Ended]) -> None:
    found = ended[name]
    assert MADE[name][1] in found.said and found.said.startswith("x.mlir:")
    assert found.line >= 1 and found.column >= 1 and found.said.endswith("^")


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
def test_a_right_program_of_large_parts_compiles(name: str, ended: Mapping[str, Ended]) -> None:
    assert ended[name].said == ""


@pytest.mark.slow
def test_time_and_memory_are_bounded(ended: Mapping[str, Ended]) -> None:
    assert len(ended) == len(WRITTEN) + len(MADE) + len(BOUNDED)
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
