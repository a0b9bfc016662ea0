"""``pumice compile``: modules, stages, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import pumice
from pumice.compiler.dialects.syntax.text import parse, to_text
from pumice.hal_vulkan import DeviceProfile
from pumice.tools.cli import main

GRAPH = Path(__file__).parents[3] / "examples" / "simple_mul" / "simple_mul.pbtxt"
PROGRAM = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "mul.mlir"
    path.write_text(PROGRAM)
    return path


def run(*arguments: str | Path, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["compile", *map(str, arguments)], input=text)


def test_the_module_is_that_of_the_python_function(program: Path, tmp_path: Path) -> None:
    done = run(program, "-o", tmp_path / "mul.vmfb")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    text = pumice.compile(PROGRAM, file_name=str(program))
    assert (tmp_path / "mul.vmfb").read_bytes() == pumice.compile(program) == text


@pytest.mark.vulkan
def test_the_module_runs(program: Path, tmp_path: Path) -> None:
    module = tmp_path / "mul.vmfb"
    assert run(program, "-o", module).exit_code == 0
    inputs = ["--function=main", "--input=4xf32=1,2,3,4", "--input=4xf32=2", "--device=vulkan"]
    done = CliRunner().invoke(main, ["run", str(module), *inputs])
    assert done.exit_code == 0 and "4xf32=2 4 6 8" in done.stdout


@pytest.mark.vulkan
def test_a_program_runs_from_its_text_and_is_compiled_once(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PUMICE_CACHE", "1")
    inputs = ["--input=4xf32=1,2,3,4", "--input=4xf32=2", "--device=vulkan"]
    for _ in range(2):
        done = CliRunner().invoke(main, ["run", str(program), *inputs])
        assert done.exit_code == 0 and "4xf32=2 4 6 8" in done.stdout
    (kept,) = [path for path in (tmp_path / "cache" / "entries-2" / "modules").rglob("*") if path.is_file()]
    kept.write_bytes(kept.read_bytes()[:-1])
    assert CliRunner().invoke(main, ["run", str(program), *inputs]).exit_code == 0


@pytest.mark.parametrize("stage", ["hlo", "canonical", "regions", "hl_seq", "ll_seq", "targets"])
def test_a_stage_is_printed_and_reads_the_same(stage: str) -> None:
    done = run("-", "--compile-to", stage, text=PROGRAM)
    assert done.exit_code == 0 and to_text(parse(done.stdout)) == done.stdout


@pytest.mark.slow
def test_every_stage_is_written_to_a_folder(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "stages"
    assert run(program, "-o", tmp_path / "mul.vmfb", "--dump-ir", folder).exit_code == 0
    stages = ("hlo", "canonical", "regions", "hl_seq", "ll_seq", "targets")
    names = [*(f"{number}-{stage}.mlir" for number, stage in enumerate(stages, 1)), "7-module.vmasm"]
    assert sorted(path.name for path in folder.iterdir()) == names
    for name in names:
        again = tmp_path / f"{name}.vmfb"
        assert run(folder / name, "--from", name[2:].partition(".")[0], "-o", again).exit_code == 0
        assert again.read_bytes() == (tmp_path / "mul.vmfb").read_bytes()


def test_a_stage_is_written_to_a_file(program: Path, tmp_path: Path) -> None:
    regions = tmp_path / "regions.mlir"
    assert run(program, "--compile-to", "regions", "-o", regions).exit_code == 0
    assert f'loc("{program}":3:8)' in regions.read_text()
    assert run(regions, "--compile-to", "hl_seq").stdout == run(program, "--compile-to", "hl_seq").stdout


def test_a_program_is_not_taken_back(program: Path, tmp_path: Path) -> None:
    regions = tmp_path / "regions.mlir"
    assert run(program, "--compile-to", "regions", "-o", regions).exit_code == 0
    done = run(regions, "--compile-to", "canonical")
    assert (
        done.exit_code == 1
        and "expected a program at the stage graphdef or hlo or canonical, got one at regions" in done.stderr
    )


def test_what_was_reached_before_a_failure_is_kept_and_named(program: Path, tmp_path: Path) -> None:
    program.write_text(PROGRAM.replace("4xf32", "70000x70000xf32"))
    done = run(program, "-o", tmp_path / "mul.vmfb", "--dump-ir", tmp_path / "stages")
    assert done.exit_code == 1 and f"note: stages up to ll_seq are in {tmp_path / 'stages'}" in done.stderr
    assert not (tmp_path / "mul.vmfb").exists() and (tmp_path / "stages" / "5-ll_seq.mlir").exists()


def test_a_graph_with_its_feeds_and_fetches(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="needs the messages of a GraphDef: pip install 'pumice[graphdef]'")
    module, folder = tmp_path / "mul.vmfb", tmp_path / "stages"
    feeds = ["--feed", "Placeholder_1", "--feed", "Placeholder=4xf32", "--fetch", "Mul"]
    assert run(GRAPH, *feeds, "-o", module, "--dump-ir", folder).exit_code == 0
    assert (folder / "0-graphdef.pbtxt").read_bytes() == GRAPH.read_bytes()
    named = ("Placeholder_1", "Placeholder=4xf32")
    assert module.read_bytes() == pumice.compile(GRAPH, feeds=named, fetches=["Mul"])
    assert (
        run(folder / "1-hlo.mlir", "--compile-to", "ll_seq").stdout
        == run(GRAPH, *feeds, "--compile-to", "ll_seq").stdout
    )
    assert run("-", "--compile-to", "graphdef", text=GRAPH.read_text()).stdout.rstrip() == GRAPH.read_text().rstrip()
    done = run(tmp_path / "stages" / "1-hlo.mlir", "--feed", "x", "-o", module)
    assert done.exit_code == 1 and "feeds and fetches are for a GraphDef" in done.stderr


def test_a_wrong_program_is_shown_with_a_caret_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "wrong.mlir"
    path.write_text(PROGRAM.replace("%a, %b", "%a, %c"))
    done = run(path, "-o", tmp_path / "wrong.vmfb", "--dump-ir", tmp_path / "stages")
    assert done.exit_code == 1 and "wrong.mlir:3:31: %c is not defined" in done.stderr
    assert done.stderr.rstrip().endswith("^")
    assert [each.name for each in tmp_path.iterdir()] == ["wrong.mlir"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.mlir"], "expected -o OUT.vmfb for the module, or --compile-to a stage"),
        (["x.mlir", "--compile-to", "spirv"], "'spirv' is not one of"),
        (["x.mlir", "-o", "x.vmfb", "--from", "spirv"], "'spirv' is not one of"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2 and message in done.stderr


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"ML\xefR\x03", "MLIR bytecode; write the program as text"),
        (bytes(8) + b"IREE", "a compiled module"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x03\x02\x23\x07", "a SPIR-V kernel"),
        (b"#version 450", "a GLSL kernel"),
    ],
)
def test_files_of_other_kinds_are_named(tmp_path: Path, start: bytes, kind: str) -> None:
    path = tmp_path / "other.mlir"
    path.write_bytes(start + bytes(100))
    done = run(path, "-o", tmp_path / "x.vmfb")
    assert done.exit_code == 1 and f"expected a program to compile: StableHLO or a GraphDef, got {kind}" in done.stderr


def test_a_module_goes_to_stdout_and_a_program_comes_from_stdin(program: Path) -> None:
    done = run(program, "-o", "-")
    assert done.exit_code == 0 and done.stdout_bytes == pumice.compile(program)
    inputs = ["--input=4xf32=1,2,3,4", "--input=4xf32=2", "--device=reference"]
    done = CliRunner().invoke(main, ["run", "-", *inputs], input=PROGRAM)
    assert done.exit_code == 0 and "4xf32=2 4 6 8" in done.stdout
    assert "main_rgn_dispatch_0" in CliRunner().invoke(main, ["dump", "-"], input=PROGRAM).stdout


def test_stages_that_cannot_be_written_are_one_error(program: Path, tmp_path: Path) -> None:
    done = run(program, "-o", tmp_path / "x.vmfb", "--dump-ir", program)
    assert done.exit_code == 1 and done.stderr.count("error:") == 1
    assert f"{program} cannot be written: expected a folder, or a new name" in done.stderr


def test_a_file_that_is_not_there_and_one_that_cannot_be_written(program: Path, tmp_path: Path) -> None:
    assert "no such file" in run(tmp_path / "gone.mlir", "-o", tmp_path / "x.vmfb").stderr
    done = run(program, "-o", tmp_path / "no" / "folder.vmfb")
    assert done.exit_code == 1 and "cannot be written" in done.stderr


def test_a_module_for_a_device(program: Path, tmp_path: Path) -> None:
    profile = Path(__file__).parents[2] / "data" / "profiles" / "nvidia_rtx_4060.json"
    listed = tmp_path / "listed.json"  # as `pumice devices --json` nests it
    listed.write_text(f'[{{"index": 0, "profile": {profile.read_text()}}}]')
    made = []
    for path in (profile, listed):
        assert run(program, "--device", path, "-o", tmp_path / "mul.vmfb").exit_code == 0
        made.append((tmp_path / "mul.vmfb").read_bytes())
    facts = DeviceProfile.from_json(json.loads(profile.read_text()))
    assert made == [pumice.compile(PROGRAM, file_name=str(program), device=facts)] * 2
    assert run(program, "--device=reference", "-o", tmp_path / "mul.vmfb").exit_code == 0
    assert (tmp_path / "mul.vmfb").read_bytes() == pumice.compile(program, targets=["reference"])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "expected a device's profile as JSON"),
        ("[1]", "an object"),
        ("[{}, {}]", "got a list of 2"),
        ('{"name": "x"}', "which are missing"),
    ],
)
def test_a_profile_that_is_none(program: Path, tmp_path: Path, record: str, message: str) -> None:
    (tmp_path / "device.json").write_text(record)
    done = run(program, "--device", tmp_path / "device.json", "-o", tmp_path / "mul.vmfb")
    assert done.exit_code == 1 and message in done.stderr and "device.json" in done.stderr
    assert not (tmp_path / "mul.vmfb").exists()
    done = run(program, "--device=nowhere://1", "-o", tmp_path / "mul.vmfb")
    assert done.exit_code == 2 and "--device" in done.stderr


@pytest.mark.vulkan
def test_a_program_is_tuned_and_compiled(program: Path, tmp_path: Path) -> None:
    program.write_text(
        """
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""
    )
    tuning: list[str | Path] = ["--device=vulkan", "--tuning", tmp_path / "tuning.json", "-o", tmp_path / "mul.vmfb"]
    done = run(program, "--tune", "--tune-time=0.05", *tuning)
    assert done.exit_code == 0 and done.stderr.startswith("tuned "), done.stderr
    assert (tmp_path / "mul.vmfb").exists() and not done.stdout
    assert run(program, *tuning).exit_code == 0
    done = run(program, "--tuning", tmp_path / "typo.json", "-o", tmp_path / "mul.vmfb")
    assert done.exit_code == 0 and "there is no file" in done.stderr and "typo.json" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tune", "--device=reference"], "got the reference device"),
        (["--tune", "--device=gpu.json"], "expected a device at hand to measure on"),
        (["--tune-time=3"], "--tune-time is for --tune"),
        (["--tune", "--tune-time=0"], "expected a finite number of seconds above 0"),
    ],
)
def test_wrong_usage_of_tuning(program: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run(program, "-o", tmp_path / "mul.vmfb", *arguments)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())
    assert not (tmp_path / "mul.vmfb").exists()
