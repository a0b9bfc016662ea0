"""``pumice study run --runs``, ``--continue`` and ``--more-time``: runs in separate processes, killed midway."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from click.testing import Result
from support.study.commands import PROGRAM, Taken, check_resumed, mul_study, samples_of, study

from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.usefixtures("driver"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them"),
]
STUDY = mul_study("n = [4, 8]", time_limit="0.1", min_samples="5", max_samples="100000", relative_error="0", block="5")


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "repeated.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def run(toml: Path, folder: Path, *options: str) -> Result:
    return study("run", toml, "--out", folder, *options)


def interrupted(toml: Path, folder: Path, how: signal.Signals) -> tuple[int, str, Taken]:
    """Ends ``--runs 3`` during the second run; returns the exit status, the output, and the stored samples."""
    words = ["study", "run", str(toml), "--out", str(folder), "--runs", "3"]
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    while "run 2 of 3: " not in said:
        line = process.stderr.readline()
        assert line, f"it ended too soon: {said}"
        said += line
    # The other point of the second run is open, as both are sampled in turns.
    (child,) = psutil.Process(process.pid).children()
    process.send_signal(how)
    said += process.communicate(timeout=60)[1]
    _, alive = psutil.wait_procs([child], timeout=20)
    assert not alive, "the run's process ends with its parent"
    return process.returncode, said, samples_of(folder)


def resumed(toml: Path, folder: Path, before: Taken) -> None:
    """Resumes, and checks that nothing was lost and nothing doubled."""
    result = run(toml, folder, "--runs", "3")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"[234] of 6 points are done already; the other [234] are measured", result.stderr)
    after = samples_of(folder)
    assert sorted(after) == [(repeat, point) for repeat in (1, 2, 3) for point in (0, 1)]
    check_resumed(before, after)
    for point in (0, 1):
        assert after[1, point] == before[1, point], "a finished run takes no more samples"
    with Results.open(folder) as results:
        for result in results.points:
            assert result.status is PointStatus.DONE
            assert [status for status, _ in result.repeats] == [PointStatus.DONE] * 3
            repeats, blocks = result.repeat.tolist(), result.blocks.tolist()
            assert sorted(set(repeats)) == [1, 2, 3] and len(repeats) == result.count
            # Each block belongs to one repeat.
            assert len(set(zip(repeats, blocks, strict=True))) == len(set(blocks))


@pytest.mark.sample(1, "runs that end early")
@pytest.mark.slow
def test_killed_runs_go_on(toml: Path, tmp_path: Path) -> None:
    status, _, before = interrupted(toml, tmp_path / "r", signal.SIGKILL)
    assert status == -signal.SIGKILL
    with Results.open(tmp_path / "r") as results:
        assert [run.repeat for run in results.runs] == [1, 2] and results.runs[1].outcome is None
    resumed(toml, tmp_path / "r", before)


@pytest.mark.sample(1, "runs that end early")
@pytest.mark.slow
def test_ctrl_c_is_clean_and_more_runs_may_be_added(toml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    status, said, before = interrupted(toml, folder, signal.SIGINT)
    assert status == 130 and "the same command resumes from there" in said and "Traceback" not in said
    with Results.open(folder) as results:
        assert [run.outcome for run in results.runs] == ["complete", "interrupted"]
    resumed(toml, folder, before)
    again = run(toml, folder, "--runs", "4")
    assert again.exit_code == 0 and "6 of 8 points are done already; the other 2 are measured" in again.stderr
    with Results.open(folder) as results:
        assert {run.repeat for run in results.runs} == {1, 2, 3, 4}
        assert all(len(result.repeats) == 4 for result in results.points)
    assert "nothing is left to measure; --continue" in run(toml, folder).stderr


@pytest.mark.sample(1, "runs that end early")
@pytest.mark.slow
def test_one_noisy_run_makes_the_folder_noisy_and_is_sampled_on(toml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    first = run(toml, folder, "--set", "noise_limit=0")
    assert first.exit_code == 3 and "2 too noisy" in first.stderr and "--continue" in first.stderr
    before = samples_of(folder)
    # The added run is quiet, but the folder is not.
    added = run(toml, folder, "--runs", "2")
    assert added.exit_code == 3 and "run 2 of 2: mul n=4" in added.stderr
    with Results.open(folder) as results:
        statuses = [[status for status, _ in result.repeats] for result in results.points]
        assert statuses == [[PointStatus.NOISY, PointStatus.DONE]] * 2
        assert results.points[0].reason.endswith("(run 1 of 2)")
    more = run(toml, folder, "--continue", "--set", "time_limit=0.2")
    assert more.exit_code == 0 and "2 are sampled on" in more.stderr, more.stderr
    after = samples_of(folder)
    for point in (0, 1):
        old, new = before[1, point], after[1, point]
        assert new[: len(old)] == old and len(new) > len(old)
        taken = (new[-1][1] - new[len(old)][1]) / 1e9
        assert taken > 0.15, "for another time limit, the new one"
    with Results.open(folder) as results:
        assert results.as_study().sampling.time_limit == 0.1
        limits = [run.environment["sampling"]["time_limit"] for run in results.runs]  # type: ignore[index]
        assert limits == [0.1, 0.1, 0.2]
    # Other settings are another study.
    refused = run(toml, folder, "--continue", "--set", "block=7")
    assert refused.exit_code == 1 and "sampling.block: 5 is kept, 7 came" in refused.stderr
    assert "time_limit, max_samples, noise_limit, relative_error, resolution, statistic may differ" in refused.stderr


def test_more_time_for_points_that_are_done(toml: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    assert run(toml, folder, "--set", "max_samples=10").exit_code == 0
    began = time.monotonic()
    result = run(toml, folder, "--more-time", "0.3")
    assert result.exit_code == 0 and "2 of 2 points are done already; 2 are sampled on" in result.stderr
    assert time.monotonic() - began > 0.6
    for samples in samples_of(folder).values():
        starts = np.array([started for number, started in samples if number == 2])
        assert np.ptp(starts) > 0.25e9
