import numpy as np
import pytest
from classifier import BIAS, WEIGHTS, Classifier

from pumice.testing import assert_close

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 8


@pytest.fixture
def classifier(pumice_session):
    return Classifier(pumice_session)


def test_scores(classifier):
    assert_close(classifier.scores(ROWS), ROWS @ WEIGHTS + BIAS)


def test_scores_of_zeros(classifier):
    assert_close(classifier.scores(np.zeros((4, 3), np.float32)), np.tile(BIAS, (4, 1)))


@pytest.mark.limit_live("0 buffers", warmups=1)
def test_a_call_leaves_nothing(classifier):
    for _ in range(3):
        classifier.scores(ROWS)


@pytest.mark.gpu
def test_speed(classifier):
    raise AssertionError("there is no GPU here")


def test_shape(classifier):
    with pytest.raises(ValueError, match=r"expected shape \(4, 3\)"):
        classifier.scores(ROWS[:2])
