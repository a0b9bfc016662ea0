"""A classifier as a compiled program."""

from pathlib import Path

import numpy as np

import pumice

PROGRAM = Path(__file__).parent / "classifier.mlir"
WEIGHTS = np.array([[1, -1], [0.5, 2], [0, 1]], np.float32)
BIAS = np.array([0.25, -0.25], np.float32)


class Classifier:
    """Loads the program into a session, with weights that stay on the device."""

    def __init__(self, session):
        session.load(pumice.compile(PROGRAM))
        self._scores = session.lookup("classifier.scores")
        self._weights = [session.device.asarray(one) for one in (WEIGHTS, BIAS)]

    def scores(self, rows):
        return self._scores(rows, *self._weights)
