"""Comparability of simulated runs: how often equal machines count as different, and the reasons for others."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.study.made_studies import STUDY, made, taken

from pumice.study.definition.point import Point
from pumice.study.results.comparison.comparability import incomparable_reason as incomparable
from pumice.study.results.comparison.comparability import no_reference_reason, notes, reference_ratio
from pumice.study.results.comparison.machine_record import Recorded, RunState, recorded, unlike
from pumice.study.results.storage.records import StateRecord
from pumice.study.results.storage.store import Store

QUIET = StateRecord(1, 0, 5e8, 8e3, 12e3, 0.0, 0.02, 0.02, 0.01, 0.3, 2400.0)


def side(
    seed: int = 0,
    *,
    speed: float = 1.0,
    count: int = 20,
    noise: float = 0.02,
    runs: int = 1,
    between: float = 0.0,
    state: StateRecord = QUIET,
    loads: tuple[str, ...] = ("load 4", "load 8"),
    measure: str = "total",
    headline: float = 1e6,
    software: bool = True,
) -> Recorded:
    random = np.random.default_rng(seed)
    readings = []
    for _ in range(runs):
        pace = speed * random.lognormal(0, between)
        own = {load: pace * 1e6 * float(load.split()[1]) * random.lognormal(0, noise, count) for load in loads}
        states = [
            replace(state, wake_ns=(state.wake_ns or 0) * random.lognormal(0, 0.1), host_ns=index) for index in range(6)
        ]
        readings.append(RunState(own, {}, states, np.array([]), np.array([])))
    return Recorded("host", "device", "driver", software, measure, headline, readings)


@pytest.mark.slow
def test_equal_machines_are_comparable_nearly_always() -> None:
    told = [incomparable(side(2 * seed), side(2 * seed + 1)) for seed in range(150)]
    assert np.mean([text == "" for text in told]) >= 0.99


@pytest.mark.parametrize("runs", [1, 5])
def test_another_pace_of_the_reference_is_said_with_its_interval(runs: int) -> None:
    a, b = side(1, runs=runs), side(2, runs=runs, speed=1.38)
    text = incomparable(a, b)
    assert text.startswith("the reference like this point's load took 1.3") and "times as long" in text
    ratio = reference_ratio(a, b)
    assert ratio is not None and ratio.own and ratio.interval.low < 1.38 < ratio.interval.high
    back = reference_ratio(b, a)
    assert back is not None and back.ratio == pytest.approx(1 / ratio.ratio)


@pytest.mark.slow
def test_the_interval_of_the_reference_holds_what_it_says() -> None:
    """About 1 % of the intervals at 99 % miss the truth; with several runs the unit is the run."""
    for runs, between in ((1, 0.0), (5, 0.05)):
        missed = 0
        for seed in range(200):
            one = side(2 * seed, runs=runs, between=between)
            other = side(2 * seed + 1, runs=runs, between=between, speed=1.2)
            ratio = reference_ratio(one, other)
            assert ratio is not None
            missed += not ratio.interval.low <= 1.2 <= ratio.interval.high
        assert missed <= 7, (runs, missed)


def test_a_reference_that_varies_widely_vouches_for_nothing() -> None:
    assert "varies too much to tell" in incomparable(side(1, noise=1.0), side(2, noise=1.0))


def test_without_a_load_in_common_nothing_is_known() -> None:
    a, b = side(1), side(2, loads=("load 32",), speed=3)
    assert reference_ratio(a, b) is None and "had no load in common" in incomparable(a, b)
    off = replace(b, runs=[replace(run, own={}) for run in b.runs])
    assert not incomparable(a, off) and "was read in the second runs" in notes(a, off)[0]
    assert "their loads differ" in no_reference_reason(a, b) and not no_reference_reason(a, a)
    # One of two is enough.
    c = side(3, loads=("load 8", "load 16"), speed=1.5)
    ratio = reference_ratio(a, c)
    assert ratio is not None and ratio.ratio == pytest.approx(1.5, rel=0.05)


def test_few_readings_are_said_and_not_taken_for_other_loads() -> None:
    """A point of few blocks has one reading of each load, including the load without arithmetic."""

    def few(seed: int, *loads: str) -> Recorded:
        one = side(seed, count=1, loads=("load 1", *loads))
        run = one.runs[0]
        own = {"16x64, no arithmetic, total" if load == "load 1" else load: times for load, times in run.own.items()}
        return replace(one, runs=[replace(run, own=own)])

    for loads, count in ((("load 4", "load 8"), 2), (("load 8", "load 16"), 1)):
        one, other = few(1, "load 4", "load 8"), few(2, *loads)
        assert reference_ratio(one, other) is None
        said = f"too few readings of the reference like this point's load ({count} in the first runs, {count} in the"
        assert said in no_reference_reason(one, other) and notes(one, other) == [no_reference_reason(one, other)]


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ({"others": 0.37}, "37% of the processor went to other processes in the second runs, 2% in the first"),
        ({"steal": 0.2}, "20% of the processor went to other virtual machines"),
        ({"run_delay": 0.5}, "threads waited for a core 50% of their time"),
        ({"pressure": 0.9}, "tasks waited for a core in 90% of the time"),
        ({"cpu_mhz": 1800.0}, "other clocks: the processor ran at 1800 MHz in the second runs, at 2400 MHz"),
    ],
)
def test_another_state_of_the_host_is_said_where_it_matters(figures: dict[str, float], said: str) -> None:
    other = replace(QUIET, **figures)
    assert said in incomparable(side(1), side(2, state=other))
    assert said in incomparable(side(1, measure="execute"), side(2, state=other, measure="execute"))
    # Execution on a separate device takes no processor time.
    on_device = {"measure": "execute", "software": False}
    assert not incomparable(side(1, **on_device), side(2, state=other, **on_device))  # type: ignore[arg-type]


def test_wake_ups_matter_to_short_points_that_wait() -> None:
    late = replace(QUIET, wake_ns=250e3, wake_p90_ns=300e3)
    text = incomparable(side(1, headline=40e3), side(2, state=late, headline=290e3))
    assert "wake-ups took 2" in text and "this point's time is 40 µs" in text
    assert not incomparable(side(1, headline=1e8), side(2, state=late, headline=1e8))
    assert not incomparable(side(1, headline=4e4, measure="execute"), side(2, state=late, measure="execute"))
    # If a tenth of the samples are in a late mode, only the ninth decile shows it.
    seldom = replace(QUIET, wake_p90_ns=250e3)
    text = incomparable(side(1, headline=40e3), side(2, state=seldom, headline=40e3))
    assert "one of ten wake-ups took over 250 µs in the second runs, 12 µs in the first" in text


@pytest.mark.parametrize("figure", ["host", "device", "driver"])
def test_of_another_machine_only_what_others_took_counts(figure: str) -> None:
    """The machines differ in speed, so neither the reference nor the waiting of the point's own threads counts."""
    quiet, busy, waiting = (replace(QUIET, **figures) for figures in ({}, {"others": 0.5}, {"run_delay": 0.5}))
    for state, said in ((quiet, ""), (busy, "50% of the processor went to other processes"), (waiting, "")):
        other = replace(side(2, speed=3.0, state=state), **{figure: "B"})
        assert unlike(side(1), other) == {figure: f"another {figure}: B in the second runs, {figure} in the first"}
        assert incomparable(side(1), other).startswith(said) and (said or not incomparable(side(1), other))


def test_what_earlier_versions_did_not_record_is_not_held_against_them() -> None:
    bare = replace(side(1), runs=[RunState({}, {}, [], np.array([]), np.array([]))])
    assert incomparable(bare, side(2)) == "" == incomparable(bare, bare)
    assert notes(bare, side(2)) == ["the machine's state was not recorded in the first runs: it may have differed"]
    assert "in the first and the second runs" in notes(bare, bare)[0]


def test_only_what_was_recorded_while_a_point_was_sampled_counts(tmp_path: Path) -> None:
    def fill(store: Store, points: tuple[Point, ...]) -> None:
        """Samples point 0 in the first second and the others in the tenth, when the machine's speed has changed."""
        for point in points:
            began = 0 if point.index == 0 else 10_000_000_000
            samples = [sample._replace(started=began + index * 10**7) for index, sample in enumerate(taken(point))]
            store.add_samples(point.index, 0, "sample", samples)
        for second in range(12):
            late = second >= 5
            when = second * 10**9
            store.add_state(host_ns=when, wake_ns=8e3, others=0.9 if late else 0.1)
            taking = 2e5 if late else 1e5
            for kind, of in (("compute", None), ("own", 0), ("own", 1)):
                store.add_reference(
                    "lavapipe", started_ns=when, duration_ns=taking, kind=kind, point=of, load=f"{kind} {of}"
                )

    with made(tmp_path, STUDY, fill) as results:
        early, late = (recorded(results, results.points[index]) for index in (0, 1))
    assert early.software and early.host == late.host and early.device == "llvmpipe" and early.driver == "Mesa"
    assert math.isclose(early.headline_ns, float(np.median(results.points[0].values())))
    for record, others, taking, of in ((early, 0.1, 1e5, 0), (late, 0.9, 2e5, 1)):
        (run,) = record.runs
        assert {state.others for state in run.states} == {others}
        assert {load: set(times) for load, times in run.own.items()} == {f"own {of}": {taking}}
        assert {load: set(times) for load, times in run.compute.items()} == {"compute None": {taking}}
