"""HAL code of modules: written, imported, and called with NumPy arrays."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from pumice.codegen.hal.module_writer import HalCode, write_hal
from pumice.codegen.program.naming import identifier
from pumice.hal.buffer_view import BufferView
from pumice.hal.device import Device
from pumice.hal.programs.fence import HalFence
from pumice.hal.programs.host_program import HostProgram
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.reader import read_module

Array: TypeAlias = npt.NDArray[Any]


def hal_code(module: bytes, name: str = "program.vmfb", **options: Any) -> HalCode:
    """The HAL code of a module."""
    with ModuleArchive.from_bytes(module, name) as archive:
        return write_hal(read_module(archive), name, **options)


def hal_class(module: bytes, name: str = "program.vmfb") -> type[HostProgram]:
    """The class of a module's HAL code."""
    return class_of(hal_code(module, name).source)


def class_of(source: str) -> type[HostProgram]:
    """The class in the source of HAL code."""
    names: dict[str, Any] = {"__name__": "hal_code"}
    exec(compile(source, "hal_code.py", "exec"), names)
    found = [one for one in names.values() if isinstance(one, type) and one.__module__ == "hal_code"]
    assert len(found) == 1 and issubclass(found[0], HostProgram)
    return found[0]


def hal_program(module: bytes, device: Device, name: str = "program.vmfb") -> HostProgram:
    """The program of a module on a device; the caller closes it."""
    return hal_class(module, name).create(device)


def call(
    program: HostProgram, function: str, arguments: Sequence[Array], like: Sequence[Array] | None = None
) -> list[Array]:
    """Calls a function: into new memory, or into storages of the shapes and dtypes of ``like`` with other contents."""
    views = [_argument(program, argument) for argument in arguments]
    method = getattr(program, identifier(function))  # ``and`` is ``and_``
    if like is None:
        return [_array(program, one) for one in _several(method(*views))]
    storages = [program.to_device(other_bits(one)) for one in like]
    given = method(*views, out=storages[0] if len(storages) == 1 else tuple(storages))
    assert all(one is other for one, other in zip(_several(given), storages, strict=True))
    return [program.to_host(one) for one in storages]


def call_async(program: HostProgram, function: str, arguments: Sequence[Array], like: Sequence[Array]) -> list[Array]:
    """Calls the asynchronous method behind a semaphore that is signalled later, and waits for its own."""
    views = [_argument(program, argument) for argument in arguments]
    storages = [program.to_device(other_bits(one)) for one in like]
    with program.device.create_semaphore() as before, program.device.create_semaphore() as behind:
        signaller = threading.Timer(0.002, before.signal, (1,))
        signaller.start()
        getattr(program, f"{function}_async")(*views, *storages, wait=[(before, 1)], signal=[(behind, 3)])
        behind.wait(3, 30)
        signaller.join()
    return [program.to_host(one) for one in storages]


def other_bits(array: Array) -> Array:
    """An array whose elements have other bits."""
    if array.dtype == np.bool_:
        return ~array
    flipped = np.frombuffer(array.tobytes(), np.uint8) ^ 0xFF
    return np.frombuffer(flipped.tobytes(), array.dtype).reshape(array.shape)


def new_fence(program: HostProgram) -> HalFence:
    """A fence to signal."""
    return HalFence(program.device)


def _argument(program: HostProgram, argument: Any) -> Any:
    return program.to_device(argument) if isinstance(argument, np.ndarray) else argument


def _several(given: Any) -> Sequence[Any]:
    return given if isinstance(given, tuple) else () if given is None else (given,)


def _array(program: HostProgram, given: Any) -> Array:
    return program.to_host(given) if isinstance(given, BufferView) else np.asarray(given)
