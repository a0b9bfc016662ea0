"""One side of without_vm.py: a process that times calls of a compiled module. Not a benchmark.

``python _without_vm_worker.py SIDE PROGRAM FOLDER DEVICE``; SIDE is ``vm``, where PROGRAM is the module's file,
or ``hal``, where it is the HAL code of it. FOLDER has the arguments and the results as ``in0.npy`` and ``out0.npy``.
It checks the results, says ``ready``, and answers ``new 100`` and ``out 100`` with the nanoseconds of each of 100 calls
that allocate their results, or that write them into storages of the caller.
"""

from __future__ import annotations

import gc
import runpy
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import pumice
from pumice.hal.buffer_view import BufferView
from pumice.hal.programs.host_program import HostProgram

Calls = dict[str, Callable[[], object]]


def by_session(
    stack: ExitStack, device: pumice.Device, program: Path, arrays: Sequence[np.ndarray], like: Sequence[np.ndarray]
) -> Calls:
    """Calls of a session, on arrays that are on the device."""
    session = stack.enter_context(pumice.Session(device))
    main = session.lookup(f"{session.load(program).name}.main")
    arguments = [device.asarray(array) for array in arrays]
    storages = [device.asarray(np.zeros_like(array)) for array in like]
    out = storages[0] if len(storages) == 1 else tuple(storages)
    return {"new": lambda: main(*arguments), "out": lambda: main(*arguments, out=out)}


def by_hal_code(
    stack: ExitStack, device: pumice.Device, program: Path, arrays: Sequence[np.ndarray], like: Sequence[np.ndarray]
) -> Calls:
    """Calls of HAL code, on views of buffers of the device."""
    space = runpy.run_path(str(program))
    (written,) = (each for each in space.values() if isinstance(each, type) and HostProgram in each.__bases__)
    made = stack.enter_context(written.create(device.hal))
    main = made.main
    arguments = [made.to_device(array) for array in arrays]
    storages = [made.to_device(np.zeros_like(array)) for array in like]
    out = storages[0] if len(storages) == 1 else tuple(storages)
    return {"new": lambda: main(*arguments), "out": lambda: main(*arguments, out=out)}


SIDES = {"vm": by_session, "hal": by_hal_code}


def main(side: str, program: str, folder: str, uri: str) -> None:
    """The command line."""
    with ExitStack() as stack:
        device = stack.enter_context(pumice.open_device(uri))
        arrays, expected = ([np.load(path) for path in _files(folder, name)] for name in ("in", "out"))
        calls = SIDES[side](stack, device, Path(program), arrays, expected)
        for call in calls.values():
            _check(side, device, call(), expected)
        print("ready", flush=True)
        gc.collect()
        gc.freeze()
        for line in sys.stdin:
            command, count = line.split()
            call, clock = calls[command], time.perf_counter_ns
            times = [0] * int(count)
            for index in range(len(times)):
                begin = clock()
                call()
                times[index] = clock() - begin
            print(*times, flush=True)


def _files(folder: str, name: str) -> list[Path]:
    return sorted(Path(folder).glob(f"{name}[0-9]*.npy"), key=lambda path: int(path.stem.removeprefix(name)))


def _check(side: str, device: pumice.Device, given: object, expected: Sequence[np.ndarray]) -> None:
    results = given if isinstance(given, tuple) else (given,)
    for result, wanted in zip(results, expected, strict=True):
        if isinstance(result, BufferView):
            found = np.empty_like(wanted)
            device.download(result.buffer.subspan(0, result.byte_length), found)
        else:
            found = result.numpy()
        if not np.allclose(found, wanted, 1e-4, 1e-4):
            raise SystemExit(f"{side}: expected {wanted}, got {found}")


if __name__ == "__main__":
    main(*sys.argv[1:])
