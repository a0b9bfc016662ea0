"""Axes: their values, and their forms in files and on command lines."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.status import InvalidArgumentError
from pumice.study.definition.axis import Axis, parse_axis, read_axis
from pumice.study.definition.expansion import expand
from pumice.study.definition.study_file import parse_study, study_as_dict, study_from_dict

NUMBERS = st.one_of(st.integers(-(2**40), 2**40), st.floats(-1e12, 1e12, allow_nan=False))
TEXTS = st.text(st.characters(codec="ascii", min_codepoint=33, exclude_characters=',:"='), min_size=1, max_size=8)


def test_an_axis_keeps_the_order_of_its_values() -> None:
    assert Axis("n", (4, 1, 2)).values == (4, 1, 2)
    assert Axis("n", (np.int64(4), np.float32(0.5))).values == (4, 0.5)  # type: ignore[arg-type]
    assert type(Axis("n", (np.int64(4),)).values[0]) is int  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("n", (), "empty"),
        ("n", (1, 2, 1), "the value 1 twice"),
        ("n", (1, True), "twice"),
        ("n", (1, 1.0), "twice"),
        ("n", (math.nan,), "finite"),
        ("n", (math.inf,), "finite"),
        ("n", (10**400,), "64 bits"),
        ("n", ([1],), "numbers, texts and truth values"),
        ("n", (None,), "numbers, texts and truth values"),
        ("2n", (1,), "letters, digits and underscores"),
        ("local size", (1,), "letters, digits and underscores"),
        ("if", (1,), "letters, digits and underscores"),
        ("", (1,), "letters, digits and underscores"),
        ("target", (1,), "'compare'"),
    ],
)
def test_what_is_no_axis_is_refused(name: str, values: tuple[object, ...], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Axis(name, values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "values"),
    [
        ([3, 2.5, "a", True], (3, 2.5, "a", True)),
        ({"range": [1, 4]}, (1, 2, 3, 4)),
        ({"range": [1, 64, 9]}, (1, 10, 19, 28, 37, 46, 55, 64)),
        ({"range": [1, 63, 9]}, (1, 10, 19, 28, 37, 46, 55)),
        ({"range": [3, 1, -1]}, (3, 2, 1)),
        ({"range": [5, 5]}, (5,)),
        ({"range": [0.1, 0.5, 0.1]}, (0.1, 0.2, 0.3, 0.4, 0.5)),
        ({"powers_of_two": [1, 256]}, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
        ({"powers_of_two": [3, 9]}, (4, 8)),
        ({"logspace": [1024, 1048576, 6]}, (1024, 4096, 16384, 65536, 262144, 1048576)),
        ({"logspace": [1, 4, 10]}, (1, 2, 3, 4)),
        ({"logspace": [0.25, 4.0, 3]}, (0.25, 1.0, 4.0)),
    ],
)
def test_files_give_lists_and_tables(value: object, values: tuple[object, ...]) -> None:
    axis = read_axis("n", value)
    assert axis.values == values
    assert [type(value) for value in axis.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "empty"),
        ({"range": [5, 1]}, "the range from 5 to 1 by 1 is empty"),
        ({"range": [1, 5, -1]}, "is empty"),
        ({"range": [1, 5, 0]}, "not 0"),
        ({"range": [1]}, r"range takes \[start, stop\] or \[start, stop, step\]"),
        ({"range": 5}, "range takes"),
        ({"range": ["a", "b"]}, "expected a finite number .*got 'a'"),
        ({"range": [0, 10**9]}, "more than 100000 values"),
        ({"range": [0, 1.0, 1e-300]}, "more than 100000 values"),
        ({"powers_of_two": [5, 7]}, "no power of two from 5 to 7"),
        ({"powers_of_two": [0, 7]}, "from 1 to"),
        ({"powers_of_two": [1.0, 8]}, "ints from 1 to 2.*, got 1.0"),
        ({"logspace": [0, 8, 3]}, "above 0"),
        ({"logspace": [1, 10**400, 3]}, "64 bits"),
        ({"logspace": [1, 8, 1]}, "from 2 to"),
        ({"logspace": [1, 8, 10**9]}, "from 2 to"),
        ({"rnage": [1, 2]}, "expected a list of values, or one of"),
        ({"range": [1, 2], "logspace": [1, 2, 3]}, "expected a list of values, or one of"),
        (7, "expected a list of values, or one of"),
        ("1:4", "expected a list of values, or one of"),
    ],
)
def test_what_files_may_not_give(value: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"'n'.*{message}"):
        read_axis("n", value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n=1,2,4", (1, 2, 4)),
        ("n = 1, 2 ,4", (1, 2, 4)),
        ("n=8", (8,)),
        ("n=1.5,2e3,-4,0x10", (1.5, 2000.0, -4, 16)),
        ("n=true,false", (True, False)),
        ("n=between,none", ("between", "none")),
        ('n="1","true"', ("1", "true")),
        ("n=1:4", (1, 2, 3, 4)),
        ("n=1:64:9", (1, 10, 19, 28, 37, 46, 55, 64)),
        ("n=pow2:1:8", (1, 2, 4, 8)),
        ("n=log:1:100:3", (1, 10, 100)),
        ("n=log:1.7976931348623157e308:1.7976931348623155e308:3", (1.7976931348623157e308, 1.7976931348623155e308)),
        ("device=vulkan://0,lavapipe", ("vulkan://0", "lavapipe")),
        ("n=nan", ("nan",)),
    ],
)
def test_command_lines_give_axes(text: str, values: tuple[object, ...]) -> None:
    axis = parse_axis(text)
    assert axis.values == values
    assert [type(value) for value in axis.values] == [type(value) for value in values]
    assert axis.name == text.partition("=")[0].strip()


@pytest.mark.parametrize(
    "text", ["n", "n=", "=1", "n=9:1", "n=1,1", "n=pow2:1", "n=log:1:2", "n=pow2:a:b", "n=1:2:3:4"]
)
def test_what_command_lines_may_not_give(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_axis(text)


@pytest.mark.parametrize(
    "text", [f"n={'9' * 5000}", f"n=1:{'9' * 5000}", f"n=pow2:1:{'9' * 5000}", f"{'n' * 5000}=1,1"]
)
def test_messages_about_long_texts_are_short(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_axis(text)
    assert len(str(caught.value)) < 1000


@given(st.lists(st.one_of(NUMBERS, TEXTS, st.booleans()), min_size=1, max_size=6, unique=True))
def test_values_written_as_text_are_read_again(values: list[int | float | str | bool]) -> None:
    def written(value: int | float | str | bool) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f'"{value}"' if isinstance(value, str) else repr(value)

    axis = Axis("x", tuple(values))
    assert parse_axis(f"x={','.join(map(written, values))}") == axis


@given(st.integers(-1000, 1000), st.integers(0, 1000), st.integers(1, 50))
def test_a_range_is_pythons_with_its_stop(start: int, length: int, step: int) -> None:
    assert Axis.range("n", start, start + length, step).values == tuple(range(start, start + length + 1, step))


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(2, 50))
def test_a_logspace_has_its_ends_and_goes_one_way(first: int, last: int, count: int) -> None:
    values = Axis.logspace("n", first, last, count).values
    assert (values[0], values[-1]) == (first, last)
    assert list(values) == sorted(values, reverse=first > last)
    assert len(values) <= count


def test_truth_values_are_not_numeric() -> None:
    assert Axis("n", (1, 2.5)).is_numeric
    assert not Axis("n", (True, False)).is_numeric
    assert not Axis("n", (1, "a")).is_numeric


@pytest.mark.parametrize(
    "axis", [parse_axis("tx,ty=8:8,16:4"), read_axis("tx,ty", [[8, 8], [16, 4]]), Axis("tx, ty", ((8, 8), (16, 4)))]
)
def test_names_that_change_together(axis: Axis) -> None:
    assert (axis.name, axis.names) == ("tx, ty", ("tx", "ty"))
    assert axis.values == ((8, 8), (16, 4)) and axis.columns == {"tx": (8, 16), "ty": (8, 4)}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tx, ty", [8, 16], "lists of 2 for values"),
        ("tx, ty", [[8, 8], [16]], "lists of 2 for values"),
        ("tx, ty", [[8, 8], [8, 8.0]], "twice"),
        ("tx, tx", [[8, 8]], "must differ"),
        ("tx, device", [[8, "vulkan"]], "none may be device"),
        ("tx,", [[8, 8]], "letters, digits and underscores"),
        ("tx, ty", {"range": [1, 4]}, "lists of 2 for values"),
    ],
)
def test_what_does_not_change_together_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read_axis(name, value)


def test_a_study_of_names_that_change_together() -> None:
    text = """
        version = 1
        name = "tiles"
        fit = ["tx"]
        compare = "tx"
        reference = 16
        [axes]
        n = [1, 2]
        "tx, ty" = [[8, 8], [16, 4]]
        [[targets]]
        name = "mul"
        kind = "kernel"
        source = "builtin:mul"
        groups = ["$n", "$ty"]
        specialization = { "0" = "$tx" }
    """
    study = parse_study(text)
    points = expand(study, ("vulkan",))
    assert [dict(point.axes) for point in points] == [
        {"n": n, "tx": tx, "ty": ty} for n in (1, 2) for tx, ty in ((8, 8), (16, 4))
    ]
    assert [point.settings["groups"] for point in points] == [[n, ty] for n in (1, 2) for ty in (8, 4)]
    assert study_from_dict(json.loads(json.dumps(study_as_dict(study)))) == dataclasses.replace(study, text=None)
    other = study.with_axes(parse_axis("tx,ty=16:2,4:16"))
    assert [dict(point.axes) for point in expand(other, ("vulkan",))][:2] == [
        {"n": 1, "tx": 16, "ty": 2},
        {"n": 1, "tx": 4, "ty": 16},
    ]
    with pytest.raises(InvalidArgumentError, match="varies ty together with tx"):
        study.with_axes(Axis("tx", (1, 2)))
    with pytest.raises(InvalidArgumentError, match="two axes are named 'n'"):
        dataclasses.replace(study, axes=(*study.axes, Axis("n, batch", ((1, 2),))))
    with pytest.raises(InvalidArgumentError, match="unknown axis 'tz'"):
        dataclasses.replace(study, axes=(*study.axes, Axis("tz, batch", ((1, 2),))))
