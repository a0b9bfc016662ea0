"""Debian packages, installed or as files: their versions, their files, and checks for changed files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from ...base.install_hints import Component, install_hint, packages
from ...base.lazy_dataclass import dataclass
from ...status import FailedPreconditionError, InvalidArgumentError, NotFoundError, UnavailableError

_FIELDS: Final = ("Package", "Version", "Architecture", "source:Package", "source:Version")
_DOCUMENTATION: Final = Path("/usr/share/doc")


@dataclass(frozen=True, slots=True)
class Package:
    """A package and its source package; ``root`` is the folder that it is unpacked in."""

    name: str
    version: str
    architecture: str
    source: str
    source_version: str
    root: Path = Path("/")

    @property
    def copyright(self) -> Path:
        """The file with the licences of a Debian package (Debian Policy, section 12.5)."""
        return self.root / _DOCUMENTATION.relative_to("/") / self.name / "copyright"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Packages as files, unpacked into one folder; they replace the installed packages of the same names.

    Attributes:
        owners: the package of each file.
    """

    owners: Mapping[Path, Package] = field(default_factory=dict)

    @property
    def library_folders(self) -> tuple[Path, ...]:
        """The folders of shared libraries."""
        return tuple(sorted({path.parent for path in self.owners if ".so" in path.suffixes}))


_NONE: Final = Unpacked()


def unpack(archives: Iterable[Path], root: Path) -> Unpacked:
    """Unpacks packages (``.deb``) into a folder.

    Raises:
        UnavailableError: there is no dpkg.
        InvalidArgumentError: a file is no package.
    """
    form = "\\t".join(f"${{{name}}}" for name in _FIELDS)
    files: dict[Path, Package] = {}
    for archive in archives:
        shown = _run("dpkg-deb", "--show", f"--showformat={form}", str(archive))
        extracted = _run("dpkg-deb", "--vextract", str(archive), str(root))
        if shown.returncode or extracted.returncode:
            raise InvalidArgumentError(f"expected a package of Debian: {(shown.stderr or extracted.stderr).strip()}")
        package = _package(shown.stdout.split("\t"), root)
        files |= {root / name: package for name in extracted.stdout.splitlines()}
    return Unpacked(files)


def files_of(component: Component, unpacked: Unpacked = _NONE) -> tuple[Path, ...]:
    """Returns the files of the package that contains a component.

    Raises:
        UnavailableError: there is no dpkg, or the package is not installed.
    """
    (name,) = packages(component, "debian")
    if files := tuple(path for path, package in unpacked.owners.items() if package.name == name):
        return files
    # A package may be installed for several architectures.
    architecture = _run("dpkg", "--print-architecture").stdout.strip()
    listed = _run("dpkg-query", "--listfiles", f"{name}:{architecture}")
    if listed.returncode != 0:
        raise UnavailableError(f"the package {name} is not installed. {install_hint(component, 'debian')}")
    return tuple(Path(line) for line in listed.stdout.splitlines() if line.startswith("/"))


def owners(paths: Iterable[Path], unpacked: Unpacked = _NONE) -> dict[Path, Package]:
    """Returns the package of each file, in the order of the files.

    Raises:
        UnavailableError: there is no dpkg.
        NotFoundError: a file belongs to no package.
    """
    paths = list(paths)
    known = {path: unpacked.owners[path] for path in paths if path in unpacked.owners}
    installed = _installed_owners(path for path in paths if path not in known)
    return {path: (known if path in known else installed)[path] for path in paths}


def _installed_owners(paths: Iterable[Path]) -> dict[Path, Package]:
    spellings = {path: _spellings(path) for path in paths}
    if not spellings:
        return {}
    every = {str(spelling) for many in spellings.values() for spelling in many}
    named: dict[str, str] = {}
    for line in _run("dpkg-query", "--search", *sorted(every)).stdout.splitlines():
        holders, _, file = line.rpartition(": ")
        named[file] = holders.partition(",")[0]
    package_names: dict[Path, str] = {}
    for path, many in spellings.items():
        names = [named[str(spelling)] for spelling in many if str(spelling) in named]
        if not names:
            raise NotFoundError(
                f"{path} is of no package, so that nobody can say its version and licence. Remove it from the folders "
                "that ldconfig looks in, or install the package that has it"
            )
        package_names[path] = names[0]
    return dict(zip(package_names, _described(package_names.values()), strict=True))


def require_unchanged(owned: dict[Path, Package]) -> None:
    """Checks files against their packages' checksums, if the packages are installed.

    Raises:
        UnavailableError: there is no dpkg.
        FailedPreconditionError: a file was changed.
    """
    owned = {path: package for path, package in owned.items() if package.root == Path("/")}
    names = sorted({f"{package.name}:{package.architecture}" for package in owned.values()})
    # One line per file: nine characters, of which the third is 5 for a wrong checksum, an optional letter, and the
    # path.
    lines = _run("dpkg", "--verify", *names).stdout.splitlines()
    changed = {Path(line[line.index("/") :]).resolve() for line in lines if line[2:3] == "5"}
    for path, package in owned.items():
        if path.resolve() in changed:
            raise FailedPreconditionError(
                f"{path} is not as {package.name} {package.version} has it: apt-get install --reinstall {package.name}"
            )


def _described(names: Iterable[str]) -> list[Package]:
    """Returns the packages by name, in the order of the names."""
    wanted = list(names)
    form = "\\t".join(f"${{{field}}}" for field in ("binary:Package", *_FIELDS)) + "\\n"
    shown = _run("dpkg-query", "--show", f"--showformat={form}", *sorted(set(wanted)))
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    by_name = {key: _package(fields) for name, *fields in rows for key in (name, f"{fields[0]}:{fields[2]}")}
    return [by_name[name] for name in wanted]


def _package(fields: Sequence[str], root: Path = Path("/")) -> Package:
    name, version, architecture, source, source_version = fields
    return Package(name, version, architecture, source, source_version, root)


def _spellings(path: Path) -> tuple[Path, ...]:
    """Returns the paths under which a package may list a file: two where /lib is a link to /usr/lib."""
    real = path.resolve()
    return (path, real, Path(*real.parts[:1], *real.parts[2:])) if real.is_relative_to("/usr") else (path, real)


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    executable = shutil.which(program)
    if executable is None:
        raise UnavailableError(
            f"there is no {program}: drivers are taken from the packages of Debian, Ubuntu and their kin. Build the "
            "wheel on one of these; it installs on every Linux whose glibc is not older"
        )
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run([executable, *arguments], env=environment, capture_output=True, text=True, check=False)
