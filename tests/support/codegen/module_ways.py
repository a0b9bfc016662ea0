"""The ways to run a compiled module: by the virtual machine, as HAL code, as a C program; with storages of the caller.

Each gives the results of a case's calls, a list of arrays a call. ``like`` has arrays of the shapes and dtypes of the
results: then the results go into storages of the caller, which hold other bytes before.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from support.codegen import hal_code
from support.codegen.c_library import CLibrary
from support.codegen.module_cases import ModuleCase

import pumice
from pumice.formats.element_type import ElementType
from pumice.hal.buffer import Buffer
from pumice.hal.buffer_view import BufferView
from pumice.hal.programs.host_program import HostProgram

Array: TypeAlias = npt.NDArray[Any]
Results: TypeAlias = list[list[Array]]

_SECONDS = 60


def by_session(case: ModuleCase, module: bytes, device: pumice.Device, like: Results | None = None) -> Results:
    """Calls a module in a session."""
    with pumice.Session(device) as session:
        name = session.load(module).name
        if like is None:
            return [
                _arrays(session.call(f"{name}.{function}", *arguments, timeout=_SECONDS))
                for function, arguments in case.calls
            ]
        found = []
        for (function, arguments), results in zip(case.calls, like, strict=True):
            storages = [_storage(device, result) for result in results]
            out = storages[0] if len(storages) == 1 else tuple(storages)
            given = session.lookup(f"{name}.{function}")(*arguments, out=out, timeout=_SECONDS)
            assert given is out or all(one is other for one, other in zip(given, storages, strict=True))
            found.append([storage.numpy() for storage in storages])
        return found


def _arrays(given: object) -> list[Array]:
    several: Sequence[object] = given if isinstance(given, tuple | list) else [given]
    return [each.numpy() if isinstance(each, pumice.DeviceArray) else np.asarray(each) for each in several]


def _storage(device: pumice.Device, like: Array) -> pumice.DeviceArray:
    """An array of the same shape and dtype whose elements all have other bits."""
    return device.asarray(hal_code.other_bits(like))


def by_hal_code(
    case: ModuleCase, module: bytes, device: pumice.Device, like: Results
) -> tuple[Results, Results, Results]:
    """As HAL code: with results that it allocates; with ``out=``; and asynchronously, behind one semaphore and before
    another.
    """
    with hal_code.hal_program(module, device.hal) as program:
        calls = [
            (function, arguments, results) for (function, arguments), results in zip(case.calls, like, strict=True)
        ]
        return (
            [hal_code.call(program, function, arguments) for function, arguments, _ in calls],
            [hal_code.call(program, *call) for call in calls],
            [hal_code.call_async(program, *call) for call in calls],
        )


def by_hal_code_of_convention(case: ModuleCase, module: bytes, device: pumice.Device, like: Results) -> Results:
    """As HAL code that takes and gives numbers, buffers without a type, or storages, as its methods declare."""
    with hal_code.hal_program(module, device.hal) as program:
        found = []
        for (function, arguments), results in zip(case.calls, like, strict=True):
            method = getattr(program, function)
            declared = [
                str(each.annotation)
                for each in inspect.signature(method).parameters.values()
                if each.kind is each.POSITIONAL_OR_KEYWORD
            ]
            storages = [program.to_device(hal_code.other_bits(result)) for result in results]
            views = [program.to_device(argument) for argument in arguments]
            numbers = [argument.item() if argument.ndim == 0 else None for argument in arguments]
            values: list[Any] = [*zip(views, numbers, strict=True), *((storage, None) for storage in storages)]
            given = method(*(_declared(kind, *value) for kind, value in zip(declared, values, strict=False)))
            several = storages if len(declared) > len(arguments) else given if isinstance(given, tuple) else (given,)
            found.append([_array_of(program, *pair) for pair in zip(several, results, strict=True)])
        return found


def _declared(kind: str, view: BufferView, number: object) -> object:
    return view if kind == "BufferView" else view.buffer if kind == "Buffer" else number


def _array_of(program: HostProgram, given: object, like: Array) -> Array:
    if isinstance(given, Buffer):
        given = BufferView(given, like.shape, ElementType.from_dtype(like.dtype))
    return program.to_host(given) if isinstance(given, BufferView) else np.asarray(given, like.dtype)


def by_c(case: ModuleCase, module: bytes, folder: Path, like: Results) -> tuple[Results, Results]:
    """As a C program: with results that it allocates, and with storages of the caller, which hold other bits before."""
    with CLibrary(folder, module) as program:
        pairs = list(zip(case.calls, like, strict=True))
        own = [program.call(function, arguments, results) for (function, arguments), results in pairs]
        given = [
            program.call_into(function, arguments, [hal_code.other_bits(result) for result in results])
            for (function, arguments), results in pairs
        ]
        return own, given
