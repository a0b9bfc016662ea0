"""``pumice study``: run and resume, list, show, export, compare, and the errors of bad input."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.study.commands import PROGRAM, mul_study, samples_of, study
from support.study.stored_results import made_results as make

from pumice.study.definition.point import Point
from pumice.study.definition.study_file import parse_study, study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus
from pumice.study.results.storage.store import Store
from pumice.study.workloads import peaks
from pumice.study.workloads.peaks import Peaks

pytestmark = pytest.mark.sample(27)

STUDY = mul_study(
    "n = [4, 8]\nbatch = [1, 2]",
    'title = "Sizes"\nquestion = "Does size matter?"\nreading = "Look at the median."',
    time_limit="0.05",
    min_samples="3",
    max_samples="4",
    block="2",
)


def good(*arguments: object) -> str:
    """Runs a command that succeeds; returns its output, which has no escape sequences."""
    result = study(*arguments)
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.output
    return result.stdout


def failed(status: int, *arguments: object) -> str:
    """Runs a command that fails with ``status``; returns its message."""
    result = study(*arguments)
    assert (result.exit_code, result.stdout) == (status, ""), result.stderr
    assert result.stderr.startswith("error: ") and "internal error" not in result.stderr
    return result.stderr


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "sizes.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def changed(toml: Path, old: str, new: str) -> Path:
    text = toml.read_text(encoding="utf-8")
    assert old in text
    toml.write_text(text.replace(old, new), encoding="utf-8")
    return toml


# -- compare -----------------------------------------------------------------------------------------


def test_results_are_the_same_as_themselves(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", [1000, 2000])
    printed = good("compare", folder, folder)
    assert printed.count("SAME") == 2 and "mul n=4" in printed
    data = json.loads(good("compare", folder, folder, "--json"))
    assert [point["verdict"] for point in data["points"]] == ["SAME", "SAME"]
    assert data["points"][0]["ratio"] == pytest.approx(1) and data["points"][0]["effect"] == 0
    low, high = data["points"][0]["interval"]
    assert low < 1 < high
    assert (data["only_in_first"], data["only_in_second"], data["differences"]) == ([], [], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("medians", "verdicts", "status"),
    [
        ([1000, 2200], ["SAME", "SLOWER"], 4),
        ([1000, 1800], ["SAME", "FASTER"], 0),
        ([800, 2200], ["FASTER", "SLOWER"], 4),
    ],
)
def test_what_changed_shows_and_sets_the_status(
    medians: list[float], verdicts: list[str], status: int, tmp_path: Path
) -> None:
    a, b = make(tmp_path / "a", [1000, 2000]), make(tmp_path / "b", medians)
    result = study("compare", a, b, "--json")
    assert result.exit_code == status, result.stderr
    data = json.loads(result.stdout)["points"]
    assert [point["verdict"] for point in data] == verdicts
    assert [point["ratio"] for point in data] == pytest.approx(
        [new / old for new, old in zip(medians, (1000, 2000), strict=True)], rel=0.01
    )
    table = study("compare", a, b)
    assert table.exit_code == status and all(verdict in table.stdout for verdict in verdicts)
    assert "\x1b" not in table.output


def test_too_noisy_to_tell_is_unclear(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", [1000], noise=0.4, count=40), make(tmp_path / "b", [1040], noise=0.4, count=40)
    result = study("compare", a, b, "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["points"][0]["verdict"] == "UNCLEAR"


@pytest.mark.slow
def test_points_of_one_side_only(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", [1000, 2000]), make(tmp_path / "b", [1000, 2000, 3000])
    result = study("compare", a, b)
    assert result.exit_code == 0 and "only in the second: mul n=16" in result.stderr


@pytest.mark.slow
def test_points_that_neither_could_run_do_not_count(tmp_path: Path) -> None:
    a, b, c = make(tmp_path / "a", [1000, 0]), make(tmp_path / "b", [1000, 0]), make(tmp_path / "c", [1000, 2000])
    assert "no such queue" in good("compare", a, b)
    assert study("compare", a, c).exit_code == study("compare", c, a).exit_code == 3
    nothing = make(tmp_path / "d", [0, 0])
    assert study("compare", nothing, nothing).exit_code == 3


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    a = make(tmp_path / "a", [1000])
    other = tmp_path / "other"
    with Store.create(other, {"version": 1, "name": "x"}, [Point(0, "saxpy", "vulkan")]) as store:
        store.begin_run({})
    assert "no point in common: the first has mul n=4" in failed(1, "compare", a, other)
    assert "holds no results" in failed(1, "compare", a, tmp_path / "nosuch")
    assert "got 'foo'" in failed(2, "compare", a, a, "--measure", "foo")
    assert "confidence is between 0 and 1" in failed(2, "compare", a, a, "--confidence", 2)
    assert "threshold" in failed(2, "compare", a, a, "--threshold", -1)
    assert "resolution" in failed(2, "compare", a, a, "--resolution", 0)
    assert "Missing argument" in failed(2, "compare", a)


@pytest.mark.slow
def test_another_measure_and_looser_thresholds(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a", [1000]), make(tmp_path / "b", [1100])
    assert study("compare", a, b, "--measure", "total").exit_code == 4
    assert study("compare", a, b, "--threshold", 0.5, "--resolution", 0.2).exit_code == 0


# -- list, show, export ------------------------------------------------------------------------------


def test_studies_are_listed_with_their_questions() -> None:
    printed = good("list")
    data = json.loads(good("list", "--json"))
    assert len(data) >= 10
    for entry in data:
        assert entry["name"] in printed and entry["question"].rstrip().endswith("?")
    assert max(map(len, printed.splitlines())) <= 100


def test_results_are_listed(tmp_path: Path) -> None:
    make(tmp_path / "a", [1000, 0])
    make(tmp_path / "deep" / "er", [1000])
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "results.sqlite").write_text("no database at all, but long enough to be one" * 9)
    data = {Path(entry["folder"]).name: entry for entry in json.loads(good("list", tmp_path, "--json"))}
    assert data.keys() == {"a", "er", "bad"}
    assert (data["a"]["done"], data["a"]["points"], data["a"]["samples"]) == (1, 2, 400)
    assert data["a"]["devices"] == ["llvmpipe"] and "error" in data["bad"]
    printed = good("list", tmp_path)
    assert "1 of 2" in printed and "llvmpipe" in printed
    (tmp_path / "empty").mkdir()
    assert "there are no results" in failed(1, "list", tmp_path / "empty")
    assert "there is no folder" in failed(1, "list", tmp_path / "nosuch")


def test_a_study_is_shown(toml: Path) -> None:
    printed = good("show", toml)
    for text in ("Sizes", "Does size matter?", "Look at the median.", "mul (kernel)", "n: 4, 8", "4 on each device"):
        assert text in printed
    assert printed.endswith(STUDY)
    shown = json.loads(good("show", toml, "--json"))
    assert shown["axes"] == {"n": [4, 8], "batch": [1, 2]}
    assert json.loads(good("show", "batch-depth", "--json"))["name"] == "batch-depth"


def test_results_are_shown(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", [1000, 0])
    for name in (folder, folder / "results.sqlite"):
        printed = good("show", name)
        assert "mul n=4" in printed and "skipped" in printed and "complete" in printed
    shown = json.loads(good("show", folder, "--json"))
    assert [point["status"] for point in shown["points"]] == ["done", "skipped"]
    assert shown["runs"][0]["outcome"] == "complete"


def test_devices_are_shown_once_and_repeats_and_sides_shortly(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    points = [Point(0, "mul", "lavapipe", against=1), Point(1, "mul", "lavapipe", is_against=True)]
    with Store.create(folder, {"version": 1, "name": "x", "targets": []}, points) as store:
        for repeat in (1, 2, 2):
            store.begin_run({"revision": {"commit": "ab" * 20, "dirty": True}}, repeat=repeat)
            store.add_device("lavapipe", name="llvmpipe", driver="Mesa", facts={})
            store.end_run()
    printed = good("show", folder)
    assert printed.count("lavapipe: llvmpipe, Mesa") == 1
    assert "2 of the study, in 3 runs" in printed and "repeat 2, commit ababababa+" in printed
    assert "two: 1 of the points are measured in turns" in printed


@pytest.mark.slow
@pytest.mark.parametrize("raw", [False, True])
def test_exports(raw: bool, tmp_path: Path) -> None:
    folder = make(tmp_path / "a", [1000, 2000])
    files = {kind: tmp_path / f"x.{kind}" for kind in ("csv", "json", "markdown", "parquet")}
    words = ["--raw"] if raw else []
    assert good("export", folder, *(w for kind, path in files.items() for w in (f"--{kind}", path)), *words) == ""
    count = 2 * (5 + 400) if raw else 2  # five first samples a point
    with files["csv"].open(newline="", encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == count
    whole = json.loads(files["json"].read_text(encoding="utf-8"))
    assert len(whole["samples" if raw else "points"]) == count
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(files["parquet"]).num_rows == count
    for kind in ("csv", "json", "markdown"):
        printed = good("export", folder, f"--{kind}", "-", *words)
        assert printed.replace("\r\n", "\n") == files[kind].read_text(encoding="utf-8")


def test_exports_that_cannot_be_written(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", [1000])
    assert "say what to write" in failed(2, "export", folder)
    assert "name a file" in failed(2, "export", folder, "--parquet", "-")
    assert "there is no folder" in failed(1, "export", folder, "--csv", tmp_path / "nosuch" / "x.csv")
    assert "holds no results" in failed(1, "export", tmp_path / "nosuch", "--csv", "-")


def test_a_question_of_several_lines_is_printed_as_one(tmp_path: Path) -> None:
    described = study_as_dict(parse_study(STUDY.replace("Does size", "Does size\\n")))
    with Store.create(tmp_path, described, [Point(0, "mul", "d", {"n": 4, "batch": 1})]):
        pass
    assert "Does size matter?" in good("report", tmp_path)


@pytest.mark.slow
def test_reports(tmp_path: Path) -> None:
    folder = make(tmp_path / "a", [1000, 0])
    printed = good("report", folder)
    assert "sizes" in printed and "done" in printed and "no such queue" in printed
    assert good("report", folder, "--html") == f"{folder / 'report.html'}\n"
    assert good("report", folder, "--out", tmp_path / "x y.html") == f"{tmp_path / 'x y.html'}\n"
    for path in (folder / "report.html", tmp_path / "x y.html"):
        text = path.read_text(encoding="utf-8")
        assert text.lstrip().lower().startswith("<!doctype html>")
        assert not re.search(r"<(script|img|link)\b[^>]*\b(src|href)=.https?:", text), "it needs nothing else"
    assert "there is no folder" in failed(1, "report", folder, "--out", tmp_path / "nosuch" / "x.html")
    assert "holds no results" in failed(1, "report", tmp_path / "nosuch")


@pytest.mark.slow
def test_a_report_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    folder = make(tmp_path / "a", [1000])
    good("report", folder, "--open")
    assert opened == [(folder / "report.html").resolve().as_uri()]


def test_hostile_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    name = "a\x1b[31m\n'b'"
    folder = tmp_path / name
    points = [Point(0, "\x1b[2Jmul", "lava\x1bpipe", {"mode": "\x1b]0;x\x07"})]
    described = {"version": 1, "name": "\x1bname", "targets": []}
    with Store.create(folder, described, points) as store:
        store.begin_run({})
        store.add_device("lava\x1bpipe", name="\x1b[5mGPU", driver="\x1b", facts={})
        store.add_note("\x1b[7mnote")
        store.set_status(0, "failed", "\x1b[1mreason\nnext")
    for arguments in (("list", tmp_path), ("show", folder), ("compare", folder, folder), ("report", folder)):
        result = study(*arguments)
        assert "\x1b" not in result.output and "internal error" not in result.stderr, arguments
    for arguments in (("show", f"{folder}x"), ("run", f"{folder}.toml"), ("report", f"{folder}x")):
        assert "\x1b" not in failed(1 if arguments[0] == "report" else 2, *arguments)


# -- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", "version = 99", "written in version 99 of the format.*update pumice"),
        ("n = [4, 8]", "n = []", "axes.n: axis 'n' is empty"),
        ("[axes]", "[axis]", "did you mean 'axes'"),
        ("[axes]", "[axes", "sizes.toml:1[0-9]: expected TOML"),
        ("batch = [1, 2]", "batch = [0]", "expected an int from 1 to 65536, got 0"),
    ],
)
def test_studies_that_are_none(old: str, new: str, message: str, toml: Path) -> None:
    changed(toml, old, new)
    for command in ("show", "run"):
        result = study(command, toml)
        assert result.exit_code == (1 if "99" in new else 2) and result.stdout == ""
        assert re.search(message, result.stderr) and "sizes.toml:" in result.stderr


def test_names_of_no_study(tmp_path: Path) -> None:
    assert "did you mean 'batch-depth'" in failed(2, "run", "batch-dept")
    assert "no such file" in failed(2, "run", tmp_path / "nosuch.toml")
    assert "has no results.sqlite" in failed(2, "show", tmp_path)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    assert "UTF-8" in failed(2, "show", tmp_path / "x.toml")


def test_results_of_a_newer_version(toml: Path, tmp_path: Path) -> None:
    folder = make(tmp_path / "r", [1000])
    database = sqlite3.connect(folder / "results.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.commit()
    database.close()
    for arguments in (
        ("show", folder),
        ("report", folder),
        ("compare", folder, folder),
        ("export", folder, "--csv", "-"),
        ("run", toml, "--out", folder),
    ):
        assert "newer version of pumice" in failed(1, *arguments)
    assert "newer version" in good("list", tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--axis", "batc=1"], "did you mean 'batch'"),
        (["--axis", "batch=9:3"], "is empty"),
        (["--axis", "n=1", "--axis", "n=2"], "--axis n is given twice"),
        (["--set", "time_limit=x"], "time_limit is a number"),
        (["--set", "speed=1"], "expected NAME=VALUE with one of"),
        (["--device", "vulkan", "--device", "vulkan"], "expected different devices"),
    ],
)
def test_wrong_usage_of_run(words: list[str], message: str, toml: Path, tmp_path: Path) -> None:
    assert message in failed(2, "run", toml, "--out", tmp_path / "r", *words)
    assert not (tmp_path / "r").exists()


# -- run ---------------------------------------------------------------------------------------------


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
class TestRun:
    """On a device, in this process."""

    def test_a_study(self, toml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        result = study("run", toml)
        assert (result.exit_code, result.stdout) == (0, "")
        assert "sizes.results: 4 points done, 0 too noisy, 0 failed, 0 skipped; 16 samples" in result.stderr
        assert len(re.findall(r"^\[[1-4]/4\] done    mul n=[48] batch=[12]: ", result.stderr, re.MULTILINE)) == 4
        assert "\x1b" not in result.stderr
        with Results.open("sizes.results") as results:
            assert [(result.status, result.count) for result in results.points] == [(PointStatus.DONE, 4)] * 4
            assert [run.outcome for run in results.runs] == ["complete"]
            assert results.text == STUDY
        before = samples_of(Path("sizes.results"))
        again = study("run", toml)
        assert again.exit_code == 0
        assert "4 of 4 points are done already; nothing is left to measure" in again.stderr
        assert samples_of(Path("sizes.results")) == before
        assert json.loads(good("show", "sizes.results", "--json"))["study"] == "sizes"

    def test_another_study_is_refused(self, toml: Path, tmp_path: Path) -> None:
        words = ("run", toml, "--out", tmp_path / "r")
        assert study(*words).exit_code == 0
        for more in (("--axis", "n=4"), ("--axis", "n=4,8,16"), ("--set", "seed=1"), ("--axis", "n=4,16")):
            message = failed(1, *words, *more)
            assert "results of another study" in message and "Take another folder" in message
        assert study("run", "submit-cost", "--out", tmp_path / "r").exit_code == 1

    def test_axes_and_settings_of_the_command_line(self, toml: Path, tmp_path: Path) -> None:
        words = ("--axis", "n=16", "--axis", "batch=1", "--quick", "--set", "max_samples=5", "--set", "time_limit=0.02")
        said = study("run", toml, "--out", tmp_path / "r", *words, "--quiet").stderr
        assert all("] noisy " in line for line in said.splitlines())  # which depends on the machine
        with Results.open(tmp_path / "r") as results:
            assert [result.point.axes for result in results.points] == [{"n": 16, "batch": 1}]
            sampling = results.as_study().sampling
        assert (sampling.max_samples, sampling.time_limit, sampling.warmup_time) == (5, 0.02, 0.02)

    def test_a_point_that_fails_leaves_the_others(self, toml: Path, tmp_path: Path) -> None:
        changed(toml, 'source = "builtin:mul"', 'source = "builtin:timing/copy"\nspecialization = { 0 = "$n" }')
        changed(toml, "[4, 8]", "[4, 1048576]")
        changed(toml, ', { shape = "$n", init = "zeros" }', "")
        result = study("run", toml, "--out", tmp_path / "r")
        assert result.exit_code == 1
        assert "2 points done, 0 too noisy, 2 failed" in result.stderr
        assert "workgroup size (1048576, 1, 1) (1048576 invocations) is more than" in result.stderr
        with Results.open(tmp_path / "r") as results:
            reasons = {result.point.axes["n"]: (str(result.status), result.reason) for result in results.points}
        assert reasons[4][0] == "done" and reasons[1048576][0] == "failed"
        assert "Specialise a smaller local size" in reasons[1048576][1]
        # Points that failed are tried again.
        again = study("run", toml, "--out", tmp_path / "r")
        assert again.exit_code == 1 and "2 of 4 points are done already; the other 2 are measured" in again.stderr
        exported = json.loads(good("export", tmp_path / "r", "--json", "-"))
        assert [entry["status"] for entry in exported["points"]] == ["done", "done", "failed", "failed"]

    def test_too_noisy_has_a_status_of_its_own_which_stays(self, toml: Path, tmp_path: Path) -> None:
        changed(toml, "noise_limit = 1e9", "noise_limit = 0")
        words = ("run", toml, "--out", tmp_path / "r", "--quiet")
        first, again = study(*words), study(*words)
        assert (first.exit_code, again.exit_code) == (3, 3)
        assert first.stderr.count("noisy") == 4 and again.stderr == ""

    def test_folders_that_cannot_be(self, toml: Path, tmp_path: Path) -> None:
        assert "is a file" in failed(1, "run", toml, "--out", toml)
        assert "cannot be made" in failed(1, "run", toml, "--out", toml / "below")

    def test_devices(self, toml: Path, tmp_path: Path) -> None:
        for uri in ("vulkan://99", "gpu"):
            assert uri in failed(1, "run", toml, "--out", tmp_path / "r", "--device", uri, "--quiet")
        # The folder exists by then, and suits a device that exists.
        words = ("--axis", "n=4", "--axis", "batch=1")
        assert study("run", toml, "--out", tmp_path / "s", "--device", "vulkan://0", *words).exit_code == 0
        both = study("run", toml, "--out", tmp_path / "t", "--device", "vulkan", "--device", "vulkan://0", *words)
        assert both.exit_code == 0 and "2 points done" in both.stderr

    def test_a_reference_that_is_not_measured(self, toml: Path, tmp_path: Path) -> None:
        changed(toml, "[sampling]", 'compare = "batch"\nreference = 1\n[sampling]')
        assert study("run", toml, "--out", tmp_path / "r", "--axis", "batch=2", "--axis", "n=4").exit_code == 0

    @pytest.mark.skipif(sys.platform == "win32", reason="terminals as POSIX has them")
    def test_a_terminal_gets_a_bar_with_the_time_left(self, toml: Path, tmp_path: Path) -> None:
        master, terminal = os.openpty()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "study", "run", str(toml), "--out", str(tmp_path / "r")],
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=terminal,
            timeout=60,
            check=False,
        )
        os.close(terminal)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal's output raises it
            while part := os.read(master, 65536):
                said += part
        os.close(master)
        text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", said).decode()
        assert (done.returncode, done.stdout) == (0, b""), text
        assert re.search(r"\d/4 points .*left", text) and "4 points done" in text
        assert "] done" not in text

    def test_push_constants_as_texts(self, toml: Path, tmp_path: Path) -> None:
        changed(toml, "builtin:mul", "builtin:examples/saxpy")
        changed(toml, ', { shape = "$n", init = "zeros" }]', ']\npush = ["f32=2.5"]')
        assert study("run", toml, "--out", tmp_path / "r").exit_code == 0

    def test_hostile_folders(self, toml: Path, tmp_path: Path) -> None:
        folder = tmp_path / "a b?mode=ro#%20'\"\x1b"
        result = study("run", toml, "--out", folder, "--axis", "n=4", "--axis", "batch=1")
        assert result.exit_code == 0, result.stderr
        assert "\x1b" not in result.stderr
        with Results.open(folder) as results:
            assert results.points[0].count == 4

    def test_peaks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Measuring peaks takes seconds, and the study package's tests cover it.
        known_peaks = Peaks({"GB/s": 8.5, "GFLOP/s": 30.0}, {"GB/s": {"by": "copying 64 MiB"}})
        monkeypatch.setattr(peaks, "measure_peaks", lambda device: known_peaks)
        (shown,) = json.loads(good("peaks", "--json")).values()
        assert shown["peaks"] == {"GB/s": 8.5, "GFLOP/s": 30.0}
        printed = good("peaks", "--device", "vulkan")
        assert "8.5 GB/s" in printed and "copying 64 MiB" in printed and "30 GFLOP/s" in printed
        assert "expected vulkan or lavapipe" in failed(2, "peaks", "--device", "gpu")
