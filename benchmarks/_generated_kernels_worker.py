"""One side of generated_kernels.py: a process that times calls of a compiled module. Not a benchmark.

``python _generated_kernels_worker.py MODULE CASE RESULTS DEVICE``. It calls the module with the case's arguments on the
device, keeps the results as ``RESULTS.0.npy``, …, or why there are none as ``RESULTS.error``, says ``ready``, and
answers ``run 10`` with the nanoseconds of each of ten calls. With ``peaks`` for the module it answers with the device's
bytes and floating-point operations a second. ``NumPy`` and ``CuPy`` time the case's definition in these libraries.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from kernel_programs import CASES, Case

import pumice
from pumice.study.workloads.peaks import measure_peaks

FIRST_CALL_S = 60
"""A module that takes longer than this for one call is given up."""


def answer(call: Callable[[], object]) -> None:
    """Says that it is ready, and times a call as often as it is told to."""
    print("ready", flush=True)
    gc.collect()
    gc.freeze()
    clock = time.perf_counter_ns
    for line in sys.stdin:
        times = [0] * int(line.split()[1])
        for index in range(len(times)):
            begin = clock()
            call()
            times[index] = clock() - begin
        print(*times, flush=True)


def by_library(name: str, case: Case) -> Callable[[], object]:
    """A call of the definition of a case, on arrays where the library has them."""
    definition, arrays = case.definition, case.arrays()
    assert definition is not None
    if name == "NumPy":
        return lambda: definition(*arrays)
    import cupy

    given = [cupy.asarray(array) for array in arrays]

    def call() -> None:
        definition(*given)
        cupy.cuda.Device().synchronize()

    call()
    return call


def main(module: str, case: str, results: str, uri: str) -> None:
    """The command line."""
    if module in ("NumPy", "CuPy"):
        answer(by_library(module, CASES[case]))
        return
    with pumice.open_device(uri) as device:
        if module == "peaks":
            print("ready", flush=True)
            for _ in sys.stdin:
                peaks = measure_peaks(device).peaks
                print(peaks["GB/s"] * 1e9, peaks["GFLOP/s"] * 1e9, flush=True)
            return
        with pumice.Session(device) as session:
            loaded = session.load(module)
            name = next(each for each in loaded.exports if not each.startswith("__") and not each.endswith("$async"))
            function = session.lookup(f"{loaded.name}.{name}")
            arguments = [device.asarray(array) for array in CASES[case].arrays()]
            signal.alarm(FIRST_CALL_S)
            try:
                given = function(*arguments)
            except pumice.PumiceError as error:
                Path(f"{results}.error").write_text(error.message, encoding="utf-8")
                sys.exit(1)
            signal.alarm(0)
            for number, result in enumerate(given if isinstance(given, tuple) else (given,)):
                np.save(f"{results}.{number}.npy", result.numpy())
            given = result = None
            answer(lambda: function(*arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
