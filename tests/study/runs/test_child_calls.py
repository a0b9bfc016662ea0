"""Sides in separate processes: pairs on lavapipe, a process that dies or hangs, and unusable interpreters."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

from pumice.base import child_process
from pumice.base.child_process import ChildProcess
from pumice.hal_vulkan.instance.driver import shared_driver
from pumice.status import AbortedError, IncompatibleError, InvalidArgumentError, NotFoundError, PumiceError
from pumice.study.definition.axis import Axis
from pumice.study.definition.settings import Process, Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.definition.study_file import study_as_dict, study_from_dict
from pumice.study.results.comparison.results_comparison import compare_sides
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus
from pumice.study.runs import child_calls
from pumice.study.runs.child_calls import SideProcess
from pumice.study.runs.runner import run_study
from pumice.study.sampling import pair_run
from pumice.tools.cli import main

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and scripts as POSIX has them")
vulkan = pytest.mark.vulkan

QUICK = Sampling(
    warmup_count=1,
    warmup_time=0,
    min_samples=8,
    max_samples=40,
    block=2,
    reference=False,
    noise_limit=1e9,
    resolution=9,
)


def make(sleep: float = 0.002, *, against: float = 0.002, count: int = 1, **process: Any) -> Study:
    """Returns a study whose samples sleep, for another time on the other side."""

    def side(seconds: float) -> Study:
        settings = {"source": "builtin:builtin/empty", "groups": 1, "record": "each", "host_sleep": seconds}
        target = Target("sleep", "kernel", settings, measure="total")
        axes = (Axis("batch", tuple(range(1, count + 1))),)
        return Study("apart", (target,), axes, devices=("vulkan",), sampling=QUICK)

    return replace(side(sleep), against=replace(side(against), process=Process(**process)))


def children() -> list[psutil.Process]:
    mine = psutil.Process().children(recursive=True)
    return [point for point in mine if "pumice.study.runs.child" in " ".join(point.cmdline())]


@pytest.fixture(autouse=True)
def no_process_stays() -> Iterator[None]:
    yield
    assert not [child for child in children() if child.status() != psutil.STATUS_ZOMBIE or child.is_running()]


def until(find: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not find():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.02)


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits the number of rounds: starting a process takes half a second."""
    monkeypatch.setattr(pair_run, "_MIN_ROUNDS", 2)
    monkeypatch.setattr(pair_run, "_LONG_ROUNDS", 1)


# -- pairs ---------------------------------------------------------------------------------------------


@pytest.mark.sample(2, "pairs")
@vulkan
def test_both_sides_take_turns_in_processes_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, int]] = []
    start = ChildProcess.__init__

    def counted(self: ChildProcess, name: str, **options: Any) -> None:
        start(self, name, **options)
        started.append((name, self.pid))

    monkeypatch.setattr(ChildProcess, "__init__", counted)
    monkeypatch.setattr(pair_run, "_LONG_ROUNDS", 2)
    monkeypatch.setattr(pair_run, "_MIN_ROUNDS", 2)
    study = make(0.001, against=0.008, variables={"PUMICE_CACHE": "off"})
    outcome = run_study(study, tmp_path / "r")
    assert sorted(outcome.done + outcome.noisy) == [0, 1], outcome
    with Results.open(tmp_path / "r") as results:
        new, old = results.points
        assert new.against is old and old.point.is_against
        # By the clock of its process, a sleep is never shorter than requested.
        assert 1e6 <= np.min(new.values("total")) < 8e6 <= np.min(old.values("total"))
        # In turns: the two blocks of a number are neighbours on the clock that both processes share.
        for block in np.unique(new.integers("block")):
            spans = [
                (starts.min(), starts.max())
                for starts in (side.integers("started_ns")[side.integers("block") == block] for side in (new, old))
            ]
            first, second = sorted(spans)
            assert first[1] < second[0]
        notes = [note.text for note in results.notes if "processes of its own" in note.text]
        assert notes[0].startswith("the new side") and notes[1].startswith("the old side")
        assert "PUMICE_CACHE=off" in notes[1] and "PUMICE_CACHE=" not in notes[0]
        driver = shared_driver()
        assert all(driver.profiles[driver.select()].name in note for note in notes)
        assert results.as_study().against.process == study.against.process  # type: ignore[union-attr]
        # Each round opened each side again, in a new process; the first process of each side reported its environment.
        rounds = new.integers("block", "first").size
        assert old.integers("block", "first").size == rounds >= 2
        for name in ("the new side", "the old side"):
            assert len({pid for of, pid in started if of == name}) == 1 + rounds
        (comparison,) = compare_sides(results).points
        assert comparison.comparison is not None and math.isnan(comparison.comparison.interval.low)
        assert "processes of each side tell too little" in comparison.comparison.explanation


@pytest.mark.sample(2, "pairs")
@vulkan
@pytest.mark.usefixtures("few_rounds")
def test_a_verdict_says_that_the_sides_have_other_devices_and_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with another driver's manifest on one side."""
    monkeypatch.setattr(SideProcess, "device", lambda self, uri: f"what {self._name} finds")
    run_study(make(variables={"PUMICE_CACHE": "off"}), tmp_path)
    with Results.open(tmp_path) as results:
        assert list(compare_sides(results).notes) == [
            "the sides differ in device: what the old side finds on the old side, what the new side finds on the new",
            'the sides differ in process: variables.PUMICE_CACHE "off" and -',
        ]


@pytest.mark.sample(2, "pairs")
@vulkan
@pytest.mark.usefixtures("few_rounds")
def test_an_error_is_of_its_side(tmp_path: Path) -> None:
    study = make()
    assert study.against is not None
    (target,) = study.against.targets
    broken = replace(target, settings={**target.settings, "record": "once"})
    outcome = run_study(replace(study, against=replace(study.against, targets=(broken,))), tmp_path)
    assert set(outcome.failed) == {0, 1}
    assert all(reason.startswith("the old side failed: ") for reason in outcome.failed.values()), outcome.failed


class Signalling:
    """Sends a signal to the last child, once a point is done by more than a share."""

    def __init__(self, number: signal.Signals, after: float) -> None:
        self._number, self._after = number, after
        self.is_done = False

    def advance(self, point: Any, fraction: float) -> None:
        if not self.is_done and fraction > self._after:
            self.is_done = True
            os.kill(children()[-1].pid, self._number)

    def finished(self, point: Any, status: PointStatus, reason: str) -> None:
        pass


@pytest.mark.sample(2, "pairs")
@vulkan
@posix
@pytest.mark.usefixtures("few_rounds")
def test_a_process_that_dies_fails_its_pair_and_no_other(tmp_path: Path) -> None:
    """The process is killed in the middle of a pair."""

    signalling = Signalling(signal.SIGKILL, after=0.2)
    outcome = run_study(make(count=2), tmp_path, progress=signalling)
    assert signalling.is_done and len(outcome.failed) == 2, outcome
    assert all("side has ended: signal 9" in reason for reason in outcome.failed.values()), outcome.failed
    with Results.open(tmp_path) as results:
        states = [result.status for result in results.points]
        assert states.count(PointStatus.FAILED) == 2 and states.count(PointStatus.DONE) == 2
        failed = {result.point.index for result in results.points if result.status is PointStatus.FAILED}
        # The two points of one pair.
        assert {results.points[min(failed)].point.against} == {max(failed)}


@pytest.mark.sample(2, "pairs")
@vulkan
@posix
@pytest.mark.usefixtures("few_rounds")
def test_a_process_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_calls, "_LIMITS_S", {"take_block": 1.0})

    outcome = run_study(make(), tmp_path, progress=Signalling(signal.SIGSTOP, after=0))
    assert set(outcome.failed) == {0, 1}
    assert all("did not answer within 1 s, and was killed" in reason for reason in outcome.failed.values())


KERNEL = "#version 450\nlayout(local_size_x = 64) in;\nvoid main() {}\n"
PROGRAM = "from pumice.tools.cli import main; main(prog_name='pumice')"


@pytest.mark.sample(2, "pairs")
@vulkan
@posix
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_command(tmp_path: Path, how: signal.Signals) -> None:
    kernel = tmp_path / "k.comp"
    kernel.write_text(KERNEL)
    words = ["bench", str(kernel), "--groups", "1", "--apart", "--against", "", "--out", str(tmp_path / "r")]
    words += ["--set", "time_limit=60", "--set", "max_samples=1000000", "--set", "resolution=1e-6"]
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: process.poll() is not None or _count(tmp_path / "r") > 20)
            until(lambda: process.poll() is not None or len(psutil.Process(process.pid).children()) == 2)
            below = psutil.Process(process.pid).children()
            process.send_signal(how)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    _, alive = psutil.wait_procs(below, timeout=20)
    assert not alive
    if how is signal.SIGINT:
        assert process.returncode == 130 and "the same command resumes from there" in said and "Traceback" not in said


def _count(folder: Path) -> int:
    """Returns the number of samples of the other side so far."""
    try:
        with Results.open(folder) as results:
            return sum(result.count for result in results.points if result.point.is_against)
    except PumiceError:  # not created yet
        return 0


# -- interpreters --------------------------------------------------------------------------------------


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@posix
@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("raise SystemExit(3)", AbortedError, "exit status 3"),
        ("print('hello')", AbortedError, "did not start as a Python interpreter"),
        ('print(\'{"missing": "no", "module": "pumice", "pumice": null}\')', NotFoundError, "pip install 'pumice"),
        (
            'print(\'{"missing": "no", "module": "pumice.study.runs.child", "pumice": "0.0.9"}\')',
            IncompatibleError,
            "pumice 0.0.9 of .* is too old .* install pumice ",
        ),
        ('print(\'{"hello": 0, "pumice": "0.0.9"}\')', IncompatibleError, "cannot measure for pumice"),
    ],
)
def test_interpreters_that_cannot(tmp_path: Path, text: str, kind: type[PumiceError], message: str) -> None:
    with pytest.raises(kind, match=f"(?s)the old side.*{message}"):
        ChildProcess("the old side", python=script(tmp_path / "python", text))


def test_no_interpreter(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="expected a Python interpreter with pumice"):
        ChildProcess("the old side", python=str(tmp_path / "python"))


@posix
def test_an_interpreter_without_pumice(tmp_path: Path) -> None:
    """A real interpreter that finds no packages."""
    isolated = script(
        tmp_path / "python", f"import os, sys; os.execv({sys.executable!r}, ['python', '-I', '-S', *sys.argv[1:]])"
    )
    with pytest.raises(NotFoundError, match="has no pumice; install it there"):
        ChildProcess("the old side", python=isolated)


@pytest.mark.slow
@posix
def test_a_silent_interpreter_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "_START_S", 1.0)
    with pytest.raises(AbortedError, match="did not start within 1 s"):
        ChildProcess("the old side", python=script(tmp_path / "python", "import time; time.sleep(60)"))


@pytest.mark.slow
def test_a_child_ends_with_its_pipe() -> None:
    child = ChildProcess("x")
    process = psutil.Process(child.pid)
    assert child.environment["pumice"]
    began = time.monotonic()
    child.close()
    child.close()
    assert not process.is_running() and time.monotonic() - began < 5
    with pytest.raises(ValueError, match="closed"):
        child.send({})


@pytest.mark.slow
def test_a_child_waits_without_a_processor() -> None:
    with ChildProcess("x") as child:
        before = psutil.Process(child.pid).cpu_times()
        time.sleep(0.5)
        after = psutil.Process(child.pid).cpu_times()
    assert after.user + after.system - before.user - before.system < 0.1


# -- the study -----------------------------------------------------------------------------------------


def test_studies_have_processes() -> None:
    study = make(python="/opt/python", variables={"A": "1"})
    assert study.processes == (Process(), Process("/opt/python", {"A": "1"}))
    assert study_from_dict(study_as_dict(study)) == study
    assert "process" not in study_as_dict(study)
    plain = replace(study, against=None)
    assert plain.processes == () and replace(plain, process=Process()).processes == (Process(),)


@pytest.mark.parametrize("process", [{"python": 3}, {"variables": {"A=": "1"}}, {"variables": {"A": 1}}, {"pyton": ""}])
def test_what_is_no_process(process: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError):
        study_from_dict({**study_as_dict(make()), "process": process})


@pytest.mark.sample(2, "pairs")
@vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("few_rounds")
def test_options(tmp_path: Path) -> None:
    """Without another version, the other side is the same version in another environment."""
    path = tmp_path / "k.comp"
    path.write_text(KERNEL)
    words = ["bench", str(path), "--groups", "1", "--set", "max_samples=40", "--set", "resolution=9"]
    words += ["--set", "noise_limit=9", "--against-env", "PUMICE_CACHE=", "--out", str(tmp_path / "r")]
    result = CliRunner().invoke(main, [*words, "--fail-on", "never"])
    assert result.exit_code in (0, 3), result.output
    with Results.open(tmp_path / "r") as results:
        study = results.as_study()
        assert study.processes == (Process(), Process("", {"PUMICE_CACHE": ""}))
        assert len(results.points) == 2  # without the second target that has no timestamps
        assert all(
            result.count and (result.point.against is not None or result.point.is_against) for result in results.points
        )
    refused = CliRunner().invoke(main, [*words, "--against-env", "X"])
    assert refused.exit_code == 2 and "expected NAME=VALUE" in refused.stderr
    gone = CliRunner().invoke(main, [*words[:-1], str(tmp_path / "s"), "--against-python", str(tmp_path / "python")])
    assert gone.exit_code == 1 and "expected a Python interpreter with pumice" in gone.stderr
