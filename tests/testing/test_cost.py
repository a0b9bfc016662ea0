"""Runs that do not use the plug-in load nothing of it but its one file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAIN = """
import os, sys

def test_nothing_is_loaded():
    loaded = {name for name in sys.modules if name.partition(".")[0] in ("pumice", "numpy", "vulkan")}
    files = {"pumice", "pumice.base", "pumice.base.lazy", "pumice.base.locks", "pumice.status", "pumice.testing"}
    assert loaded <= {*files, "pumice.testing.markers", "pumice.testing.plugin"}, loaded
    assert "PUMICE_DEVICE" not in os.environ
"""
NEEDS_A_DEVICE = """
import pytest

def test_device(pumice_device): pass
@pytest.mark.gpu
def test_gpu(): pass
"""


def run(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    fixed = ("-p", "pumice.testing.plugin", "-p", "no:cacheprovider", "--strict-markers", "-rA")
    known = {name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER", "PUMICE_DEVICE")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *fixed, *options],
        cwd=folder,
        env={**known, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
def test_what_does_not_use_it_does_not_load_it(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(PLAIN)
    (tmp_path / "test_device.py").write_text(NEEDS_A_DEVICE)
    done = run(tmp_path, "--no-pumice", CI="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed, 2 skipped" in done.stdout and "pumice:" not in done.stdout


@pytest.mark.slow
def test_without_vulkan_tests_skip_at_a_desk_and_fail_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_device.py").write_text(NEEDS_A_DEVICE)
    nowhere = str(tmp_path / "libnone.so")
    desk = run(tmp_path, PUMICE_VULKAN_LIBRARY=nowhere)
    assert desk.returncode == 0 and "2 skipped" in desk.stdout and "no Vulkan device here: " in desk.stdout
    job = run(tmp_path, CI="1", PUMICE_VULKAN_LIBRARY=nowhere)
    assert job.returncode == 1 and "2 errors" in job.stdout and "the default in CI" in job.stdout, job.stdout
