"""Expansion of studies into points: which points, their order and settings; and derived figures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.status import InvalidArgumentError
from pumice.study.definition.axis import Axis
from pumice.study.definition.expansion import MAX_POINTS, derive, expand, unpaired
from pumice.study.definition.point import Point
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import BASELINE_NAME, Study, Target
from pumice.study.definition.target_settings import BASELINE_SETTINGS, KINDS

SAXPY: Mapping[str, object] = {"source": "builtin:examples/saxpy", "bindings": [{"shape": ["$n"]}, {"shape": "$n"}]}


def study_of(settings: Mapping[str, object], /, *axes: Axis, kind: str = "kernel", **fields: object) -> Study:
    return Study("a", (Target("saxpy", kind, settings),), axes, **fields)  # type: ignore[arg-type]


def test_points_are_all_combinations_in_order() -> None:
    study = study_of(SAXPY, Axis("n", (8, 4)), Axis("batch", (1, 2)))
    points = expand(study, ["a", "b"])
    assert [(p.index, p.device, p.axes["n"], p.axes["batch"]) for p in points] == [
        (0, "a", 8, 1),
        (1, "a", 8, 2),
        (2, "a", 4, 1),
        (3, "a", 4, 2),
        (4, "b", 8, 1),
        (5, "b", 8, 2),
        (6, "b", 4, 1),
        (7, "b", 4, 2),
    ]
    assert points[1].label == "saxpy n=8 batch=2"
    assert points[1].key == points[5].key


# -- two sides ---------------------------------------------------------------------------------------------------------


def test_points_pair_by_target_axes_and_device() -> None:
    other = study_of(SAXPY, Axis("n", (8, 16)), Axis("batch", (2, 1)))
    study = study_of(SAXPY, Axis("n", (8, 4)), Axis("batch", (1, 2)), against=other, baseline=True)
    points = expand(study, ["a", "b"])
    assert [point.index for point in points] == list(range(len(points)))
    ordinary = [p for p in points if not p.is_against and not p.is_baseline]
    theirs = [p for p in points if p.is_against]
    assert ordinary == list(points[:8]) and theirs == list(points[8:12])
    assert [p.against for p in ordinary] == [8, 9, None, None, 10, 11, None, None]
    for point in ordinary:
        if point.against is not None:
            pair = points[point.against]
            assert (pair.key, pair.device, pair.against) == (point.key, point.device, None)
    left_out = unpaired(study, ["a", "b"])
    assert [(p.device, p.label) for p in left_out] == [
        (device, f"saxpy n=16 batch={batch}") for device in "ab" for batch in (2, 1)
    ]
    assert unpaired(other, ["a"]) == ()
    # Both sides have baselines; equal settings share one.
    assert {p.baseline for p in theirs} == {p.baseline for p in ordinary}
    assert all(points[p.baseline].is_baseline for p in theirs if p.baseline is not None)


def test_sides_may_differ_in_kind_settings_and_figures() -> None:
    submit = Target("saxpy", "submit", {}, "total", {"twice": "2 * time"})
    study = Study("a", (Target("saxpy", "kernel", {**SAXPY, "bindings": []}, "total"),), against=Study("b", (submit,)))
    mine, theirs = expand(study, ["x"])
    assert (mine.against, theirs.is_against) == (1, True)
    assert (study.kind_of(mine), study.kind_of(theirs)) == ("kernel", "submit")
    assert derive(study, theirs, {"total": 3.0})["twice"] == 6.0 and "twice" not in derive(study, mine, {"total": 3.0})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Study("b", (Target("other", "kernel", SAXPY),), (Axis("n", (8,)),)), "no point has a counterpart.*saxpy n=8"),
        (
            Study("b", (Target("saxpy", "kernel", SAXPY, "total"),), (Axis("n", (8,)),)),
            "measures execute, and .* total",
        ),
        (study_of(SAXPY, Axis("n", (8,)), devices=("y",)), "both sides are measured on the same devices"),
        (study_of(SAXPY, Axis("n", (8,)), against=study_of(SAXPY, Axis("n", (8,)))), "a study of one side"),
        (study_of({**SAXPY, "groups": "$n - 9"}, Axis("n", (8,))), "target 'saxpy' at n=8: groups"),
        ("b", "expected a Study, got 'b'"),
    ],
)
def test_sides_that_do_not_pair(other: Study, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        expand(study_of(SAXPY, Axis("n", (8,)), against=other), ["x"])
    assert "against" in str(raised.value.location)


def test_settings_are_complete_and_evaluated() -> None:
    settings = {
        **SAXPY,
        "push": {"a": 2.0, "count": "$n"},
        "specialization": {"0": "$local_size", 1: True},
        "groups": ["$n / local_size", 1],
        "dtype": "$'f16' if n > 64 else 'u8'",
        "batch": "$2 * batch",
    }
    axes = (Axis("n", (128,)), Axis("local_size", (32,)), Axis("batch", (4,)))
    (point,) = expand(study_of(settings, *axes, sampling=Sampling(cache="cold")), ["x"])
    assert tuple(point.settings) == KINDS["kernel"].names
    expected = {
        "push": {"a": 2.0, "count": 128},
        "specialization": {"0": 32, "1": True},
        "groups": [4, 1],
        "dtype": "f16",
        "bindings": [{"shape": [128], "dtype": "f16", "init": "random"}] * 2,
        "batch": 8,
        "cache": "cold",
        "record": "once",
        "entry_point": None,
    }
    assert {name: point.settings[name] for name in expected} == expected
    assert point.measure == "execute"
    assert json.loads(json.dumps(point.settings)) == point.settings


def test_numpys_and_vulkans_name_of_unsigned_types_is_taken() -> None:
    (point,) = expand(study_of({"source": "x", "dtype": "u8"}), ["x"])
    assert point.settings["dtype"] == "ui8"


def test_an_axis_sets_the_setting_of_its_name() -> None:
    points = expand(study_of({"source": "x"}, Axis("record", ("once", "each")), Axis("indirect", (False, True))), ["x"])
    assert [(p.settings["record"], p.settings["indirect"]) for p in points] == [
        ("once", False),
        ("once", True),
        ("each", False),
        ("each", True),
    ]
    (point,) = expand(study_of({}, Axis("source", ("y",))), ["x"])
    assert point.settings["source"] == "y"


def test_axes_multiply_the_targets_that_they_make_a_difference_to() -> None:
    targets = (
        Target("saxpy", "kernel", SAXPY),
        Target("empty", "kernel", {"source": "builtin:builtin/empty", "batch": 3}),
        Target("wake", "semaphore"),
    )
    axes = (Axis("n", (4, 8)), Axis("batch", (1, 2)), Axis("waiters", (1, 2)))
    points = expand(Study("a", targets, axes), ["x"])
    assert [dict(p.axes) for p in points] == [
        {"n": 4, "batch": 1},
        {"n": 4, "batch": 2},
        {"n": 8, "batch": 1},
        {"n": 8, "batch": 2},
        {},
        {"waiters": 1},
        {"waiters": 2},
    ]
    assert [p.settings["batch"] for p in points[:5]] == [1, 2, 1, 2, 3]


def test_a_figure_makes_an_axis_matter_where_it_applies() -> None:
    targets = (Target("empty", "kernel", {"source": "x"}), Target("wake", "semaphore"))
    study = Study("a", targets, (Axis("n", (4, 8)),), derived={"work": "n * batch", "more": "work + 1"})
    points = expand(study, ["x"])
    assert [(p.target, dict(p.axes), dict(p.derived)) for p in points] == [
        ("empty", {"n": 4}, {"work": 4.0, "more": 5.0}),
        ("empty", {"n": 8}, {"work": 8.0, "more": 9.0}),
        ("wake", {}, {}),
    ]


def test_the_axis_device_sets_the_device() -> None:
    study = study_of(
        {"source": "x"}, Axis("batch", (1, 2)), Axis("device", ("a", "b")), compare="device", reference="b"
    )
    points = expand(study, ["ignored"])
    assert [(p.device, p.axes["batch"], p.axes["device"]) for p in points] == [
        ("a", 1, "a"),
        ("a", 2, "a"),
        ("b", 1, "b"),
        ("b", 2, "b"),
    ]


def test_devices_come_from_the_call_or_the_study() -> None:
    study = study_of({"source": "x"}, devices=("a", "b"))
    assert [p.device for p in expand(study)] == ["a", "b"]
    assert [p.device for p in expand(study, ["c"])] == ["c"]
    with pytest.raises(InvalidArgumentError, match="at least one device"):
        expand(study_of({"source": "x"}))
    with pytest.raises(InvalidArgumentError, match="different devices"):
        expand(study, ["c", "c"])


WRONG_KERNELS: list[tuple[dict[str, object], str, str]] = [
    ({"batch": 0}, "batch", "expected an int from 1 to 65536, got 0"),
    ({"batch": 10**8}, "batch", "expected an int from 1 to 65536, got 100000000"),
    ({"in_flight": 100_000}, "in_flight", "expected an int from 1 to 4096, got 100000"),
    ({"batch": "$n / 3"}, "batch", "expected an int from 1 to 65536, got 1.33"),
    ({"batch": True}, "batch", "expected an int from 1 to 65536, got True"),
    ({"batch": None}, "batch", "expected an int from 1 to 65536, got None"),
    ({"record": "ecah"}, "record", r"one of once, each; got 'ecah' \(did you mean 'each'"),
    ({"read": 1}, "read", "expected true or false, got 1"),
    ({"host_sleep": -1}, "host_sleep", "a number of at least 0, got -1"),
    ({"groups": [1, 2, 3, 4]}, "groups", "1 to 3 ints"),
    ({"groups": [1, "$0 * n"]}, "groups[1]", "at least 1, got 0"),
    ({"dtype": "f31"}, "dtype", "expected an element type, got 'f31'"),
    ({"push": 3}, "push", "a table of numbers by name"),
    ({"push": {"a": ["$n", "b"]}}, "push.a[1]", "a number, true or false, got 'b'"),
    ({"push": [1, "i32=1"]}, "push", "not of both"),
    ({"specialization": [1]}, "specialization", "a table of numbers"),
    ({"defines": {"A": [1]}}, "defines.A", "a number, a text"),
    ({"bindings": {}}, "bindings", "a list of tables or texts"),
    ({"bindings": [3]}, "bindings[0]", "a text such as"),
    ({"bindings": [{"name": 3, "shape": 1}]}, "bindings[0].name", "a text"),
    ({"bindings": [{"block": {"a": "b"}}]}, "bindings[0].block.a", "a number, true or false"),
    ({"bindings": [{"block": {}, "shape": 1}]}, "bindings[0]", "name and block alone"),
    ({"bindings": ["4xf31"]}, "bindings[0]", "element type"),
    ({"bindings": [{"shape": 4, "sampler": ""}]}, "bindings[0].sampler", "with a format"),
    ({"bindings": ["sampler:filter"]}, "bindings[0]", "expected NAME=VALUE"),
    ({"bindings": [{"shape": 4, "format": "rgb9"}]}, "bindings[0].format", "image format"),
    ({"bindings": [{"shape": 4, "format": "r8unorm", "dtype": "u8"}]}, "bindings[0]", "got both"),
    ({"bindings": [{}]}, "bindings[0]", "expected a shape"),
    ({"bindings": [{"shpae": 1}]}, "bindings[0]", "did you mean 'shape'"),
    ({"bindings": [{"shape": [1, -1]}]}, "bindings[0].shape[1]", "at least 0, got -1"),
    ({"bindings": [{"shape": 1, "init": "one"}]}, "bindings[0].init", "zeros, random"),
    ({"bindings": [{"shape": 1, "dtype": 1}]}, "bindings[0].dtype", "element type"),
    ({"groups": "$n / (n - 4)"}, "groups", r"'n / \(n - 4\)' with n = 4: division by zero"),
]


@pytest.mark.parametrize(
    ("kind", "settings", "where", "message"),
    [
        *(("kernel", {"source": "x", **settings}, where, message) for settings, where, message in WRONG_KERNELS),
        ("kernel", {}, "source", "expected a text: .*; got none"),
        ("kernel", {"source": 3}, "source", "expected a text, got 3"),
        ("semaphore", {"waiters": 10**9}, "waiters", "expected an int from 1 to 4096"),
        ("module", {"source": "x", "inputs": "2"}, "inputs", "a list of texts or tables"),
        ("module", {"source": "x", "parameters": {"a": 3}}, "parameters.a", "a text, got 3"),
        ("copy", {}, "bytes", "expected an int of at least 1: bytes of a copy; got none"),
        ("copy", {"bytes": 4, "direction": "up"}, "direction", "one of host_to_device"),
    ],
)
def test_wrong_settings_say_where_and_what(kind: str, settings: Mapping[str, object], where: str, message: str) -> None:
    study = study_of(settings, Axis("n", (4,)), kind=kind, derived={"twice": "2 * n"}, source="a.toml")
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        expand(study, ["x"])
    assert caught.value.location == f"a.toml: targets[0].{where}"
    assert caught.value.message.startswith(f"target 'saxpy' at n=4: {where.partition('[')[0].partition('.')[0]}: ")


def test_a_sample_has_a_bounded_number_of_dispatches() -> None:
    assert expand(study_of({"source": "x", "batch": 64, "command_buffers": 32, "in_flight": 32}), ["x"])
    study = study_of({"source": "x", "batch": 65, "command_buffers": 32}, Axis("in_flight", (32,)), source="a.toml")
    with pytest.raises(InvalidArgumentError, match="at in_flight=32: batch times .* is 66560 dispatches") as caught:
        expand(study, ["x"])
    assert caught.value.location == "a.toml: targets[0]"


def test_wrong_values_of_axes_say_which_axis() -> None:
    study = study_of({"source": "x"}, Axis("batch", (1, 0)), source="a.toml")
    with pytest.raises(InvalidArgumentError, match="target 'saxpy' at batch=0: batch: expected an int") as caught:
        expand(study, ["x"])
    assert caught.value.location == "a.toml: axes.batch"


def test_inputs_of_modules_are_texts_or_tables() -> None:
    settings = {"source": "x", "inputs": ["4xf32=1", 3, "@a.npy", {"shape": "$n", "dtype": "u16"}, {"shape": 2}]}
    (point,) = expand(study_of(settings, Axis("n", (4,)), kind="module"), ["x"])
    assert point.settings["inputs"] == [
        "4xf32=1",
        "3",
        "@a.npy",
        {"shape": [4], "dtype": "ui16", "init": "random"},
        {"shape": [2], "dtype": "f32", "init": "random"},
    ]


def test_too_many_points_are_counted_before_they_are_made() -> None:
    axes = [Axis(name, tuple(range(1, 101))) for name in ("batch", "queues", "in_flight")]
    with pytest.raises(InvalidArgumentError, match=rf"1000000 points.*batch \(100\).*at most {MAX_POINTS}"):
        expand(study_of({"source": "x"}, *axes), ["x"])


# -- baselines ---------------------------------------------------------------------------------------


def test_each_setting_has_one_baseline() -> None:
    targets = (Target("saxpy", "kernel", SAXPY), Target("wake", "semaphore"))
    study = Study("a", targets, (Axis("n", (4, 8)), Axis("batch", (1, 2))), baseline=True)
    points = expand(study, ["x", "y"])
    measured = [p for p in points if not p.is_baseline]
    baselines = [p for p in points if p.is_baseline]
    assert [p.index for p in points] == list(range(len(points)))
    assert points == (*measured, *baselines)
    assert len(baselines) == 4
    for point in measured:
        if point.target == "wake":
            assert point.baseline is None
            continue
        assert point.baseline is not None
        baseline = points[point.baseline]
        assert (baseline.target, baseline.device, baseline.baseline) == (BASELINE_NAME, point.device, None)
        assert baseline.settings["source"] == "builtin:builtin/empty"
        assert tuple(baseline.settings) == KINDS["kernel"].names
        for name in BASELINE_SETTINGS:
            assert baseline.settings[name] == (1 if name == "groups" else point.settings[name])
    assert [p.label for p in baselines] == [BASELINE_NAME, f"{BASELINE_NAME} batch=2"] * 2


@pytest.mark.parametrize(("groups", "kept"), [(None, 1), (7, 7), ([7], 7), ([7, 1, 1], 7), ([1, 7], [1, 7])])
def test_baselines_have_the_groups_of_their_points(groups: object, kept: object) -> None:
    _, baseline = expand(study_of({"source": "x", "groups": groups}, baseline=True), ["x"])
    assert baseline.settings["groups"] == kept
    assert baseline.axes == ({} if kept == 1 else {"groups": kept if isinstance(kept, int) else "1x7"})


AXIS_VALUES = st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True)
AXES = st.dictionaries(st.sampled_from(["n", "batch", "queues", "in_flight", "waiters"]), AXIS_VALUES, min_size=1)


@pytest.mark.slow
@given(AXES, st.booleans(), st.integers(1, 3))
def test_counts_are_products(axes: Mapping[str, list[int]], baseline: bool, devices: int) -> None:
    targets = (
        Target("saxpy", "kernel", SAXPY if "n" in axes else {"source": "x"}),
        Target("fixed", "kernel", {"source": "x", "batch": 1, "queues": 1, "in_flight": 1}),
        Target("wake", "semaphore"),
    )
    given_axes = tuple(Axis(name, tuple(values)) for name, values in axes.items())
    study = Study("a", targets, given_axes, baseline=baseline)
    points = expand(study, [f"d{i}" for i in range(devices)])
    measured = [p for p in points if not p.is_baseline]
    kernel = [len(values) for name, values in axes.items() if name != "waiters"]
    wakes = len(axes.get("waiters", [1]))
    assert len(measured) == devices * (math.prod(kernel) + 1 + wakes)
    assert len({(p.device, p.key) for p in points}) == len(points)
    shared = ("batch", "queues", "in_flight")
    settings = {tuple(p.settings[name] for name in shared) for p in measured if p.target != "wake"}
    assert len(points) - len(measured) == (devices * len(settings) if baseline else 0)
    assert points == expand(study, [f"d{i}" for i in range(devices)])


# -- figures -----------------------------------------------------------------------------------------


def first(study: Study) -> Point:
    return expand(study, ["x"])[0]


def test_figures_known_before_measuring_are_in_points() -> None:
    derived = {"bytes": "12 * n", "twice": "2 * bytes", "rate": "bytes / time", "above": "rate + 1"}
    study = study_of(SAXPY, Axis("n", (1024,)), derived=derived)
    assert first(study).derived == {"bytes": 12288.0, "twice": 24576.0}


def test_rates_are_of_all_dispatches_over_the_headline() -> None:
    settings = {**SAXPY, "batch": 4, "command_buffers": 2, "in_flight": 3}
    study = study_of(settings, Axis("n", (1000,)), derived={"bytes": "12 * n", "flops": "2 * n"})
    figures = derive(study, first(study), {"execute": 1e-3, "total": 1.0}, {"GB/s": 1.0, "GIOP/s": 1.0})
    assert figures == pytest.approx(
        {"bytes": 12000, "flops": 2000, "GB/s": 0.288, "GFLOP/s": 0.048, "% of peak GB/s": 28.8}
    )
    assert derive(study, first(study), {"execute": 1e-3, "dispatches": 1})["GB/s"] == pytest.approx(0.012)
    assert "GB/s" not in derive(study, first(study), {"total": 1.0})


def test_a_figure_named_like_a_rate_takes_its_place() -> None:
    derived = {"bytes": "12 * n", "GB/s": "bytes * dispatches / total / 1e9"}
    study = study_of({**SAXPY, "batch": 2}, Axis("n", (1000,)), derived=derived)
    assert derive(study, first(study), {"execute": 1.0, "total": 1e-3})["GB/s"] == pytest.approx(0.024)


def test_copies_have_a_rate_by_themselves() -> None:
    study = study_of({"bytes": 4096, "batch": 2}, kind="copy")
    assert derive(study, first(study), {"execute": 1e-6}) == pytest.approx({"GB/s": 8.192})


def test_what_cannot_be_told_is_not_a_number() -> None:
    study = study_of(SAXPY, Axis("n", (4,)), derived={"bytes": "n", "ratio": "execute / queue", "sum": "ratio + 1"})
    figures = derive(study, first(study), {"execute": 1.0, "queue": 0.0})
    assert math.isnan(figures["ratio"]) and math.isnan(figures["sum"])
    assert math.isnan(derive(study, first(study), {"execute": 0.0, "queue": 1.0})["GB/s"])
    assert math.isnan(derive(study, first(study), {"execute": math.nan, "queue": 1.0})["ratio"])
    assert set(derive(study, first(study), {"execute": 1.0})) == {"bytes", "GB/s"}


def test_figures_see_settings_before_axes_and_measurements_before_both() -> None:
    study = study_of({"source": "x", "batch": "$2 * batch"}, Axis("batch", (4,)), derived={"a": "batch", "b": "record"})
    assert first(study).derived == {"a": 8.0}
    assert derive(study, first(study), {"record": 0.5}) == {"a": 8.0, "b": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n / 0", "division by zero"),
        ("groups * 2", "groups is None here"),
        ("dtype", "got 'f32'"),
        ("2 ** 4000", "a number"),
    ],
)
def test_figures_that_are_no_numbers_say_so(text: str, message: str) -> None:
    study = study_of(SAXPY, Axis("n", (4,)), derived={"figure": text}, source="a.toml")
    with pytest.raises(InvalidArgumentError, match=rf"target 'saxpy' at n=4: .*{message}") as caught:
        expand(study, ["x"])
    assert caught.value.location == "a.toml: derived.figure"


def test_baselines_have_no_figures_and_other_studies_points_are_refused() -> None:
    study = study_of(SAXPY, Axis("n", (4,)), derived={"bytes": "n"}, baseline=True)
    point, baseline = expand(study, ["x"])
    assert derive(study, baseline, {"execute": 1.0}) == {}
    with pytest.raises(InvalidArgumentError, match="belongs to another study"):
        derive(Study("b", (Target("b", "submit"),)), point, {})
