"""Three projects as others would write them: green as they are, and red for the right reason with a planted fault.

Each runs in a process of its own, with the plug-in that pytest finds by its entry point.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.devices.features import require_cut_loops

from pumice.hal_vulkan.instance.driver import Driver
from pumice.testing.requirements import driver_text

PROJECTS = Path(__file__).parent / "projects"
pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.slow,
    pytest.mark.usefixtures("driver"),
    pytest.mark.sample(2),
    pytest.mark.sample(1),
]

# What is put in the place of what, in which file of a project; which tests fail for it, and what their reports say.
FAULTS = {
    "filters": [
        # A wrong result: an edge is counted where there is no pixel.
        ("box.comp", "count += 1.0;", "count += p.x == 1 && p.y == 1 ? 2.0 : 1.0;"),
        # A loop that lavapipe cuts, whose result nobody reads.
        (
            "tests/test_box.py",
            "def test_arguments_are_checked():",
            "def test_cut_loop(pumice_device, pumice_kernel):\n"
            '    kernel = pumice_kernel(filters.BOX.read_text().replace("dy <= 1", "dy <= 70000"))\n'
            "    kernel(pumice_device.zeros((8, 8)), pumice_device.zeros((8, 8)), groups=(1, 1), width=8, height=8)\n"
            "\n\ndef test_arguments_are_checked():",
        ),
    ],
    "classifier": [
        # Each test leaves its weights on the device.
        ("classifier.py", "class Classifier:", "KEPT = []\n\n\nclass Classifier:"),
        ("classifier.py", "def scores(self, rows):", "def scores(self, rows):\n        KEPT.append(self._weights)"),
        # A wrong result of a program.
        ("classifier.mlir", "stablehlo.add %product", "stablehlo.subtract %product"),
    ],
    "particles": [
        # The driver loses the device, as one with a watchdog does.
        (
            "tests/test_particles.py",
            "def test_many_steps(particles):",
            "def test_many_steps(particles):\n"
            "    particles._device.vulkan.fn.vkQueueSubmit = lambda *arguments: -4  # VK_ERROR_DEVICE_LOST",
        ),
        # Wrong use of Vulkan.
        (
            "tests/test_particles.py",
            "def test_at_rest(particles):",
            "def test_at_rest(pumice_device, particles):\n"
            "    hal = pumice_device.vulkan\n"
            "    with hal.create_buffer(64) as buffer, hal.create_command_buffer() as commands:\n"
            '        hal.set_name("VK_OBJECT_TYPE_BUFFER", buffer.handle, "the heights")\n'
            "        commands.begin()\n"
            "        hal.fn.vkCmdFillBuffer(commands._handle, buffer.handle, 1 << 40, 64, 0)",
        ),
    ],
}


def run(name: str, folder: Path, *options: str, faults: bool = False) -> str:
    """Runs a project's tests with validation, as CI does; returns the output."""
    shutil.copytree(PROJECTS / name, folder / name)
    for file, old, new in FAULTS[name] if faults else ():
        path = folder / name / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PUMICE_"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--pumice-artifacts", "found", *options]
    done = subprocess.run(
        command,
        cwd=folder / name,
        env={**environment, "CI": "1", "PUMICE_DEVICE": "vulkan", "PUMICE_CACHE_DIR": os.environ["PUMICE_CACHE_DIR"]},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == int(faults), done.stdout + done.stderr
    return done.stdout


def outcomes(output: str) -> dict[str, set[str]]:
    """The tests by how they ended."""
    found: dict[str, set[str]] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) \S+::(\S+)", output, re.M):
        found.setdefault(outcome, set()).add(name)
    return found


@pytest.fixture(autouse=True)
def _validated(driver: Driver) -> None:
    if not driver.validation:
        pytest.skip("runs with PUMICE_VALIDATION=1 and the Khronos validation layers")


def test_the_plugin_is_found() -> None:
    (entry,) = importlib.metadata.entry_points(group="pytest11", name="pumice")
    assert entry.value == "pumice.testing.plugin"


@pytest.mark.parametrize("name", FAULTS)
def test_green(name: str, tmp_path: Path, driver: Driver) -> None:
    options = ("-n", "2") if name == "particles" else ()
    output = run(name, tmp_path, *options)
    found = outcomes(output)
    assert found.keys() == {"PASSED"} and len(found["PASSED"]) >= 4
    profile = driver.profiles[driver.select()]
    header = f"pumice: {profile.name}, driver {driver_text(profile)}"
    assert re.search(rf"^{re.escape(header)}.*, Vulkan 1\.\d+\.\d+, validation on", output, re.M)
    assert "| passed |" in (tmp_path / name / "found" / "timing.md").read_text()


def test_filters_with_faults(tmp_path: Path, driver: Driver) -> None:
    require_cut_loops(driver)
    output = run("filters", tmp_path, faults=True)
    found = outcomes(output)
    assert found["FAILED"] == {
        "test_it_is_the_mean_of_the_neighbours[shape1]",
        "test_it_is_the_mean_of_the_neighbours[shape2]",
        "test_a_large_picture",
        "test_cut_loop",
    }
    assert found["PASSED"] == {"test_it_is_the_mean_of_the_neighbours[shape0]", "test_arguments_are_checked"}
    assert "where: rows 0 to 2, columns 0 to 2 of 8 x 8" in output and "###....." in output
    assert "nobody read this result: DATA_LOSS: " in output and "before its time" in output
    (line,) = re.findall(r"^  (\(cd \S+shape1 && pumice run .*\))$", output, re.M)
    command = line.replace("pumice run", f"{sys.executable} -c 'from pumice.tools.cli import main; main()' run")
    again = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=100, check=False)
    assert again.returncode == 1 and "9 of 64 element(s) differ" in again.stderr, again.stderr


def test_classifier_with_faults(tmp_path: Path) -> None:
    output = run("classifier", tmp_path, faults=True)
    found = outcomes(output)
    assert found["FAILED"] == {"test_scores", "test_scores_of_zeros"}
    assert found["ERROR"] == {"test_a_call_leaves_nothing", "test_shape"}  # failed tests are not asked what they leave
    assert found["PASSED"] == {"test_a_call_leaves_nothing", "test_shape"}
    assert "native objects left behind: 2 buffers" in output
    assert "pumice run --module classifier.vmfb --function classifier.scores --input @" in output


def test_particles_with_faults(tmp_path: Path) -> None:
    output = run("particles", tmp_path, faults=True)
    found = outcomes(output)
    assert found == {
        "FAILED": {"test_many_steps", "test_at_rest"},
        "PASSED": {"test_one_step", "test_a_device_of_its_own"},
    }
    assert "was lost by tests/test_particles.py::test_many_steps; later tests had a fresh device" in output
    assert re.search(r"VUID-vkCmdFillBuffer-dstOffset-00024 \(objects: .*the heights", output)
