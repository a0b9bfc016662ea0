"""The studies of pumice: each states its question and how to read it, and each can be measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import pumice
from pumice.study.definition.expansion import expand
from pumice.study.definition.study_file import load_study
from pumice.study.results.results import Results
from pumice.study.runs import runner
from pumice.study.workloads.peaks import Peaks
from pumice.tools.cli import main
from pumice.tools.study.showing import STUDIES

FILES = sorted(STUDIES.glob("*.toml"))
TINY = "time_limit=60 max_samples=3 min_samples=3 block=3 warmup_count=0 warmup_time=0 noise_limit=1e9 reference=false"
ASKED = {
    *("batch-depth", "copy-bandwidth", "descriptors", "indirect", "module-call", "pipeline-creation", "queue-count"),
    *("semaphore-wake", "submit-cost", "workgroup-size"),
}


def test_all_that_there_are() -> None:
    assert {file.stem for file in FILES} >= ASKED


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_says_what_it_answers_and_how_it_is_read(file: Path) -> None:
    study = load_study(file)
    assert study.name == file.stem
    assert 5 <= len(study.title) <= 80
    question, reading = " ".join(study.question.split()), " ".join(study.reading.split())
    assert len(question) >= 50 and question.endswith("?")
    assert len(reading) >= 200 and reading.endswith(".")
    points = expand(study, ("vulkan",))
    assert 2 <= len(points) <= 200
    # The compared axis and the fitted lines exist.
    assert study.compare or study.fit or study.axes


@pytest.mark.sample(3)
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_can_be_measured(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known_peaks = Peaks({"GB/s": 10.0, "GFLOP/s": 10.0}, {})
    monkeypatch.setattr(runner, "measure_peaks", lambda device: known_peaks)  # takes seconds, and has a test of its own
    study = load_study(file)
    words = [word for setting in TINY.split() for word in ("--set", setting)]
    for axis in study.axes:
        # The ends of numeric axes, all values of others, and no tens of megabytes.
        values = [axis.values[0], axis.values[-1]] if axis.is_numeric and axis.name != "local_size" else axis.values
        values = [min(value, 1 << 20) if axis.name == "bytes" else value for value in values]  # type: ignore[type-var]  # numbers
        words += [
            "--axis",
            f"{axis.name}={','.join(map(str, values)).replace('True', 'true').replace('False', 'false')}",
        ]
    result = CliRunner().invoke(main, ["study", "run", file.stem, "--out", str(tmp_path / "r"), *words])
    assert result.exit_code == 0, result.stderr
    with Results.open(tmp_path / "r") as results:
        for one in results.points:
            if one.status == "skipped":
                assert re.match(r"UNAVAILABLE: .* (has \d+ compute queue|has no device addresses)", one.reason)
            else:
                assert one.status == "done" and one.count == 3, one.reason
                assert one.values().min() >= 0
        assert {result.point.target for result in results.points if result.count} == {
            target.name for target in study.targets
        }


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_the_compiled_program_is_of_its_source() -> None:
    text = (STUDIES / "module-call.mlir").read_text(encoding="utf-8")
    with pumice.Session() as session:
        session.load(STUDIES / "module-call.vmfb")
        names = [function.name.partition(".")[2] for function in session.functions()]
    assert names and names == re.findall(r"func\.func @(\w+)\(", text)
