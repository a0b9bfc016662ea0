"""``pumice bench --against``: the other side, how it is measured, and the output."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.study.commands import FAST, bench, study, wrong_bench

from pumice import shaders
from pumice.spirv.sources.glsl import find_compiler
from pumice.status import UnavailableError
from pumice.study.results.comparison.results_comparison import compare_sides
from pumice.study.results.results import Results
from pumice.study.results.storage.records import PointStatus

pytestmark = [pytest.mark.vulkan, pytest.mark.usefixtures("driver", "here"), pytest.mark.sample(20)]

MUL = shaders.path("mul")
DIGITS = Path(__file__).parents[3] / "examples" / "digits"
SEVEN = f"@{DIGITS / 'seven.npy'}"
KERNEL = """#version 450
#include "value.glsl"
#ifndef MORE
#define MORE 0
#endif
layout(local_size_x = 1) in;
layout(binding = 0) buffer B { float x[]; };
layout(push_constant) uniform Push { float scale; } push;
void main() { x[gl_GlobalInvocationID.x] = VALUE + MORE * push.scale; }
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    try:
        find_compiler()
    except UnavailableError as error:
        pytest.skip(error.message)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "value.glsl").write_text("#define VALUE 1.0\n", encoding="utf-8")
    path = tmp_path / "k.comp"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def sides(*arguments: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the settings of the new side and of the old one, of a study of one point that was measured."""
    result = bench(*arguments, *FAST, "--out", "r")
    assert result.exit_code in (0, 3, 4), result.stderr
    with Results.open("r") as results:
        new, old = results.points
        assert new.against is old and new.count and old.count
        return dict(new.point.settings), dict(old.point.settings)


def differing(*arguments: object) -> dict[str, tuple[object, object]]:
    """Returns the settings in which the sides differ, the old side's value first."""
    new, old = sides(*arguments)
    return {name: (old[name], new[name]) for name in new if old[name] != new[name]}


def wrong(*arguments: object) -> str:
    return wrong_bench(*arguments, *FAST)


# -- a program, options, or both ---------------------------------------------------------------------


def test_a_file(kernel: Path) -> None:
    other = kernel.with_name("old one.comp")
    shutil.copy(kernel, other)
    shared = (kernel, "-I", "inc", "--push", "scale=2", "--size", 4)
    assert differing(*shared, "--against", other) == {"source": (str(other), str(kernel))}


def test_options_alone_are_of_the_same_file(kernel: Path) -> None:
    words = (kernel, "-I", "inc", "-D", "MORE=2", "-D", "LESS", "--push", "scale=2", "--batch", 2, "--size", 4)
    assert differing(*words, "--against", "-D MORE=1 --push 'scale=3' --batch 4 --descriptors sets") == {
        "defines": ({"MORE": "1", "LESS": ""}, {"MORE": "2", "LESS": ""}),
        "push": ({"scale": 3.0}, {"scale": 2.0}),
        "batch": (4, 2),
        "descriptors": ("sets", "auto"),
    }


def test_nothing_is_the_new_side_itself(kernel: Path) -> None:
    assert differing(MUL, "--size", 4, "--against", "") == {}


def test_spirv_against_a_source_has_no_macros(kernel: Path) -> None:
    shared = (kernel, "-I", "inc", "-D", "MORE=1", "--push", "scale=2", "--size", 4)
    bench(*shared, *FAST, "--out", "kept")
    with Results.open("kept") as results:
        content = results.files[0].content
    assert content is not None
    Path("built.spv").write_bytes(content)
    differences = differing(*shared, "--against", "built.spv")
    assert differences["defines"] == ({}, {"MORE": "1"}) and differences["include_dirs"] == (
        [],
        [str(Path("inc").absolute())],
    )


def test_functions_of_modules(kernel: Path) -> None:
    module = DIGITS / "digits.vmfb"
    words = (module, "--function", "classify", "--input", SEVEN, "--in-flight", 2)
    assert differing(*words, "--against", f"{module} --in-flight 1 --path session") == {
        "in_flight": (1, 2),
        "path": ("session", "async"),
    }


def test_a_program_is_compiled_for_either_side(tmp_path: Path) -> None:
    for name, operation in (("old", "multiply"), ("new", "add")):
        Path(f"{name}.mlir").write_text(
            f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
            f"  %0 = stablehlo.{operation} %x, %x : tensor<4xf32>\n"
            "  return %0 : tensor<4xf32>\n}\n",
            encoding="utf-8",
        )
    np.save("x.npy", np.ones(4, np.float32))
    for _ in range(2):  # the second time it is resumed
        assert [*differing("new.mlir", "--against", "old.mlir", "--input", "@x.npy")] == ["source"]
    with Results.open("r") as results:
        kept = {file.name: file for file in results.files}
    old, new = kept[f"against: {tmp_path / 'old.mlir'}"], kept[str(tmp_path / "new.mlir")]
    assert old.content is not None and new.content is not None and old.sha256 != new.sha256
    assert (old.content[8:12], old.role) == (b"IREE", "module")


def test_a_kernel_against_a_module_is_compared_by_total() -> None:
    module = DIGITS / "digits.vmfb"
    words = ("--size", 4, "--against", f"{module} --function classify --input {SEVEN}", *FAST, "--out", "r")
    result = bench(MUL, *words)
    assert "the sides measure execute and total; they are compared by total" in result.stderr
    with Results.open("r") as results:
        assert [result.point.measure for result in results.points] == ["total", "total"]


def test_the_verdict_is_below_the_figures_of_both(kernel: Path) -> None:
    result = bench(MUL, "--size", 4, "--against", "--batch 64", *FAST, "--fail-on", "never")
    assert result.exit_code == 0, result.stderr
    assert "the sides differ in targets: mul.batch 64 and -" in result.stderr
    figures, verdict = (result.stdout.index(text) for text in ("mul on vulkan (old: ", "verdict"))
    assert 0 < figures < verdict
    data = json.loads(bench(MUL, "--size", 4, "--against", "--batch 64", *FAST, "--json").stdout)
    assert [point["target"] for point in data["points"]] == ["mul", "mul"]
    (compared,) = data["comparison"]["points"]
    assert compared["point"] == "mul" and data["comparison"]["gate"]["exit"] in (0, 3)


def test_a_statistic_of_a_segment_is_compared() -> None:
    result = bench(MUL, "--size", 4, "--against", "", "--measure", "wake:p99", *FAST, "--json", "--fail-on", "never")
    data = json.loads(result.stdout)["comparison"]
    assert (data["measure"], data["statistic"]) == ("headline", "p99")
    assert {point["measure"] for point in json.loads(result.stdout)["points"]} == {"wake"}


def test_profiles_are_of_both_sides() -> None:
    words = (DIGITS / "digits.vmfb", "--function", "classify", "--input", SEVEN, *FAST, "--fail-on", "never")
    result = bench(*words, "--against", "--path direct", "--profile")
    assert result.exit_code == 0, result.stderr
    for label in ("digits: 20 samples more", "digits (old): 20 samples more"):
        assert label in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--against", "gone.comp --size 4"], "gone.comp is no file, no folder with results and no baseline"),
        (["--against", "'"], "expected words as in a shell: No closing quotation"),
        (["--against", "--cold"], "No such option '--cold'"),
        (["--against", "--batch many"], "Invalid value for '--batch'"),
        (["--against", "--function f"], "--function is of modules"),
        (["--against", "a.comp b.comp"], "unexpected extra argument"),
        (["--against", "", "--against-rev", "HEAD"], "give one of them"),
        (["--against", "."], ". is no file, no folder with results and no baseline"),
        (["--continue"], "give their folder, --out DIR"),
        (["--against", "", "--more-time", "1"], "give their folder, --out DIR"),
        (["--apart"], "--apart measures two versions in processes of their own, and there is one"),
        (["--build", "make"], "--build is for --against-rev"),
        (["--fail-on", "slower"], "--fail-on is for verdicts; say what to compare with"),
        (["--save", "taken"], "--against taken would mean the file of that name"),
        (["--save", "../up"], "expected a name of letters, digits"),
        (["--html", "nowhere/report.html"], "--html: there is no folder nowhere"),
        (["--trace", "nowhere/trace.pftrace"], "--trace: there is no folder nowhere"),
        (["--against", "", "--measure", "wak"], "got 'wak'"),
        (["--against", "", "--confidence", "2"], "confidence is between 0 and 1"),
    ],
)
def test_what_is_no_other_side(words: list[str], message: str) -> None:
    Path("taken").touch()
    assert message in wrong(MUL, *words)


def test_baselines_that_cannot_be_written_are_an_error_before_measuring() -> None:
    Path(".pumice").touch()
    result = bench(MUL, "--size", 4, "--save", "main")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: .pumice/baselines cannot be written: Not a directory\n"


def test_a_pair_is_one_point_whose_noise_is_said_once() -> None:
    words = (MUL, "--size", 4, "--against", "", *FAST, "--fail-on", "never")
    result = bench(*words)
    assert result.exit_code == 0 and result.stderr.startswith("[1/1] noisy   mul\n0 points done, 1 too noisy, 0 failed")
    assert "(old)" not in result.stderr
    assert result.stdout.count("pairs of blocks in") == 1
    assert (result.stdout + result.stderr).count("too noisy") == 1 and "nan" not in result.stdout
    assert result.stdout.count("noisy ratio") == 2  # in the titles of both sides
    assert "[1/1] noisy   mul: " in bench(*words, "--json").stderr


def test_why_a_pair_failed_is_said_once() -> None:
    result = bench(MUL, "--size", 4, "--against", "--groups 1,1,99999999", *FAST, "--fail-on", "never")
    assert result.exit_code == 1, result.stderr
    assert (result.stdout + result.stderr).count("RESOURCE_EXHAUSTED") == 1
    assert "no timestamps" not in result.stdout  # as nothing was measured


def test_a_program_without_its_inputs_is_wrong_usage_on_either_side() -> None:
    module = DIGITS / "digits.vmfb"
    for other in ([], ["--against", ""]):
        result = bench(module, "--function", "classify", *other, *FAST)
        assert result.exit_code == 2 and "takes 1 argument, got 0: give each as --input VALUE" in result.stderr
        assert result.stdout == ""


# -- results and baselines ---------------------------------------------------------------------------


def test_a_baseline_is_measured_again_without_its_files(kernel: Path) -> None:
    words = ("-I", "inc", "--push", "scale=2", "--size", 4, *FAST)
    saved = bench(kernel, *words, "--save", "main", "--no-baseline")
    assert saved.exit_code in (0, 3) and "saved as main: .pumice/baselines/main" in saved.stderr
    with Results.open(".pumice/baselines/main") as results:
        (was,) = results.files
    Path("inc/value.glsl").write_text("#define VALUE 2.0\n", encoding="utf-8")
    result = bench(kernel, *words, "--against", "main", "--out", "r", "--save", "next")
    assert result.exit_code in (0, 3, 4), result.stderr
    assert re.search(r"\(old: \S+, the results in \S*baselines/main", result.stdout)
    with Results.open("r") as results:
        kept = {file.name: file.sha256 for file in results.files}
    new = kept.pop(was.name)
    assert kept == {f"against: {was.name}": was.sha256} and new != was.sha256
    # A baseline saved with both sides stands for the new one.
    if result.exit_code != 4:
        bench(kernel, *words, "--against", "next", "--out", "third")
        with Results.open("third") as results:
            assert {file.sha256 for file in results.files} == {new}
    listed = study("list")
    assert "baselines in .pumice/baselines" in listed.stdout and ".pumice/baselines/main" in listed.stdout
    as_json = study("list", "--baselines", ".pumice/baselines", "--json")
    assert [Path(entry["folder"]).name for entry in json.loads(as_json.stdout)][0] == "main"


def test_results_in_a_folder_stand_for_what_they_measured(kernel: Path) -> None:
    words = ("-I", "inc", "--push", "scale=2", "--size", 4)
    bench(kernel, *words, *FAST, "--out", "before")
    shutil.copy(kernel, "renamed.comp")
    kernel.unlink()
    assert [*differing("renamed.comp", *words, "--against", "before")] == ["source"]


def test_results_of_another_size_are_refused() -> None:
    bench(MUL, "--size", 8, *FAST, "--save", "main", "--no-baseline")
    for words, said in (
        (("--size", 4), "mul: 8xf32 on the old side, 4xf32 on the new side"),
        (("--size", 8, "--binding", "0=8xi32"), "mul: 8xf32 on the old side, 8xi32 on the new side"),
        (("--size", 8, "--in-flight", 2), "mul: samples of 1 on the old side, samples of 2 on the new side"),
    ):
        message = wrong(MUL, *words, "--against", "main")
        assert f"unequal work, as the results in .pumice/baselines/main are of another size: {said}; give " in message
        assert "--size, --binding, --input" in message and "--against 'FILE --size N'" in message
    # The same size in another form, and unequal work that is named explicitly.
    assert differing(MUL, "--binding", "0=8xf32=1", "--size", 8, "--against", "main").keys() == {"bindings"}
    shutil.rmtree("r")
    assert differing(MUL, "--size", 4, "--against", f"{MUL} --size 8").keys() == {"bindings"}


def test_a_baseline_is_replaced_by_a_whole_one_alone(kernel: Path) -> None:
    words = ("--size", 4, *FAST, "--save", "main")
    bench(MUL, *words)
    before = Path(".pumice/baselines/main/results.sqlite").read_bytes()
    result = bench(MUL, *words, "--axis", "batch=1,65536", "--axis", "command_buffers=1,2")
    assert result.exit_code == 2
    kernel.write_text(KERNEL.replace("VALUE", "GONE"), encoding="utf-8")
    failed = bench(kernel, "-I", "inc", "--push", "scale=1", "--groups", "1", "--entry", "main", *words)
    assert failed.exit_code != 0
    assert Path(".pumice/baselines/main/results.sqlite").read_bytes() == before
    bench(MUL, *words)
    assert Path(".pumice/baselines/main/results.sqlite").read_bytes() != before
    assert [path.name for path in Path(".pumice/baselines/main").iterdir()] == ["results.sqlite"]


@pytest.mark.parametrize("kept", [True, False])
def test_a_baseline_that_is_too_noisy_is_said_to_be(kept: bool) -> None:
    words = ("--size", 4, *FAST, "--set", "noise_limit=1e-9", "--timestamps", "none", "--no-baseline", "--save", "main")
    result = bench(MUL, *words, *(["--out", "r"] if kept else []))
    assert result.exit_code == 3 and "main is too noisy at mul: its times tell little" in result.stderr
    assert ("--continue --more-time S" if kept else "--set time_limit=S") in result.stderr
    with Results.open(".pumice/baselines/main") as results:
        assert results.points[0].status is PointStatus.NOISY


# -- revisions ---------------------------------------------------------------------------------------


def git(*arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_revision_has_its_own_source_includes_and_inputs(kernel: Path) -> None:
    np.save("x.npy", np.zeros(4, np.float32))
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "old")
    Path("inc/value.glsl").write_text("#define VALUE 2.0\n", encoding="utf-8")
    np.save("x.npy", np.ones(4, np.float32))
    words = ("-I", "inc", "--push", "scale=2", "-b", "0=@x.npy")
    for _ in range(2):  # the second time it is resumed
        differences = differing(kernel, *words, "--against-rev", "HEAD", "--build", "touch built")
    assert differences == {"source": ("k.comp", str(kernel)), "include_dirs": (["inc"], [str(Path("inc").absolute())])}
    with Results.open("r") as results:
        said = compare_sides(results).notes
        assert re.fullmatch(r"commit: ([0-9a-f]{9}) and \1\+", said[0])
        assert len(said) == 1, "the place of the worktree is no difference"
        kept = {file.name: file.content for file in results.files}
        old, new = (results.runs[0].environment[name] for name in ("against_revision", "revision"))
    assert isinstance(old, dict) and isinstance(new, dict)
    assert old["commit"] == new["commit"] and (old["dirty"], new["dirty"]) == (False, True)
    assert kept["x.npy"] != kept["against: x.npy"]
    codes = [content for name, content in kept.items() if "k.comp" in name]
    assert len(codes) == 2 and codes[0] != codes[1]
    assert not [*Path(".git").glob("worktrees/*")]
    Path("new.comp").write_text(kernel.read_text(encoding="utf-8"), encoding="utf-8")
    missing = wrong("new.comp", *words, "--against-rev", "HEAD")
    assert "new.comp is new since HEAD" in missing and "nothing to compare it with. If it is built, --build" in missing
    missing = wrong("new.comp", *words, "--against-rev", "HEAD", "--build", "true")
    assert "new.comp is not in HEAD" in missing and "--build has not made it there" in missing
    assert "has no revision 'gone'" in wrong(kernel, *words, "--against-rev", "gone")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_link_out_of_a_revision_is_not_followed_to_the_file_of_today(tmp_path: Path) -> None:
    shutil.copy(MUL, "m.spv")
    Path("link.spv").symlink_to(tmp_path / "m.spv")
    Path("near.spv").symlink_to("m.spv")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "old")
    said = wrong("link.spv", "--size", 4, "--against-rev", "HEAD")
    assert f"link.spv is a link to {tmp_path / 'm.spv'}, which is outside of the revision" in said
    assert bench("near.spv", "--size", 4, *FAST, "--against-rev", "HEAD").exit_code in (0, 3, 4)
    assert not [*Path(".git").glob("worktrees/*")]


def test_outside_of_a_repository() -> None:
    shutil.copy(MUL, "m.spv")
    assert "m.spv is in no git repository" in wrong("m.spv", "--against-rev", "HEAD")
