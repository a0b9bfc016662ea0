"""For tests of asynchronous calls: event loops, a module that waits when told to, checks for leftovers."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from support.runtime.sessions import ASYNC, COUNTER, function, module
from support.vm.contexts import is_idle as is_idle_context

import pumice
from pumice.vm.native.module import NativeModule

T = TypeVar("T")
LONG = 60.0  # seconds after which what should have come will not


def run_on(kind: str, main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end on a loop of asyncio's or uvloop's."""
    factory = None if kind == "asyncio" else pytest.importorskip("uvloop").new_event_loop

    async def limited() -> T:
        async with asyncio.timeout(LONG):
            return await main

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(limited())


async def until(condition: Callable[[], bool]) -> None:
    """Gives the loop away until a condition holds that some other thread brings about."""
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, "did not happen"
        await asyncio.sleep(0.001)


class Host:
    """The module ``host``: ``gated(i)`` returns i after ``open(i)`` or ``open_all()``; counts those waiting."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.now = 0
        self.most = 0
        self.closed = 0
        self._gates: dict[int, pumice.Event] = {}
        self._all = False
        self._lock = threading.Lock()
        self.stop_at = 0.0
        self.module = NativeModule("host")
        self.module.function("gated", "0i_i")(self._gated)
        self.module.function("fails", "0i_i")(self._fails)
        self.module.function("go_on", "0v_i")(lambda: int(time.monotonic() < self.stop_at))

    def _gate(self, index: int) -> pumice.Event:
        with self._lock:
            gate = self._gates.setdefault(index, pumice.Event())
            if self._all:
                gate.set()
            return gate

    def open(self, index: int) -> None:
        self._gate(index).set()

    def open_all(self) -> None:
        with self._lock:
            self._all = True
            gates = list(self._gates.values())
        for gate in gates:
            gate.set()

    def close_all(self) -> None:
        with self._lock:
            self._all = False
            self._gates.clear()

    async def _gated(self, index: int) -> int:
        self.begun.append(index)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self._gate(index)
            return index
        finally:
            self.now -= 1
            self.closed += 1

    def _fails(self, index: int) -> int:
        raise ValueError(f"no {index}")


LOOPS = (
    'vm.import @host.go_on cconv "0v_i"\n'
    + function("forever", "", "  vm.br ^bb1()\n^bb1:\n  vm.br ^bb1()", "", "")
    # Ten thousand rounds in the VM between two looks at the clock.
    + function(
        "busy",
        "",
        """  %i0 = vm.const.i32 10000
  %i3 = vm.const.i32 1
  vm.br ^bb1()
^bb1:
  %i1 = vm.const.i32.zero
  vm.br ^bb2()
^bb2:
  %i1 = vm.add.i32 %i1, %i3
  %i2 = vm.cmp.lt.i32.s %i1, %i0
  vm.cond_br %i2, ^bb2(), ^bb3()
^bb3:
  %i2 = vm.call @host.go_on()
  vm.cond_br %i2, ^bb1(), ^bb4()
^bb4:
  vm.return %i1""",
        "",
        "i32",
    )
    + function(
        "both",
        "sync func @both(%x: tensor<4xf32>, %n: i32) -> (%n: i32, %x: tensor<4xf32>)",
        "  vm.return %i0, %r0",
        "%r0: !hal.buffer_view, %i0: i32",
        "i32, !hal.buffer_view",
    )
)


def load(session: pumice.Session) -> Host:
    """A host module, and the programs of these tests."""
    host = Host()
    session.append_module(host.module)
    session.append_module(module(ASYNC + COUNTER + LOOPS))
    return host


def is_idle(session: pumice.Session) -> bool:
    """Whether no invocation is left in a session's context."""
    return is_idle_context(session.context)


def objects(device: pumice.Device) -> dict[str, int]:
    """Native objects, without those that only Python's cycles or finished work keep."""
    gc.collect()
    device.hal.retire()
    return dict(pumice.live_objects())


async def leaves_nothing(device: pumice.Device, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a scenario three times: what the device keeps is there after two, and no more after the third."""
    await scenario()
    await scenario()
    before = objects(device)
    await scenario()
    end = time.monotonic() + LONG / 2
    while more := {
        kind: (before.get(kind, 0), count) for kind, count in objects(device).items() if count > before.get(kind, 0)
    }:
        assert time.monotonic() < end, f"native objects before and after: {more}"
        await asyncio.sleep(0.01)
