"""C programs of modules: written, built and run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pumice.base.install_hints import install_hint
from pumice.codegen.c import write_c
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.reader import read_module

Array: TypeAlias = npt.NDArray[Any]

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
_SECONDS = 120
COMPILER = shutil.which("gcc") or shutil.which("cc")
MACHINE = shlex.split(os.environ.get("PUMICE_TEST_CFLAGS", ""))
"""Flags of all programs, such as ``-m32``, whose drivers and libraries have to be there."""
SANITIZED = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""Flags of programs that end at an access out of bounds or after a free, an overflow, or a misaligned pointer."""
# Leaks are valgrind's: the driver is unloaded before the sanitizer looks for what it lost.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")


def _lacking() -> str:
    if COMPILER is None:
        return f"needs a C compiler. {install_hint('c-compiler')}"
    source = b"#include <stdlib.h>\n#include <vulkan/vulkan.h>\n"
    if subprocess.run([COMPILER, "-E", "-"], input=source, capture_output=True, check=False).returncode:
        return f"needs Vulkan's headers. {install_hint('vulkan-headers')}"
    return ""


CANNOT_BUILD = _lacking()
"""Why C programs cannot be built here, or nothing."""


def c_files(module: bytes, stem: str = "program", **options: bool) -> dict[str, bytes]:
    """The files of a module's C program."""
    with ModuleArchive.from_bytes(module, f"{stem}.vmfb") as archive:
        return write_c(read_module(archive), stem, f"{stem}.vmfb", **options)


def with_declarations(assembly: str) -> str:
    """A program in VM assembly whose functions without arguments say their types, which C functions need."""

    def declared(match: re.Match[str]) -> str:
        results = ", ".join(f"%output{index}: {kind}" for index, kind in enumerate(re.findall(r"\w+", match[2])))
        return f'{match[1]} attributes {{iree.abi.declaration = "sync func @function() -> ({results})"}} {{'

    return re.sub(r"(vm\.func @\w+\(\) -> \(([^)]*)\)) \{", declared, assembly)


def build(
    folder: Path,
    module: bytes,
    stem: str = "program",
    *,
    flags: Sequence[str] = ("-O0",),
    sources: Sequence[str] = (),
    changes: Sequence[tuple[bytes, bytes]] = (),
    **options: bool,
) -> Path:
    """Builds a module's program, with warnings as errors.

    ``sources`` are other files than its own ``main``; ``changes`` are made to its text, as if devices were others.
    """
    for name, content in c_files(module, stem, main=not sources, **options).items():
        if name == f"{stem}.c":
            for old, new in changes:
                assert old in content, old
                content = content.replace(old, new)
        (folder / name).write_bytes(content)
    found = folder / stem
    files = [f"{stem}.c", *(sources or [f"{stem}_main.c"])]
    command = [str(COMPILER), "-std=c11", *MACHINE, *WARNINGS, *flags, *files, "-o", str(found), "-lvulkan", "-lm"]
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=_SECONDS)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return found


def run(program: Path, arguments: Sequence[Array], function: str | None = None, *more: str) -> list[Array]:
    """Calls a function of a built program; its results."""
    done = try_run(program, arguments, function, *more)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found = sorted(program.parent.glob("out*.npy"), key=lambda path: (len(path.name), path.name))
    results = [np.load(path) for path in found]
    for path in found:
        path.unlink()
    return results


def try_run(
    program: Path, arguments: Sequence[Array], function: str | None = None, *more: str
) -> subprocess.CompletedProcess[str]:
    """The same, which may fail."""
    names = []
    for index, argument in enumerate(arguments):
        names.append(f"in{index}.npy")
        np.save(program.parent / names[-1], argument)
    chosen = ("--function", function) if function is not None else ()
    return subprocess.run(
        [f"./{program.name}", *names, "-o", "out.npy", *chosen, *more],
        check=False,
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
