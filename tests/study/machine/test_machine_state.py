"""The machine's state: shares from counters, unavailable figures, and agreement with other counters."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from support.waiting import until

from pumice.base.child_process import ChildProcess
from pumice.study.machine import machine_state
from pumice.study.machine.machine_state import MachineState, _Counters, _shares
from pumice.study.workloads import thread_delays
from pumice.study.workloads.thread_delays import ThreadDelays, since

SHARES = ("steal", "others", "pressure", "run_delay")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="these counters are Linux'")


def test_a_state_has_shares_of_its_span_and_the_first_has_none() -> None:
    with MachineState() as state:
        first = state.read()
        time.sleep(0.15)
        second = state.read()
    assert "span_ns" not in first and (first["wake_ns"] or 0) > 0
    assert (second["span_ns"] or 0) >= 0.15e9 and (second["wake_p90_ns"] or 0) >= (second["wake_ns"] or 0) > 0
    assert all(second[name] is None or 0 <= (second[name] or 0) <= 1 for name in SHARES)
    assert second["load"] is not None


def test_what_is_not_told_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in a container without /proc/pressure, or on another operating system."""
    monkeypatch.setattr(machine_state, "_PRESSURE", tmp_path / "none")
    monkeypatch.setattr(thread_delays, "_PROC", tmp_path / "none")
    with MachineState() as state:
        time.sleep(0.12)
        reading = state.read()
    assert reading["pressure"] is None and reading["run_delay"] is None and reading["others"] is not None


@LINUX
def test_the_time_of_own_children_is_not_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children are the processes of sides, as ``ChildProcess`` counts them."""
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        monkeypatch.setattr(ChildProcess, "running", {child.pid})
        before = machine_state._own_time()
        began = sum(psutil.Process(child.pid).cpu_times()[:2])
        while (used := sum(psutil.Process(child.pid).cpu_times()[:2]) - began) < 0.1:
            time.sleep(0.05)
        after = machine_state._own_time()
    finally:
        child.kill()
        child.wait()
    monkeypatch.setattr(ChildProcess, "running", set())
    for own in (after, machine_state._own_time()):  # while it runs, and after it has ended
        assert own - before >= used - 0.03
        counters = [
            _Counters(now, {"user": used_by_all, "idle": idle}, None, own_time, {})
            for now, used_by_all, idle, own_time in ((0, 0.0, 0.0, before), (10**9, used, used, own))
        ]
        assert (_shares(*counters)["others"] or 0) < 0.05


@LINUX
def test_waiting_for_a_core_is_also_that_of_the_processes_that_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes of sides, which start and end during the measurement."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        try:
            monkeypatch.setattr(ChildProcess, "running", {child.pid})
            with MachineState() as state:
                before = state._delays.read()
                until(lambda: sum(psutil.Process(child.pid).cpu_times()[:2]) > 0.1)
                during = state._delays.read()
                monkeypatch.setattr(ChildProcess, "running", set())
                state._delays.refresh()
                after = state._delays.read()
        finally:
            child.kill()
    here, there = str(threading.get_native_id()), str(child.pid)
    assert {here, there} <= before.keys() and during[there][1] - before[there][1] > 50_000_000
    # This process is in all readings, so its earlier waits are in none of the differences.
    assert here in during and here in after and there not in after


@pytest.mark.slow
def test_a_child_is_known_while_it_runs() -> None:
    with ChildProcess("a side") as child:
        assert child.pid in ChildProcess.running
    assert child.pid not in ChildProcess.running


@pytest.mark.slow
@LINUX
def test_the_time_of_other_processes_is_that_which_they_have_used() -> None:
    with MachineState() as state:
        child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            time.sleep(0.8)
            used = sum(psutil.Process(child.pid).cpu_times()[:2])
            reading = state.read()
        finally:
            child.kill()
            child.wait()
    # The counter's unit is 10 ms; the machine's other processes add to it.
    share = (used - 0.05) / ((reading["span_ns"] or 0) / 1e9 * psutil.cpu_count())
    assert (reading["others"] or 0) >= share


@LINUX
def test_threads_ran_for_the_processor_time_of_the_process() -> None:
    with ThreadDelays() as delays:
        before, began = delays.read(), time.process_time_ns()
        while time.process_time_ns() - began < 50_000_000:
            pass
        times, used = since(before, delays.read()), time.process_time_ns() - began
    assert times is not None
    waited, ran = times
    assert ran == pytest.approx(used, rel=0.2) and waited >= 0


@LINUX
def test_new_threads_are_found_and_ended_ones_dropped() -> None:
    with ThreadDelays() as delays:
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        name = str(thread.native_id)
        assert name not in delays.read()
        delays.refresh()
        assert name in delays.read()
        done.set()
        thread.join()
        delays.refresh()
        assert name not in delays.read()
