"""``pumice study run``, interrupted: by Ctrl-C, by a kill, by a full disk, and by another run in the folder."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.study.commands import PROGRAM, Taken, check_resumed, mul_study, samples_of, study

from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.usefixtures("driver"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals and limits as POSIX has them"),
    pytest.mark.sample(1),
]
STUDY = mul_study(
    "n = [4, 8, 12, 16]\nbatch = [1, 2, 3]",
    time_limit="0.05",
    max_samples="100000",
    relative_error="0",
    block="50",
    interleave="2",
)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def begin(toml: Path, folder: Path) -> subprocess.Popen[str]:
    words = ["study", "run", str(toml), "--out", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def reported(process: subprocess.Popen[str], count: int) -> list[str]:
    """Returns the labels of the first points that are reported as done."""
    assert process.stderr is not None
    labels = []
    while len(labels) < count:
        line = process.stderr.readline()
        assert line, "it ended too soon"
        if match := re.match(r"\[\d+/\d+\] done    (.*?): ", line):
            labels.append(match[1])
    return labels


def held(folder: Path, labels: Sequence[str]) -> Taken:
    """Checks that the reported points are done, and returns all samples."""
    with Results.open(folder) as results:
        states = {result.point.label: result.status for result in results.points}
    assert {states[label] for label in labels} <= {PointStatus.DONE}
    assert PointStatus.PENDING in states.values(), "it was interrupted in the middle"
    return samples_of(folder)


def resumed(toml: Path, folder: Path, before: Taken) -> None:
    """Resumes, and checks that nothing was lost and nothing doubled."""
    result = study("run", toml, "--out", folder)
    said = result.stderr
    assert result.exit_code == 0, said
    assert re.search(r"\d+ of 12 points are done already; the other \d+ are measured", said)
    assert "12 points done" in said
    after = samples_of(folder)
    assert after.keys() == {(1, point) for point in range(12)}
    check_resumed(before, after)
    database = sqlite3.connect(folder / "results.sqlite")
    ((most,),) = database.execute(
        "SELECT max(count) FROM (SELECT count(*) AS count FROM statuses WHERE status = 'done' GROUP BY point)"
    )
    database.close()
    assert most == 1, "no point was measured twice"
    done = [key for key, samples in after.items() if {run for run, _ in samples} == {1}]
    assert done, "points that were done in the first run took no samples in the second"


def test_ctrl_c_keeps_what_was_measured_and_the_same_command_goes_on(toml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = begin(toml, folder)
    labels = reported(process, 4)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, ""), said
    assert "the same command resumes from there" in said and "Traceback" not in said and "\x1b" not in said
    with Results.open(folder) as results:
        assert [run.outcome for run in results.runs] == ["interrupted"]
    resumed(toml, folder, held(folder, labels))


def test_a_kill_loses_nothing_that_was_reported(toml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    process = begin(toml, folder)
    labels = reported(process, 4)
    seen = samples_of(folder)  # by a reader, while it runs
    process.kill()
    process.communicate(timeout=60)
    before = held(folder, labels)
    assert all(before[key][: len(samples)] == samples for key, samples in seen.items())
    with Results.open(folder) as results:
        assert [run.outcome for run in results.runs] == [None]
    resumed(toml, folder, before)


def test_two_at_a_time_are_refused(toml: Path, tmp_path: Path) -> None:
    process = begin(toml, tmp_path / "r")
    try:
        reported(process, 1)
        second = study("run", toml, "--out", tmp_path / "r", "--quiet")
        assert (second.exit_code, second.stdout) == (1, "")
        assert second.stderr.startswith("error: ") and "another" in second.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_full_disk(toml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    # Growth beyond the limit is refused, as on a full disk; the file is already larger than 0.
    program = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (650000, 650000)); {PROGRAM}"
    # One point after the other: with turns, none might be done by then.
    words = ["study", "run", str(toml), "--out", str(folder), "--set", "interleave=1"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode == -signal.SIGBUS:
        pytest.skip("the driver keeps memory in files, whose growth the limit stops as well")
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ") and "the disk is full" in last and "make room and resume" in last
    assert "Traceback" not in done.stderr and "failed" not in done.stderr
    labels = re.findall(r"^\[\d+/\d+\] done    (.*?): ", done.stderr, re.MULTILINE)
    before = held(folder, labels)
    assert labels and sum(map(len, before.values())) > 100
