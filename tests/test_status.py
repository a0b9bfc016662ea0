"""What messages show of values."""

from __future__ import annotations

import pytest

from pumice.status import shorten, shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x.spv", "'x.spv'"),
        (7, "7"),
        ("x" * 5000, "'" + "x" * 200 + "'… (5000 characters)"),
        ([0] * 5000, "[" + "0, " * 66 + "0… (15000 characters)"),
        (10**5000, "a number of 16610 bits"),
    ],
    ids=["short", "number", "long", "list", "large"],
)
def test_shown(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_deeply_nested_value_is_shown_by_its_type() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert shown(value) == "a deeply nested list"


def test_shorten() -> None:
    assert shorten("x" * 200) == "x" * 200
    assert shorten("x" * 201) == "x" * 200 + "… (201 characters)"
    assert shorten("abc", 2) == "ab… (3 characters)"
