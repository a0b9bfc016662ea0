"""The gate of comparisons: outcomes, exit statuses, and the files for CI, parsed as CI parses them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import shutil
import sqlite3
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt
from support.study.commands import study
from support.study.made_runs import made_runs
from support.study.stored_results import made_results, made_version

from pumice.status import FailedPreconditionError
from pumice.study.definition.point import Point
from pumice.study.results.comparison.results_comparison import PointComparison, ResultsComparison
from pumice.study.results.results import Results
from pumice.study.results.storage.point_result import PointResult
from pumice.study.results.storage.records import PointStatus
from pumice.study.results.storage.results_file import WriterLock
from pumice.study.statistics.bootstrap import Interval
from pumice.study.statistics.comparison import Comparison, Verdict, compare
from pumice.tools.study.baselines import save_baseline, save_measured
from pumice.tools.study.ci_outputs import markdown, workflow_commands, write_junit
from pumice.tools.study.gate import Gate
from pumice.tools.study.judgement import Judgement, Outcome, judge

pytestmark = pytest.mark.sample(33)

UNKNOWN = Interval(float("nan"), float("nan"))
_REAL = compare([1.0, 2.0] * 9, [1.0, 2.0] * 9)


def compared(verdict: str, ratio: float = 1.0, interval: tuple[float, float] | None = None) -> Comparison:
    known_verdict = Verdict(verdict)
    ends = UNKNOWN if interval is None else Interval(*interval)
    return dataclasses.replace(
        _REAL, verdict=known_verdict, ratio=ratio, interval=ends, explanation=f"{verdict}: take more samples"
    )


def point(
    comparison: Comparison | None,
    label: str = "mul",
    statuses: tuple[PointStatus, PointStatus] = (PointStatus.DONE, PointStatus.DONE),
    settings: Mapping[str, object] | None = None,
) -> PointComparison:
    of = Point(0, label, "lavapipe", {}, settings or {})
    a, b = (PointResult(of, [(status, "")], lambda _: ()) for status in statuses)
    return PointComparison(of.key, a, b, comparison, "" if comparison else "no samples in the second results")


def judged(*points: PointComparison, fail_on: str = "unclear", tolerate: float = 0.0, folder: str = "") -> Judgement:
    return judge(ResultsComparison(points, [], [], False, [], folder=folder), fail_on, tolerate)


# -- outcomes and statuses ---------------------------------------------------------------------------

SLOWER, FASTER, SAME = compared("SLOWER", 1.1, (1.05, 1.15)), compared("FASTER", 0.9, (0.85, 0.95)), compared("SAME")
UNCLEAR = compared("UNCLEAR", 1.02, (0.9, 1.2))


@pytest.mark.parametrize(
    ("comparison", "tolerate", "outcome"),
    [
        (SLOWER, 0.0, "slower"),
        (SLOWER, 0.05, "slower"),
        (SLOWER, 0.12, "unclear"),  # the interval ends above the limit
        (SLOWER, 0.2, "passed"),
        (SAME, 0.0, "passed"),
        (FASTER, 0.0, "passed"),
        (UNCLEAR, 0.0, "unclear"),
        (UNCLEAR, 0.1, "unclear"),
        (UNCLEAR, 0.25, "passed"),
        (compared("UNCLEAR", 0.9), 0.25, "unclear"),  # runs that are not comparable
        (compared("UNCLEAR", 0.97, (0.94, 0.99)), 0.0, "unclear"),
        (compared("SLOWER", float("inf"), (2.0, float("inf"))), 0.5, "slower"),
        (None, 0.5, "unclear"),
    ],
)
def test_a_tolerated_slow_down(comparison: Comparison | None, tolerate: float, outcome: str) -> None:
    (judged_point,) = judged(point(comparison), tolerate=tolerate).points
    assert judged_point.outcome == outcome
    if outcome == "unclear":
        assert "take more samples" in judged_point.reason or comparison is None


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        *(("done", "failed", 3), ("failed", "failed", 0), ("failed", "done", 0)),
        *(("done", "skipped", 3), ("skipped", "failed", 3), ("failed", "skipped", 0), ("skipped", "skipped", 0)),
    ],
)
def test_a_point_that_fails_on_the_new_side_alone_passes_no_gate(a: str, b: str, status: int, tmp_path: Path) -> None:
    failed = point(None, statuses=(PointStatus(a), PointStatus(b)))
    gate = judged(point(SAME), failed, fail_on="slower")
    assert gate.status == status
    assert judged(point(SAME), failed, fail_on="never").status == 0
    # Readers of files see the same verdict as the exit status.
    write_junit(gate, tmp_path / "x.xml")
    (suite,) = ET.parse(tmp_path / "x.xml").getroot()
    assert suite.get("failures") == str(int(status > 0))
    levels = [read_command(line)[0] for line in workflow_commands(gate)]
    assert levels.count("error") == int(status > 0)


@pytest.mark.parametrize(("status", "exits"), [("failed", 3), ("skipped", 0)])
def test_a_pair_that_failed_passes_no_gate(status: str, exits: int) -> None:
    pair = point(None, statuses=(PointStatus(status), PointStatus(status)))
    old = PointResult(dataclasses.replace(pair.a.point, is_against=True), pair.a.repeats, lambda _: ())
    assert judged(point(SAME), dataclasses.replace(pair, a=old), fail_on="slower").status == exits


@pytest.mark.parametrize(
    ("comparisons", "statuses"),
    [
        ((SAME, FASTER), (0, 0, 0)),
        ((SAME, UNCLEAR), (0, 3, 0)),
        ((SAME, None), (0, 3, 0)),
        ((SLOWER, UNCLEAR), (4, 4, 0)),
        ((SLOWER, SAME), (4, 4, 0)),
        ((), (0, 3, 0)),
    ],
)
def test_what_fails(comparisons: tuple[Comparison | None, ...], statuses: tuple[int, ...]) -> None:
    for fail_on, status in zip(("slower", "unclear", "never"), statuses, strict=True):
        assert judged(*map(point, comparisons), fail_on=fail_on).status == status


@pytest.mark.parametrize("fail_on", ["never", "slower"])
@pytest.mark.parametrize(("comparison", "is_saved"), [(SAME, True), (UNCLEAR, True), (SLOWER, False)])
def test_what_is_slower_is_no_baseline_whatever_fails(
    comparison: Comparison, is_saved: bool, fail_on: str, tmp_path: Path
) -> None:
    folder = made_results(tmp_path / "a", [1000])
    gate = judged(point(SAME), point(comparison), fail_on=fail_on)
    save_measured(folder, tmp_path / "kept", "main", gate.status, gate)
    assert (tmp_path / "kept" / "main" / "results.sqlite").is_file() == is_saved


def test_a_baseline_replaces_results_whose_run_was_killed(tmp_path: Path) -> None:
    """Its log stays beside it, but does not belong to the new file."""
    before, after, kept = made_results(tmp_path / "a", [1000]), made_results(tmp_path / "b", [5000]), tmp_path / "kept"
    with contextlib.closing(sqlite3.connect(before / "results.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("CREATE TABLE other (value)")
        shutil.copytree(before, kept / "main")
    assert (kept / "main" / "results.sqlite-wal").is_file()
    with (
        contextlib.closing(WriterLock(kept / "main", str)),
        pytest.raises(FailedPreconditionError, match="another run"),
    ):
        save_baseline(after, kept, "main")
    save_baseline(after, kept, "main")
    with Results.open(kept / "main") as saved, Results.open(after) as wanted:
        np.testing.assert_array_equal(saved.points[0].values(), wanted.points[0].values())


def test_points_that_were_skipped_on_both_sides_do_not_count() -> None:
    skipped = point(None, statuses=(PointStatus.SKIPPED, PointStatus.SKIPPED))
    gate = judged(skipped, point(SAME))
    assert (gate.status, gate.verdict, gate.points[0].outcome) == (0, "PASSED", Outcome.SKIPPED)
    one_side = point(None, statuses=(PointStatus.DONE, PointStatus.SKIPPED))
    assert judged(one_side, point(SAME)).status == 3 and judged(skipped).status == 3


@pytest.mark.parametrize("text", ["5", "-0.1", "nan", "x", "100%", ""])
def test_what_is_no_tolerance(text: str, tmp_path: Path) -> None:
    """5 would mean 5 % to its author, and let everything pass."""
    folder = made_results(tmp_path / "a", [1000])
    result = study("compare", folder, folder, f"--tolerate={text}")
    assert result.exit_code == 2 and "such as 0.05 or 5%" in result.stderr


# -- what CI reads -----------------------------------------------------------------------------------

HOSTILE = "a|b <script>*x*</script> `c` [d](e)\n::error::f \x1b[31m %0A, g: ⛔"
MANY = (
    point(SAME, "same"),
    point(SLOWER, HOSTILE),
    point(UNCLEAR, "unclear"),
    point(None, "missing"),
    point(None, "skipped", (PointStatus.SKIPPED, PointStatus.SKIPPED)),
)


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "no-such-a", "no-such-b"),
        ("report", "no-such-a", "--compare-with", "no-such-b", "--fail-on", "slower"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--confidence", 2, "confidence"),
        ("--measure", "p98", "p98"),
        ("--junit", "no-such-c/x.xml", "no folder no-such-c"),
        ("--markdown", "-", "--markdown: expected a file, got -"),
    ],
)
def test_wrong_options_are_told_before_results_are_read(
    words: tuple[str, ...], option: str, value: object, said: str
) -> None:
    result = study(*words, option, value)
    assert result.exit_code == 2 and said in result.stderr, result.stderr


def test_the_summary_is_markdown_whatever_the_names() -> None:
    """Parsed by a parser of GitHub's Markdown."""
    text = markdown(judged(*MANY))
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": False}).parse(text)
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") == 1 and kinds.count("tr_open") == 1 + len(MANY)
    inline = [token for token in tokens if token.type == "inline"]
    assert inline[0].content.startswith("SLOWER: 1 slower, 2 unclear, 1 passed, 1 skipped")
    assert all(child.type in ("text", "text_special") for one in inline for child in one.children or ())
    cells = ["".join(child.content for child in one.children or ()) for one in inline]
    # The worst comes first, with its name unchanged except for terminal control characters.
    assert cells[9] == " ".join(HOSTILE.replace("\n", "\\n").replace("\x1b", "\\x1b").split())
    assert cells[10] == "SLOWER"
    assert any("no samples in the second results" in cell for cell in cells)


def test_both_times_are_written(tmp_path: Path) -> None:
    a, b = (made_results(tmp_path / name, [ns]) for name, ns in (("a", 2_000.0), ("b", 3_000.0)))
    text, report = tmp_path / "summary.md", tmp_path / "report.xml"
    study("compare", a, b, "--markdown", text, "--junit", report)
    (row,) = [line for line in text.read_text(encoding="utf-8").splitlines() if "n=4" in line]
    old, new = (cell.strip() for cell in row.split("|")[4:6])
    assert old.startswith(("1.9", "2.0")) and new.startswith(("2.9", "3.0")) and old.endswith("µs"), row
    (case,) = ET.parse(report).getroot().iter("testcase")
    assert float(case.get("time") or "") == pytest.approx(3e-6, rel=0.02)


def test_the_step_summary_is_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made_results(tmp_path / "a", [1000])
    summary, other = tmp_path / "summary.md", tmp_path / "other.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    summary.write_text("before\n", encoding="utf-8")
    for _ in range(2):
        for path in (summary, other):
            assert study("compare", folder, folder, "--markdown", path).exit_code == 0
    assert summary.read_text(encoding="utf-8").startswith("before\n### PASSED")
    assert summary.read_text(encoding="utf-8").count("### PASSED") == 2
    assert other.read_text(encoding="utf-8").count("### PASSED") == 1


@pytest.mark.parametrize(("fail_on", "failures", "skipped"), [("slower", 1, 3), ("unclear", 3, 1), ("never", 0, 4)])
def test_the_junit_report(fail_on: str, failures: int, skipped: int, tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    write_junit(judged(*MANY, fail_on=fail_on), path)
    (suite,) = ET.parse(path).getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": str(len(MANY)),
        "failures": str(failures),
        "skipped": str(skipped),
        "errors": "0",
    }
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases][2:] == ["unclear", "missing", "skipped"]
    assert [case.find("failure") is not None for case in cases].count(True) == failures
    unclear = cases[2].find("failure" if fail_on == "unclear" else "skipped")
    assert unclear is not None and unclear.get("message") == "UNCLEAR: take more samples"


_COMMAND = re.compile(r"::(?P<level>error|warning|notice) (?P<properties>[^:]*)::(?P<message>.*)")


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Parses a workflow command as the runner does (actions/runner, src/Runner.Common/ActionCommand.cs)."""
    match = _COMMAND.fullmatch(line)
    assert match, line
    properties = dict(pair.split("=", 1) for pair in match["properties"].split(","))

    def plain(text: str) -> str:
        for mark in ("\r", "\n", ":", ",", "%"):
            text = text.replace(f"%{ord(mark):02X}", mark)
        return text

    return match["level"], {name: plain(value) for name, value in properties.items()}, plain(match["message"])


def test_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "kernels" / "a,b:c.comp"
    kernel.parent.mkdir()
    kernel.touch()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    points = (*MANY, point(FASTER, "faster", settings={"source": str(kernel)}))
    commands = [read_command(line) for line in workflow_commands(judged(*points, fail_on="slower"))]
    assert [level for level, _, _ in commands] == ["error", "warning", "warning", "notice", "notice"]
    hostile = HOSTILE.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert commands[0][1] == {"title": f"SLOWER: {hostile}"}
    assert commands[3][1] == {"file": "kernels/a,b:c.comp", "title": "FASTER: faster"}
    assert commands[4][2] == "SLOWER: 1 slower, 2 unclear, 2 passed, 1 skipped"
    # File names in a study are relative to its folder.
    of_study = point(FASTER, "faster", settings={"source": "a,b:c.comp"})
    named = next(workflow_commands(judged(of_study, folder=str(kernel.parent))))
    assert read_command(named)[1]["file"] == "kernels/a,b:c.comp"
    levels = [read_command(line)[0] for line in workflow_commands(judged(*MANY, fail_on="unclear"))]
    assert levels.count("error") == 3
    levels = [read_command(line)[0] for line in workflow_commands(judged(*MANY, fail_on="never"))]
    assert levels.count("error") == 0 and levels.count("warning") == 3


def test_more_annotations_than_github_shows() -> None:
    commands = [read_command(line) for line in workflow_commands(judged(*(point(SLOWER, f"p{n}") for n in range(30))))]
    assert len(commands) == 11
    assert commands[8][1]["title"] == "SLOWER: p8" and commands[9][1]["title"] == "21 more" and "p29" in commands[9][2]


def test_points_that_one_side_lacks_are_said_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    one = point(SAME)
    old = PointResult(dataclasses.replace(one.a.point, is_against=True), one.a.repeats, lambda _: ())
    for each, said in (
        (one, "only in the second: n=2"),
        (dataclasses.replace(one, a=old), "only on the new side: n=2"),
    ):
        Gate().finish(ResultsComparison([each], [], ["n=2"], False, []))
        assert said in capsys.readouterr().err
    comparison = ResultsComparison([dataclasses.replace(one, a=old)], [f"n={n}" for n in range(12)], [], False, [])
    Gate(as_json=True).finish(comparison)
    assert json.loads(capsys.readouterr().out)["only_in_first"] == comparison.only_a
    said = "only on the old side: n=0, n=1, n=2, n=3, n=4, n=5, n=6, n=7, n=8, n=9, and 2 more"
    assert comparison.unpaired == [said] and f"- {said}" in markdown(judge(comparison))


def test_equal_reasons_are_said_once_and_notes_of_intervals_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def unclear(n: int, why: str, interval: tuple[float, float] | None = None) -> PointComparison:
        comparison = dataclasses.replace(compared("UNCLEAR", 1.02, interval), notes=[f"{n} disturbed"])
        return point(dataclasses.replace(comparison, explanation=f"UNCLEAR: {why}"), f"n={n}")

    waits = [unclear(n, f"wake-ups took {n} ms in the second runs") for n in (8, 16)] + [
        unclear(32, "wake-ups took 1.5e+02 µs in the second runs")
    ]
    others = [unclear(n, "other clocks") for n in (2, 4)] + [unclear(1, "measure longer", (0.9, 1.2))]
    failed = [point(None, f"n={n}") for n in (64, 128)]
    Gate(fail_on="never").finish(ResultsComparison([*waits, *others, *failed], [], [], False, []))
    assert capsys.readouterr().out.splitlines()[-6:] == [
        "3 points, the first of which is n=8: UNCLEAR: wake-ups took 8 ms in the second runs",
        "2 points: UNCLEAR: other clocks",
        "n=1: UNCLEAR: measure longer",
        "2 points: no samples in the second results",
        "n=1: 1 disturbed",
        "UNCLEAR: 8 unclear",
    ]


# -- the commands ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_outputs_of_compare(tmp_path: Path) -> None:
    a, b = made_results(tmp_path / "a", [1000, 2000, 0]), made_results(tmp_path / "b", [1000, 2100, 0])
    files = {kind: tmp_path / kind for kind in ("markdown", "junit")}
    words = [word for kind, path in files.items() for word in (f"--{kind}", path)]
    result = study("compare", a, b, *words, "--github")
    assert result.exit_code == 4 and "SLOWER: 1 slower, 1 passed, 1 skipped" in result.stdout
    assert [line[:7] for line in result.stderr.splitlines() if line.startswith("::")] == ["::error", "::notic"]
    assert "SLOWER" in files["markdown"].read_text(encoding="utf-8")
    assert len(ET.parse(files["junit"]).getroot().findall(".//failure")) == 1
    data = json.loads(study("compare", a, b, "--json", "--tolerate", "20%").stdout)
    assert [entry["outcome"] for entry in data["points"]] == ["passed", "passed", "skipped"]
    assert data["gate"] == {"verdict": "PASSED", "fail_on": "unclear", "tolerate": 0.2, "exit": 0}
    tolerated = study("compare", a, b, "--tolerate", "20%")
    assert tolerated.exit_code == 0 and "SLOWER, tolerated" in tolerated.stdout
    assert study("compare", a, b, "--fail-on", "never").exit_code == 0


def test_left_out_samples_and_a_noisy_status_are_said(tmp_path: Path) -> None:
    a = made_results(tmp_path / "a", [1000])
    b = made_results(tmp_path / "b", [1000], disturbed=4, status="noisy")
    printed = study("compare", a, b).stdout
    assert "left out" in printed and "too noisy: second" in printed
    (data,) = json.loads(study("compare", a, b, "--json").stdout)["points"]
    assert data["left_out"] == [0, 80] and data["status"] == ["done", "noisy"]
    assert data["samples"] == [400, 320] and data["how"] == "runs"
    assert any("left out" in text for text in data["notes"])


@pytest.mark.slow
def test_a_report_gates(tmp_path: Path) -> None:
    a, b = made_results(tmp_path / "a", [1000]), made_results(tmp_path / "b", [1100])
    assert study("report", b, "--compare-with", a).exit_code == 0
    result = study("report", b, "--compare-with", a, "--fail-on", "slower")
    assert result.exit_code == 4 and "SLOWER: 1 slower" in result.stdout
    assert study("report", a, "--compare-with", b, "--fail-on", "slower").exit_code == 0
    wrong = study("report", a, "--fail-on", "slower")
    assert wrong.exit_code == 2 and "--compare-with" in wrong.stderr


@pytest.mark.slow
def test_machines_are_compared_on_purpose_alone(tmp_path: Path) -> None:
    described = {"version": 1, "name": "mul", "targets": [{"name": "mul", "kind": "kernel", "source": "builtin:mul"}]}
    runs = {"speeds": (0.99, 1.0, 1.01, 1.0, 0.99), "study": described}
    a, b = (
        made_runs(tmp_path / name, {("d", 1): 1e4 * by}, device=name, **runs)  # type: ignore[arg-type]
        for name, by in (("a", 1), ("b", 4))
    )
    assert study("compare", a, b).exit_code == 3
    result = study("compare", a, b, "--across", "device")
    assert result.exit_code == 4 and "the machine's state counts as the device's as far as it lasted" in result.stdout
    words = ("report", b, "--across", "device", "--fail-on", "slower")
    assert study(*words, "--compare-with", a, "--out", tmp_path / "x.html").exit_code == 4
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "1 SLOWER" in page and "counts as the device" in page
    alone = study(*words)
    assert alone.exit_code == 2 and "--compare-with DIR_A" in alone.stderr


@pytest.mark.slow
def test_a_report_gates_on_two_sides(tmp_path: Path) -> None:
    folder = made_version(tmp_path / "slower", 1, 1.08, ("v0", 1.0))
    result = study("report", folder, "--fail-on", "slower")
    assert result.exit_code == 4 and "in turns" in result.stdout and "320 and 320" in result.stdout
    assert "against the other side" not in result.stdout, "verdicts are said once"
    assert study("report", folder, "--fail-on", "slower", "--tolerate", "20%").exit_code == 0
    assert study("report", folder).exit_code == 0
    same = made_version(tmp_path / "same", 2, 1.0, ("v0", 1.0))
    result = study("report", same, "--fail-on", "unclear", "--junit", tmp_path / "x.xml")
    assert result.exit_code == 0 and ET.parse(tmp_path / "x.xml").getroot().find(".//failure") is None


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    folder = made_results(tmp_path / "a", [1000])
    for option in ("--markdown", "--junit"):
        result = study("compare", folder, folder, option, tmp_path)
        assert result.exit_code not in (0, 3, 4) and option in result.stderr and str(tmp_path) in result.stderr
        assert "SAME" in result.stdout, "the verdict is not lost"
