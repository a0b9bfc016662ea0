"""``pumice vendor-driver``: a wheel with lavapipe, the Vulkan loader and their dependencies, from installed packages.

The wheel holds ``pumice_lavapipe/``: ``lib/`` with the driver, ``lib/windows/`` with the driver for windows, a manifest
of each, ``packages.json`` with the versions of packages and the digests of their files, and ``SOURCES.md``; the
licences are in its ``.dist-info``. The same packages give the same bytes. ``hal_vulkan/vulkan/vendored.py`` finds the
installed driver.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from ...base.install_hints import install_hint
from ...base.lazy_dataclass import dataclass
from ...status import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnavailableError
from .dpkg import Package, Unpacked, files_of, owners, require_unchanged, unpack
from .relocation import closure, dependents, glibc_needed, relocate

_NAME: Final = "pumice_lavapipe"
_LOADER: Final = "libvulkan.so.1"
# Programs pass connections of these libraries to drivers. libX11-xcb only reads a Display, whose layout is fixed.
_WINDOW_SYSTEMS: Final = ("libxcb.so.1", "libwayland-client.so.0")
# On systems without a GPU and without a packaged software driver.
_SOFTWARE_DRIVERS: Final = {
    "win32": " Without a GPU, get a build of Mesa for Windows, and set VK_ADD_DRIVER_FILES to its lvp_icd.x86_64.json."
}
# pumice adds the driver with this variable, which loaders support since 1.3.207.
_ADD_DRIVERS: Final = "VK_ADD_DRIVER_FILES"
_DATE: Final = "SOURCE_DATE_EPOCH"
_COMMON_LICENCE: Final = re.compile(r"/usr/share/common-licenses/([A-Za-z]+(?:-\d+(?:\.\d+)*)?)")
# The addresses of distributions' source archives, by ID of os-release(5).
_ARCHIVES: Final = {
    "debian": "https://snapshot.debian.org/package/{}/{}/",
    "ubuntu": "https://launchpad.net/ubuntu/+source/{}/{}",
}
_SOURCES: Final = """# Sources

The libraries in `lib/` and `lib/windows/` are those of {release}. Only their names, and the names and
places of the libraries that they load, were changed (as of {date}), with patchelf's `--set-soname`,
`--replace-needed` and `--set-rpath` (`$ORIGIN`, and `$ORIGIN:$ORIGIN/..` in `lib/windows/`), and symbols
that are unique in a process became weak ones; each can be replaced by another build that was treated
alike. `packages.json` says which file is of which package; the licences are in the folder
`{name}-*.dist-info/licenses`.

`apt-get source NAME=VERSION` gets the source of a package, with the scripts that build it. Whoever
passes this wheel on has to offer these sources with it: as copies beside it, or by these places.

{lines}
"""


@click.command("vendor-driver")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    default=Path(),
    help="The folder for the wheel; without it the working folder.",
)
@click.option(
    "--packages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A folder of packages (.deb), as apt-get downloads them: they replace the installed ones of their names.",
)
def vendor_driver(output: Path, packages: Path | None) -> None:
    """Build the wheel pumice-lavapipe: this machine's software driver, for machines that have none.

    It is made of installed packages of Debian or Ubuntu, with their licences; nothing is downloaded. Where it is
    installed beside pumice, there is a Vulkan loader and the device lavapipe.
    """
    from ..tables import print_facts

    path = build_wheel(output, packages=packages)
    with zipfile.ZipFile(path) as wheel:
        unpacked = sum(entry.file_size for entry in wheel.infolist())
        used = json.loads(wheel.read(f"{_NAME}/packages.json"))["packages"]
    print_facts(
        [
            ("wheel", str(path)),
            ("size", f"{path.stat().st_size / 1e6:.1f} MB, installed {unpacked / 1e6:.1f} MB"),
            ("packages", ", ".join(f"{package['name']} {package['version']}" for package in used)),
        ]
    )


def build_wheel(folder: Path, *, manifest: str = "lvp_icd*.json", packages: Path | None = None) -> Path:
    """Builds the wheel, and returns its path.

    Args:
        folder: the folder for the wheel; it is created if missing.
        manifest: a pattern for the name of the driver's manifest in Mesa's package.
        packages: a folder of packages (``.deb``) that replace installed packages of the same names.

    Raises:
        UnavailableError: the system is not Linux, there is no dpkg, or a package or a tool is not installed.
        NotFoundError: a library or a licence is missing, or a file belongs to no package.
        FailedPreconditionError: a file was changed, or the loader is too old.
        InvalidArgumentError: ``SOURCE_DATE_EPOCH`` is not a number, or a file in ``packages`` is no package.
    """
    if sys.platform != "linux":
        raise UnavailableError(
            "the wheel is made of packages of Debian, Ubuntu and their kin, for Linux only; this is "
            f"{platform.system()}. {install_hint('driver')}{_SOFTWARE_DRIVERS.get(sys.platform, '')}"
        )
    try:
        from wheel.wheelfile import WheelFile
    except ImportError:
        raise UnavailableError("writing wheels needs the package wheel: pip install 'pumice[vendor]'") from None

    given_date = _given_date()
    archives = () if packages is None else sorted(packages.glob("*.deb"))
    with tempfile.TemporaryDirectory() as unpacked:
        parts = _collect(manifest, unpack(archives, Path(unpacked)))
        date = max(int(path.stat().st_mtime) for path in parts.owners) if given_date is None else given_date
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            tree = Path(scratch, "tree")
            name = f"{_assemble(parts, tree, date)}.whl"
            with _dated(date), WheelFile(Path(scratch, name), "w") as wheel:
                wheel.write_files(tree)
            return Path(scratch, name).replace(folder / name)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a wheel: a driver's manifest, libraries by soname with the packages of each, and licences."""

    manifest: dict[str, Any]
    driver: str
    libraries: dict[str, Path]
    owners: dict[Path, Package]
    packages: list[Package]
    licences: dict[str, bytes]


def _collect(manifest: str, unpacked: Unpacked) -> _Parts:
    files = files_of("driver", unpacked)
    description = json.loads(_one(files, manifest).read_bytes())
    driver = _one(files, Path(description["ICD"]["library_path"]).name)
    loader = _one(files_of("loader", unpacked), _LOADER)
    if _ADD_DRIVERS.encode() not in loader.read_bytes():
        raise FailedPreconditionError(
            f"{loader} does not know {_ADD_DRIVERS}, as it is older than 1.3.207: build the wheel on a newer release"
        )
    needed = closure((driver, loader), unpacked.library_folders)
    owned = owners((driver, loader, *needed.values()), unpacked)
    # The C library is the system's: its parts and the dynamic linker only work with each other.
    system = owned[needed["libc.so.6"]]
    libraries = {driver.name: driver, _LOADER: loader}
    libraries |= {name: path for name, path in sorted(needed.items()) if owned[path] != system}
    owned = {path: owned[path] for path in libraries.values()}
    require_unchanged(owned)
    packages = sorted(set(owned.values()), key=lambda package: package.name)
    return _Parts(description, driver.name, libraries, owned, packages, _licences(packages))


def _assemble(parts: _Parts, tree: Path, date: int) -> str:
    """Writes the wheel's files, and returns the wheel's name without its suffix."""
    lib = tree / _NAME / "lib"
    lib.mkdir(parents=True)
    copies = relocate(parts.libraries, lib, keep=(_LOADER,))
    (lib / "windows").mkdir()
    shared = {parts.driver: parts.libraries[parts.driver], **dependents(parts.libraries, _WINDOW_SYSTEMS)}
    in_windows = relocate(shared, lib / "windows", keep=_WINDOW_SYSTEMS, beside=copies)
    release, minor = glibc_needed(copies.values())
    tag = f"py3-none-manylinux_{release}_{minor}_{sysconfig.get_platform().partition('-')[2]}"
    mesa = parts.owners[parts.libraries[parts.driver]]
    version = _version(mesa)
    sources = _sources(parts.packages, date)
    contents: dict[str, str | bytes] = {
        f"{_NAME}/__init__.py": f'"""Mesa\'s lavapipe {mesa.version}; pumice finds it here."""\n',
        f"{_NAME}/{_NAME}.json": _manifest(parts, f"lib/{copies[parts.driver].name}"),
        f"{_NAME}/{_NAME}_windows.json": _manifest(parts, f"lib/windows/{in_windows[parts.driver].name}"),
        f"{_NAME}/packages.json": _json({"packages": _records(parts, (copies, in_windows), tree / _NAME)}),
        f"{_NAME}/SOURCES.md": sources,
    }
    info = f"{_NAME}-{version}.dist-info"
    contents[f"{info}/METADATA"] = _metadata(version, sorted(parts.licences), sources)
    generator = f"pumice {importlib.metadata.version('pumice')}"
    contents[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    contents |= {f"{info}/licenses/{name}": text for name, text in parts.licences.items()}
    for name, content in contents.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    for path in tree.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return f"{_NAME}-{version}-{tag}"


def _one(files: Sequence[Path], pattern: str) -> Path:
    """Returns the only file of a package whose name matches a pattern."""
    for path in files:
        if path.match(pattern) and path.is_file():
            return path
    raise NotFoundError(
        f"the installed package has no {pattern} among its {len(files)} files: build the wheel on another release of "
        "the distribution"
    )


def _version(package: Package) -> str:
    """Returns a Debian version as a Python version (PEP 440), with the revision as the local part."""
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)(.*)", package.version)
    if match is None:
        raise InvalidArgumentError(
            f"expected a version that starts with a number; {package.name} has {package.version}"
        )
    local = ".".join(re.findall(r"[a-z0-9]+", match[2].lower()))
    return f"{match[1]}+{local}" if local else match[1]


def _manifest(parts: _Parts, library: str) -> str:
    return _json({**parts.manifest, "ICD": {**parts.manifest["ICD"], "library_path": library}})


def _records(parts: _Parts, copies: Sequence[Mapping[str, Path]], root: Path) -> list[dict[str, Any]]:
    """Returns the packages with their files in the wheel, and the original digests of these."""
    return [
        {
            **{name: value for name, value in asdict(package).items() if name != "root"},
            "files": [
                {
                    "path": str(Path("/", path.relative_to(package.root))),
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "copies": [str(copy[name].relative_to(root)) for copy in copies if name in copy],
                }
                for name, path in parts.libraries.items()
                if parts.owners[path] == package
            ],
        }
        for package in parts.packages
    ]


def _licences(packages: Sequence[Package]) -> dict[str, bytes]:
    """Returns the licence files of packages, and the texts that these refer to."""
    texts = {}
    for package in packages:
        if not package.copyright.is_file():
            raise NotFoundError(
                f"{package.copyright}, the licence of {package.name}, is missing: dpkg was told to leave out "
                f"documentation (/etc/dpkg/dpkg.cfg.d). Change that, and apt-get install --reinstall {package.name}"
            )
        texts[f"{package.name}/copyright"] = text = package.copyright.read_bytes()
        for match in _COMMON_LICENCE.finditer(text.decode("utf-8", errors="replace")):
            texts[f"common-licenses/{match[1]}"] = Path(match[0]).read_bytes()
    return texts


def _sources(packages: Sequence[Package], date: int) -> str:
    """Returns the text about sources and changes that the GPL and the LGPL require."""
    release = platform.freedesktop_os_release()
    archive = _ARCHIVES.get(release.get("ID", ""))
    lines = []
    for name, version in sorted({(package.source, package.source_version) for package in packages}):
        where = f": {archive.format(quote(name), quote(version))}" if archive else ""
        lines.append(f"- {name} {version}{where}")
    return _SOURCES.format(
        release=release.get("PRETTY_NAME", "Linux"),
        date=time.strftime("%Y-%m-%d", time.gmtime(date)),
        name=_NAME,
        lines="\n".join(lines),
    )


def _metadata(version: str, licences: Collection[str], description: str) -> str:
    """Returns the metadata of the wheel (core metadata, version 2.4)."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {_NAME.replace('_', '-')}",
        f"Version: {version}",
        "Summary: Mesa's software driver for Vulkan, with the loader, for pumice",
        *(f"License-File: {name}" for name in licences),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*lines, "", description])


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _given_date() -> int | None:
    text = os.environ.get(_DATE)
    if text is None:
        return None
    if not text.isdecimal():
        raise InvalidArgumentError(f"the environment variable {_DATE}: expected seconds since 1970, got {text!r}")
    return int(text)


@contextlib.contextmanager
def _dated(date: int) -> Iterator[None]:
    """Gives all files of a WheelFile the same date."""
    before = os.environ.get(_DATE)
    os.environ[_DATE] = str(date)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DATE]
        else:
            os.environ[_DATE] = before
