"""Fetches IREE's compiler in several releases: python tests/conformance/iree/fetch_compilers.py DIR [--release 3.5.0 …]

Downloads the wheels with pip into DIR, unpacks what ``iree-compile`` needs, and prints the value for
``PUMICE_IREE_COMPILERS``. Releases cannot be installed side by side, so nothing is installed. About 1 GB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zipfile
from pathlib import Path

# One for each set of module formats: HAL module 5, 6 and 7, bytecode 15 and 17.
RELEASES = ("3.0.0", "3.5.0", "3.9.0", "3.11.0", "3.13.0")
_LIBRARIES = "iree/compiler/_mlir_libs/"


def fetch(folder: Path, release: str) -> Path:
    """The path of a release's ``iree-compile`` below ``folder``; downloads what is not there.

    Raises:
        subprocess.CalledProcessError: pip found no wheel for this platform, or could not fetch it.
    """
    target = folder / release
    binary = target / _LIBRARIES / "iree-compile"
    if binary.exists():
        return binary
    wheels = folder / "wheels"
    wanted = [f"iree-base-compiler=={release}", "--no-deps", "--only-binary=:all:", "--dest", str(wheels)]
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True, stdout=sys.stderr)
    (wheel,) = wheels.glob(f"iree_base_compiler-{release}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target, [name for name in archive.namelist() if name.startswith(_LIBRARIES)])
    for program in (target / _LIBRARIES).glob("iree-*"):
        program.chmod(0o755)
    return binary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--release", action="append", choices=RELEASES, help="this one only; may be repeated")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    print(",".join(f"{release}={fetch(folder, release)}" for release in options.release or RELEASES))


if __name__ == "__main__":
    main()
