"""``pumice run --profile``: the report and the files, beside results that are those of a run without."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.tools.cli import main
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module

EXAMPLES = Path(__file__).parents[3] / "examples" / "digits"
ARGUMENTS = (EXAMPLES / "digits.vmfb", f"--input=@{EXAMPLES / 'seven.npy'}")

device = pytest.mark.vulkan


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["run", *map(str, arguments)])


@device
def test_the_report_is_on_stderr_and_results_are_as_without() -> None:
    plain, profiled = run(*ARGUMENTS), run(*ARGUMENTS, "--profile")
    assert profiled.exit_code == 0, profiled.stderr
    assert profiled.stdout == plain.stdout
    for text in ("classify_dispatch_0", "72x1x1", "<stdin>:2", "module.classify", "hal.fence.await", "clock of"):
        assert text in profiled.stderr
        assert text not in plain.stderr


@device
def test_files(tmp_path: Path) -> None:
    result = run(*ARGUMENTS, "--profile-json", tmp_path / "p.json", "--profile-trace", tmp_path / "p.pftrace")
    assert result.exit_code == 0, result.stderr
    assert "native functions" not in result.stderr
    read = json.loads((tmp_path / "p.json").read_text())
    assert len([one for one in read["dispatches"] if one["kind"] == "dispatch"]) == 5
    assert [call["name"] for call in read["calls"]] == ["module.classify"]
    assert (tmp_path / "p.pftrace").stat().st_size > 100


@device
def test_with_time_the_repeated_calls_are_profiled_apart_from_the_first(tmp_path: Path) -> None:
    result = run(*ARGUMENTS, "--profile", "--time", "--profile-json", tmp_path / "p.json")
    assert result.exit_code == 0, result.stderr
    first, _, rest = result.stderr.partition("calls after the first")
    assert "the first call" in first and "classify_dispatch_0" in first and "classify_dispatch_0" in rest
    read = json.loads((tmp_path / "p.json").read_text())
    repeated = len(read["calls"])
    assert repeated > 1
    assert len([one for one in read["dispatches"] if one["kind"] == "dispatch"]) == 5 * repeated


@device
def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    result = run(*ARGUMENTS, "--profile-json", tmp_path / "nowhere" / "p.json")
    assert result.exit_code != 0
    assert "cannot be written" in result.stderr and "result[0]" in result.stdout


def test_programs_without_a_device_have_the_hosts_share_alone(tmp_path: Path) -> None:
    text = """vm.module @program
vm.export @answer
vm.func @answer() -> (i32) attributes {"iree.abi.declaration" = "sync func @answer() -> (%x: i32)"} {
^bb0:
  %i0 = vm.const.i32 42
  vm.return %i0
}
"""
    module = tmp_path / "answer.vmfb"
    module.write_bytes(write_module(assemble(text), polyglot=True))
    result = run(module, "--profile", "--profile-json", tmp_path / "p.json")
    assert result.exit_code == 0, result.stderr
    assert "program.answer" in result.stderr and "i32=42" in result.stdout
    read = json.loads((tmp_path / "p.json").read_text())
    assert read["dispatches"] == [] and read["clocks"] == []


def test_kernels_are_refused(tmp_path: Path) -> None:
    kernel = tmp_path / "k.comp"
    kernel.write_text("#version 450\nvoid main() {}\n")
    result = run(kernel, "--profile")
    assert result.exit_code == 2
    assert "--profile is for compiled programs" in result.stderr


def test_a_trace_that_cannot_be_written_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder.proto_builder", None)
    result = run(*ARGUMENTS, "--profile-trace", tmp_path / "p.pftrace")
    assert result.exit_code == 1 and result.stdout == ""
    assert "pip install 'pumice[study]'" in result.stderr
    assert not (tmp_path / "p.pftrace").exists()
