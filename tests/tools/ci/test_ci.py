"""``pumice ci init`` writes workflows that are whole, and ``pumice ci doctor`` names what is wrong."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.profiles import recorded_profile

from pumice.hal_vulkan.instance.driver import Driver
from pumice.testing import DriverRange
from pumice.tools.ci import doctor
from pumice.tools.ci.doctor import DRIVERS, Finding, State
from pumice.tools.cli import main
from pumice.tools.setup import vulkan as setup_vulkan

pytestmark = pytest.mark.sample(9)


def init(folder: Path, *options: str, status: int = 0) -> list[str]:
    done = CliRunner().invoke(main, ["ci", "init", str(folder), *options])
    assert done.exit_code == status, done.output
    return done.output.splitlines() if status else done.stdout.splitlines()


def test_what_cannot_be_written_is_not_said_to_be_ready(tmp_path: Path) -> None:
    (tmp_path / ".github").touch()
    lines = init(tmp_path, "--for", "github", status=1)
    assert len(lines) == 1 and lines[0].startswith("error: ")


def shell_lines(value: object) -> list[str]:
    """The scripts in a workflow."""
    if isinstance(value, dict):
        own = [value["run"]] if isinstance(value.get("run"), str) else []
        scripts = [line for key in ("before_script", "script") for line in value.get(key, ())]
        return own + scripts + [line for one in value.values() for line in shell_lines(one)]
    return [line for one in value for line in shell_lines(one)] if isinstance(value, list) else []


def load(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text())
    for script in shell_lines(found):
        done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
        assert done.returncode == 0, (script, done.stderr)
    return found  # type: ignore[no-any-return]


def test_the_workflow_for_github(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "requirements-test.txt").touch()
    path = tmp_path / ".github" / "workflows" / "gpu-tests.yml"
    assert init(tmp_path, "--python", "3.11", "--tests", "tests/gpu tests") == [str(path)]
    found = load(path)
    assert set(found[True]) == {"push", "pull_request"}  # YAML 1.1 reads `on` as a boolean
    job = found["jobs"]["lavapipe"]
    steps = {step.get("name", step.get("uses")): step for step in job["steps"]}
    assert steps["actions/setup-python@v5"]["with"]["python-version"] == "3.11"
    assert "mesa-vulkan-drivers" in job["env"]["VULKAN_PACKAGES"] and "vulkan-validationlayers" in str(job["env"])
    assert steps["Install the project"]["run"] == "python -m pip install -r requirements-test.txt . 'pumice[pytest]'"
    cached = steps["actions/cache@v4"]["with"]
    assert cached["path"] in steps["Install lavapipe"]["run"] and cached["key"].endswith("-1")
    words = shlex.split(steps["Test"]["run"])
    assert words[:4] == ["python", "-m", "pytest", "tests/gpu tests"]
    assert {"--pumice-device", "lavapipe", "--pumice-validation", "--pumice-artifacts"} <= set(words)
    upload = steps["actions/upload-artifact@v4"]
    assert upload["if"] == "always()" and upload["with"]["path"] == words[words.index("--pumice-artifacts") + 1]
    assert "pumice-artifacts/timing.md" in steps["Show times"]["run"] and steps["Show times"]["if"] == "always()"


def test_the_workflow_for_gitlab(tmp_path: Path) -> None:
    assert init(tmp_path, "--for", "gitlab", "--install", "make install") == [str(tmp_path / ".gitlab-ci.yml")]
    job = load(tmp_path / ".gitlab-ci.yml")["gpu-tests"]
    assert job["image"] == "python:3.12-bookworm" and "make install" in job["before_script"]
    assert job["artifacts"]["paths"] == ["pumice-artifacts/"] and job["cache"]["paths"] == [".cache/"]
    assert "--junitxml " + job["artifacts"]["reports"]["junit"] in job["script"][0]


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    (path,) = init(tmp_path)
    Path(path).write_text("mine")
    assert "is there already; --force overwrites it" in "\n".join(init(tmp_path, status=2))
    assert Path(path).read_text() == "mine"
    init(tmp_path, "--force")
    assert Path(path).read_text() != "mine"
    assert "expected a version such as 3.12" in "\n".join(init(tmp_path, "--python", "new", "--force", status=2))


def test_which_host(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    remote = ["git", "-C", str(tmp_path), "remote", "add", "origin", "https://gitlab.example/a/b.git"]
    subprocess.run(remote, check=True)
    assert init(tmp_path) == [str(tmp_path / ".gitlab-ci.yml")]
    assert init(tmp_path) == [str(tmp_path / ".gitlab" / "gpu-tests.yml")]  # beside jobs that are there


def findings(*options: str, status: int = 0) -> dict[str, dict[str, str]]:
    done = CliRunner().invoke(main, ["ci", "doctor", "--json", *options])
    assert done.exit_code == status, done.output
    return {one["part"]: one for one in json.loads(done.stdout)}


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_a_machine_that_is_well(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    every = setup_vulkan.manifests("icd.d")
    some = [path for path in every if "lvp" in path.name] or every  # each is a process
    monkeypatch.setattr(doctor, "manifests", lambda kind: some if kind == "icd.d" else setup_vulkan.manifests(kind))
    found = findings(*(["--validation"] if driver.validation else []))
    assert found["loader"]["state"] == "good" and found["loader"]["found"].startswith("Vulkan 1.")
    assert found["kernel"]["state"] == "good"
    assert found["kernel"]["found"].startswith("ran on ")
    assert any(one["state"] == "good" for part, one in found.items() if part.startswith("driver "))
    assert not any(one["state"] == "broken" for one in found.values())


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_an_absent_device() -> None:
    (found,) = doctor._run("vulkan://no such device")
    assert found.state is State.BROKEN and "no device is" in found.found


@pytest.mark.slow
def test_no_loader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PUMICE_VULKAN_LIBRARY", str(tmp_path / "libnone.so"))
    found = findings(status=1)
    assert found.keys() == {"loader"} and "libnone.so" in found["loader"]["remedy"]


def manifest(folder: Path, library: str) -> Path:
    path = folder / "some_icd.json"
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library}}))
    return path


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_drivers_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(name, f"{manifest(tmp_path, '/nowhere/libvulkan_some.so')}:/nowhere/other.json")
    done = CliRunner().invoke(main, ["ci", "doctor"])
    assert done.exit_code == 1
    text = " ".join(done.stdout.split())
    assert "mend driver some_icd.json: its library /nowhere/libvulkan_some.so is not there → reinstall" in text
    assert "VK_DRIVER_FILES names /nowhere/other.json, which is not there → unset VK_DRIVER_FILES" in text
    assert "hides all other drivers" in text and "none of them gives a device for compute" in text
    assert text.endswith("to be mended")


def test_the_driver_of_the_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "pumice_lavapipe"
    package.mkdir()
    (package / "__init__.py").touch()
    manifest(package, "lib/libvulkan_lvp.so").rename(package / "pumice_lavapipe.json")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(doctor, "look", lambda: setup_vulkan.Findings(loader="Vulkan 1.3.239"))
    monkeypatch.setattr(doctor, "manifests", lambda kind: [])
    found = {one.part: one for one in doctor.examine(None, validation=False)}
    assert "lib/libvulkan_lvp.so is not there" in found["driver pumice_lavapipe.json"].found
    monkeypatch.setenv("VK_DRIVER_FILES", "/some/other.json")
    assert "driver pumice_lavapipe.json" not in {one.part for one in doctor.examine(None, validation=False)}


@pytest.mark.parametrize(
    ("body", "state", "words"),
    [
        ("kill -SEGV $$", State.BROKEN, r"it crashes \(SIGSEGV\)"),
        ("echo 'error: it answered VK_ERROR_INITIALIZATION_FAILED' >&2; exit 1", State.NOTED, "no device of its kind"),
        ("echo 'error: something else' >&2; exit 1", State.NOTED, "something else"),
        ("sleep 10", State.BROKEN, "it hangs"),
    ],
)
def test_drivers_that_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, state: State, words: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(doctor.sys, "executable", str(program))
    monkeypatch.setattr(doctor, "_SECONDS", 0.5)
    found, profiles = doctor._driver(manifest(tmp_path, "libvulkan_some.so"))
    assert profiles == [] and found.state is state
    assert re.search(words, found.found)


def test_reported_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    for fault in DRIVERS:
        DriverRange.parse(fault.drivers)
        assert fault.source
    known = [recorded_profile("lavapipe_mesa_22_3_6")]
    assert doctor._of_devices("driver", known).state is State.GOOD
    monkeypatch.setattr(doctor, "DRIVERS", (DRIVERS[0]._replace(drivers="llvmpipe>=1"),))
    found = doctor._of_devices("driver", known)
    assert found.state is State.NOTED and "ends the process" in found.found and found.remedy


def test_layers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (missing,) = doctor._layers((), required=True)
    assert missing.state is State.BROKEN and missing.remedy
    (missing,) = doctor._layers((), required=False)
    assert missing.state is State.NOTED
    path = tmp_path / setup_vulkan.LAYER_MANIFEST
    monkeypatch.setattr(doctor, "manifests", lambda kind: [path])
    for version, state in (("1.3.239", State.NOTED), ("1.4.300", State.GOOD), ("?", State.GOOD)):
        path.write_text(json.dumps({"layer": {"api_version": version}}))
        (found,) = doctor._layers((setup_vulkan.VALIDATION_LAYER,), required=True)
        assert found.state is state


def test_gpus_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "renderD128").touch()
    assert list(doctor._render_nodes(tmp_path)) == []
    monkeypatch.setattr(doctor.os, "access", lambda path, mode: False)
    (found,) = doctor._render_nodes(tmp_path)
    assert "its GPU is not seen" in found.found and "render" in found.remedy
    assert list(doctor._render_nodes(tmp_path / "none")) == []


def test_texts() -> None:
    text = Finding("driver", State.BROKEN, "word " * 40, "do this").text()
    assert text.startswith("mend driver: word") and text.endswith("     → do this")
    assert max(map(len, text.splitlines())) <= 100
