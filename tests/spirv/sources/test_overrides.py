"""Values of WGSL's overrides, in the text that is compiled."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.spirv.sources.overrides import OverrideValue, with_values
from pumice.status import InvalidArgumentError, NotFoundError, PumiceError

TEXT = """override n: u32 = 4;  // override no: u32;
/* override nor: f32; */ @id(7) override scale: f32;
override block = 64u;
override twice
  = n * 2u;
override on = true;
override small: f16 = 1.5h; override plain = -3; override real = 2.5;
"""


def test_defaults_and_values() -> None:
    lines = with_values(TEXT, {"scale": 2, "n": np.uint32(9)}).splitlines()
    assert len(lines) == len(TEXT.splitlines())
    assert lines[0] == "const n: u32 = u32(9);  // override no: u32;"
    assert lines[1] == "/* override nor: f32; */ const scale: f32 = f32(2.0);"
    assert lines[2] == "const block: u32 = 64u;"
    assert (lines[3], lines[4]) == ("const twice = n * 2u;", "")
    assert lines[5] == "const on: bool = true;"
    assert lines[6] == "const small: f16 = 1.5h; const plain: i32 = -3; const real: f32 = 2.5;"


@pytest.mark.parametrize(
    ("values", "line", "text"),
    [
        ({7: 0.1}, 1, "scale: f32 = f32(0.1);"),
        ({"block": 32}, 2, "block: u32 = u32(32);"),
        ({"twice": 3}, 3, "twice = 3;"),
        ({"on": False}, 5, "on: bool = false;"),
        ({"small": 2}, 6, "small: f16 = f16(2.0);"),
        ({"plain": -(1 << 31)}, 6, "plain: i32 = i32(-2147483648);"),
    ],
)
def test_literals(values: dict[int | str, OverrideValue], line: int, text: str) -> None:
    assert text in with_values(TEXT, {7: 1, **values}).splitlines()[line]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({}, InvalidArgumentError, r"override scale has no default.*specialization=\{'scale': 1\}"),
        ({7: 1, "no": 1}, NotFoundError, r"no override 'no'; it has: n, scale \(id 7\), block, twice"),
        ({7: 1, 8: 1}, NotFoundError, "no override 8"),
        ({7: 1, "scale": 1}, InvalidArgumentError, "scale is given twice, by its name and by its id 7"),
        ({7: 1, "n": -1}, InvalidArgumentError, "override n is u32, which has no value '-1'"),
        ({7: 1, "n": 1 << 32}, InvalidArgumentError, "is u32"),
        ({7: 1, "n": 1.5}, InvalidArgumentError, "is u32"),
        ({7: 1, "on": 2}, InvalidArgumentError, "is bool"),
        ({7: float("nan")}, InvalidArgumentError, "is f32, which has no value 'nan'"),
        ({7: "2"}, InvalidArgumentError, "scale takes a number, got '2'"),
    ],
)
def test_refusals(values: dict[int | str, OverrideValue], error: type[PumiceError], message: str) -> None:
    with pytest.raises(error, match=message):
        with_values(TEXT, values)
