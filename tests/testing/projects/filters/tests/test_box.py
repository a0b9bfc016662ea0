import filters
import numpy as np
import pytest

from pumice.testing import assert_close


def reference(picture):
    padded = np.pad(picture.astype(np.float64), 1, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3))
    return np.nanmean(windows, axis=(2, 3))


@pytest.fixture
def box(pumice_kernel):
    return pumice_kernel(filters.BOX)


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (37, 21)])
def test_it_is_the_mean_of_the_neighbours(box, shape):
    picture = np.random.default_rng(1).random(shape, np.float32)
    assert_close(filters.box(box, picture), reference(picture))


@pytest.mark.timeout_device(60)
def test_a_large_picture(box):
    picture = np.ones((512, 300), np.float32)
    assert_close(filters.box(box, picture), 1.0)


@pytest.mark.needs("VK_KHR_cooperative_matrix_of_the_future")
def test_not_here(box):
    raise AssertionError


def test_arguments_are_checked():
    with pytest.raises(AttributeError):
        filters.box(None, None)
