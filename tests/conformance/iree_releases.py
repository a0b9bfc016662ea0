"""Finds ``iree-compile`` binaries of several releases, and compiles with them into a cache.

The installed compiler (the ``peer`` extra) is always tried; others come from ``PUMICE_IREE_COMPILERS``, in the form
``3.0.0=/path/to/iree-compile,3.5.0=…`` that ``fetch_compilers.py`` prints.

A compiled module depends on its source, the flags and the release, and on nothing else: the source goes in by standard
input, so that no path gets into the module. The cache is keyed by those three; ``PUMICE_TEST_CACHE`` names its folder.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

__all__ = ["CompileError", "Compiler", "available_compilers", "cache_folder", "installed_compiler", "release_key"]

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
    """Where compiled modules are kept between runs; made when missing."""
    named = os.environ.get("PUMICE_TEST_CACHE")
    folder = Path(named) if named else Path(platformdirs.user_cache_dir("pumice")) / "test-modules"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Compiler:
    """One ``iree-compile`` binary. Threads may share it."""

    release: str
    path: Path

    def compile(self, source: str, flags: Sequence[str] = (), *, device: Sequence[str] = VULKAN) -> Path:
        """The compiled module's path in the cache, compiled now if it is not there.

        Args:
            source: MLIR text.
            flags: beside those of the device.
            device: what to compile for.

        Raises:
            CompileError: the compiler refused it.
        """
        arguments = [*device, *flags]
        digest = hashlib.sha256("\0".join((self.release, *arguments, source)).encode()).hexdigest()
        target = cache_folder() / f"{digest}.vmfb"
        if target.exists():
            return target
        # A file of its own first: another process may compile the same module, and a reader never sees half of one.
        descriptor, partial = tempfile.mkstemp(dir=target.parent, suffix=".partial")
        os.close(descriptor)
        try:
            done = subprocess.run(
                [str(self.path), *arguments, "-", "-o", partial],
                check=False,
                input=source,
                capture_output=True,
                text=True,
                timeout=_LIMIT_S,
            )
            if done.returncode != 0:
                raise CompileError(f"iree-compile {self.release} {' '.join(arguments)}: {_first_error(done.stderr)}")
            Path(partial).replace(target)
        except subprocess.TimeoutExpired:
            raise CompileError(f"iree-compile {self.release} took longer than {_LIMIT_S} s") from None
        finally:
            Path(partial).unlink(missing_ok=True)
        return target


def _first_error(text: str) -> str:
    lines = text.splitlines()
    return next((line for line in lines if "error:" in line), lines[0] if lines else "it said nothing")


def installed_compiler() -> Compiler | None:
    """The compiler of the installed ``iree-base-compiler`` package, or ``None``."""
    try:
        release = importlib.metadata.version("iree-base-compiler")
        spec = importlib.util.find_spec("iree.compiler")
    except (importlib.metadata.PackageNotFoundError, ModuleNotFoundError):
        return None
    if spec is None or spec.origin is None:
        return None
    # The binary itself: the script of the same name costs a Python start for each module.
    path = Path(spec.origin).with_name("_mlir_libs") / "iree-compile"
    return Compiler(release, path) if path.exists() else None


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
                f"PUMICE_IREE_COMPILERS: expected release=/path/to/iree-compile, comma-separated, with paths that exist; "
                f"{entry!r} is not that; fetch_compilers.py prints a right value"
            )
        found[release] = Compiler(release, Path(path))
    installed = installed_compiler()
    if installed is not None:
        found.setdefault(installed.release, installed)
    return tuple(sorted(found.values(), key=lambda compiler: release_key(compiler.release), reverse=True))
