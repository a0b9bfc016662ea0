"""Ctrl-C at any point of a call: whatever returned is right, and the device goes on."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from support.interrupts import interrupt_at, points
from support.soak import SOAK, rounds

import pumice
from pumice import shaders
from pumice.hal_vulkan.instance.process import finish_teardowns
from pumice.hal_vulkan.vulkan.live_objects import live_objects

pytestmark = [
    pytest.mark.vulkan,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this platform has no interval timers"),
]

# In a process of its own: the alarms are not for the test runner. Without the validation layers, whose locks a signal
# may leave taken.
SCRIPT = """
import signal, numpy as np, pumice
from pumice import shaders

class Interrupted(Exception):
    pass

def interrupt(*_):
    raise Interrupted

device = pumice.open_device("vulkan")
mul = device.load_kernel(shaders.path("mul"))
a, b = (np.random.default_rng(seed).random(64, np.float32) for seed in (1, 2))
x, y = device.asarray(a), device.asarray(b)
signal.signal(signal.SIGALRM, interrupt)
interrupts = 0
for step in range(300):
    z = device.zeros(64)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + step % 30))
        for _ in range(20):
            mul(x, y, z)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    mul(x, y, z)
    assert np.array_equal(z.numpy(), a * b), step
device.close()
print(interrupts)
"""


def test_interrupts_at_random_points() -> None:
    environment = {**os.environ, "PUMICE_VALIDATION": "0"}
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=100, check=False, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 50, "the alarms came too late to interrupt anything"


# -- each point of each public call ------------------------------------------------------------------

ONES = np.ones(64, np.float32)
BIG = np.ones(1 << 17, np.float32)  # large enough to be imported
PROGRAM = """func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.add %x, %x : tensor<64xf32>
  return %0 : tensor<64xf32>
}"""
Call: TypeAlias = Callable[[], object]
LEFT: list[pumice.Device | pumice.Session] = []
"""The program's own: Ctrl-C at the beginning of a ``with`` block's end keeps it from closing anything."""


def _check(value: npt.ArrayLike, expected: float) -> None:
    assert (np.asarray(value) == expected).all()


def _same(make: Callable[[pumice.Device], npt.ArrayLike]) -> Callable[[pumice.Device], Call]:
    """A call whose result is all ones."""
    return lambda device: lambda: _check(make(device), 1)


def _write(device: pumice.Device) -> Call:
    array = device.zeros(64)

    def call() -> None:
        array.copy_from(ONES)
        array[3:9] = 1
        array.map()[:] = 1
        _check(array.numpy(), 1)

    return call


def _kernel(array: Callable[[pumice.Device], Any]) -> Callable[[pumice.Device], Call]:
    def make(device: pumice.Device) -> Call:
        mul, values = device.load_kernel(shaders.path("mul")), [array(device) for _ in range(3)]
        return lambda: _check(_result(mul(*values)), 1)

    return make


def _result(results: Any) -> npt.ArrayLike:
    last = results[-1] if isinstance(results, (tuple, list)) else results
    return last if isinstance(last, np.ndarray) else last.numpy()


def _load(device: pumice.Device) -> Call:
    def call() -> None:
        with device.load_kernel(shaders.path("mul")) as mul:
            _check(_result(mul(ONES, ONES, ONES)), 1)

    return call


def _image(device: pumice.Device) -> Call:
    texels = np.full((16, 16, 4), 1, np.uint8)

    def call() -> None:
        with device.asimage(texels, mips=True) as image, device.sampler("linear", "repeat"):
            _check(image.numpy(), 1)

    return call


def _session(device: pumice.Device) -> Call:
    module = pumice.compile(PROGRAM, targets=("vulkan",))

    def call() -> None:
        session = pumice.Session(device)
        LEFT.append(session)
        with session:
            _check(session.lookup(session.load(module).name + ".main")(ONES).numpy(), 2)

    return call


def _function(device: pumice.Device) -> Call:
    session = pumice.Session(device)
    main = session.lookup(session.load(pumice.compile(PROGRAM, targets=("vulkan",))).name + ".main")
    array = device.asarray(ONES)

    def call() -> None:
        _check(main(ONES).numpy(), 2)
        _check(main(array).numpy(), 2)

    return call


def _reference(_: pumice.Device) -> Call:
    module = pumice.compile(PROGRAM, targets=("reference",))

    def call() -> None:
        session = pumice.Session(device="reference")
        LEFT.append(session)
        with session:
            _check(session.lookup(session.load(module).name + ".main")(ONES).numpy(), 2)

    return call


def _semaphore(device: pumice.Device) -> Call:
    def call() -> None:
        told = threading.Event()
        with device.vulkan.create_semaphore() as semaphore:
            semaphore.signal(1)
            semaphore.notify(2, lambda _: told.set())
            device.vulkan.compute_queue.barrier(signals=((semaphore, 2),))
            semaphore.wait(2, 20)
            assert told.wait(20) and semaphore.query() == 2

    return call


def _commands(device: pumice.Device) -> Call:
    array = device.zeros(64)

    def call() -> None:
        with device.vulkan.create_command_buffer(timing=True) as commands:
            commands.begin()
            commands.fill(array.buffer, b"\0")
            commands.execution_barrier()
            commands.update(array.buffer, ONES.tobytes())
            commands.end()
            device.vulkan.compute_queue.execute(commands)
            device.wait()
        _check(array.numpy(), 1)

    return call


def _open(_: pumice.Device) -> Call:
    def call() -> None:
        device = pumice.open_device(validation=False, persistent_cache=False)
        LEFT.append(device)
        with device:
            _check(device.asarray(ONES).numpy(), 1)

    return call


CALLS: dict[str, Callable[[pumice.Device], Call]] = {
    "asarray": _same(lambda device: device.asarray(ONES).numpy()),
    "astype": _same(lambda device: device.asarray(ONES).astype(np.int32).copy().numpy()),
    "calibrate": lambda device: device.vulkan.calibrate,
    "commands": _commands,
    "function": _function,
    "image": _image,
    "kernel of arrays": _kernel(lambda device: device.asarray(ONES)),
    "kernel of large arrays": _kernel(lambda device: BIG.copy()),
    "kernel of numpy": _kernel(lambda device: ONES.copy()),
    "load": _load,
    "open": _open,
    "reference": _reference,
    "semaphore": _semaphore,
    "session": _session,
    "texels": _same(lambda device: device.texel_buffer(ONES.reshape(16, 4)).array.numpy()),
    "trim": lambda device: device.vulkan.trim,
    "write": _write,
}
ROOT = str(Path(pumice.__file__).parent)


def _is_traced(path: str) -> bool:
    return path.startswith(ROOT) and "/tests/" not in path


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.timeout(0 if SOAK else 180)
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_any_point_of_a_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind, no finaliser raises, and the same call then returns what it should."""
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    def opened() -> pumice.Device:
        return pumice.open_device(validation=False, persistent_cache=False)

    with opened() as device:
        call = CALLS[name](device)
        call()  # what it imports and caches has no points
        numbers = points(call, _is_traced, rounds(6, 3000))
        del call
    gc.collect()
    finish_teardowns()
    before = live_objects()
    for number in numbers:
        device = opened()
        call = CALLS[name](device)
        try:
            was_swallowed = interrupt_at(number, call, _is_traced)
        except KeyboardInterrupt:
            was_swallowed = False
        # What a finaliser raises, Python reports and drops; it does so with Ctrl-C in one, too.
        raised = [entry.exc_type for entry in unraisable]
        assert raised == [KeyboardInterrupt] * was_swallowed, (number, raised)
        unraisable.clear()
        call()
        del call
        while LEFT:
            LEFT.pop().close()
        device.close()
        gc.collect()
        finish_teardowns()
        assert live_objects() == before, number
        assert not unraisable, number
