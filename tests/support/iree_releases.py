"""Finds the peer's tools and ``iree-compile`` binaries of several releases, and compiles with them into a cache.

The installed tools (the ``peer`` extra) are always tried; other compilers come from ``PUMICE_IREE_COMPILERS``, in the
form ``3.0.0=/path/to/iree-compile,3.5.0=…`` that ``fetch_compilers.py`` prints.

A compiled module depends on its source, the source's file name, the flags and the release, and on nothing else: no
folder gets into the module. The cache is keyed by those; ``PUMICE_TEST_CACHE`` names its folder. Processes may share
it: each module is compiled once, by whoever holds the lock of its key.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "CompileError",
    "Compiler",
    "available_compilers",
    "cache_folder",
    "installed_compiler",
    "installed_tool",
    "release_key",
]

VULKAN = ("--iree-hal-target-device=vulkan",)
LOCAL = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=generic",
)
_LIMIT_S = 300


class CompileError(Exception):
    """The compiler refused a program; the text is its first error, or that it took too long."""


def release_key(release: str) -> tuple[int, ...]:
    """``"3.10.0"`` as numbers that compare, for "since" and "before"."""
    return tuple(int(part) for part in release.split(".")[:3])


def cache_folder() -> Path:
    """Returns the folder that keeps compiled modules between runs; makes it if it is missing."""
    named = os.environ.get("PUMICE_TEST_CACHE")
    folder = Path(named) if named else Path(platformdirs.user_cache_dir("pumice")) / "test-modules"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Compiler:
    """One ``iree-compile`` binary. Threads may share it."""

    release: str
    path: Path

    def compile(
        self, source: str, flags: Sequence[str] = (), *, device: Sequence[str] = VULKAN, name: str | None = None
    ) -> Path:
        """The compiled module's path in the cache, compiled now if it is not there.

        Args:
            source: MLIR text.
            flags: beside those of the device.
            device: what to compile for.
            name: the source's file name in the module's debug information; ``None``: standard input.

        Raises:
            CompileError: the compiler refused it.
        """
        arguments = [*device, *flags, *([] if name is None else [name])]
        digest = hashlib.sha256("\0".join((self.release, *arguments, source)).encode()).hexdigest()
        target = cache_folder() / f"{digest}.vmfb"
        with _locked(target.parent / f"{digest[0]}.lock"):
            if not target.exists():
                self._compile(source, [*device, *flags], name, target)
        return target

    def _compile(self, source: str, flags: Sequence[str], name: str | None, target: Path) -> None:
        # A file of its own first: whoever is stopped midway leaves no half of a module under the key.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="compiling-") as folder:
            partial = Path(folder) / "module.vmfb"
            if name is not None:
                (Path(folder) / name).write_text(source, encoding="utf-8")
            try:
                done = subprocess.run(
                    [str(self.path), "--mlir-disable-threading", *flags, name or "-", "-o", str(partial)],
                    check=False,
                    input=source if name is None else None,
                    capture_output=True,
                    text=True,
                    timeout=_LIMIT_S,
                    cwd=folder,
                )
            except subprocess.TimeoutExpired:
                raise CompileError(f"iree-compile {self.release} took longer than {_LIMIT_S} s") from None
            if done.returncode != 0:
                raise CompileError(f"iree-compile {self.release} {' '.join(flags)}: {_first_error(done.stderr)}")
            partial.replace(target)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock file; where the platform has no such locks, two processes may compile the same module."""
    if fcntl is None:
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _first_error(text: str) -> str:
    lines = text.splitlines()
    return next((line for line in lines if "error:" in line), lines[0] if lines else "it said nothing")


def installed_tool(name: str) -> Path | None:
    """A tool of the installed peer, or ``None``.

    The binary itself: the script of the same name costs the start of a Python for each call.
    """
    spec = importlib.util.find_spec("iree")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for binaries in ("_runtime_libs", "compiler/_mlir_libs"):
            path = Path(folder) / binaries / name
            if path.exists():
                return path
    return None


def installed_compiler() -> Compiler | None:
    """The compiler of the installed ``iree-base-compiler`` package, or ``None``."""
    path = installed_tool("iree-compile")
    if path is None:
        return None
    return Compiler(importlib.metadata.version("iree-base-compiler"), path)


def available_compilers() -> tuple[Compiler, ...]:
    """The installed compiler and those that ``PUMICE_IREE_COMPILERS`` names, newest first, one a release.

    Raises:
        ValueError: the variable is not in its form, or a path in it does not exist.
    """
    found: dict[str, Compiler] = {}
    for entry in filter(None, os.environ.get("PUMICE_IREE_COMPILERS", "").split(",")):
        release, separator, path = entry.strip().partition("=")
        if not separator or not Path(path).is_file():
            raise ValueError(
                "PUMICE_IREE_COMPILERS: expected release=/path/to/iree-compile, comma-separated, of paths that exist; "
                f"{entry!r} is not that; fetch_compilers.py prints a right value"
            )
        found[release] = Compiler(release, Path(path))
    installed = installed_compiler()
    if installed is not None:
        found.setdefault(installed.release, installed)
    return tuple(sorted(found.values(), key=lambda compiler: release_key(compiler.release), reverse=True))
