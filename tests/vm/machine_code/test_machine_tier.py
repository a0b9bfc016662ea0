"""Functions as machine code do what their translation does: results, errors with their places, depth, interruptions."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.vm import random_programs
from support.vm.machine_code import forced, has_machine_code, kept_off, outcome

from pumice.status import DeadlineExceededError
from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution import machine_tier
from pumice.vm.machine_code.llvm import compiler
from pumice.vm.types.buffer import VmBuffer

# extensions.vmasm imports the HAL.
ASSEMBLY = sorted((Path(__file__).parents[1] / "assembly").glob("[!e]*.vmasm"))
PROGRAM = """
vm.module @m version 0
vm.type !vm.buffer
vm.export @sum
vm.func @sum(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 0
  %i3 = vm.const.i32 0
  vm.br ^bb1()
^bb1:
  %i4 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i4, ^bb2(), ^bb3()
^bb2:
  %i3 = vm.add.i32 %i3, %i2
  %i2 = vm.add.i32 %i2, %i1
  vm.br ^bb1()
^bb3:
  vm.return %i3
}
vm.export @fibonacci
vm.func @fibonacci(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.const.i32 2
  %i2 = vm.cmp.lt.i32.s %i0, %i1
  vm.cond_br %i2, ^bb1(), ^bb2()
^bb1:
  vm.return %i0
^bb2:
  %i3 = vm.const.i32 1
  %i4 = vm.sub.i32 %i0, %i3
  %i5 = vm.call @fibonacci(%i4)
  %i4 = vm.sub.i32 %i0, %i1
  %i6 = vm.call @fibonacci(%i4)
  %i5 = vm.add.i32 %i5, %i6
  vm.return %i5
}
vm.export @down
vm.func @down(%i0: i32) -> (i32) {
^bb0:
  vm.cond_br %i0, ^bb2(), ^bb1()
^bb1:
  %i1 = vm.const.i32 1
  %i2 = vm.div.i32.s %i1, %i0
  vm.return %i2
^bb2:
  %i1 = vm.const.i32 1
  %i2 = vm.sub.i32 %i0, %i1
  %i3 = vm.call @down(%i2)
  vm.return %i3
}
vm.func @store(%r0: !vm.buffer, %i0:1: i64) -> (i32) {
^bb0:
  %i2 = vm.const.i32 7
  vm.buffer.store.i32 %i2, %r0, %i0:1
  %i3 = vm.buffer.load.i32 %r0, %i0:1
  vm.return %i3
}
vm.export @fill
vm.func @fill(%r0: !vm.buffer, %i0:1: i64) -> (i32) {
^bb0:
  %i2:3 = vm.const.i64 0
  %i4:5 = vm.const.i64 1
  %i8 = vm.const.i32 0
  vm.br ^bb1()
^bb1:
  %i6 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i6, ^bb2(), ^bb3()
^bb2:
  %i7 = vm.call @store(%r0, %i2:3)
  %i8 = vm.add.i32 %i8, %i7
  %i2:3 = vm.add.i64 %i2:3, %i4:5
  vm.br ^bb1()
^bb3:
  vm.return %i8
}
vm.export @allocate_and_fill
vm.func @allocate_and_fill(%i0:1: i64) -> (i32, !vm.buffer) {
^bb0:
  %i2 = vm.const.i32 16
  %i4:5 = vm.const.i64 4
  %i6:7 = vm.mul.i64 %i0:1, %i4:5
  %r0 = vm.buffer.alloc %i6:7, %i2
  %i3 = vm.call @fill(%r0, %i0:1)
  vm.return %i3, %r0
}
vm.export @allocate_often
vm.func @allocate_often(%i0: i32) -> (i32) {
^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 20
  %i3 = vm.const.i32 0
  %i4 = vm.const.i32 0
  %i10:11 = vm.const.i64 4
  vm.br ^bb1()
^bb1:
  %r0 = vm.buffer.alloc %i10:11, %i1
  %i5 = vm.const.i32 0
  vm.br ^bb2()
^bb2:
  %i4 = vm.add.i32 %i4, %i1
  %i5 = vm.add.i32 %i5, %i1
  %i6 = vm.cmp.lt.i32.s %i5, %i2
  vm.cond_br %i6, ^bb2(), ^bb3()
^bb3:
  %i3 = vm.add.i32 %i3, %i1
  %i6 = vm.cmp.lt.i32.s %i3, %i0
  vm.cond_br %i6, ^bb1(), ^bb4()
^bb4:
  vm.return %i4
}
vm.export @for_ever
vm.func @for_ever(%i0: i32) -> (i32) {
^bb0:
  vm.br ^bb1()
^bb1:
  %i0 = vm.add.i32 %i0, %i0
  vm.br ^bb1()
}
"""


@pytest.fixture
def module() -> BytecodeModule:
    return BytecodeModule(assemble(PROGRAM))


def _calls(path: Path) -> list[str]:
    return re.findall(r"^vm\.func @(\w+)\(\)", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", ASSEMBLY, ids=lambda path: path.stem)
def test_the_assembly_tests_end_alike(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    module = BytecodeModule(assemble(text))
    names = [name for name in _calls(path) if name in module.exports]
    assert names
    for name in names:
        with kept_off():
            expected = outcome(module, f"{module.name}.{name}")
        with forced(fuel=3):
            assert outcome(module, f"{module.name}.{name}") == expected, name


@pytest.mark.sample(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "graph, fuel, host_stack", [("structured", machine_tier.FUEL, machine_tier.HOST_STACK), ("random", 40, 4000)]
)
@pytest.mark.parametrize("slots", ["typed", "reused", "mixed"])
def test_random_programs_end_alike(slots: str, graph: str, fuel: int, host_stack: int) -> None:
    shape = random_programs.Shape(slots=slots, graph=graph, size=14, yields=fuel == 40, functions=4)
    module = BytecodeModule(assemble(random_programs.random_program(1, shape)))
    with kept_off():
        expected = outcome(module, "random.main")
    with forced(fuel=fuel, host_stack=host_stack):
        assert outcome(BytecodeModule(module.definition), "random.main") == expected


# ------------------------------------------------------------------------------------------------- getting hot


def test_one_long_call_of_a_loop_becomes_machine_code(module: BytecodeModule) -> None:
    pytest.importorskip("llvmlite", reason="the second tier needs the `jit` extra")
    assert compiler(wait=True) is not None
    with Context([module]) as context:
        function = context.lookup("m.sum")
        assert context.invoke(function, (1000,)) == 499500
        assert not has_machine_code(context, "m.sum")
        assert context.invoke(function, (1_000_000,)) == 1783293664
        assert has_machine_code(context, "m.sum")


def test_a_function_that_calls_itself_becomes_machine_code(module: BytecodeModule) -> None:
    pytest.importorskip("llvmlite", reason="the second tier needs the `jit` extra")
    assert compiler(wait=True) is not None
    with Context([module]) as context:
        assert context.invoke(context.lookup("m.fibonacci"), (21,)) == 10946
        assert has_machine_code(context, "m.fibonacci")


def test_without_llvmlite_everything_is_translated(module: BytecodeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.vm.execution.bytecode_module.is_available", lambda: False)
    assert "tier" not in module.translation(module.exports["sum"]).source_text()
    with Context([module]) as context:
        assert context.invoke(context.lookup("m.sum"), (100_000,)) == 704982704


def test_a_loop_behind_what_machine_code_has_not(module: BytecodeModule) -> None:
    with forced(fuel=100), Context([module]) as context:
        total, buffer = context.invoke(context.lookup("m.allocate_and_fill"), (1000,))
        assert total == 7000
        assert isinstance(buffer, VmBuffer) and list(buffer.as_memoryview().cast("i")) == [7] * 1000


def test_loops_with_little_to_do_are_entered_rarely(module: BytecodeModule, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("llvmlite", reason="the second tier needs the `jit` extra")
    assert compiler(wait=True) is not None
    runs = 0
    run = machine_tier.MachineTier._run

    def counted(self: machine_tier.MachineTier, *values: object, **options: bool) -> object:
        nonlocal runs
        runs += 1
        return run(self, *values, **options)

    monkeypatch.setattr(machine_tier.MachineTier, "_run", counted)
    with Context([module]) as context:
        assert context.invoke(context.lookup("m.allocate_often"), (5000,)) == 100_000
        assert has_machine_code(context, "m.allocate_often")
    assert 2 <= runs <= 30


# --------------------------------------------------------------------------------------------------- failing


@pytest.mark.parametrize("fuel", [machine_tier.FUEL, 100])
@pytest.mark.parametrize("length, count, writable", [(40, 11, True), (0, 1, True), (40, 10, False)])
def test_stores_outside_of_a_buffer_fail_alike(
    module: BytecodeModule, length: int, count: int, writable: bool, fuel: int
) -> None:
    buffer = VmBuffer.wrap(bytearray(length), writable=writable)
    with kept_off():
        expected = outcome(module, "m.fill", (buffer, count))
    with forced(fuel=fuel):
        found = outcome(module, "m.fill", (buffer, count))
    assert found == expected
    assert isinstance(found, tuple) and "called from m.fill pc" in found[3][0]


@pytest.mark.parametrize("value", [None, "a text", VmBuffer.allocate(4)])
def test_references_that_are_no_buffers_of_that_length_fail_alike(module: BytecodeModule, value: object) -> None:
    with kept_off():
        expected = outcome(module, "m.fill", (value, 5))
    with forced():
        assert outcome(module, "m.fill", (value, 5)) == expected


@pytest.mark.parametrize("host_stack", [machine_tier.HOST_STACK, 1000])
@pytest.mark.parametrize("depth", [0, 3, 48, 49, 50, 51, 1000])
def test_calls_may_be_as_deep_as_they_may(module: BytecodeModule, depth: int, host_stack: int) -> None:
    with kept_off():
        expected = outcome(module, "m.down", (depth,), max_stack_depth=50)
    with forced(host_stack=host_stack):
        assert outcome(module, "m.down", (depth,), max_stack_depth=50) == expected


@pytest.mark.slow
def test_deep_recursion_takes_no_more_of_the_hosts_stack_than_it_may(module: BytecodeModule) -> None:
    with forced():
        found = outcome(module, "m.down", (100_000,), max_stack_depth=200_000)
    assert isinstance(found, tuple) and "divisor" in found[1]


# ----------------------------------------------------------------------------------------------- interruptions


@pytest.mark.parametrize("name, argument", [("for_ever", 1), ("fibonacci", 60)])
def test_a_deadline_ends_machine_code(module: BytecodeModule, name: str, argument: int) -> None:
    with forced(), Context([module]) as context:
        function = context.lookup(f"m.{name}")
        for _ in range(3):
            begin = time.process_time()
            with pytest.raises(DeadlineExceededError):
                context.invoke(function, (argument,), timeout=0.02)
            assert time.process_time() - begin < 2  # figures are in benchmarks/vm_loop.py
        assert context.invoke(context.lookup("m.sum"), (10,)) == 45


def test_ctrl_c_ends_machine_code(module: BytecodeModule) -> None:
    with forced(), Context([module]) as context:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            context.invoke(context.lookup("m.for_ever"), (1,))
        timer.join()
        assert context.invoke(context.lookup("m.sum"), (10,)) == 45


@pytest.mark.slow
def test_other_threads_run_meanwhile(module: BytecodeModule) -> None:
    turns = 0

    def count(until: float) -> None:
        nonlocal turns
        while time.monotonic() < until:
            turns += 1
            time.sleep(0.001)

    with forced(), Context([module]) as context:
        thread = threading.Thread(target=count, args=(time.monotonic() + 0.3,))
        thread.start()
        with pytest.raises(DeadlineExceededError):
            context.invoke(context.lookup("m.for_ever"), (1,), timeout=0.3)
        thread.join()
    assert turns >= 3


@pytest.mark.slow
def test_threads_of_one_context_share_machine_code(module: BytecodeModule) -> None:
    def work() -> None:
        for _ in range(3):
            buffer = VmBuffer.allocate(4 * 2000)
            assert context.invoke(context.lookup("m.fill"), (buffer, 2000)) == 14000
            assert set(buffer.as_memoryview().cast("i")) == {7}
            assert context.invoke(context.lookup("m.fibonacci"), (12,)) == 144

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(5):
            fresh = BytecodeModule(module.definition)
            with forced(fuel=1000), Context([fresh], concurrent=True) as context, ThreadPoolExecutor(5) as pool:
                for done in [pool.submit(work) for _ in range(5)]:
                    done.result()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.slow
def test_buffers_are_dropped_after_a_run(module: BytecodeModule) -> None:
    class Bytes(bytearray):
        """Bytes with a weak reference."""

    data = Bytes(40)
    alive = weakref.ref(data)
    buffer = VmBuffer.wrap(data)
    with forced(), Context([module]) as context:
        assert context.invoke(context.lookup("m.fill"), (buffer, 10)) == 70
        del data, buffer
        gc.collect()
        assert alive() is None


# --------------------------------------------------------------------------------------------------- the cache


def test_machine_code_is_kept_and_what_was_changed_is_not_believed(
    module: BytecodeModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path))
    made: list[str] = []
    with forced():
        llvm = compiler(wait=True)
        assert llvm is not None
        make = llvm.object_code
        monkeypatch.setattr(llvm, "object_code", lambda text: made.append(text) or make(text))
        for expected in (1, 1):  # the second time from disk
            assert outcome(BytecodeModule(module.definition), "m.sum", (10,)) == "45"
            assert len(made) == expected
        (entry,) = [path for path in (tmp_path / "entries-2" / "machine-code").rglob("*") if path.is_file()]
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(data)
        assert outcome(BytecodeModule(module.definition), "m.sum", (10,)) == "45"
        assert len(made) == 2
