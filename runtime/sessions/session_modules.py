"""The modules of a session: loaded from a file, standard input, memory, or an open binary file, or built-in."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

from ...base.memory_budget import MemoryBudget
from ...status import IncompatibleError, InvalidArgumentError, UnavailableError
from ...vm.execution.bytecode_module import BytecodeModule
from ...vm.execution.context import Context
from ...vm.native.module import NativeModule
from ..device import Device
from ..modules.hal.module import hal_module
from ..opening import REFERENCE
from .session_devices import SessionDevices
from .session_options import BUILTIN_MODULES, SessionOptions

ModuleSource: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO"
"""A module: the path of its file (which is mapped), its bytes, or an open file."""


def open_module(source: ModuleSource) -> BytecodeModule:
    """Returns the module of a source; see ``Session.load``."""
    if isinstance(source, str) and source == "-":
        stdin = getattr(sys.stdin, "buffer", None)
        if stdin is None:
            raise UnavailableError("standard input is closed, or has no bytes; give the module as a path or bytes")
        return BytecodeModule.from_bytes(stdin.read(), "<stdin>")
    if isinstance(source, (str, os.PathLike)):
        return BytecodeModule.open(Path(source))
    name = getattr(source, "name", None)
    name = str(name) if isinstance(name, (str, os.PathLike)) else "<memory>"
    return BytecodeModule.from_bytes(_bytes_of(source), name)


def _bytes_of(source: object) -> bytes | bytearray | memoryview:
    """Returns the bytes of a buffer in place, or the rest of a file."""
    if isinstance(source, (bytes, bytearray)):
        return source
    try:
        view = memoryview(source)  # type: ignore[arg-type]  # what has no buffer raises
    except TypeError:
        read = getattr(source, "read", None)
        if read is None:
            raise InvalidArgumentError(
                f"load takes a path, bytes or a binary file, got {type(source).__name__}"
            ) from None
        data = read()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidArgumentError("load takes a file opened in binary mode, got one in text mode") from None
        return data
    if not view.c_contiguous:
        raise InvalidArgumentError("load takes contiguous bytes; copy them with bytes(…)")
    return view.cast("B") if view.nbytes else b""


def imported_modules(module: BytecodeModule) -> set[str]:
    """Returns the names of the modules that a module imports from."""
    imported = {entry.name.partition(".")[0] for entry in module.definition.imports}
    return imported.union(entry.name for entry in module.definition.dependencies)


def builtin_modules(
    module: BytecodeModule,
    context: Context,
    devices: SessionDevices,
    options: SessionOptions,
    memory: MemoryBudget | None,
) -> Iterator[NativeModule]:
    """Returns the built-in modules that a module imports from and the context lacks.

    ``memory`` is the budget of the device memory that they allocate.
    """
    wanted = imported_modules(module)
    known = {item.name for item in context.modules}
    if module.name in known:
        return  # which ``add`` rejects
    for name in BUILTIN_MODULES:
        if name not in wanted or name in known or name not in options.builtin_modules:
            continue
        if name == "hal":
            yield hal_module([item.hal for item in devices.open()], memory)
        else:
            # Imported only for programs with parameters.
            from ..modules.parameters.module import io_parameters_module

            yield io_parameters_module(options.parameter_indices(), memory)


def wrong_device(error: IncompatibleError, name: str, devices: Iterable[Device]) -> str | None:
    """Returns a remedy for a module compiled for another kind of device; ``None`` for other errors."""
    target = re.search(r'HAL device `[^`]*` not found or unavailable: #hal\.device\.target<"(\w+)"', error.message)
    if target is None:
        return None
    kinds = {REFERENCE if device.uri == REFERENCE else "vulkan" for device in devices}
    if target[1] == "vulkan":
        if "vulkan" in kinds:
            return None
        return (
            f"module {name!r} was compiled for Vulkan devices, and this session has the reference device: open a "
            "Vulkan device, or compile the program for both with `pumice compile --target vulkan,reference`"
        )
    return (
        f"module {name!r} was compiled for devices of kind {target[1]!r}, which pumice does not have: "
        "compile it with --iree-hal-target-device=vulkan"
    )
