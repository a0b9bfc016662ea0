"""Profiles of programs with a known number of dispatches and native functions that take a known time."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.runtime.sessions import function, module

import pumice
from pumice.hal_vulkan.submit.calibration import ClockCalibration
from pumice.runtime.profiling.clock import ClockRelation
from pumice.runtime.profiling.entry import ProfiledCall, ProfiledDispatch
from pumice.runtime.profiling.profile import Profile
from pumice.runtime.sessions.session_options import SessionOptions
from pumice.status import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.vmfb"
DISPATCHES = 5  # of one call; the last two have no barrier between them
IMAGE = np.zeros((1, 28, 28, 1), np.float32)
SLEEP = 0.003

SLEEPER = (
    'vm.import @planted.sleep cconv "0v_v"\nvm.import @planted.fail cconv "0v_v"\n'
    'vm.import @planted.again cconv "0v_v"\n'
    + function(
        "sleeps", "sync func @sleeps()", "  vm.call @planted.sleep()\n  vm.call @planted.sleep()\n  vm.return", "", ""
    )
    + function("fails", "sync func @fails()", "  vm.call @planted.fail()\n  vm.return", "", "")
    + function("nests", "sync func @nests()", "  vm.call @planted.again()\n  vm.return", "", "")
    + function("waits", "sync func @waits()", "  vm.call @planted.sleep()\n  vm.return", "", "")
)

vulkan = pytest.mark.vulkan


def sums(call: ProfiledCall) -> int:
    return call.arguments_ns + call.vm_ns + call.hal_ns + call.native_ns + call.waits_ns + call.results_ns


def dispatches(profile: Profile) -> list[ProfiledDispatch]:
    return [dispatch for dispatch in profile.dispatches if dispatch.kind == "dispatch"]


def planted(session: pumice.Session) -> pumice.NativeModule:
    made = pumice.NativeModule("planted")

    @made.function("sleep", "0v_v")
    def sleep() -> None:
        time.sleep(SLEEP)

    @made.function("fail", "0v_v")
    def fail() -> None:
        raise ValueError("planted")

    @made.function("again", "0v_v")
    def again() -> None:
        session.call("program.sleeps")

    return made


@pytest.fixture
def hosted() -> Iterator[pumice.Session]:
    """A session that needs no device."""
    with pumice.Session() as session:
        session.append_module(planted(session))
        session.append_module(module(SLEEPER))
        yield session


@pytest.fixture
def digits() -> Iterator[pumice.Session]:
    with pumice.open_device() as device, pumice.Session(device) as session:
        session.load(DIGITS)
        yield session


# -- the host ------------------------------------------------------------------------------------------


@pytest.mark.timing
def test_native_functions_that_take_long_are_in_their_share(hosted: pumice.Session) -> None:
    hosted.call("program.sleeps")  # translated
    with hosted.profile() as profile:
        hosted.call("program.sleeps")
    (call,) = profile.calls
    assert call.name == "program.sleeps"
    assert call.native_ns >= 2 * SLEEP * 1e9
    assert sums(call) == call.total_ns
    assert call.vm_ns < call.native_ns and not call.waits_ns and not call.hal_ns
    (native,) = profile.natives
    assert (native.name, native.count) == ("planted.sleep", 2)
    assert native.total_ns == call.native_ns


def test_calls_that_fail_are_kept(hosted: pumice.Session) -> None:
    with hosted.profile() as profile, pytest.raises(ValueError, match="planted"):
        hosted.call("program.fails")
    (call,) = profile.calls
    assert call.error == "ValueError" and call.is_finished
    assert sums(call) == call.total_ns


def test_calls_within_calls_are_part_of_the_native_function_that_made_them(hosted: pumice.Session) -> None:
    with hosted.profile() as profile:
        hosted.call("program.nests")
    outer, inner = profile.calls
    assert (outer.name, inner.name) == ("program.nests", "program.sleeps")
    assert sums(outer) == outer.total_ns and sums(inner) == inner.total_ns
    assert outer.native_ns >= inner.total_ns >= 2 * SLEEP * 1e9


def test_a_timeout_ends_up_in_the_profile(hosted: pumice.Session) -> None:
    with hosted.profile() as profile, pytest.raises(DeadlineExceededError):
        hosted.call("program.sleeps", timeout=SLEEP / 3)
    assert profile.calls[0].error == "DeadlineExceededError"


def test_nothing_is_left_in_the_way(hosted: pumice.Session) -> None:
    hosted.call("program.sleeps")
    state = hosted.context.module_state("program")
    before = list(state.imports)
    cells = [cell.cell_contents for record in state._functions.values() for cell in record.call_cells()]
    profile = hosted.profile()
    assert state.imports != before
    profile.stop()
    profile.stop()
    assert state.imports == before
    assert [cell.cell_contents for record in state._functions.values() for cell in record.call_cells()] == cells
    hosted.call("program.sleeps")
    assert profile.calls == ()


def test_modules_added_while_native_functions_are_not_timed_are_left_as_they_are() -> None:
    with pumice.Session() as session:
        session.append_module(planted(session))
        with session.profile() as profile:
            profile._sampling.phase = 1
            session.append_module(module(SLEEPER))
        session.call("program.sleeps")
    assert profile.natives == ()


def test_one_profile_at_a_time_and_figures_at_the_end(hosted: pumice.Session) -> None:
    with hosted.profile() as profile:
        with pytest.raises(FailedPreconditionError, match="profiled already"):
            hosted.profile()
        with pytest.raises(FailedPreconditionError, match="still running"):
            _ = profile.calls
    hosted.profile().stop()


@pytest.mark.parametrize("wrong", [-0.1, 2, "much", True])
def test_a_limit_that_is_none_is_refused(hosted: pumice.Session, wrong: object) -> None:
    with pytest.raises(InvalidArgumentError, match="most_slowdown"):
        hosted.profile(most_slowdown=wrong)  # type: ignore[arg-type]


def test_asynchronous_calls_wait_for_their_turns(hosted: pumice.Session) -> None:
    with hosted.profile() as profile:
        for record in [hosted.submit("program.waits") for _ in range(3)]:
            record.result()
    assert len(profile.calls) == 3
    assert all(sums(call) == call.total_ns and call.is_finished for call in profile.calls)
    assert all(call.native_ns >= SLEEP * 1e9 for call in profile.calls)
    assert max(call.waits_ns for call in profile.calls) >= SLEEP * 1e9


def test_concurrent_calls_of_several_threads_are_told_apart() -> None:
    with pumice.Session(options=SessionOptions(concurrent=True)) as session:
        session.append_module(planted(session))
        session.append_module(module(SLEEPER))
        with session.profile() as profile:
            threads = [threading.Thread(target=session.call, args=("program.sleeps",)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert len(profile.calls) == 4
    for call in profile.calls:
        assert call.native_ns >= 2 * SLEEP * 1e9 and sums(call) == call.total_ns


def test_a_session_that_is_closed_stops_its_profile() -> None:
    session = pumice.Session()
    profile = session.profile()
    session.close()
    assert not profile.is_running


# -- the device ----------------------------------------------------------------------------------------


@vulkan
def test_every_dispatch_is_there_with_its_workgroups_and_source(digits: pumice.Session) -> None:
    expected = digits.call("module.classify", IMAGE)
    with digits.profile(most_slowdown=None) as profile:
        for _ in range(12):
            results = digits.call("module.classify", IMAGE)
    np.testing.assert_array_equal(results[0], expected[0])
    result = dispatches(profile)
    assert len(result) == 12 * DISPATCHES
    assert [record.call for record in result] == [call for call in range(12) for _ in range(DISPATCHES)]
    assert result[0].workgroups == (72, 1, 1)
    assert all(record.location is not None and record.location.startswith("<stdin>:") for record in result)
    assert {record.stage for record in result} == {"COMPUTE_SHADER"}
    assert len(profile.exports) == DISPATCHES
    assert all(record.count == record.timed == 12 for record in profile.exports)
    assert all(call.dispatches == DISPATCHES and sums(call) == call.total_ns for call in profile.calls)
    assert {record.name for record in profile.natives} >= {"hal.device.queue.execute.indirect", "hal.fence.await"}


@vulkan
def test_dispatches_that_report_faults_are_timed() -> None:
    with pumice.open_device(sanitize=True) as device, pumice.Session(device) as session:
        session.load(DIGITS)
        expected = session.call("module.classify", IMAGE)
        with session.profile(most_slowdown=None) as profile:
            results = session.call("module.classify", IMAGE)
        np.testing.assert_array_equal(results[0], expected[0])
    assert len(dispatches(profile)) == DISPATCHES


@vulkan
def test_dispatches_lie_within_their_calls_and_in_order(digits: pumice.Session) -> None:
    with digits.profile(most_slowdown=None) as profile:
        for _ in range(5):
            digits.call("module.classify", IMAGE)
    (clock,) = profile.clocks
    last = 0.0
    for record in dispatches(profile):
        assert record.call is not None and record.begin_ns is not None and record.end_ns is not None
        call = profile.calls[record.call]
        slack = clock.deviation_ns + 1
        assert call.begin_ns - slack <= record.submit_ns <= record.begin_ns + slack
        assert last <= record.begin_ns + slack and record.begin_ns <= record.end_ns <= call.end_ns + slack
        assert record.duration_ns == pytest.approx(record.end_ns - record.begin_ns, abs=2 * slack)
        last = record.begin_ns


@vulkan
def test_overlapping_dispatches_are_not_taken_for_serial_ones(digits: pumice.Session) -> None:
    with digits.profile(most_slowdown=None) as profile:
        digits.call("module.classify", IMAGE)
    assert [dispatch.barrier for dispatch in dispatches(profile)] == [True, True, True, True, False]
    assert [dispatch.overlapping for dispatch in dispatches(profile)] == [False, False, False, True, True]
    together = [dispatch for dispatch in profile.exports if dispatch.overlapping]
    assert len(together) == 2
    assert all(dispatch.median_ns is None and dispatch.span_ns > 0 for dispatch in together)
    assert together[0].span_ns == together[1].span_ns


@vulkan
def test_what_was_recorded_before_serves_again_afterwards(digits: pumice.Session) -> None:
    digits.call("module.classify", IMAGE)
    for _ in range(3):
        with digits.profile(most_slowdown=None) as profile:
            digits.call("module.classify", IMAGE)
        digits.call("module.classify", IMAGE)
        assert len(dispatches(profile)) == DISPATCHES


@pytest.mark.timing
@vulkan
def test_a_limit_on_the_slowdown_still_counts_every_dispatch(digits: pumice.Session) -> None:
    with digits.profile(most_slowdown=0.0) as profile:
        for record in profile._devices:
            record.timed._spent_ns = math.inf
        for _ in range(20):
            digits.call("module.classify", IMAGE)
    assert all(record.count == 20 and 1 <= record.timed < 20 for record in profile.exports)
    assert all(record.total_ns is not None and record.total_ns > record.busy_ns for record in profile.exports)
    assert profile.calls[-1].device_ns is None and profile.calls[-1].dispatches == DISPATCHES


@vulkan
def test_calls_in_flight_at_once_have_recordings_each(digits: pumice.Session) -> None:
    predict = digits.lookup("module.classify")

    async def stream() -> int:
        return sum([1 async for _ in predict.stream([IMAGE] * 20, depth=6)])

    with digits.profile(most_slowdown=None) as profile:
        assert asyncio.run(stream()) == 20
    assert len(dispatches(profile)) == 20 * DISPATCHES
    assert all(record.begin_ns is not None for record in profile.dispatches)
    assert all(sums(call) == call.total_ns for call in profile.calls)


@vulkan
def test_sessions_of_one_device_have_profiles_of_their_own() -> None:
    with pumice.open_device() as device, pumice.Session(device) as record, pumice.Session(device) as other:
        for session in (record, other):
            session.load(DIGITS)
        with record.profile(most_slowdown=None) as profile:
            record.call("module.classify", IMAGE)
            other.call("module.classify", IMAGE)
    assert len(profile.calls) == 1 and len(dispatches(profile)) == DISPATCHES


@vulkan
def test_a_module_loaded_under_a_profile_is_in_it() -> None:
    with (
        pumice.open_device() as device,
        pumice.Session(device) as session,
        session.profile(most_slowdown=None) as profile,
    ):
        session.load(DIGITS)
        session.call("module.classify", IMAGE)
        profile.stop()
        assert len(dispatches(profile)) == DISPATCHES
        assert all(dispatch.call == 0 for dispatch in dispatches(profile))


@vulkan
def test_work_that_could_not_be_timed_from_inside_is_a_span(digits: pumice.Session) -> None:
    from pumice.hal_vulkan.programs.command_buffer import ProgramCommandBuffer
    from pumice.runtime.modules.hal.module import HalState

    state = digits.context.module_state("hal")
    assert isinstance(state, HalState)
    (device_context,) = state.contexts.values()
    target = device_context.device.create_buffer(64)
    commands = ProgramCommandBuffer(device_context.device.command_context, one_shot=False, name="before")
    commands.begin()
    commands.fill(target, b"\7")
    commands.end()
    with digits.profile(most_slowdown=None) as profile:
        for _ in range(3):
            device_context.submit((commands,), None, None)
    commands.close()
    target.close()
    spans = [dispatch for dispatch in profile.dispatches if dispatch.kind == "span"]
    assert [dispatch.name for dispatch in spans] == ["before"] * 3
    assert all(
        dispatch.begin_ns is not None and dispatch.end_ns is not None and dispatch.end_ns >= dispatch.begin_ns
        for dispatch in spans
    )


@vulkan
def test_the_forms_of_a_profile(digits: pumice.Session, tmp_path: Path) -> None:
    with digits.profile(most_slowdown=None) as profile:
        digits.call("module.classify", IMAGE)
        assert profile._repr_html_() is None  # while it runs, notebooks show its plain text
    shown = profile._repr_html_()
    assert shown is not None and all(record.name in shown for record in [*profile.exports, *profile.calls])
    text = str(profile)
    assert "classify_dispatch_0" in text and "hal.fence.await" in text and "clock of" in text
    profile.write_json(tmp_path / "profile.json")
    read = json.loads((tmp_path / "profile.json").read_text())
    assert read == json.loads(json.dumps(profile.as_dict()))
    assert len(read["dispatches"]) == len(profile.dispatches) and read["clocks"][0]["calibrated"] in (True, False)


@vulkan
def test_a_trace_lines_up(digits: pumice.Session, tmp_path: Path) -> None:
    trace_pb2 = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs the study extra")
    with digits.profile(most_slowdown=None) as profile:
        for _ in range(2):
            digits.call("module.classify", IMAGE)
    profile.write_perfetto(tmp_path / "profile.pftrace")
    trace = trace_pb2.Trace()
    trace.ParseFromString((tmp_path / "profile.pftrace").read_bytes())
    slices: list[tuple[str, str, int, int, dict[str, str]]] = []
    starts: dict[int, tuple[str, int]] = {}
    arrows: dict[int, int] = {}
    open_: dict[int, list[tuple[str, str, int, dict[str, str]]]] = {}
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        stack = open_.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_BEGIN:
            arguments = {one.name: one.string_value or str(one.int_value) for one in event.debug_annotations}
            stack.append((event.categories[0], event.name, packet.timestamp, arguments))
            starts |= dict.fromkeys(event.flow_ids, (event.name, packet.timestamp))
            arrows |= dict.fromkeys(event.terminating_flow_ids, packet.timestamp)
        else:
            category, name, begin, arguments = stack.pop()
            assert begin <= packet.timestamp
            slices.append((category, name, begin, packet.timestamp, arguments))
    assert not any(open_.values())
    calls = {arguments["call"]: (begin, end) for kind, _, begin, end, arguments in slices if kind == "call"}
    ran = [one for one in slices if one[0] == "dispatch"]
    assert len(calls) == 2 and len(ran) == 2 * DISPATCHES
    for _, _, begin, end, arguments in ran:
        slack = int(arguments["deviation_ns"]) + 1
        assert calls[arguments["call"]][0] - slack <= begin <= end <= calls[arguments["call"]][1] + slack
        assert arguments["source"].startswith("<stdin>:") and arguments["stage"] == "COMPUTE_SHADER"
    assert {"hal", "wait"} <= {one[0] for one in slices}
    assert starts.keys() == arrows.keys() and len(arrows) == len(ran)
    deviation = max(int(one[4]["deviation_ns"]) for one in ran) + 1
    for flow, (name, submitted) in starts.items():
        assert name.startswith("hal.device.queue.") and submitted <= arrows[flow] + deviation


# -- clocks --------------------------------------------------------------------------------------------


def reading(ticks: int, host: int, deviation: int = 10, bits: int = 64) -> ClockCalibration:
    return ClockCalibration(ticks, host, deviation, 1.0, bits, "clock_monotonic", True)


def test_drift_is_the_slope_of_the_readings() -> None:
    relation = ClockRelation(
        "a device", (reading(0, 0), reading(500_000_050, 500_000_000), reading(1_000_000_100, 10**9))
    )
    assert relation.drift_ppm == pytest.approx(0.1, rel=1e-3)
    assert relation.drift_uncertainty_ppm == pytest.approx(0.02)
    assert relation.drift_text == "+0.100 ± 0.020 ppm"
    host = relation.host_ns(np.array([500_000_050], np.uint64), np.array([500_000_000]))
    assert host[0] == pytest.approx(500_000_000)


def test_times_across_a_wrap_of_the_counter() -> None:
    relation = ClockRelation("a device", (reading((1 << 36) - 1000, 10_000, bits=36), reading(1000, 12_000, bits=36)))
    ticks = np.array([(1 << 36) - 500, 500], np.uint64)
    assert relation.host_ns(ticks, np.array([10_500, 11_500])) == pytest.approx([500.0, 1500.0])


# -- several sessions --------------------------------------------------------------------------------------


def test_sessions_join_a_profile_and_leave_it_when_they_close() -> None:
    def opened() -> pumice.Session:
        session = pumice.Session(options=SessionOptions(concurrent=True))
        session.append_module(planted(session))
        session.append_module(module(SLEEPER))
        return session

    with opened() as record, opened() as other:
        profile = record.profile(most_slowdown=None)
        record.call("program.sleeps")
        other.join_profile(profile)
        with pytest.raises(FailedPreconditionError, match="being profiled already"):
            other.profile()
        other.call("program.sleeps")
        record.close()
        assert profile.is_running
        other.call("program.sleeps")
        other.close()
        assert not profile.is_running
    assert len(profile.calls) == 3
    for call in profile.calls:
        assert call.native_ns is not None and call.native_ns >= 2 * SLEEP * 1e9 and sums(call) == call.total_ns


def test_a_profile_that_was_stopped_is_not_joined(hosted: pumice.Session) -> None:
    with hosted.profile() as profile:
        pass
    with pytest.raises(FailedPreconditionError, match="was stopped"):
        hosted.join_profile(profile)
    hosted.profile().stop()


@vulkan
def test_sessions_on_one_device_in_one_profile(digits: pumice.Session) -> None:
    """Each with its own context of it; one that leaves keeps its dispatches."""
    with pumice.Session(digits.device, options=SessionOptions(concurrent=True)) as joining:
        joining.load(DIGITS)
        profile = Profile(None, concurrent=True)
        digits.join_profile(profile)
        joining.join_profile(profile)
        digits.call("module.classify", IMAGE)
        joining.call("module.classify", IMAGE)
    digits.call("module.classify", IMAGE)
    profile.stop()
    assert [dispatch.call for dispatch in dispatches(profile) if dispatch.call is not None].count(0) == DISPATCHES
    assert len(dispatches(profile)) == 3 * DISPATCHES
