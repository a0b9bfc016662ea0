"""Calling conventions: texts that IREE's files hold, and texts that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.status import IncompatibleError, InvalidArgumentError
from pumice.vm.bytecode.calling_convention import CallingConvention, Repeated


@pytest.mark.parametrize(
    ("text", "arguments", "results"),
    [
        ("", (), ()),
        ("0", (), ()),
        ("0v", (), ()),
        ("0v_v", (), ()),
        ("0_", (), ()),
        ("0_i", (), ("i",)),
        ("0ii_v", ("i", "i"), ()),
        ("0iIfFr_rFfIi", ("i", "I", "f", "F", "r"), ("r", "F", "f", "I", "i")),
        ("0iICrD_i", ("i", "I", Repeated(("r",))), ("i",)),
        ("0riiiICiDCiirIID_v", ("r", "i", "i", "i", "I", Repeated(("i",)), Repeated(("i", "i", "r", "I", "I"))), ()),
    ],
)
def test_what_a_text_means(text: str, arguments: tuple[object, ...], results: tuple[str, ...]) -> None:
    convention = CallingConvention.parse(text)
    assert (convention.arguments, convention.results, convention.text) == (arguments, results, text)
    assert convention.is_variadic == ("C" in text)


_SCALARS = st.text("iIfFr", max_size=12)
_ARGUMENTS = st.lists(st.one_of(_SCALARS, st.text("iIfFr", min_size=1, max_size=5).map("C{}D".format)), max_size=5)


@pytest.mark.slow
@given(_ARGUMENTS.map("".join), _SCALARS)
def test_parsing_and_writing_are_inverse(arguments: str, results: str) -> None:
    text = f"0{arguments or 'v'}_{results or 'v'}"
    convention = CallingConvention.parse(text)
    assert convention.canonical == text
    assert CallingConvention.parse(convention.canonical) is convention
    assert len(convention.results) == len(results)


def test_equality_is_of_meaning() -> None:
    assert CallingConvention.parse("0i") == CallingConvention.parse("0i_v")
    assert hash(CallingConvention.parse("0i")) == hash(CallingConvention.parse("0i_v"))
    assert CallingConvention.parse("0i") != CallingConvention.parse("0I")


@pytest.mark.parametrize(
    "text",
    [
        "i_i",
        "0x",
        "0iv",
        "0i_iv",
        "0C",
        "0Ci",
        "0CD_v",
        "0D",
        "0iD_v",
        "0CCiDD_v",
        "0CvD_v",
        "0i_CiD",
        "0i_i_i",
        "0 i",
        "0é",
    ],
)
def test_malformed_texts_name_the_place(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="character [0-9]+: expected"):
        CallingConvention.parse(text)


def test_another_version_is_incompatible() -> None:
    with pytest.raises(IncompatibleError, match="expected version 0, got 1"):
        CallingConvention.parse("1ii_i")


def test_length_is_bounded() -> None:
    longest = "0" + "i" * 65535
    assert len(CallingConvention.parse(longest).arguments) == 65535
    with pytest.raises(InvalidArgumentError, match="at most 65536 characters"):
        CallingConvention.parse(longest + "i")


@pytest.mark.slow
@given(st.text("01iIfFrvCD_", max_size=20))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        convention = CallingConvention.parse(text)
    except (InvalidArgumentError, IncompatibleError):
        return
    assert CallingConvention.parse(convention.canonical) == convention
