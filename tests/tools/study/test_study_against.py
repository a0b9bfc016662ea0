"""``study run --against`` and ``study ab``: the other side is a study, results or a baseline, measured in turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.study.commands import mul_study, study

from pumice import shaders
from pumice.study.definition.expansion import expand
from pumice.study.definition.study import Study, Target
from pumice.study.definition.study_file import load_study, study_as_dict
from pumice.study.results.results import Results
from pumice.study.results.storage.store import Store
from pumice.tools.study.against import against
from pumice.tools.study.gate import Gate

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver"), pytest.mark.sample(10)]

STUDY = mul_study("n = [4, 8]", time_limit="0.02", min_samples="3", max_samples="4", block="2").replace(
    '"builtin:mul"', '"mul.spv"\nrecord = "once"'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a folder with two studies, of one kernel and of two."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mul.spv").write_bytes(shaders.spirv("mul"))
    (tmp_path / "new.toml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "old.toml").write_text(STUDY.replace("once", "each"), encoding="utf-8")
    return tmp_path


def recorded(folder: str) -> list[tuple[object, object]]:
    """Returns the setting ``record`` of both sides of each pair, the new one first; checks that all were measured."""
    with Results.open(folder) as results:
        assert all(result.count for result in results.points)
        return [
            (result.point.settings["record"], result.against.point.settings["record"])
            for result in results.points
            if result.against is not None
        ]


def test_a_study_against_another(folder: Path) -> None:
    result = study("run", "new.toml", "--against", "old.toml", "--fail-on", "never", "--out", "r")
    assert result.exit_code == 0, result.stderr
    assert "mul n=4" in result.stdout and "verdict" in result.stdout
    assert recorded("r") == [("once", "each"), ("once", "each")]


def test_other_values_are_of_both_sides(folder: Path) -> None:
    words = ("--against", "old.toml", "--axis", "n=16", "--out", "r", "--quiet", "--json")
    result = study("run", "new.toml", *words)
    assert result.exit_code in (0, 3, 4), result.stderr
    assert [entry["axes"] for entry in json.loads(result.stdout)["points"]] == [{"n": 16}]
    assert recorded("r") == [("once", "each")]


def test_pairs_are_measured_as_well_as_verdicts_take(folder: Path) -> None:
    words = ("--fail-on", "never", "--resolution", "0.01", "--axis", "n=4", "--quiet")
    assert study("run", "new.toml", "--against", "old.toml", *words, "--out", "a").exit_code == 0
    assert (
        study("run", "new.toml", "--against", "old.toml", *words, "--out", "b", "--set", "resolution=0.5").exit_code
        == 0
    )
    kept = []
    for folder_name in ("a", "b"):
        with Results.open(folder_name) as results:
            kept.append(results.as_study().sampling.resolution)
    assert kept == [0.01, 0.5]


def test_results_and_baselines_are_measured_again(folder: Path) -> None:
    assert study("run", "old.toml", "--out", "before", "--save", "main", "--baselines", "kept").exit_code in (0, 3)
    (folder / "old.toml").unlink()
    for index, other in enumerate(("before", "before/results.sqlite", "main")):
        result = study("run", "new.toml", "--against", other, "--baselines", "kept", "--out", f"r{index}")
        assert result.exit_code in (0, 3, 4), result.stderr
        assert recorded(f"r{index}") == [("once", "each"), ("once", "each")]


def test_ab_has_the_old_side_first_and_takes_all_that_there_is(folder: Path) -> None:
    assert study("run", "old.toml", "--out", "before").exit_code in (0, 3)
    words = ("--set", "max_samples=3", "--fail-on", "never", "--quiet")
    result = study("ab", "before", "new.toml", *words)
    assert result.exit_code == 0, result.stderr
    assert recorded("sizes.ab") == [("once", "each"), ("once", "each")]
    # Both sides come from stored results, without a file.
    (folder / "mul.spv").unlink()
    assert study("ab", "before", "sizes.ab", *words, "--out", "again").exit_code == 0
    assert recorded("again") == [("once", "each"), ("once", "each")]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('{ shape = "$n" }, {', "mul n=4: 4xf32 on the old side, 8xf32 on the new side, and 1 more points"),
        ('{ shape = "$n", init', "mul n=4: 4xf32 on the old side, 8xf32 on the new side, and 1 more points"),
        ('record = "once"', "mul n=4: samples of 1 on the old side, samples of 3 on the new side"),
    ],
)
def test_results_of_other_work_are_refused(folder: Path, setting: str, said: str) -> None:
    old = load_study("old.toml")
    Store.create("before", study_as_dict(old), expand(old, ["vulkan"])).close()
    changed = setting.replace("$n", "$2 * n") if "shape" in setting else f"{setting}\nbatch = 3"
    (folder / "new.toml").write_text(STUDY.replace(setting, changed, 1), encoding="utf-8")
    for words in (["run", "new.toml", "--against", "before"], ["ab", "before", "new.toml"]):
        result = study(*words)
        assert (result.exit_code, result.stdout) == (2, ""), result.stderr
        assert f"unequal work, as the results in before are of another size: {said}" in result.stderr
        assert "give the values of axes and settings" in result.stderr and "study's file" in result.stderr
    # A file name says so explicitly.
    words = ["--axis", "n=4", "--fail-on", "never", "--out", "r"]
    assert study("run", "new.toml", "--against", "old.toml", *words).exit_code == 0


def test_a_study_that_ships_is_found_by_its_name() -> None:
    words = (
        "--axis", "batch=1", "--quick", "--set", "time_limit=0.02", "--set", "noise_limit=1e9", "--fail-on",
        "never",
    )  # fmt: skip
    result = study("run", "batch-depth", "--against", "batch-depth", *words, "--quiet", "--out", "r")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "new.toml", "--against", "gone"], "no file and no built-in study is named 'gone'"),
        (["run", "new.toml", "--against", "."], "the folder of that name has no results.sqlite"),
        (["run", "new.toml", "--tolerate", "0.05"], "--tolerate is for verdicts; say what to compare with"),
        (["run", "new.toml", "--against", "submit-cost"], "no point has a counterpart"),
        (["ab", "gone.toml", "new.toml"], "no such file"),
        (["list", "r", "--baselines", "b"], "give one of them"),
    ],
)
def test_what_is_no_other_side(words: list[str], message: str) -> None:
    result = study(*words)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert message in result.stderr


def test_results_that_keep_no_programs_say_so() -> None:
    old = load_study("old.toml")
    Store.create("before", study_as_dict(old), expand(old, ["vulkan"])).close()
    result = study("run", "new.toml", "--against", "before", "--out", "r")
    assert result.exit_code == 1
    assert "the results in before do not keep mul.spv, so it cannot be measured again" in result.stderr


@pytest.mark.parametrize(
    ("measure", "own", "statistic", "most"),
    [
        ("headline", {}, "median", 2000),
        ("wake:p99", {}, "p99", 16_000),
        ("p90", {}, "p90", 2000),
        ("p99", {"max_samples": 500}, "p99", 500),
        ("headline", {"statistic": "p90"}, "p90", 2000),
    ],
)
def test_sides_are_sampled_as_their_comparison_takes(
    measure: str, own: dict[str, object], statistic: str, most: int
) -> None:
    """A 99th percentile needs more samples than a median."""
    study = Study("a", (Target("a", "submit", {}),)).with_sampling(**own)
    two = against(study, study, Gate(measure=measure))
    assert two.against is not None
    for side in (two, two.against):
        assert (side.sampling.statistic, side.sampling.max_samples) == (statistic, most)
