"""The workflow of docs/dispatch-timing.md: its YAML, and its commands in a repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
# Results of a moment, whose verdict is likely UNCLEAR: that passes.
QUICK = " --set time_limit=0.05 --set warmup_time=0 --set noise_limit=9"


def workflow() -> dict[object, object]:
    page = (ROOT / "docs" / "dispatch-timing.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    jobs_file = yaml.safe_load(text)
    assert isinstance(jobs_file, dict)
    return jobs_file


def test_the_workflow_is_one() -> None:
    jobs_file = workflow()
    assert jobs_file[True] == {"pull_request": None, "push": {"branches": ["main"]}}, "YAML 1.1 reads `on` as true"
    jobs = jobs_file["jobs"]
    assert isinstance(jobs, dict)
    for job in jobs.values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
        restored, kept = (
            next(step for step in job["steps"] if step.get("uses", "").startswith(f"actions/cache/{what}@"))
            for what in ("restore", "save")
        )
        # A slower commit fails its job and belongs to the history; a cache is never written twice.
        assert kept["if"] == "always()" and kept["with"]["key"] == restored["with"]["key"]
        assert "run_attempt" in kept["with"]["key"] and kept["with"]["key"].startswith(restored["with"]["restore-keys"])


@pytest.mark.sample(0)
@pytest.mark.slow
@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
@pytest.mark.skipif(shutil.which("git") is None or shutil.which("bash") is None, reason="needs git and bash")
def test_the_commands_run(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "kernels").mkdir(parents=True)
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "pumice"
    program = "from pumice.tools.cli import main; main(prog_name='pumice')"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{program}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    summary = tmp_path / "summary.md"
    environment = {
        **os.environ,
        **names,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_WORKSPACE": str(repository),
    }

    def run(command: str, given: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=repository,
            env={**environment, **(given or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done

    run("git init --quiet")
    source = (ROOT / "shaders" / "mul.comp").read_text(encoding="utf-8")
    commits = []
    for text in (source, source.replace("a[i] * b[i]", "b[i] * a[i]")):
        (repository / "kernels" / "mul.comp").write_text(text, encoding="utf-8")
        run("git add . && git commit --quiet --message 'A kernel'")
        commits.append(run("git rev-parse HEAD").stdout.strip())
    steps = workflow()["jobs"]["kernels"]["steps"]  # type: ignore[index]
    bench, history = (step for step in steps if "pumice " in step.get("run", "") and "pip install" not in step["run"])

    def measure(before: str, attempt: int) -> subprocess.CompletedProcess[str]:
        known = {
            "github.event.pull_request.base.sha || github.event.before": before,
            "github.run_id": "7",
            "github.run_attempt": str(attempt),
        }
        given = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: known[found[1]], value)
            for name, value in bench["env"].items()
        }
        assert "${{" not in bench["run"]
        return run(bench["run"].rstrip() + QUICK, given)

    # The second time the job is run again, and GitHub has no previous commit.
    for attempt, before in enumerate((commits[0], "0" * 40)):
        assert "::notice title=pumice::" in measure(before, attempt).stderr
    assert sorted(path.name for path in (repository / "timing").glob("7-*")) == ["7-0", "7-1"]
    assert "| " in summary.read_text(encoding="utf-8")
    assert ET.parse(repository / "timing" / "report.xml").getroot().find(".//testcase") is not None
    run(history["run"])
    page = (repository / "timing" / "history.html").read_text(encoding="utf-8")
    assert commits[1][:9] in page and "A kernel" in page

    run("git mv kernels/mul.comp kernels/old.comp && git commit --quiet --message 'None'")
    run("cp kernels/old.comp kernels/mul.comp && git add . && git commit --quiet --message 'A new one'")
    assert "kernels/mul.comp is new since HEAD~1: nothing to compare it with" in measure("0" * 40, 2).stdout
