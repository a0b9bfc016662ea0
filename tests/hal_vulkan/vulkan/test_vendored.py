"""A driver that is installed with pip: how it combines with those of the machine, on a made-up package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import _cffi_backend
import pytest

from pumice.hal_vulkan.vulkan import functions
from pumice.hal_vulkan.vulkan.vendored import vendored_driver, vendored_loader

VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "VK_LOADER_DRIVERS_DISABLE")
# The drivers that a process has open, and what it tells its children of them after several threads opened theirs.
OPENING = """
import os, pathlib, threading
from pumice.hal_vulkan.instance.driver import Driver
def open_driver():
    with Driver(validation=False):
        pass
threads = [threading.Thread(target=open_driver) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with Driver(validation=False) as driver:
    print(sum(profile.name.startswith("llvmpipe") for profile in driver.profiles))
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    print(*sorted({line.split()[-1] for line in lines if "libvulkan_lvp" in line}))
print(*sorted(name for name in os.environ if name.startswith("VK_") and ("DRIVER" in name or "ICD" in name)))
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an installed package, whose libraries are empty."""
    folder = tmp_path / "pumice_lavapipe"
    (folder / "lib").mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def system_driver() -> Path:
    """The manifest of the machine's own lavapipe."""
    found = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))
    if not found:
        pytest.skip("needs Mesa's lavapipe, with its manifest in /usr/share/vulkan/icd.d")
    return found[0]


def opened(package: Path, manifest: Path, **variables: str) -> tuple[str, str, str]:
    """Returns the output of a process whose package has a copy of the machine's driver."""
    description = json.loads(manifest.read_bytes())
    library = Path(description["ICD"]["library_path"])
    folders = ("", "/usr/lib", f"/usr/lib/{os.uname().machine}-linux-gnu")
    source = next((path for folder in folders if (path := Path(folder) / library).is_file()), None)
    if source is None:
        pytest.skip(f"{library} is in none of the folders that are looked in")
    shutil.copy(source, package / "lib/libvulkan_lvp_copy.so")
    description["ICD"]["library_path"] = "lib/libvulkan_lvp_copy.so"
    (package / "pumice_lavapipe.json").write_text(json.dumps(description))
    environment = {**os.environ, "PYTHONPATH": str(package.parent), **variables}
    command = [sys.executable, "-c", OPENING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    devices, libraries, names = done.stdout.splitlines()
    return devices, libraries, names


@pytest.mark.vulkan
@pytest.mark.slow
def test_it_takes_the_place_of_the_machines_lavapipe(package: Path, system_driver: Path) -> None:
    library = package / "lib/libvulkan_lvp_copy.so"
    assert opened(package, system_driver) == ("1", str(library), "")


@pytest.mark.vulkan
@pytest.mark.slow
def test_drivers_that_are_named_are_the_only_ones(package: Path, system_driver: Path) -> None:
    devices, libraries, names = opened(package, system_driver, VK_DRIVER_FILES=str(system_driver))
    assert (devices, names) == ("1", "VK_DRIVER_FILES")
    assert libraries.endswith("libvulkan_lvp.so") and " " not in libraries


@pytest.mark.skipif(sys.platform != "linux", reason="the package is for Linux")
def test_windows_have_a_driver_of_their_own_if_it_loads(package: Path) -> None:
    before = dict(os.environ)
    manifest = package / "pumice_lavapipe_windows.json"
    with vendored_driver(windows=True):
        assert dict(os.environ) == before
    manifest.write_text(json.dumps({"ICD": {"library_path": "lib/own.so"}}))
    (package / "lib/own.so").touch()
    with vendored_driver(windows=True):
        assert dict(os.environ) == before
    shutil.copy(_cffi_backend.__file__, package / "lib/own.so")
    with vendored_driver(windows=True):
        assert os.environ["VK_ADD_DRIVER_FILES"] == str(manifest)


def test_it_comes_before_drivers_that_the_user_adds(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_ADD_DRIVER_FILES", "/other.json")
    monkeypatch.setenv("VK_LOADER_DRIVERS_DISABLE", "*other*")
    with pytest.raises(KeyError), vendored_driver():
        assert os.environ["VK_ADD_DRIVER_FILES"] == f"{package / 'pumice_lavapipe.json'}{os.pathsep}/other.json"
        assert os.environ["VK_LOADER_DRIVERS_DISABLE"] == "*other*,lvp_icd*"
        raise KeyError
    assert os.environ["VK_ADD_DRIVER_FILES"] == "/other.json"
    assert os.environ["VK_LOADER_DRIVERS_DISABLE"] == "*other*"


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"])
def test_nothing_is_added_where_the_user_says_which_drivers_there_are(
    variable: str, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/other.json")
    before = dict(os.environ)
    with vendored_driver():
        assert dict(os.environ) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the package has a loader for Linux")
def test_its_loader_is_the_last_that_is_tried(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUMICE_VULKAN_LIBRARY", raising=False)
    assert vendored_loader() == package / "lib/libvulkan.so.1"
    assert functions._library_names() == ("libvulkan.so.1", "libvulkan.so", str(vendored_loader()))
    monkeypatch.setenv("PUMICE_VULKAN_LIBRARY", "/other.so")
    assert functions._library_names() == ("/other.so",)


def test_without_the_package_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pumice_lavapipe", None)
    before = dict(os.environ)
    with vendored_driver():
        assert dict(os.environ) == before
    assert vendored_loader() is None
