"""Runs a command on one driver alone: ``python tests/support/drivers.py swiftshader make test``.

Drivers are software drivers besides the machine's own, taken from packages of Debian that are unpacked below
``build/drivers`` and not installed. ``make test DRIVER=NAME`` runs the suite on one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BUILD: Final = ROOT / "build" / "drivers"
# Debian's browser carries a driver and layers; its manifest names no version that drivers have today.
_BROWSER: Final = ("chromium-common", Path("usr/lib/chromium"))
_SWIFTSHADER: Final = ("libvk_swiftshader.so", "1.3.0")
_RELEASE: Final = "bookworm"
_MESA: Final = "mesa-vulkan-drivers"


def browser_libraries(folder: Path, *names: str) -> Path:
    """Returns a folder with libraries of the browser: its own if it is installed, or else one to unpack them into."""
    package, path = _BROWSER
    if all((Path("/") / path / name).exists() for name in names):
        return Path("/") / path
    if not all((folder / name).exists() for name in names):
        _download(folder, package)
        (deb,) = folder.glob(f"{package}_*.deb")
        tree = folder / "tree"
        _run("dpkg-deb", "--extract", str(deb), str(tree))
        for name in names:
            (tree / path / name).replace(folder / name)
        shutil.rmtree(tree)
        deb.unlink()
    return folder


def swiftshader() -> Path:
    """Returns a manifest of SwiftShader."""
    library, version = _SWIFTSHADER
    folder = _BUILD / "swiftshader"
    found = browser_libraries(folder, library) / library
    return _manifest(folder / "swiftshader.json", {"library_path": str(found), "api_version": version})


def lavapipe_13() -> Path:
    """Returns a manifest of Debian 13's Mesa, as ``pumice vendor-driver`` packs it from Debian 12's backports."""
    folder = _BUILD / "lavapipe-13"
    manifest = folder / "pumice_lavapipe" / "pumice_lavapipe_windows.json"  # also with the libxcb of windows
    if not manifest.exists():
        archives = folder / "packages"
        (archives / "partial").mkdir(parents=True, exist_ok=True)
        apt = _backports(folder, archives)
        _run("apt-get", "-qq", *apt, "update")
        _run("apt-get", "-qq", *apt, "--download-only", "--no-install-recommends", "-y", "install", _MESA)
        program = "from pumice.tools.cli import main; main()"
        command = ("vendor-driver", "--packages", str(archives), "-o", str(folder))
        _run(sys.executable, "-c", program, *command)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as file:
            file.extractall(folder)
        wheel.unlink()
    return manifest


def _backports(folder: Path, archives: Path) -> tuple[str, ...]:
    """Returns apt's options to read Debian 12 and its backports alone, from the mirror that this machine uses."""
    lines = _run("apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages")
    mirrors = [line.split()[1] for line in lines.splitlines() if line.startswith(f"{_RELEASE} ")]
    if not mirrors:
        raise SystemExit(f"drivers: this machine does not take packages from Debian 12, {_RELEASE}")
    sources = folder / "sources.list"
    suites = (_RELEASE, f"{_RELEASE}-backports")
    sources.write_text("".join(f"deb {mirrors[0]} {suite} main\n" for suite in suites))
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "Dir::Cache::archives": archives,
        "APT::Default-Release": suites[1],
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    return tuple(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))


DRIVERS: Final[Mapping[str, Callable[[], Path]]] = {"swiftshader": swiftshader, "lavapipe-13": lavapipe_13}


def environment(manifest: Path) -> dict[str, str]:
    """Returns the variables that make a driver the only one; loaders before 1.3.207 know the second name."""
    return {"VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest), "PUMICE_DEVICE": "vulkan"}


def _download(folder: Path, *packages: str, options: tuple[str, ...] = ()) -> None:
    """Downloads packages into a folder; apt checks their signatures."""
    folder.mkdir(parents=True, exist_ok=True)
    # As root, apt downloads as a user who may not write here.
    _run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", *options, "download", *packages, cwd=folder)


def _manifest(path: Path, driver: Mapping[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": driver}))
    return path


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"drivers: {' '.join(command)}: {(done.stderr or done.stdout).strip()}; try apt-get update")
    return done.stdout


def main(arguments: list[str]) -> None:
    """Replaces this process by the command, on the named driver."""
    if len(arguments) < 2 or arguments[0] not in DRIVERS:
        raise SystemExit(f"usage: drivers.py {{{','.join(DRIVERS)}}} COMMAND…")
    name, *command = arguments
    os.execvpe(command[0], command, {**os.environ, **environment(DRIVERS[name]())})


if __name__ == "__main__":
    main(sys.argv[1:])
