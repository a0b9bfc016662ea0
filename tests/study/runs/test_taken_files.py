"""A run measures the files as they were when it began; its results keep them and can be measured from them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pumice import shaders
from pumice.spirv.sources.glsl import find_compiler
from pumice.status import FailedPreconditionError, UnavailableError
from pumice.study.definition.point import Point
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus
from pumice.study.runs.runner import run_study

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver")]

SAMPLING = Sampling(
    warmup_count=0, warmup_time=0, min_samples=2, max_samples=2, block=1, noise_limit=1e9, reference=False
)
KERNEL = """#version 450
#include "value.glsl"
layout(local_size_x = 1) in;
layout(binding = 0) buffer B { float x[]; };
void main() { x[gl_GlobalInvocationID.x] = VALUE; }
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "value.glsl").write_text("#define VALUE 1.0\n", encoding="utf-8")
    path = folder / "k.comp"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def study(source: Path) -> Study:
    settings = {"source": source.name, "bindings": [{"shape": 4}]}
    return Study("s", (Target("k", "kernel", settings),), sampling=SAMPLING, folder=source.parent)


class Edit:
    """Progress that edits a file after the first block."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def advance(self, point: Point, fraction: float) -> None:
        self._path.write_text(self._text, encoding="utf-8")

    def finished(self, point: Point, status: PointStatus, reason: str) -> None: ...


def test_results_are_measured_again_without_the_files(tmp_path: Path, kernel: Path) -> None:
    run_study(study(kernel), tmp_path / "r")
    shutil.rmtree(kernel.parent)
    with Results.open(tmp_path / "r") as results:
        (kept,) = results.files
        again = results.to_measure()
    assert kept.content is not None and kept.content[:4] == b"\x03\x02\x23\x07"
    assert run_study(again, tmp_path / "again").done == [0]
    with Results.open(tmp_path / "again") as results:
        assert results.files == (kept,)


def test_an_edit_while_it_is_measured_changes_nothing(tmp_path: Path, kernel: Path) -> None:
    run_study(study(kernel), tmp_path / "r")
    included = kernel.parent / "value.glsl"
    assert run_study(study(kernel), tmp_path / "edited", progress=Edit(included, "#define VALUE wrong\n")).done == [0]
    with Results.open(tmp_path / "r") as before, Results.open(tmp_path / "edited") as other:
        assert before.files == other.files
    # Nothing is left to measure, and the stored samples are of another kernel.
    for text in ("#define VALUE 2.0\n", "#define VALUE 3.0\n"):
        included.write_text(text, encoding="utf-8")
        with pytest.raises(FailedPreconditionError, match=r"k\.comp .*has changed since"):
            run_study(study(kernel), tmp_path / "r")
    included.write_text("#define VALUE 1.0\n", encoding="utf-8")
    assert run_study(study(kernel), tmp_path / "r").samples == 0


def test_a_kernel_that_failed_may_be_repaired(tmp_path: Path, kernel: Path) -> None:
    right = kernel.read_text(encoding="utf-8")
    for wrong, why in (
        (right.replace("VALUE;", "UNKNOWN;"), "UNKNOWN"),
        (right.replace("= VALUE", "= y[0]").replace("void", "layout(binding = 1) buffer A { float y[]; };\nvoid"), "A"),
    ):
        kernel.write_text(wrong, encoding="utf-8")
        outcome = run_study(study(kernel), tmp_path / "r")
        assert why in outcome.failed[0]
        with Results.open(tmp_path / "r") as results:
            assert results.files == () and results.points[0].status is PointStatus.FAILED
    kernel.write_text(right, encoding="utf-8")
    assert run_study(study(kernel), tmp_path / "r").done == [0]


def test_a_point_whose_file_is_gone_fails_alone(tmp_path: Path, kernel: Path) -> None:
    bindings = {"bindings": [{"shape": 4}]}
    targets = (
        Target("gone", "kernel", {"source": "gone.spv", **bindings}),
        Target("k", "kernel", {"source": "k.comp", **bindings}),
        Target("copy", "kernel", {"source": str(shaders.path("mul")), "bindings": [{"shape": 4}] * 3}),
    )
    outcome = run_study(Study("s", targets, sampling=SAMPLING, folder=kernel.parent), tmp_path / "r")
    assert sorted(outcome.done) == [1, 2] and outcome.failed[0].startswith("NOT_FOUND: no such file")
    with Results.open(tmp_path / "r") as results:
        assert [(file.role, file.name) for file in results.files] == [
            ("kernel", str(shaders.path("mul"))),
            ("kernel", "k.comp --target-env=vulkan1.3"),
        ]
