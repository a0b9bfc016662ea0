"""``pumice check``: every way in which a case ends is an outcome, and the rest of the report is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pumice.tools.check import command
from pumice.tools.check.case import AREAS
from pumice.tools.check.catalogue import cases
from pumice.tools.cli import main

FOLDER = Path(__file__).parent
needs_device = pytest.mark.usefixtures("driver")


@pytest.fixture
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cases of check_cases.py in place of the real ones."""
    monkeypatch.syspath_prepend(str(FOLDER))
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH")]))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr(command, "CATALOGUE", "check_cases")


def check(folder: Path, *options: str) -> tuple[Result, dict[str, Any]]:
    """Runs the command; returns its result and the JSON report."""
    done = CliRunner().invoke(main, ["check", "-o", str(folder / "found"), *options])
    report = folder / "found.json"
    return done, json.loads(report.read_text()) if report.exists() else {}


@needs_device
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("_planted")
def test_every_end_is_reported(tmp_path: Path) -> None:
    begin = time.monotonic()
    done, report = check(tmp_path, "--case-time", "2")
    assert time.monotonic() - begin < 60
    assert done.exit_code == 1, done.output
    found = {name: case["ending"] for name, case in report["cases"].items()}
    assert found == {
        "types/wrong": "failed",
        "functions/fails": "failed",
        "kernels/lacks": "skipped",
        "waits/hangs": "hung",
        "memory/dies": "crashed",
        "images/leaves": "crashed",
        "sorts/loses": "failed",
        **{f"device/right after {end}": "passed" for end in ("wrong", "fails", "lacks", "hangs", "dies", "leaves")},
        "device/right after loses": "passed",
    }
    messages = {name: case.get("message", "") for name, case in report["cases"].items()}
    assert "4 of 4 elements differ" in messages["types/wrong"]
    assert "no more of it" in messages["functions/fails"]
    assert messages["kernels/lacks"] == "the device has no shaderFloat256"
    assert messages["waits/hangs"] == "it was not done after 2 s\nabout to hang"
    assert "SIGSEGV" in messages["memory/dies"] and "about to die" in messages["memory/dies"]
    assert "status 0" in messages["images/leaves"]
    assert report["areas"]["device"] == {"verdict": "good", "passed": 7}
    assert {name for name, area in report["areas"].items() if area["verdict"] == "bad"} == {
        *("types", "functions", "waits", "memory", "images", "sorts")
    }
    assert report["verdict"] == "bad"
    assert report["cases"]["device/right after hangs"]["figures"] == {"elements": 4.0, "how": "<quickly>"}
    assert report["profile"]["name"] == report["device"]["name"]
    page = (tmp_path / "found.html").read_text()
    for text in ("Something is wrong", "memory/dies", "about to die", "&lt;quickly&gt;", report["device"]["name"]):
        assert text in page
    assert "hung: waits/hangs: it was not done after 2 s" in done.stderr
    assert "drivers write" not in done.stdout


@needs_device
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("_planted")
def test_the_budget_ends_a_check(tmp_path: Path) -> None:
    """What the time does not suffice for is not run: neither good nor bad, and a status of its own."""
    done, report = check(tmp_path, "--minutes", "0.1", "--only", "waits", "--only", "memory")
    assert done.exit_code == 3, done.output
    assert report["seconds"] < 20
    assert report["cases"]["waits/hangs"]["ending"] == report["cases"]["memory/dies"]["ending"] == "not run"
    assert report["verdict"] == report["areas"]["waits"]["verdict"] == "not checked"


@needs_device
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("_planted")
def test_what_is_right_gives_status_0(tmp_path: Path) -> None:
    done, report = check(tmp_path, "--only", "device/right after w", "--only", "kernels")
    assert (done.exit_code, report["verdict"]) == (0, "good"), done.output


@needs_device
@pytest.mark.vulkan
@pytest.mark.slow
@pytest.mark.usefixtures("_planted")
@pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")
def test_an_interrupt_leaves_a_report(tmp_path: Path) -> None:
    program = (
        "from pumice.tools.check import command; from pumice.tools.cli import main; "
        "command.CATALOGUE = 'check_cases'; main(prog_name='pumice')"
    )
    arguments = ["check", "-o", str(tmp_path / "found"), "--only", "device/right after wrong", "--only", "waits"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    report = json.loads((tmp_path / "found.json").read_text())
    assert {name: case["ending"] for name, case in report["cases"].items()} == {
        "device/right after wrong": "passed",
        "waits/hangs": "not run",
    }


def test_a_device_that_does_not_open(tmp_path: Path) -> None:
    done, report = check(tmp_path, "--device", "vulkan://no-such-device")
    assert (done.exit_code, report) == (1, {})
    assert "pumice ci doctor" in done.stderr


def test_the_cases(tmp_path: Path) -> None:
    names = [case.name for case in cases()]
    assert len(names) == len(set(names)) and all(case.area in AREAS for case in cases())
    listed = CliRunner().invoke(main, ["check", "--list"])
    assert sorted(listed.stdout.splitlines()) == sorted(names)
    unknown, _ = check(tmp_path, "--only", "kernel-of-truth")
    assert unknown.exit_code == 2 and "the areas are device, types" in unknown.stderr
    # A run that is short of time looks at every area first.
    areas = list(dict.fromkeys(case.area for case in cases()))
    assert {case.area for case in cases()[: len(areas)]} == set(areas)


@needs_device
@pytest.mark.vulkan
@pytest.mark.slow
def test_this_device(tmp_path: Path) -> None:
    """A part of each area; lavapipe and SwiftShader are right there."""
    only = ("device", "kernels", "subgroups", "images", "waits", "runtime/donated", "memory/three", "speed/submit")
    done, report = check(tmp_path, *(word for area in (*only, "control", "products/odd") for word in ("--only", area)))
    assert done.exit_code == 0, done.output
    assert report["verdict"] == "good" and len(report["cases"]) >= 50
    assert report["cases"]["speed/submit and wait"]["figures"]["prerecorded, us"] > 0
