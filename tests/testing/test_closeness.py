"""``assert_close``: tolerances by dtype, messages, and pictures of where arrays differ."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from PIL import Image

from pumice.status import InvalidArgumentError
from pumice.testing import NotCloseError, assert_close, tolerance
from pumice.testing.pictures import difference_map, difference_picture


def failure(got: object, expected: object, **options: float) -> NotCloseError:
    with pytest.raises(NotCloseError) as caught:
        assert_close(got, expected, **options)  # type: ignore[arg-type]
    return caught.value


@pytest.mark.parametrize(
    "dtype",
    [
        np.float16,
        np.float32,
        np.float64,
        np.complex64,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e5m2,
    ],
)
def test_a_tolerance_is_some_units_in_the_last_place_of_its_dtype(dtype: type) -> None:
    rtol, atol = tolerance(dtype)
    unit = float(ml_dtypes.finfo(np.float32 if dtype is np.complex64 else dtype).eps)
    assert unit <= rtol <= 1.1e-7 if dtype is np.float64 else unit <= rtol <= 20 * unit
    one = np.ones(4, dtype)
    assert_close((one * (1 + 0.9 * rtol)).astype(dtype), one)
    failure((np.ones(4) * (1 + 4 * (rtol + atol)) + unit).astype(dtype), one)


def test_integers_are_equal_or_not() -> None:
    assert tolerance(np.int8) == tolerance(bool) == tolerance(ml_dtypes.int4) == (0, 0)
    assert_close(np.array([1, 2], np.uint8), [1, 2])
    largest = np.array([2**64 - 1], np.uint64)
    assert "difference 1" in str(failure(largest, largest - np.uint64(1)))
    assert_close([True, False], [True, False])
    failure([True], [False])
    assert_close(np.array([3, 4]), [4, 4], atol=1)


def test_special_values() -> None:
    special = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert_close(special, special)
    assert "3 of 3" in str(failure(special, np.zeros(3)))
    failure(special, special, equal_nan=False)
    assert_close(special.astype(ml_dtypes.bfloat16), special, rtol=0, atol=0)
    failure(np.float32(1e30), np.float32(np.inf), rtol=0.5)
    assert_close(np.zeros((0, 3)), np.zeros((0, 3)))


def test_a_number_is_expected_of_every_element_and_doubles_of_any_float() -> None:
    assert_close(np.full((2, 3), 0.1, np.float16), 0.1)
    assert_close(np.full(3, 2, np.float32), 2)
    assert_close(np.array([1, 2], np.float16), [1, 2])
    assert_close(np.full(3, 0.1, np.float32), np.full(3, 0.1))


def test_what_cannot_be_compared_is_refused() -> None:
    for got, expected, words in (
        (np.zeros(3), np.zeros(4), r"got shape \(3,\), expected \(4,\)"),
        (np.zeros(3, int), 0.5, "of integers expect integers"),
        (np.array(["a"]), np.array(["a"]), "got dtype <U1"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            assert_close(got, expected)
    with pytest.raises(InvalidArgumentError, match="atol is a number of 0 or more, got nan"):
        assert_close(1.0, 1.0, atol=float("nan"))


def test_the_message() -> None:
    got = np.zeros((40, 130), np.float32)
    got[4:8, 66:] = 1
    got[5, 66] = -7
    assert str(failure(got, 0.0)).splitlines() == [
        "256 of 5200 elements differ (4.92 %), by more than 1e-05 + 1.3e-06 * |expected|; float32[40, 130]",
        "  largest [5, 66]: got -7.0, expected 0.0, difference 7",
        *(f"  [4, {column}]: got 1.0, expected 0.0, difference 1" for column in range(66, 71)),
        "  and 251 more",
        "  where: rows 4 to 7, columns 66 to 129 of 40 x 130; a cell is 3 x 3 elements: + some differ, # all",
        *(f"  {row:>2} {'.' * 44}" for row in (0,)),
        f"   3 {'.' * 22}{'+' * 22}",
        f"   6 {'.' * 22}{'+' * 22}",
        *(f"  {row:>2} {'.' * 44}" for row in range(9, 40, 3)),
    ]
    assert str(failure(np.float32(2), 1, rtol=0, atol=0)).splitlines() == [
        "1 of 1 elements differ (100 %); float32[]",
        "  the value: got 2.0, expected 1, difference 1",
    ]
    with pytest.raises(NotCloseError, match=r"^the blurred row: 1 of 2"):
        assert_close([1, 2], [1, 3], what="the blurred row")


@pytest.mark.parametrize(
    ("shape", "where", "words"),
    [
        ((7,), 3, "elements 3 to 3 of 7, in rows of 7"),
        ((1000,), 999, "elements 999 to 999 of 1000, in rows of 64; a cell is an element"),
        ((100_000,), 5, "elements 5 to 5 of 100000, in rows of 1024; a cell is 7 x 16 elements"),
        ((8, 8, 3), (2, 5, 1), "rows 2 to 2, columns 5 to 5 of 8 x 8"),
        ((2, 5, 8, 8), (1, 3, 2, 4), r"where in [1, 3]: rows 2 to 2, columns 4 to 4 of 8 x 8"),
    ],
)
def test_maps_of_any_shape(shape: tuple[int, ...], where: tuple[int, ...], words: str) -> None:
    wrong = np.zeros(shape, bool)
    wrong[where] = True
    lines = difference_map(wrong)
    assert words in lines[0]
    cells = "".join(line.split()[-1] for line in lines[1:])
    assert len(lines) <= 17 and max(map(len, lines[1:])) <= 80 and len(cells) - cells.count(".") == 1
    picture = difference_picture(wrong.astype(np.float32), np.zeros(shape, np.float32), wrong)
    assert picture.dtype == np.uint8 and picture.shape[2] == 3 and max(picture.shape) < 2000
    third = picture[:, -((picture.shape[1] - 16) // 3) :]
    assert (third[..., 0] > 200).any() == (max(wrong.shape) < 10_000)


def test_maps_show_the_part_with_most_differences() -> None:
    wrong = np.zeros((3, 4, 9), bool)
    wrong[0, 0, 0] = True
    wrong[2, 1:3, :] = True
    assert difference_map(wrong)[0].startswith("  where in [2] (1 other part differs): rows 1 to 2, columns 0 to 8")
    assert [line.split()[1] for line in difference_map(wrong)[1:]] == [
        ".........",
        "#########",
        "#########",
        ".........",
    ]


def test_saved_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    got = np.zeros((8, 8), ml_dtypes.bfloat16)
    got[1, 2] = np.nan
    error = failure(got, np.arange(64).reshape(8, 8).astype(np.float32), atol=100)
    assert error.save(tmp_path) == ["got.npy", "expected.npy", "difference.png"]
    assert np.isnan(np.load(tmp_path / "got.npy")[1, 2])
    pixels = np.asarray(Image.open(tmp_path / "difference.png"))
    side = pixels.shape[0]
    assert pixels.shape == (side, 3 * side + 16, 3)
    assert tuple(pixels[side // 8 + 2, 2 * side // 8 + 2]) == (255, 0, 255)  # not finite
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    assert error.save(tmp_path) == ["got.npy", "expected.npy"]
