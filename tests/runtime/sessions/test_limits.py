"""Limits for programs of strangers: device memory, host memory and time, however the program is called."""

from __future__ import annotations

import asyncio
import gc
import time

import numpy as np
import pytest
from support.runtime.sessions import module

import pumice
from pumice.base.memory_budget import MemoryBudget
from pumice.status import DeadlineExceededError, InvalidArgumentError, ResourceExhaustedError
from pumice.vm.types.buffer import VmBuffer
from pumice.vm.types.host_memory import budgets

GREEDY = """
vm.type !vm.buffer
vm.type !vm.list<i32>
vm.export @buffer
vm.func @buffer(%i0:1: i64) -> (!vm.buffer) {
^bb0:
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.return %r0
}
vm.export @list
vm.func @list(%i0: i32) -> (i32) {
^bb0:
  %r0 = vm.list.alloc %i0 : !vm.list<i32>
  vm.list.resize %r0, %i0
  %i1 = vm.list.size %r0
  vm.return %i1
}
vm.export @often
vm.func @often(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 16
  %i3 = vm.const.i32 0
  %i4:5 = vm.const.i64 100000
  vm.br ^bb1()
^bb1:
  %r0 = vm.buffer.alloc %i4:5, %i2
  %i3 = vm.add.i32 %i3, %i1
  %i6 = vm.cmp.lt.i32.s %i3, %i0
  vm.cond_br %i6, ^bb1(), ^bb2()
^bb2:
  vm.return %i3
}
vm.export @spin
vm.func @spin() -> () {
^bb0:
  vm.br ^bb0()
}
"""
ENDLESS_START = """
vm.export @__init
vm.func @__init() -> () {
^bb0:
  vm.br ^bb0()
}
"""
LIMITED = pumice.SessionOptions(max_host_memory=1 << 20)
DOUBLE = """
func.func @main(%x: tensor<65536xf32>) -> tensor<65536xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<65536xf32>
  %1 = stablehlo.add %0, %x : tensor<65536xf32>
  return %1 : tensor<65536xf32>
}
"""


@pytest.fixture
def greedy() -> pumice.Session:
    session = pumice.Session(device="reference", options=LIMITED)
    session.append_module(module(GREEDY))
    return session


# -- host memory -------------------------------------------------------------------------------------


def test_buffers_and_lists_are_counted_while_they_are_held(greedy: pumice.Session) -> None:
    with greedy as session:
        held = session.call("program.buffer", 600_000)
        with pytest.raises(ResourceExhaustedError, match=r"past its limit of 1048576 bytes; raise .*max_host_memory"):
            session.call("program.buffer", 600_000)
        with pytest.raises(ResourceExhaustedError, match="host memory"):
            session.call("program.list", 20_000)
        assert session.call("program.list", 5_000) == 5_000
        del held
        for _ in range(3):  # and what is dropped is given back, also by calls that failed
            session.call("program.buffer", 600_000)
        assert session.call("program.often", 1000) == 1000
        assert session.context.host_memory is not None and session.context.host_memory.used < 2000
    assert not budgets


def test_other_sessions_and_the_host_are_not_counted(greedy: pumice.Session) -> None:
    with greedy, pumice.Session(device="reference") as other:
        other.append_module(module(GREEDY))
        kept = [VmBuffer.allocate(1 << 21), other.call("program.buffer", 1 << 21)]
        assert other.call("program.list", 100_000) == 100_000
        assert greedy.call("program.buffer", 900_000).length == 900_000
        del kept


def test_a_limit_holds_in_every_way_to_call(greedy: pumice.Session) -> None:
    with greedy as session:
        function = session.lookup("program.buffer")
        with pytest.raises(ResourceExhaustedError, match="host memory"):
            session.submit("program.buffer", 2_000_000).result(10)
        with pytest.raises(ResourceExhaustedError, match="host memory"):
            asyncio.run(session.call_async("program.buffer", 2_000_000))
        with pytest.raises(ResourceExhaustedError, match="host memory"):
            session.call_direct(function, (2_000_000,))
        with pytest.raises(ResourceExhaustedError, match="host memory"):
            session.call(function, 2_000_000, timeout=10)
    assert not budgets


def test_globals_are_counted() -> None:
    text = "".join(f"vm.global.i64 private mutable @g{number} = 0 : i64\n" for number in range(200))
    program = text + "vm.export @nothing\nvm.func @nothing() -> () {\n^bb0:\n  vm.return\n}\n"
    with pumice.Session(device="reference", options=pumice.SessionOptions(max_host_memory=1000)) as session:
        with pytest.raises(ResourceExhaustedError, match="host memory"):
            session.append_module(module(program))
        session.append_module(module(GREEDY))


def test_shares_grow_and_are_given_back() -> None:
    budget = MemoryBudget(1000, "host memory", "a limit")
    share = budget.share(900)
    with pytest.raises(ResourceExhaustedError, match="holds 900 bytes of host memory and asks for 200 more"):
        budget.share(200)
    share.resize(100)
    other = budget.share(900)
    assert budget.used == 1000
    del share, other
    assert budget.used == 0


def test_what_only_holds_itself_is_collected_before_a_program_is_refused() -> None:
    budget = MemoryBudget(1000, "host memory", "a limit")
    gc.disable()
    try:
        circle: list[object] = [budget.share(900)]
        circle.append(circle)
        del circle
        assert budget.share(900).size == 900
    finally:
        gc.enable()


# -- device memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [pytest.param(None, marks=pytest.mark.vulkan), "reference"])
def test_device_memory_is_counted_while_it_is_held(device: str | None) -> None:
    program = pumice.compile(DOUBLE, targets=("vulkan", "reference"))
    x = np.arange(65536, dtype=np.float32)
    options = pumice.SessionOptions(max_memory=1_200_000)  # of 262,144 bytes: an argument, a transient, results
    with pumice.Session(device=device, options=options) as session:
        session.load(program)
        held = []
        with pytest.raises(ResourceExhaustedError, match=r"device memory.*SessionOptions.max_memory"):
            for _ in range(6):
                held.append(session.call("module.main", x))
        assert 1 <= len(held) <= 4
        np.testing.assert_array_equal(held[0].numpy(), x[::-1] + x)
        held.clear()
        for _ in range(12):
            np.testing.assert_array_equal(session.call("module.main", x).numpy(), x[::-1] + x)
    with pumice.Session(device=device, options=pumice.SessionOptions(max_memory=1000)) as session:
        session.load(program)
        with pytest.raises(ResourceExhaustedError, match="past its limit of 1000 bytes"):
            session.call("module.main", x)


# -- time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [None, 60])
def test_calls_end_by_the_longest_time(timeout: float | None) -> None:
    with pumice.Session(device="reference", options=pumice.SessionOptions(max_time=0.2)) as session:
        session.append_module(module(GREEDY))
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError, match="its timeout of 0.2 s"):
            session.call("program.spin", timeout=timeout)
        with pytest.raises(DeadlineExceededError):
            session.submit("program.spin", timeout=timeout).result(30)
        with pytest.raises(DeadlineExceededError):
            asyncio.run(session.call_async("program.spin", timeout=timeout))
        with pytest.raises(DeadlineExceededError, match="its timeout of 0.05 s"):
            session.call("program.spin", timeout=0.05)
        assert time.monotonic() - began < 20
        assert session.call("program.list", 3) == 3


def test_initializers_end_by_the_longest_time() -> None:
    with (
        pumice.Session(device="reference", options=pumice.SessionOptions(max_time=0.2)) as session,
        pytest.raises(DeadlineExceededError),
    ):
        session.append_module(module(ENDLESS_START))


# -- options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_memory": -1}, "max_memory is a number of bytes or None, got -1"),
        ({"max_host_memory": 1.5}, "max_host_memory is a number of bytes or None, got 1.5"),
        ({"max_memory": True}, "max_memory is a number of bytes"),
        ({"max_time": 0}, "max_time is a number of seconds above 0 or None, got 0"),
        ({"max_time": "long"}, "number of seconds"),
    ],
)
def test_wrong_limits_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        pumice.SessionOptions(**options)  # type: ignore[arg-type]
