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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_BUILD: Final = ROOT / "build" / "drivers"
# Debian's browser carries a driver and layers; its manifest names no version that drivers have today.
_BROWSER: Final = ("chromium-common", Path("usr/lib/chromium"))
_SWIFTSHADER: Final = ("libvk_swiftshader.so", "1.3.0")


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


DRIVERS: Final[Mapping[str, Callable[[], Path]]] = {"swiftshader": swiftshader}


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
