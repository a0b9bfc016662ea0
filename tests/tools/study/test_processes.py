"""The processes in which sides are measured: as the options say, else as in earlier results, with a message."""

from __future__ import annotations

from dataclasses import replace

import click
import pytest

from pumice.study.definition.kept_file import KeptFiles
from pumice.study.definition.settings import Process
from pumice.study.definition.study import Study, Target
from pumice.tools.study.gate import Gate
from pumice.tools.study.measuring_options import with_processes

NEW = Study("s", (Target("k", "kernel", {"source": "builtin:mul"}),))
SAVED = Process("/old/python", {"A": "1"})
OLD = replace(NEW, process=SAVED, kept=KeptFiles({}, "the results in r"))
NONE = {"apart": False, "against_python": None, "against_env": ()}


@pytest.mark.parametrize(
    ("options", "process", "is_said"),
    [
        ({}, SAVED, True),
        ({"apart": True}, SAVED, True),
        ({"against_env": ("B=2",)}, Process("", {"B": "2"}), False),
    ],
)
def test_results_are_measured_in_the_process_that_they_had_which_is_said(
    capsys: pytest.CaptureFixture[str], options: dict[str, object], process: Process, is_said: bool
) -> None:
    sides = with_processes(replace(NEW, against=OLD), NONE | options, Gate())
    assert sides.processes == (Process(), process)
    said = "the old side is measured as the results in r were, in processes of its own, by /old/python, A=1\n"
    assert capsys.readouterr().err == (said if is_said else "")


def test_what_is_asked_for_is_not_said(capsys: pytest.CaptureFixture[str]) -> None:
    old = replace(OLD, process=Process())
    assert with_processes(replace(NEW, against=old), NONE | {"apart": True}, Gate()).processes == (Process(), Process())
    assert with_processes(replace(NEW, against=replace(OLD, process=None)), NONE, Gate()).processes == ()
    assert capsys.readouterr().err == ""


def test_apart_takes_two_versions() -> None:
    with pytest.raises(click.UsageError, match="name the other with --against OLD"):
        with_processes(NEW, NONE | {"apart": True}, Gate())
    sides = with_processes(NEW, NONE | {"against_env": ("A=1",)}, Gate(resolution=0.5))
    assert sides.processes == (Process(), Process("", {"A": "1"})) and sides.sampling.resolution == 0.5
