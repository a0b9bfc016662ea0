"""Expressions: valid ones, their values, and the errors of invalid ones."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.status import InvalidArgumentError
from pumice.study.definition.expression import FUNCTIONS, Expression, Template, UndefinedResultError, as_json_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12 * n", 48),
        ("n // 3 + n % 3", 2),
        ("n / 8", 0.5),
        ("-n ** 2", -16),
        ("2 ** n << 1", 32),
        ("n > 3 and m == 'f16'", True),
        ("1 < n < 3", False),
        ("'f16' if n > 8 else m", "f16"),
        ("min(n, 2) + max(1, n, 3)", 6),
        ("ceil(n / 3) + floor(n / 3)", 3),
        ("log2(n) + sqrt(n) + abs(-n)", 8.0),
        ("int(2.9) + round(2.6)", 5),
        ("cdiv(n, 3) + cdiv(6, 3)", 4),
        (" n ", 4),
        ("m", "f16"),
        ("not n", False),
    ],
)
def test_expressions_have_values(text: str, value: object) -> None:
    result = Expression(text).evaluate({"n": 4, "m": "f16"})
    if text.startswith("'f16' if"):
        result = Expression(text).evaluate({"n": 9, "m": "f32"})
    assert result == value
    assert type(result) is type(value)


def test_names_are_those_that_need_values() -> None:
    assert Expression("min(n, m) + min(2, 3) * n").names == {"n", "m"}
    assert Expression("2 + 3").names == frozenset()


def test_an_unknown_name_is_named_with_those_that_are_known() -> None:
    with pytest.raises(InvalidArgumentError, match=r"named 'bacth' \(did you mean 'batch'\?\); known are n, batch"):
        Expression("bacth * 2").check_names(["n", "batch"])
    with pytest.raises(InvalidArgumentError, match="nothing is named 'n'; known are none"):
        Expression("n").evaluate({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an expression"),
        ("n +", "expected an expression"),
        ("n = 3", "expected an expression"),
        ("1; 2", "expected an expression"),
        ("import os", "expected an expression"),
        ("n\0", "expected an expression"),
        ("(" * 500 + "n" + ")" * 500, "expected an expression"),
        ("n" * 3000, "at most 2000 characters"),
        ("n.real", "no Attribute"),
        ("n[0]", "no Subscript"),
        ("[n, 2 * n]", r'write an expression for each, \["\$n", "\$2 \* n"\]'),
        ("n, n", r'for a list .*\["\$n", "\$n"\]'),
        ("max([n])", "no List"),
        ("{n}", "no Set"),
        ("f'{n}'", "no JoinedStr"),
        ("lambda: n", "no Lambda"),
        ("[x for x in n]", "no ListComp"),
        ("min(*n)", "no Starred"),
        ("(n := 3)", "no NamedExpr"),
        ("open('x')", r"no function is named 'open'"),
        ("mni(n, 2)", r"no function is named 'mni' \(did you mean 'min'\?\); known are abs, cdiv"),
        ("n.real()", "no function is named 'n.real'"),
        ("eval('1')", "no function is named 'eval'"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Expression(text)


@pytest.mark.parametrize(
    "text", ["n / 0", "n // 0", "n % 0", "log2(0)", "sqrt(-1)", "(-8) ** 0.5", "9 ** 9 ** 9", "2 ** 5000", "1e308 * 10"]
)
def test_what_has_no_value_says_so(text: str) -> None:
    with pytest.raises(UndefinedResultError) as caught:
        Expression(text).evaluate({"n": 4})
    assert repr(text) in caught.value.message
    assert ("n = 4" in caught.value.message) == text.startswith("n")


@pytest.mark.parametrize(
    "text", ["n + 'a'", "min(n)", "round", "None", "abs(n, 2)", "1 << 99999", "'a' * 999999", "b'x'"]
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        Expression(text).evaluate({"n": 4, "round": max})


UNBOUNDED = [
    "round(10 ** 300, -999999999)",
    "round(7 ** 1000, -10 ** 7)",
    "round(n, -10 ** 9)",
    "'%.999999999f' % 1.0",
    "'%999999999d' % n",
    "'%#0 +-999999999.999999999e' % 1.5",
    "('%' + '9' * 9 + 'd') % n",
    "b'%999999999d' % n",
    "'a' * 10 ** 9",
    "10 ** 9 * 'a'",
    "'a' * 99999 * 99999",
    "1 << 10 ** 9",
    "1 << 8000 << 8000 << 8000",
    "n ** n ** n ** n",
    "10 ** 10 ** 10",
    " * ".join(["7 ** 1000"] * 150),
    "int('f' * 99999, 16)",
    "int('z' * 99999, 36)",
    "max(" + ", ".join(["'%s'"] * 200) + ")",
    "'%s' * 50000 % n",
    "'a' * 50000 in 'a' * 99999 + 'b'",
]


@pytest.mark.slow
def test_no_expression_takes_long() -> None:
    # In a separate process: most of these run in C, where nothing interrupts them.
    program = """
import sys, time
from pumice.status import InvalidArgumentError
from pumice.study.definition.expression import Expression
for text in sys.argv[1:]:
    began = time.process_time()
    try:
        Expression(text).evaluate({"n": 9})
    except InvalidArgumentError as error:
        assert len(error.message) < 500, error.message
    taken = time.process_time() - began
    assert taken < 1, f"{text[:80]} took {taken:g} s"
"""
    result = subprocess.run(
        [sys.executable, "-c", program, *UNBOUNDED], check=False, capture_output=True, text=True, timeout=30
    )
    assert result.returncode == 0, result.stderr


def test_rounding_is_that_of_python() -> None:
    rounded = Expression("round(n, m)")
    for number in (*range(-20, 21), 1234, -98765, 4999, 5000, 5001, 10**6):
        for digits in range(-8, 3):
            assert rounded.evaluate({"n": number, "m": digits}) == round(number, digits)


def test_texts_are_formatted() -> None:
    assert Expression("'%dxf32=%%' % n").evaluate({"n": 4}) == "4xf32=%"
    assert len(str(Expression("'%999d' % n").evaluate({"n": 4}))) == 999


def test_not_a_number_goes_through() -> None:
    result = Expression("n * 2").evaluate({"n": math.nan})
    assert isinstance(result, float) and math.isnan(result)


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4))
def test_cdiv_is_the_least_that_holds_all(dividend: int, divisor: int) -> None:
    groups = Expression("cdiv(n, m)").evaluate({"n": dividend, "m": divisor})
    assert isinstance(groups, int)
    assert (groups - 1) * divisor < dividend <= groups * divisor


@pytest.mark.slow
@given(st.text(max_size=40))
def test_any_text_is_an_expression_or_a_clear_error(text: str) -> None:
    try:
        Expression(text).evaluate({"n": 3})
    except InvalidArgumentError as error:
        assert error.message


def test_every_function_can_be_called() -> None:
    for name in FUNCTIONS:
        arguments = "n, 2" if name in ("min", "max", "cdiv") else "n"
        assert Expression(f"{name}({arguments})").evaluate({"n": 4}) in (2, 4)


def test_templates_have_expressions_anywhere() -> None:
    template = Template({"a": ["$n", {"shape": ["$n // m", 3]}], "b": "n", "c": {"0": "$m"}})
    assert template.names == {"n", "m"}
    assert [path for path, _ in template.expressions] == ["a[0]", "a[1].shape[0]", "c.0"]
    assert template.fill({"n": 8, "m": 2}) == {"a": [8, {"shape": [4, 3]}], "b": "n", "c": {"0": 2}}


def test_errors_in_templates_have_their_path() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        Template({"a": [1, {"b": "$n +"}]})
    assert caught.value.location == "a[1].b"
    with pytest.raises(InvalidArgumentError) as caught:
        Template([["$n / m"]]).fill({"n": 1, "m": 0})
    assert caught.value.location == "[0][0]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(JSON)
def test_json_values_stay_what_they_are(value: object) -> None:
    assert as_json_value(value) == value


@pytest.mark.parametrize("value", [{"a": [1, math.nan]}, {"a": [1, b""]}, {"a": [1, {1, 2}]}, {"a": [1, {None: 1}]}])
def test_what_json_has_not_is_refused(value: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        as_json_value(value)
    assert caught.value.location == "a[1]"
