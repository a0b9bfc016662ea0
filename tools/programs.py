"""Modules from files: compiled programs are read unchanged, tensor programs are compiled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .input_files import PROGRAM_SUFFIXES, is_module, read_stdin

if TYPE_CHECKING:
    from ..vm.bytecode.archive import ModuleArchive
    from ..vm.execution.bytecode_module import BytecodeModule


def is_program(path: str) -> bool:
    """Whether a file is compiled before it runs, by its name."""
    return path.endswith(PROGRAM_SUFFIXES)


def device_kinds(devices: Sequence[str | None]) -> tuple[str, ...]:
    """Returns the kinds of the requested devices."""
    from ..runtime.opening import is_reference

    wanted = {"reference" if is_reference(uri) else "vulkan" for uri in devices or (None,)}
    return tuple(sorted(wanted, reverse=True))


def compiled(path: Path, devices: Sequence[str | None] = ()) -> bytes:
    """Returns the module of a tensor program for these devices (by default all), compiled once per content.

    Raises:
        CompileError: the program is wrong or not supported.
    """
    # Imported here so that other programs start sooner.
    from ..compiler.module_cache import compile_file
    from .device_targets import devices_target

    return compile_file(path, target=devices_target(devices))


def module_on_stdin(devices: Sequence[str | None] = ()) -> bytes:
    """Returns the module on stdin, compiled if it is a tensor program."""
    data = read_stdin()
    if is_module(data):
        return data
    from ..compiler.module_cache import compile_once
    from ..compiler.origin import Origin
    from .device_targets import devices_target

    return compile_once(data, "<stdin>", Origin(), devices_target(devices))


def open_archive(path: str) -> ModuleArchive:
    """Returns the archive of a module's file, or of stdin (``-``); a tensor program is compiled."""
    from ..vm.bytecode.archive import ModuleArchive

    if is_program(path):
        return ModuleArchive.from_bytes(compiled(Path(path)), path)
    return ModuleArchive.from_bytes(module_on_stdin(), "<stdin>") if path == "-" else ModuleArchive.open(path)


def open_program(path: str, devices: Sequence[str | None] = ()) -> BytecodeModule:
    """Returns the module of a file, compiled if it is a tensor program."""
    from ..vm.execution.bytecode_module import BytecodeModule

    return (
        BytecodeModule.from_bytes(compiled(Path(path), devices), path, keep=True)
        if is_program(path)
        else BytecodeModule.open(path)
    )
