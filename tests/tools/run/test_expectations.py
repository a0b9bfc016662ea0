"""``difference`` against NumPy's ``isclose``, whose rule is the same, and what it says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pumice.formats.element_type import ElementType
from pumice.tools.run.expectations import DEFAULT_RTOL, Tolerances, difference
from pumice.tools.run.keys import Array, BindingKey, BufferArgument

KEY = BindingKey("2", 0, 2, "", 0)


def differs(
    got: Array,
    expected: Array,
    *,
    got_type: ElementType | None = None,
    expected_type: ElementType | None = None,
    atol: float | None = None,
    rtol: float | None = None,
) -> str | None:
    given_type = expected_type or ElementType.from_dtype(expected.dtype)
    argument = BufferArgument(KEY, expected.shape, given_type, expected)
    return (
        difference("binding[2]", got, got_type or ElementType.from_dtype(got.dtype), argument, Tolerances(atol, rtol))
        or None
    )


NEAR = st.sampled_from([0.0, -0.0, 1.0, 1.00005, 1.0002, 1e6, 1e6 + 5, 1e6 + 100, np.inf, -np.inf, np.nan, 3e38])


@pytest.mark.slow
@given(
    hnp.arrays(np.float32, 6, elements=NEAR.map(np.float32)),
    hnp.arrays(np.float32, 6, elements=NEAR.map(np.float32)),
    st.sampled_from([None, 0.0, 1e-3]),
    st.sampled_from([None, 0.0, 1e-2]),
)
def test_floats_as_numpy_compares_them(a: Array, b: Array, atol: float | None, rtol: float | None) -> None:
    with np.errstate(all="ignore"):
        close = np.isclose(
            a.astype(np.float64),
            b.astype(np.float64),
            atol=1e-4 if atol is None else atol,
            rtol=1e-5 if rtol is None else rtol,
            equal_nan=True,
        )
    said = differs(a, b, atol=atol, rtol=rtol)
    assert (said is None) == bool(close.all())
    if said is not None:
        assert f": {np.count_nonzero(~close)} of 6 element(s) differ" in said


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.bool_, "V4"])
def test_all_else_has_to_be_equal(dtype: str) -> None:
    raw = np.arange(64, dtype=np.uint8) % (2 if dtype is np.bool_ else 251)
    a = raw.view(dtype)
    b = a.copy()
    assert differs(a, b) is None
    b[1:2] = a[:1]
    # Tolerances are for floats.
    said = differs(a, b, atol=1e9, rtol=1e9)
    assert said is not None and "1 of " in said and "\n  [1]: expected " in said


def test_large_integers_are_not_compared_as_floats() -> None:
    a = np.array([2**63, 2**53 + 1], np.uint64)
    assert differs(a, a + np.uint64(1)) is not None


@pytest.mark.parametrize(
    ("dtype", "atol"),
    [(np.float16, 1e-3), (ml_dtypes.bfloat16, 1e-2), (np.float32, 1e-4), (np.float64, 1e-4), (np.complex64, 1e-4)],
)
def test_default_tolerances_by_type(dtype: type, atol: float) -> None:
    zero = np.zeros(1, dtype)
    assert Tolerances().of(ElementType.from_dtype(dtype))[0] == atol
    assert differs(np.array([atol * 0.9], dtype), zero) is None
    assert differs(np.array([atol * 1.1], dtype), zero) is not None
    assert DEFAULT_RTOL == 1e-5


def test_shape_and_type_have_to_be_the_same() -> None:
    four = np.zeros(4, np.float32)
    assert differs(four, four.reshape(2, 2)) == "binding[2]: expected 2x2xf32, got 4xf32"
    assert differs(four, four.astype(np.float64)) == "binding[2]: expected 4xf64, got 4xf32"
    assert differs(four, four.view(np.int32)) == "binding[2]: expected 4xi32, got 4xf32"


def test_signless_integers_fit_either_sign() -> None:
    unsigned = np.array([2**32 - 1], np.uint32)
    assert differs(unsigned, unsigned.view(np.int32)) is None
    assert differs(unsigned.view(np.int32), unsigned) is None
    signed = unsigned.view(np.int32)
    assert differs(unsigned, signed, expected_type=ElementType.SINT_32) == "binding[2]: expected 1xsi32, got 1xui32"


def test_the_first_few_are_named_with_their_index() -> None:
    a = np.zeros((3, 4), np.int32)
    b = a.copy()
    b[1:] = 5
    said = differs(a, b)
    assert said is not None
    assert said.splitlines()[0] == "binding[2]: 8 of 12 element(s) differ from what was expected"
    assert said.splitlines()[1] == "  [1,0]: expected 5, got 0"
    assert said.splitlines()[-1] == "  and 3 more"
    assert differs(np.array(1, np.int32), np.array(2, np.int32)) == (
        "binding[2]: 1 of 1 element(s) differ from what was expected\n  expected 2, got 1"
    )
